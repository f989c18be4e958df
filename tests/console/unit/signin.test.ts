import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { signInError } from '../../../apps/control-plane/console/src/pages/signin/errors';

describe('sign-in', () => {
  it('says what went wrong and repeats nothing that a link brought', () => {
    expect(signInError('sso-denied')).toContain('did not let you in');
    expect(signInError('<b>call 555')).toBe('The sign-in did not succeed.');
    expect(signInError(undefined)).toBe('');
  });
  it('has a sentence for each code of the program', () => {
    let header: string;
    try {
      header = readFileSync(new URL('../../../apps/control-plane/sso/login_store.hpp', import.meta.url), 'utf8');
    } catch {
      return; // a program without single sign-on
    }
    const codes = [...header.matchAll(/"(sso-[a-z-]+)"/g)].map(([, code]) => code!);
    expect(codes.length).toBeGreaterThan(0);
    for (const code of codes) expect(signInError(code), code).not.toBe('The sign-in did not succeed.');
  });
});
