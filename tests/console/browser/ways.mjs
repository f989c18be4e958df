// The three ways of docs/reference/console.md, by keyboard, with their keys counted: node browser/ways.mjs PROGRAM
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { signIn } from '../support/browser.mjs';
import { run, test } from '../support/suite.mjs';

const docs = readFileSync(new URL('../../../docs/reference/console.md', import.meta.url), 'utf8');

/** Returns the number of keys that the line of a way has in the docs. */
function documented(way) {
  const row = docs.split('\n').find((one) => one.startsWith(`| ${way} |`));
  assert.ok(row, `docs/reference/console.md has no line "${way}"`);
  return Number(/(\d+) keys?\b/.exec(row)?.[1] ?? 0);
}

/** Presses keys and counts them. Typed text is not counted. */
class Keys {
  count = 0;

  constructor(page) {
    this.page = page;
  }
  async press(...keys) {
    for (const key of keys) {
      ++this.count;
      await this.page.keyboard.press(key);
    }
  }
  async type(text) {
    await this.page.keyboard.type(text);
  }
  /** Goes on by Tab until the focus is on an element with this text. */
  async tabTo(text) {
    for (let tries = 0; tries < 60; ++tries) {
      await this.press('Tab');
      if ((await this.page.evaluate(() => document.activeElement?.textContent ?? '')).includes(text)) return;
    }
    assert.fail(`Tab does not reach ${text}`);
  }
}

async function begin(page) {
  await signIn(page);
  await page.locator('.grid .row').first().waitFor();
  return new Keys(page);
}
const ends = (keys, way) => assert.equal(keys.count, documented(way), way);

test('which applications are broken, and since which commit', async ({ page }) => {
  const keys = await begin(page);
  const first = await page.locator('.grid .row').first().innerText();
  assert.match(first, /Degraded/);
  assert.match(first, /[0-9a-f]{7}/, 'the row has its revision');
  ends(keys, 'Which applications are broken?');
  await keys.press('/');
  await keys.type('is:failing');
  await keys.press('Enter');
  await page.locator('[data-count]').getByText(/of \d+/).waitFor();
  ends(keys, 'only these');

  const way = await begin(page);
  await way.press('Enter', 'Enter'); // into the rows, open the first one
  await page.getByRole('heading', { name: 'Attention' }).waitFor();
  await way.press('3');
  await page.locator('.timeline li').first().waitFor();
  assert.match(await page.locator('.timeline li').first().innerText(), /current/);
  ends(way, 'Since which commit?');
  await way.press('4');
  await page.getByRole('region', { name: 'Differences' }).or(page.getByRole('heading', { name: 'Nothing differs from Git' })).waitFor();
  ends(way, 'what differs from Git now');
});

test('who changed what yesterday', async ({ page }) => {
  const keys = await begin(page);
  await keys.press('/');
  await keys.type('changed:<2d -changed:<1d');
  await keys.press('Enter');
  await page.getByRole('heading', { name: 'Nothing matches' }).or(page.locator('.grid .row').first()).waitFor();
  ends(keys, 'Who changed what yesterday, in Git?');
  const audit = await begin(page);
  await audit.press('g', 'l');
  await page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor();
  await audit.press('d');
  await page.waitForURL(/from=.*until=/);
  ends(audit, 'and in the control plane?');
});

test('how it is undone', async ({ page }) => {
  const keys = await begin(page);
  await keys.press('Enter', 'Enter');
  await page.getByRole('heading', { name: 'Attention' }).waitFor();
  await keys.press('3');
  const commit = page.locator('.timeline li').first().getByRole('link').first();
  const revision = await commit.innerText();
  assert.match(await commit.getAttribute('href'), /^https:\/\/git\.example\.com\//);
  await keys.tabTo(revision);
  ends(keys, 'How is it undone?');
});

test('a rollback begins at its panel', async ({ page, expect }) => {
  expect(/token/); // the runtime of the test has no address
  const keys = await begin(page);
  await keys.press('Enter', 'Enter');
  await page.getByRole('heading', { name: 'Attention' }).waitFor();
  await keys.press('b');
  await page.getByRole('dialog').waitFor();
  ends(keys, 'where automated sync is off: roll back to an earlier deployment');
});

await run(process.argv);
