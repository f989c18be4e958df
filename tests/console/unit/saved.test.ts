import { beforeEach, expect, it, vi } from 'vitest';

type Saved = typeof import('../../../apps/control-plane/console/src/pages/applications/saved');
let kept: string | null;
const heard: ((event: { key: string; newValue: string | null }) => void)[] = [];

/** Another page of the browser: it has the same storage, and a memory of its own. */
async function page(): Promise<Saved> {
  vi.resetModules();
  return import('../../../apps/control-plane/console/src/pages/applications/saved');
}

beforeEach(() => {
  kept = null;
  heard.length = 0;
  vi.stubGlobal('localStorage', { getItem: () => kept, setItem: (_: string, text: string) => { kept = text; } });
  vi.stubGlobal('addEventListener', (_: string, call: (typeof heard)[number]) => heard.push(call));
});

it('a view that another page has saved is not lost', async () => {
  const [one, other] = [await page(), await page()];
  one.changeViews((all) => one.withView(all, 'mine', 'q=a'));
  other.changeViews((all) => other.withView(all, 'yours', 'q=b'));
  expect(other.savedViews.value.map(({ name }) => name)).toEqual(['mine', 'yours']);
  heard[0]!({ key: 'views', newValue: kept });
  heard[0]!({ key: 'theme', newValue: 'dark' });
  expect(one.savedViews.value.map(({ name }) => name)).toEqual(['mine', 'yours']);
});
