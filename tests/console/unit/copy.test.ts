import { afterEach, expect, it, vi } from 'vitest';

vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} });
afterEach(() => void vi.unstubAllGlobals());

it('a page without a clipboard says that it could not copy', async () => {
  const { copyText } = await import('../../../apps/control-plane/console/src/ui/parts');
  vi.stubGlobal('navigator', {}); // as browsers have it for an address with http
  expect(await copyText('secret')).toBe(false);
  vi.stubGlobal('navigator', { clipboard: { writeText: async () => {} } });
  expect(await copyText('secret')).toBe(true);
});
