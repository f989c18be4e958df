// The documents in the console's help: node browser/help.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { newPage, signIn } from '../support/browser.mjs';
import { fits, run, test } from '../support/suite.mjs';

const finder = (scope) => scope.getByRole('textbox', { name: 'Search the documents' });
const results = (scope) => scope.locator('.found a');
/** Opens the contents and returns the address of a page that has sections. */
async function anyPage(page) {
  await page.goto('/help');
  const links = page.locator('.contents-page a');
  await links.first().waitFor();
  return links.filter({ hasText: 'The console' }).first().getAttribute('href');
}

test('`?` finds a section by keyboard alone, and loads nothing from elsewhere', async ({ page, daemon }) => {
  const hosts = new Set();
  const documents = [];
  page.on('request', (request) => { hosts.add(new URL(request.url()).host); if (request.url().includes('documents-')) documents.push(request.url()); });
  await signIn(page);
  assert.deepEqual(documents, [], 'the list does not load the documents');
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Help' });
  await finder(sheet).waitFor();
  await sheet.getByText('Everywhere').waitFor();
  await page.keyboard.type('browser reaches');
  await results(sheet).first().waitFor();
  await axe(page, 'the sheet with results');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  const first = await results(sheet).first().getAttribute('href');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), first);
  await page.keyboard.press('Enter');
  await sheet.waitFor({ state: 'detached' });
  await page.locator('.document').waitFor();
  const { pathname, hash } = new URL(page.url());
  assert.equal(pathname + hash, first);
  assert.deepEqual([...hosts], [new URL(daemon.url).host]);
  assert.equal(documents.length, 1);
});

test('a search has an address, marks its words, and says which word is nowhere', async ({ page }) => {
  await signIn(page);
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await page.getByRole('heading', { name: 'Help', level: 1 }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('global.codefresh.url');
  await results(page).first().waitFor();
  assert.equal(new URL(page.url()).searchParams.get('q'), 'global.codefresh.url');
  assert.match(await page.locator('.found mark').first().innerText(), /global\.codefresh\.url/i);
  await finder(page).fill('runtime zebra-crossing');
  await page.getByText('Nothing has all of these words. No page has zebra-crossing.').waitFor();
  await page.goto('/help?q=sign+on');
  await results(page).first().waitFor();
  assert.equal(await finder(page).inputValue(), 'sign on');
  await finder(page).focus();
  await page.keyboard.press('Enter');
  await page.locator('.document').waitFor();
  await page.goBack();
  await results(page).first().waitFor();
});

test('a page has its tables, code to copy, and links to other pages and the web', async ({ page }) => {
  await signIn(page);
  const address = await anyPage(page);
  await page.goto(address);
  await page.getByRole('heading', { name: 'The console', level: 1 }).waitFor();
  await page.locator('.document table').first().waitFor();
  await page.getByText('On this page').click();
  await page.locator('.contents a').last().click();
  const { hash } = new URL(page.url());
  assert.notEqual(hash, '');
  const top = await page.locator(`section[data-at="${hash.slice(1)}"]`).evaluate((one) => one.getBoundingClientRect().top);
  assert.ok(top < 900, `the section is in sight, at ${top}`);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H2');
  await page.locator('.document figure').first().getByRole('button', { name: 'Copy' }).click();
  await page.locator('.document figure').first().getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator('.document figure pre').first().innerText());
  const other = page.locator('.document a[href^="/help/"]:not(.anchor)').filter({ hasNot: page.locator('xpath=ancestor::details') }).last();
  const to = await other.getAttribute('href');
  await other.click();
  await page.waitForURL((url) => url.pathname + url.hash === to);
  const outside = await page.evaluate(() => [...document.querySelectorAll('.document a[href^="http"]')].filter((one) => one.target !== '_blank' || !one.rel.includes('noreferrer')).length);
  assert.equal(outside, 0);
});

test('an address that has moved or does not exist leads on', async ({ page }) => {
  await signIn(page);
  const address = await anyPage(page);
  await page.goto(`/help/no-such-folder/${address.split('/').at(-1)}`);
  await page.getByRole('heading', { name: 'The console', level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, address);
  await page.goto('/help/no-such-page');
  await page.getByText('There is no page no-such-page.').waitFor();
  await page.locator('.contents-page a').first().waitFor();
});

test('the palette finds sections, too', async ({ page }) => {
  await signIn(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('quarantined');
  const option = page.getByRole('option', { name: /Documents/ }).first();
  await option.waitFor();
  await option.click();
  await page.locator('.document').waitFor();
});

test('documents that can not be loaded are a failure with a way on', async ({ page, expect }) => {
  expect(/503|Failed to load resource/);
  await signIn(page);
  await page.route('**/documents-*.json', (route) => route.fulfill({ status: 503, headers: { 'X-Request-Id': 'from-a-proxy' }, json: { message: 'The proxy is full' } }));
  await page.goto('/help');
  const alert = page.getByRole('alert').first();
  await alert.getByText('could not read the documents').waitFor();
  await page.unroute('**/documents-*.json');
  await alert.getByRole('button', { name: 'Try again' }).click();
  await finder(page).fill('console');
  await results(page).first().waitFor();
});

for (const theme of ['light', 'dark']) {
  test(`every page of the help is accessible and as wide as its place, ${theme}`, async ({ browser, daemon }) => {
    const opened = await newPage(browser, daemon, { theme, width: theme === 'dark' ? 390 : 1440 });
    const { page } = opened;
    await signIn(page);
    await page.goto('/help');
    await page.locator('.contents-page a').first().waitFor();
    await axe(page, 'contents');
    const addresses = await page.locator('.contents-page a').evaluateAll((all) => all.map((one) => ({ address: one.getAttribute('href'), title: one.textContent })));
    await page.goto('/help?q=runtime+token');
    await results(page).first().waitFor();
    await axe(page, 'results');
    await fits(page, 'results');
    for (const [at, { address, title }] of addresses.entries()) {
      // axe takes long for large pages, and a page that is wider than its place is so on a phone.
      const isRead = at % 10 === (theme === 'dark' ? 0 : 5);
      if (theme === 'light' && !isRead) continue;
      await page.evaluate((to) => {
        const link = document.body.appendChild(document.createElement('a'));
        link.href = to;
        link.click();
        link.remove();
      }, address);
      await page.getByRole('heading', { name: title, level: 1, exact: true }).waitFor();
      await page.locator('.document').waitFor();
      await fits(page, address);
      if (isRead && await page.locator('.document *').count() < 3_000) await axe(page, address);
    }
    assert.deepEqual(opened.problems, []);
    await opened.close();
  });
}

await run(process.argv);
