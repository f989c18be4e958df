import { describe, expect, it } from 'vitest';

import { address, isOf, match, ownAddress, place } from '../../../apps/control-plane/console/src/shell/router';

describe('router', () => {
  it('takes an address apart and makes it again', () => {
    const { path, query } = place('/applications?q=health:degraded%20pay&sort=-changedAt&other=1');
    expect(path).toBe('/applications');
    expect(query.get('q')).toBe('health:degraded pay');
    expect(address(path, query)).toBe('/applications?q=health:degraded+pay&sort=-changedAt&other=1');
    expect(address('/a', new Map([['q', '']]))).toBe('/a');
  });
  it('keeps every text through an address', () => {
    for (const text of ['a+b', 'a b', '100%', 'a&b=c', '#x', 'ü€', '<b>"', 'a,b:c/d', "'"]) {
      expect(place(address('/x', new Map([['q', text]]))).query.get('q')).toBe(text);
    }
  });
  it('tells a thing from another one whose name begins like it', () => {
    expect(['/applications/a/b/shop', '/applications/a/b/shop/tree', '/applications/a/b/shop-2', '/applications/a/b'].map((path) => isOf(path, '/applications/a/b/shop'))).toEqual([true, true, false, false]);
  });
  it('matches patterns and decodes their parameters', () => {
    expect(match('/applications/:runtime/:namespace/:name', '/applications/prod/argocd/a%20b')).toEqual({ runtime: 'prod', namespace: 'argocd', name: 'a b' });
    expect(match('/runtimes', '/runtimes/')).toEqual({});
    expect(match('/runtimes/:name', '/runtimes')).toBeNull();
    expect(match('/runtimes/:name', '/runtimes/%zz')).toBeNull();
  });
  it('returns to addresses of its own alone', () => {
    expect(ownAddress('/runtimes?q=1')).toBe('/runtimes?q=1');
    for (const text of ['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)', '', undefined, '/sign-in', '/a\\b', ' /a']) {
      expect(ownAddress(text)).toBe('/');
    }
  });
});
