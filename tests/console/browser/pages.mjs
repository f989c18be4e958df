// The console in a browser, against the real program: node browser/pages.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
//
// Each case has a page of its own. A case fails when the page writes errors to its console, throws, or breaks its policy.
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { forgetSessions, launch, newPage, signIn } from '../support/browser.mjs';
import { application, Daemon, deployment, seed, until } from '../support/daemon.mjs';
import { StreamProxy } from '../support/stream_proxy.mjs';
import { countCalls } from '../support/work.mjs';
import { addAccessCases } from './access.mjs';
import { addBudgets } from './budgets.mjs';

const [program, wanted = ''] = process.argv.slice(2);

const cases = [];
const test = (name, options, run) => cases.push({ name, ...(run ? options : {}), run: run ?? options });

const rowNames = (page) => page.locator('.grid .row .name').allInnerTexts();
const grid = (page) => page.getByRole('grid', { name: 'Applications' });
const filter = (page) => page.getByRole('combobox', { name: 'Filter' });

test('a wrong password is refused and the right one opens the address that was asked for', async ({ page, expect }) => {
  expect(/401/);
  await page.goto('/runtimes/prod-eu');
  await page.getByLabel('Name').fill('ann');
  await page.getByLabel('Password').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('The name or the password is wrong.').waitFor();
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'prod-eu', level: 1 }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/runtimes/prod-eu');
  // Scripts cannot read the session.
  assert.equal(await page.evaluate(() => document.cookie), '');
});

test('ways to sign in come from the program, and a failed one is explained', { proxied: { '/console/api/v1/sign-in': { password: true, providers: [
  { name: 'corp', title: 'Corporate <b>login</b>', path: '/console/api/v1/sso/corp' }, { name: 'evil', title: 'Evil', path: 'https://evil.example/' }] } } }, async ({ page }) => {
  await page.goto('/sign-in?to=/runtimes&error=sso-unknown-user');
  await page.getByRole('alert').getByText('there is no user of yours here').waitFor();
  const link = page.getByRole('link', { name: 'Sign in with Corporate <b>login</b>' });
  assert.equal(await link.getAttribute('href'), '/console/api/v1/sso/corp?to=%2Fruntimes');
  assert.equal(await page.getByText('Evil').count(), 0);
  await axe(page, 'sign-in with providers');
});

test('another site is not where a sign-in leads to', async ({ page, expect }) => {
  expect(/401/);
  await page.goto('/sign-in?to=//evil.example/x');
  await page.getByLabel('Name').fill('ann');
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await grid(page).waitFor();
});

test('the list shows the worst first, filters by text and facets, and the address has it all', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  const first = await page.locator('.grid .row').first().innerText();
  assert.match(first, /Degraded/);
  await filter(page).fill('heath:degraded');
  await page.locator('#filter-notes').getByText('No key `heath`. Did you mean `health`?').waitFor();
  await filter(page).fill('health:degraded');
  await page.locator('[data-count]').getByText('5 of').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Missing/ }).click();
  await page.locator('[data-count]').getByText('7 of').waitFor();
  assert.equal(await filter(page).inputValue(), 'health:degraded,Missing');
  assert.equal(new URL(page.url()).searchParams.get('q'), 'health:degraded,Missing');
  await page.getByRole('columnheader', { name: 'Name', exact: true }).getByRole('button').click();
  assert.equal(new URL(page.url()).searchParams.get('sort'), 'name');
  const names = await rowNames(page);
  assert.deepEqual(names, [...names].sort());
  await page.goto(`${page.url()}&unknown=kept`);
  await page.locator('[data-count]').getByText('7 of').waitFor();
  await filter(page).fill('nothing-like-this health:degraded');
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
  await page.getByRole('button', { name: /^Drop nothing-like-this: 5 match/ }).click();
  await page.locator('[data-count]').getByText('5 of').waitFor();
  assert.equal(new URL(page.url()).searchParams.get('unknown'), 'kept');
});

test('everything is reached by keyboard: filter, list, application, tabs and back', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('runtime:prod-eu ap');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator('[data-count]').getByText('1 of').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'api', level: 1 }).waitFor();
  await page.keyboard.press('2');
  await page.getByRole('treeitem', { name: /Deployment/ }).waitFor();
  await page.getByRole('treeitem', { name: /Application/ }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'Resource' }).getByText('2 of 4 pods crash').waitFor();
  await page.keyboard.press('3');
  await page.getByText('Bump chart to 4.2.1').first().waitFor();
  await page.keyboard.press('Escape');
  await grid(page).waitFor();
  assert.equal(await filter(page).inputValue(), 'runtime:prod-eu ap');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByRole('heading', { name: 'Runtimes', level: 1 }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('checkout');
  await page.getByRole('option', { name: /checkout/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'checkout', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Help' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Help' }).waitFor({ state: 'detached' });
});

test('the list is ordered by keyboard alone', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  await grid(page).focus();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.closest('[role="columnheader"]')?.textContent), 'Name');
  await page.keyboard.press('Enter');
  await page.waitForURL(/[?&]sort=name/);
  await until('the order by name', async () => {
    const names = await rowNames(page);
    return names.join() === [...names].sort().join();
  });
  await page.keyboard.press('Enter');
  await page.waitForURL(/[?&]sort=-name/);
});

test('a runtime, its groups and what is not known about it', async ({ page }) => {
  await signIn(page);
  await page.goto('/runtimes');
  await page.getByRole('link', { name: 'lab', exact: true }).waitFor();
  await page.getByRole('link', { name: 'prod-eu', exact: true }).click();
  await page.getByText(/of \d+ applications are Degraded/).waitFor();
  await page.getByText("1 of 2 clusters can't be reached.").waitFor();
  await page.goto('/runtimes/lab');
  await page.getByText('It is registered and has not reported yet.').waitFor();
  await page.goto('/runtimes/nowhere');
  await page.getByRole('heading', { name: 'There is no runtime nowhere' }).waitFor();
  await page.goto('/applications/prod-eu/argocd/nothing');
  await page.getByRole('heading', { name: 'There is no application nothing' }).waitFor();
});

test('the audit log shows who did what, and is an administrator\'s', async ({ page, browser, daemon }) => {
  await signIn(page);
  await page.goto('/audit');
  await page.getByText('createRuntime').first().waitFor();
  const other = await newPage(browser, daemon);
  await signIn(other.page, 'bob');
  assert.equal(await other.page.getByRole('link', { name: 'Audit log' }).count(), 0);
  await other.page.goto('/audit');
  await other.page.getByRole('heading', { name: 'You may not see the audit log' }).waitFor();
  await other.close();
  await page.getByLabel('Result').selectOption('refused');
  await until('the refusal of bob', async () => {
    await page.keyboard.press('r');
    return await page.getByRole('row').filter({ hasText: 'bob' }).filter({ hasText: 'Refused' }).count() > 0;
  });
  await page.getByRole('button', { name: 'Yesterday' }).click();
  await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
});

test('texts of others stay texts', async ({ page, daemon, tokens }) => {
  const evil = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>{{7*7}}';
  const app = application('evil', { health: 'Degraded', message: evil, author: evil, commitMessage: evil, project: evil, uid: 'uid-evil', labels: { evil: 'x' },
    resources: [{ version: 'v1', kind: evil, namespace: evil, name: evil, status: 'OutOfSync', health: { status: 'Degraded', message: evil } }], phase: 'Failed', operationMessage: evil });
  app.spec.source.repoURL = 'javascript:window.broken=1';
  app.metadata.name = 'evil"><b>x';
  await daemon.report(tokens['prod-eu'], app);
  await signIn(page);
  await page.goto('/applications?q=evil');
  await grid(page).getByText('<img src=x').first().waitFor();
  assert.deepEqual(await rowNames(page), ['evil"><b>x']);
  await page.locator('.grid .row').first().click();
  await page.getByRole('heading', { name: 'evil"><b>x', level: 1 }).waitFor();
  for (const tab of ['overview', 'tree', 'timeline']) {
    await page.locator(`nav.tabs a[href$="${tab}"]`).click();
    await page.waitForTimeout(100);
    assert.equal(await page.evaluate(() => globalThis.broken ?? document.querySelectorAll('main img, main script, a[href^="javascript"]').length), 0, tab);
  }
  await daemon.report(tokens['prod-eu'], { ...app, metadata: { ...app.metadata, name: 'evil' } });
});

test('a user who is disabled is signed out at once, by the stream', async ({ browser, daemon }) => {
  const other = await newPage(browser, daemon);
  other.expect(/401/);
  await signIn(other.page, 'bob');
  await other.page.getByText('Live', { exact: true }).waitFor();
  const users = await daemon.send('/console/api/v1/users', { method: 'GET' });
  const { _id: id } = users.find((user) => user.userName === 'bob');
  await daemon.send(`/console/api/v1/users/${id}`, { method: 'PATCH', body: { disabled: true } });
  await other.page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await daemon.send(`/console/api/v1/users/${id}`, { method: 'PATCH', body: { disabled: false } });
  assert.deepEqual(other.problems, []);
  await other.close();
});

test('an invitation makes a user, once', async ({ page, daemon, expect }) => {
  expect(/40[14]/);
  const { me } = await daemon.graphql('{ me { activeAccount { id } } }');
  const { inviteUrl } = await daemon.send(`/api/accounts/${me.activeAccount.id}/adduser`, { body: { userDetails: 'kim@example.com' } });
  const link = new URL(inviteUrl, daemon.url);
  await page.goto(link.pathname + link.search);
  await page.getByText('kim@example.com').waitFor();
  await axe(page, 'invitation');
  await page.getByLabel('Name').fill('kim');
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.getByRole('button', { name: 'Accept' }).click();
  await grid(page).waitFor();
  await page.context().clearCookies();
  await page.goto(link.pathname + link.search);
  await page.getByRole('heading', { name: "This invitation can't be used" }).waitFor();
});

test('what a first visit loads is small, and so is each page behind it', async ({ page, daemon }) => {
  const gzip = new Map();
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (pathname.startsWith('/assets/') && pathname.endsWith('.js')) gzip.set(pathname, 0);
  });
  const measure = async () => {
    for (const path of gzip.keys()) {
      const head = await fetch(daemon.url + path, { method: 'HEAD', headers: { 'Accept-Encoding': 'gzip' } });
      gzip.set(path, Number(head.headers.get('content-length')));
    }
    return [...gzip.values()].reduce((sum, bytes) => sum + bytes, 0);
  };
  await page.goto('/sign-in');
  await page.getByLabel('Name').waitFor();
  let before = await measure();
  console.log(`        first load ${(before / 1024).toFixed(1)} KiB of script by gzip`);
  assert.ok(before <= 40 * 1024, `the first load has ${before} bytes by gzip`);
  await signIn(page);
  const places = { '/applications': '.grid .row', '/applications?as=cards': '.card', '/applications?as=tiles': '.tiles canvas', '/applications/prod-eu/argocd/api/tree': '.tree .node', '/applications/prod-eu/argocd/api/diff': '.diff-page', '/applications/prod-eu/argocd/api/journal': 'tbody tr', '/runtimes': 'tbody tr', '/audit': 'tbody tr', '/access/users': 'tbody tr', '/help': '.contents-page a' };
  for (const [address, part] of Object.entries(places)) {
    await page.goto(address);
    await page.locator(part).first().waitFor();
    const all = await measure();
    console.log(`        ${address} ${((all - before) / 1024).toFixed(1)} KiB more`);
    assert.ok(all - before <= 40 * 1024, `${address} loads ${all - before} bytes`);
    before = all;
  }
  console.log(`        all ${(before / 1024).toFixed(1)} KiB`);
  assert.ok(before <= 180 * 1024, `all scripts have ${before} bytes`);
});

test('a first visit reads all applications once', async ({ page }) => {
  await signIn(page);
  await page.goto('/runtimes');
  await page.locator('tbody tr').first().waitFor();
  let readings = 0;
  page.on('request', (request) => { if (request.url().endsWith('/graphql') && request.postDataJSON().query.startsWith('query Applications(')) ++readings; });
  await page.goto('/applications');
  await page.locator('.grid .row').first().waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  assert.equal(readings, 1);
});

test('a key in the filter draws the page once, and no row that stays as it is', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  const before = await rowNames(page);
  await filter(page).fill('-qqz'); // no name has that, so that all rows stay
  const calls = await countCalls(page, { page: 'data-count', row: 'two-lines', navigation: 'aria-label":`Pages`', list: ': write ' });
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))));
  await page.keyboard.type('z');
  await frames();
  await calls(); // the field opens its suggestions
  assert.deepEqual(await rowNames(page), before);
  for (const letter of 'zzz') {
    await page.keyboard.type(letter);
    await frames();
    const { page: pages, row, navigation } = await calls();
    // The page also draws when the pulse of the second moves, which is none of the key's.
    assert.ok(pages >= 1 && pages <= 2, `the page is drawn ${pages} times`);
    assert.equal(row, 0, 'no row is drawn again');
    assert.equal(navigation, 0);
  }
  await filter(page).fill('');
  await frames();
  assert.ok((await calls()).page > 0, 'what is counted is there');
});

test('the list has three forms, and keys walk each', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.keyboard.press('v');
  await page.getByRole('group', { name: 'Applications by health' }).waitFor();
  assert.equal(new URL(page.url()).searchParams.get('as'), 'cards');
  const first = page.locator('.board section').first();
  await first.getByRole('heading').getByText('Degraded').waitFor();
  const card = await first.locator('.card .name').first().innerText();
  await page.keyboard.press('j');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Home');
  await page.keyboard.press('x');
  await page.getByText('1 chosen').first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: card, level: 1 }).waitFor();
  await page.goBack();
  await first.waitFor();
  await page.keyboard.press('v');
  const tiles = page.getByRole('listbox', { name: 'Applications' });
  await tiles.waitFor();
  assert.equal(new URL(page.url()).searchParams.get('as'), 'tiles');
  await tiles.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  const named = await page.locator('#tile-active').innerText();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: named.split(',')[0], level: 1 }).waitFor();
  await page.keyboard.press('Escape');
  await tiles.waitFor();
  // The picture has something in it, and readers have its numbers.
  const colours = await page.locator('.tiles canvas').evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 0) seen.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return seen.size;
  });
  assert.ok(colours > 4, `${colours} colours`);
  await page.getByRole('table', { name: 'Applications by runtime and health' }).getByRole('row').filter({ hasText: 'prod-eu' }).waitFor();
  await page.getByLabel('Group by').selectOption('cluster');
  await page.getByRole('table', { name: 'Applications by cluster and health' }).getByRole('row').filter({ hasText: 'in-cluster' }).waitFor();
});

test('columns, a choice of rows and a saved view', async ({ page }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.locator('summary').filter({ hasText: 'Columns' }).click();
  await page.getByLabel('Labels').check();
  await page.getByLabel('Commit').uncheck();
  await page.keyboard.press('Escape');
  await page.getByRole('columnheader', { name: 'Labels' }).waitFor();
  assert.equal(await page.getByRole('columnheader', { name: 'Commit' }).count(), 0);
  await filter(page).fill('label:team=pay runtime:prod-eu');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator('[data-count]').getByText(' of ').waitFor();
  const names = await rowNames(page);
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Shift+X');
  await page.getByText('3 chosen').first().waitFor();
  await page.getByRole('button', { name: `All ${names.length} that match` }).click();
  await page.getByRole('button', { name: 'Copy the names' }).click();
  await page.getByText('Copied').first().waitFor();
  assert.deepEqual((await page.evaluate(() => navigator.clipboard.readText())).split('\n'), [...names].sort());
  await page.locator('summary').filter({ hasText: 'Views' }).click();
  await page.getByLabel('Name of the view').fill('Payments in Europe');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'Make start page' }).click();
  await page.goto('/');
  await page.locator('[data-count]').getByText(`${names.length} of`).waitFor();
  assert.equal(await filter(page).inputValue(), 'label:team=pay runtime:prod-eu');
  await page.getByRole('columnheader', { name: 'Labels' }).waitFor();
  // The neighbours of an application are those of the list.
  await page.locator('.grid .row').first().click();
  await page.getByText(`1 of ${names.length}`).waitFor();
  const [first, second] = names;
  await page.getByRole('heading', { name: first, level: 1 }).waitFor();
  await page.keyboard.press(']');
  await page.getByRole('heading', { name: second, level: 1 }).waitFor();
  await page.keyboard.press('[');
  await page.getByRole('heading', { name: first, level: 1 }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('[data-count]').getByText(`${names.length} of`).waitFor();
  await page.locator('summary').filter({ hasText: 'Views' }).click();
  await page.getByRole('button', { name: 'Delete the view Payments in Europe' }).click();
  await page.goto('/');
  await grid(page).waitFor();
  assert.equal(await filter(page).inputValue(), '');
});

test('a session that ends leaves the page as it is', async ({ page, context, expect }) => {
  expect(/401/);
  await signIn(page);
  await page.goto('/runtimes/prod-eu');
  await page.getByText(/of \d+ applications are Degraded/).waitFor();
  await context.clearCookies();
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await dialog.waitFor();
  await page.getByText(/of \d+ applications are Degraded/).waitFor();
  for (let time = 0; time < 3; ++time) await page.keyboard.press('Escape');
  await dialog.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await page.getByText(/of \d+ applications are Degraded/).waitFor();
});

test('a session that ended is begun again at an identity provider beside the page', { proxied: { '/console/api/v1/sign-in': { password: true, providers: [{ name: 'corp', title: 'Corp', path: '/console/api/v1/sso/corp' }] } } }, async ({ page, context, expect }) => {
  expect(/401/);
  await signIn(page);
  await page.goto('/runtimes/prod-eu');
  await page.getByText(/of \d+ applications are Degraded/).waitFor();
  await context.clearCookies();
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  const link = dialog.getByRole('link', { name: 'Sign in with Corp' });
  await link.waitFor();
  assert.equal(await link.getAttribute('target'), '_blank', 'the page behind stays as it is');
  await dialog.getByText('This page goes on when you are signed in there.').waitFor();
  await axe(page, 'a session that ended, with a provider');
});

test('an application whose page fails does not stand for the next one', { proxied: {}, graphql: ({ query, variables }) => (query.startsWith('query Application(') && variables.name === 'api'
  ? JSON.stringify({ data: { application: { metadata: { uid: 'x', runtime: 'prod-eu', name: 'api' }, presence: 'LIVE', healthStatus: 'HEALTHY', syncStatus: 'SYNCED', resources: 7, history: {} } } }) : undefined) }, async ({ page }) => {
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/api');
  await page.getByRole('alert').getByText('could not show this page').waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('checkout');
  await page.getByRole('option', { name: /checkout/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'checkout', level: 1 }).waitFor();
  assert.equal(await page.getByText('could not show this page').count(), 0);
});

test('Enter that ends a word of an input method is not the page\'s', async ({ page }) => {
  await signIn(page);
  const composed = (field) => field.evaluate((one) => one.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })));
  await filter(page).fill('message:修');
  assert.equal(await composed(filter(page)), true, 'the key is left to the input method');
  assert.equal(await filter(page).evaluate((one) => one === document.activeElement), true);
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Page, application or filter' });
  await field.fill('runtimes');
  assert.equal(await composed(field), true);
  assert.equal(await field.inputValue(), 'runtimes', 'nothing was opened');
});

test('a text that is selected to beyond its dialog does not close it', async ({ page }) => {
  await signIn(page);
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox', { name: 'Page, application or filter' });
  await field.fill('check');
  const box = await field.boundingBox();
  await page.mouse.move(box.x + 40, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(4, 4);
  await page.mouse.up();
  assert.equal(await field.inputValue(), 'check');
  await page.mouse.click(4, 4);
  await field.waitFor({ state: 'detached' });
});

test('what is chosen stays chosen while one of it is looked at', async ({ page }) => {
  await signIn(page);
  await grid(page).focus();
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  const count = page.locator('.chosen-count', { hasText: '2 chosen' });
  await count.waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('navigation', { name: 'Views of the application' }).waitFor();
  await page.goBack();
  await count.waitFor();
  await count.getByRole('button', { name: 'Clear' }).click();
  await count.waitFor({ state: 'detached' });
});

test('without a stream the page reads its data again, and what is new waits', { stream: 'absent' }, async ({ page, daemon, tokens }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.getByText('Read every 15 s').waitFor();
  const before = await rowNames(page);
  await daemon.report(tokens.staging, application('aaa-new', { health: 'Degraded', uid: 'uid-aaa-new' }));
  await page.keyboard.press('r');
  const apply = page.getByRole('button', { name: /Apply: 1 new/ });
  await apply.waitFor();
  assert.deepEqual(await rowNames(page), before);
  await page.keyboard.press('.');
  await apply.waitFor({ state: 'detached' });
  assert.equal((await rowNames(page))[0], 'aaa-new');
});

test('what the program stores appears at once, in place', async ({ page, daemon, tokens }) => {
  await signIn(page);
  await page.getByText('Live', { exact: true }).waitFor();
  await grid(page).waitFor();
  const before = await rowNames(page);
  const row = page.locator('.grid .row').filter({ hasText: 'prod-us' }).filter({ hasText: 'billing' });
  await filter(page).fill('runtime:prod-us billing');
  await row.getByText('Healthy').waitFor();
  await daemon.report(tokens['prod-us'], application('billing', { number: 900, health: 'Progressing', phase: 'Running', uid: 'uid-prod-us-billing', commitMessage: 'Seen live' }));
  await row.getByText('Progressing').waitFor();
  await row.getByText('Seen live').waitFor();
  await filter(page).fill('');
  await until('the list again', async () => (await rowNames(page)).length === before.length);
  await daemon.report(tokens['prod-us'], application('zzz-live', { health: 'Degraded', uid: 'uid-zzz-live' }));
  await page.getByRole('button', { name: /Apply: .*1 new/ }).waitFor();
});

test('a control plane that restarts is followed again, and the page stays as it is', async ({ page, daemon, tokens, expect }) => {
  expect(/ERR_|503/);
  await signIn(page);
  await page.getByText('Live', { exact: true }).waitFor();
  await grid(page).waitFor();
  await filter(page).fill('runtime:prod-us billing');
  const row = page.locator('.grid .row').filter({ hasText: 'billing' });
  await row.waitFor();
  await daemon.restart(async () => {
    await page.getByText('Reconnecting').waitFor();
    assert.ok(await row.isVisible());
  });
  // The change comes to a page that may not be connected again yet.
  await daemon.report(tokens['prod-us'], application('billing', { number: 902, health: 'Healthy', uid: 'uid-prod-us-billing', commitMessage: 'Seen after the restart' }));
  await page.getByText('Live', { exact: true }).waitFor();
  await row.getByText('Seen after the restart').waitFor();
  assert.equal(await page.getByText(/runtimes? (?:is|are) silent/).count(), 0);
});

test('an open application follows its events', async ({ page, daemon, tokens }) => {
  await signIn(page);
  await page.goto('/applications/prod-us/argocd/search');
  await page.getByText('It is healthy and as Git wants it.').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await daemon.report(tokens['prod-us'], application('search', { number: 901, health: 'Degraded', uid: 'uid-prod-us-search', resources: deployment('search', { health: 'Degraded', message: 'no image' }) }));
  await page.getByText('Deployment search: no image.').waitFor();
});

test('the resources of an open application change in place, by a topic of its own', { stream: true }, async ({ page, proxy }) => {
  await signIn(page);
  await page.getByText('Live', { exact: true }).waitFor();
  proxy.send('reset', {});
  const last = await until('an event that has a number', () => proxy.lastId);
  await filter(page).fill('runtime:prod-us catalog');
  await page.locator('[data-count]').getByText('1 of').waitFor();
  await page.locator('.grid .row').click();
  await page.getByRole('link', { name: 'Tree' }).click();
  await page.getByRole('treeitem', { name: /^catalog Service · Healthy/ }).waitFor();
  await until('the topic of the application', () => proxy.topics.includes('app:uid-prod-us-catalog'));
  assert.equal(proxy.resumedFrom, String(last)); // the list is not read again for it
  proxy.send('patch', { rows: [{ topic: 'app:uid-prod-us-catalog', uid: 'uid-of-a-service', kind: 'Service', namespace: 'catalog', name: 'catalog', runtime: 'prod-us', health: 'DEGRADED', sync: 'SYNCED', seenAt: new Date(Date.now() + 60_000).toISOString() }] });
  await page.getByRole('treeitem', { name: /^catalog Service · Degraded/ }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await until('the end of the topic', () => proxy.topics.length === 2);
});

test('the tree folds by the address and by keys, dims what is not looked for, and has a list', async ({ page, daemon, tokens }) => {
  await daemon.report(tokens['prod-eu'], application('folded', { uid: 'uid-folded', resources: deployment('folded', { pods: 14 }) }));
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/folded/tree');
  const fold = page.getByRole('treeitem', { name: /^14 × ConfigMap/ });
  await fold.waitFor();
  const drawn = () => page.getByRole('treeitem').count();
  const before = await drawn();
  await fold.focus();
  await page.keyboard.press('ArrowRight');
  await until('the nodes of the fold', async () => await drawn() === before + 14);
  assert.ok(new URL(page.url()).searchParams.get('fold'));
  await page.reload();
  await until('the nodes of the fold after a reload', async () => await drawn() === before + 14);
  await fold.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await until('the fold', async () => await drawn() === before);
  await page.keyboard.press('f');
  await until('all nodes', async () => await drawn() === before + 13);
  await page.keyboard.press('/');
  await page.keyboard.type('folded-3');
  await page.getByText('1 of 17 resources').waitFor();
  assert.equal(await page.locator('.node:not(.dim)').count(), 1);
  await page.getByLabel('Form').selectOption('list');
  await page.getByRole('button', { name: 'folded-3' }).click();
  await page.getByRole('complementary', { name: 'Resource' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('complementary', { name: 'Resource' }).waitFor({ state: 'detached' });
  assert.match(new URL(page.url()).pathname, /folded\/tree$/);
  await daemon.report(tokens['prod-eu'], application('folded', { uid: 'uid-folded', number: 2 }), { isDeleted: true });
});

test('what is missing is explained: no resources, a bad source, an application that was deleted', async ({ page, daemon, tokens }) => {
  await daemon.report(tokens.staging, application('hollow', { uid: 'uid-hollow' }));
  await daemon.report(tokens.staging, application('sourceless', { uid: 'uid-sourceless', sync: 'Unknown' }), { errors: [{ type: 'sync', level: 'error', message: 'apps/sourceless: app path does not exist', lastSeen: new Date().toISOString() }] });
  await signIn(page);
  await page.goto('/applications/staging/argocd/hollow/tree');
  await page.getByRole('heading', { name: '0 resources' }).waitFor();
  await page.getByText('Argo CD finds nothing to deploy: the path apps/hollow at main renders to no manifests.').waitFor();
  await page.goto('/applications/staging/argocd/sourceless/overview');
  await page.locator('.verdict').getByText("Argo CD can't compare it with its source: apps/sourceless: app path does not exist").waitFor();
  await page.getByRole('heading', { name: 'Conditions' }).waitFor();
  await page.getByRole('heading', { name: 'Images' }).waitFor();
  await page.goto('/applications/staging/argocd/hollow/overview');
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('It is healthy and as Git wants it.').waitFor();
  // It is deleted while it is looked at.
  await daemon.report(tokens.staging, application('hollow', { uid: 'uid-hollow', number: 2 }), { isDeleted: true });
  await page.getByText('It was deleted.').waitFor();
  await page.getByText('What follows is its last state').waitFor();
  await daemon.report(tokens.staging, application('sourceless', { uid: 'uid-sourceless', number: 2 }), { isDeleted: true });
});

test('a patch of the stream changes cells in place', { stream: true }, async ({ page, proxy }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  const before = await rowNames(page);
  const row = page.locator('.grid .row').filter({ hasText: 'prod-us' }).filter({ hasText: 'web' }).first();
  await row.getByText('Degraded').waitFor();
  proxy.send('patch', { rows: [{ topic: 'index', uid: 'uid-prod-us-web', health: 'Healthy', message: 'all is well', seenAt: new Date(Date.now() + 60_000).toISOString() }] });
  await row.getByText('Healthy').waitFor();
  await row.getByText('all is well').waitFor();
  assert.deepEqual(await rowNames(page), before);
  // A row of the filter that does not match any more stays until it is applied.
  await filter(page).fill('health:degraded');
  await page.locator('[data-count]').getByText(' of ').waitFor();
  const count = (await rowNames(page)).length;
  proxy.send('patch', { rows: [{ topic: 'index', uid: 'uid-staging-api', health: 'Healthy', seenAt: new Date(Date.now() + 60_000).toISOString() }] });
  await page.getByRole('button', { name: /Apply: 1 row/ }).waitFor();
  assert.equal((await rowNames(page)).length, count);
  await page.locator('.grid .row.dim').getByText('api').waitFor();
  await page.getByRole('button', { name: /Apply/ }).click();
  await until('the row to leave', async () => (await rowNames(page)).length === count - 1);
});

test('changes of a row leave nothing behind', { stream: true }, async ({ page, context, proxy, daemon }) => {
  await signIn(page);
  await page.goto(`${proxy.url}/applications?q=runtime:prod-us`);
  await page.locator('[data-count]').getByText(' of ').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  const cdp = await context.newCDPSession(page);
  const { applications: { edges } } = await daemon.graphql('{ applications { edges { node { metadata { uid runtime } } } } }');
  const uids = edges.map(({ node }) => node.metadata).filter(({ runtime }) => runtime === 'prod-us').map(({ uid }) => uid).slice(0, 15);
  let step = 0;
  const change = async (times) => {
    for (let time = 0; time < times; ++time) {
      ++step;
      const seenAt = new Date(Date.now() + 3_600_000 + step).toISOString();
      proxy.send('patch', { rows: uids.map((uid) => ({ topic: 'index', uid, message: `Change ${step}`, seenAt })) });
      await page.locator('.grid').getByText(`Change ${step}`, { exact: true }).first().waitFor();
    }
    await page.locator('.cell.changed').first().waitFor({ state: 'detached' });
  };
  // All objects of the page that nothing has let go of; the query collects garbage before it counts.
  const count = async () => {
    const { result } = await cdp.send('Runtime.evaluate', { expression: 'Object.prototype' });
    const { objects } = await cdp.send('Runtime.queryObjects', { prototypeObjectId: result.objectId, objectGroup: 'count' });
    const { result: length } = await cdp.send('Runtime.callFunctionOn', { objectId: objects.objectId, functionDeclaration: 'function () { return this.length; }' });
    await cdp.send('Runtime.releaseObjectGroup', { objectGroup: 'count' });
    return length.value;
  };
  await change(5); // a row that was drawn twice keeps what it was drawn from before
  const before = await count();
  await change(20);
  const grown = await count() - before;
  console.log(`        ${before} objects, ${grown} more after ${20 * uids.length} changes`);
  assert.ok(grown < uids.length * 20, `${grown} objects are left of ${20 * uids.length} changes`);
});

test('a broken stream is told, and resumes behind the last event', { stream: true }, async ({ page, proxy }) => {
  await signIn(page);
  await grid(page).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  // A row that is in sight: it keeps its place when it changes.
  const row = page.locator('.grid .row').filter({ hasText: 'prod-us' }).filter({ hasText: 'web' }).first();
  await row.getByText('Degraded').waitFor();
  proxy.send('patch', { rows: [{ topic: 'index', uid: 'uid-prod-us-web', health: 'Suspended', seenAt: new Date(Date.now() + 60_000).toISOString() }] });
  await row.getByText('Suspended').waitFor();
  const last = proxy.lastId;
  proxy.drop();
  await page.getByText('Reconnecting').waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  assert.equal(proxy.resumedFrom, String(last));
  proxy.send('gone', { topic: 'index', uids: ['uid-prod-us-web'] });
  await page.locator('.grid .row.dim').getByText('gone').waitFor();
});

// The stream is a script that says nothing: the true one tells that the runtime reports.
test('everything of a silent runtime shows its age', { stream: true }, async ({ page }) => {
  const since = new Date(Date.now() - 40 * 60_000);
  const clock = since.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  // The program calls a runtime silent after five minutes: here it says so at once.
  await page.route('**/2.0/api/graphql', async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    const runtimes = answer.data?.runtimes?.edges.map(({ node }) => node) ?? (answer.data?.runtime ? [answer.data.runtime] : []);
    for (const one of runtimes) if (one.metadata.name === 'prod-us') Object.assign(one, { available: false, lastUpdated: since.toISOString() });
    await route.fulfill({ response, json: answer });
  });
  await signIn(page);
  const told = new RegExp(`runtime silent since .*${clock}`);
  await page.getByText('1 runtime is silent: its rows show their age').waitFor();
  await filter(page).fill('runtime:prod-us');
  const rows = page.locator('.grid .row');
  await until('the age on every row', async () => await rows.count() > 0 && await rows.filter({ hasText: told }).count() === await rows.count());
  assert.match(await rows.first().innerText(), /as of .*\d\d:\d\d, runtime silent since/);
  await filter(page).fill('runtime:prod-eu');
  await page.locator('[data-count]').getByText(' of ').waitFor();
  assert.equal(await rows.filter({ hasText: told }).count(), 0);
  for (const address of ['/applications/prod-us/argocd/search/overview', '/runtimes', '/runtimes/prod-us', '/applications?q=runtime:prod-us&as=cards', '/applications?q=runtime:prod-us&as=tiles']) {
    await page.goto(address);
    await page.locator('main').getByText(told).first().waitFor();
  }
  await axe(page, 'a silent runtime');
});

test('a stream that stays lost is told above every page, with a way to try at once', { stream: true }, async ({ page, proxy, expect }) => {
  expect(/stream|ERR_/);
  await page.clock.install();
  await signIn(page);
  await grid(page).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  proxy.isBroken = true;
  proxy.drop();
  await page.getByText('Reconnecting').waitFor();
  assert.equal(await page.locator('.strip').count(), 0); // a short break is not worth a sentence
  await page.clock.fastForward(30_000);
  await page.locator('.strip').getByText(/Live updates stopped at \d\d:\d\d:\d\d\. Trying again/).waitFor();
  assert.ok(await grid(page).isVisible());
  // One region speaks, and it is the only one.
  assert.equal(await page.locator('[aria-live], [role=status]').count(), 1);
  await page.locator('[aria-live]').getByText('Live updates stopped').waitFor({ state: 'attached' });
  proxy.isBroken = false;
  await page.getByRole('button', { name: 'Now', exact: true }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.locator('.strip').waitFor({ state: 'detached' });
});

test('eight pages of one browser share one stream', { stream: true }, async ({ page, context, proxy, daemon }) => {
  await signIn(page);
  const pages = [page];
  for (let count = 1; count < 8; ++count) {
    const next = await context.newPage();
    await next.goto(`${proxy.url}/applications`);
    await grid(next).waitFor();
    pages.push(next);
  }
  assert.equal(proxy.streams, 1);
  proxy.send('patch', { rows: [{ topic: 'index', uid: 'uid-prod-us-api', health: 'Progressing', message: 'to all pages', seenAt: new Date(Date.now() + 60_000).toISOString() }] });
  await filter(pages[7]).fill('message:"to all"');
  for (const one of pages) {
    await one.bringToFront();
    await until('the patch in each page', () => one.evaluate(() => document.body.innerText.includes('to all pages')));
  }
  void daemon;
});

const AXE_PAGES = ['/applications', '/applications?q=nothing-like-this', '/applications?as=cards', '/applications?as=tiles', '/applications/prod-eu/argocd/api/overview', '/applications/prod-eu/argocd/api/tree', '/applications/prod-eu/argocd/api/timeline',
  '/runtimes', '/runtimes/prod-eu', '/runtimes/nowhere', '/audit', '/access/users', '/access/tokens'];
for (const theme of ['light', 'dark']) {
  test(`no page breaks an accessibility rule in the ${theme} theme`, { page: { theme } }, async ({ page }) => {
    await page.goto('/sign-in');
    await page.getByLabel('Name').waitFor();
    await axe(page, 'sign-in');
    await signIn(page);
    for (const address of AXE_PAGES) {
      await page.goto(address);
      await page.locator('h1').waitFor();
      await page.locator('.loading').first().waitFor({ state: 'detached' });
      await axe(page, address);
    }
    await page.goto('/applications');
    await grid(page).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('api');
    await axe(page, 'palette');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await axe(page, 'keys');
  });
}

addAccessCases(test, axe);

test('ten thousand applications are a list like any other', { many: true }, async ({ page }) => {
  await signIn(page);
  await page.locator('[data-count]').getByText('10000').waitFor({ timeout: 60_000 });
  assert.ok(await page.locator('.grid .row').count() < 60);
  await grid(page).focus();
  await page.keyboard.press('End');
  await until('the last row', async () => (await page.locator('.grid .row.active').innerText()).includes('app-'));
  await filter(page).fill('app-9999');
  await page.locator('[data-count]').getByText('1 of').waitFor();
});

addBudgets(test);

async function runCase(one, browser, shared) {
  if (one.many) forgetSessions();
  const { daemon, tokens } = one.many ? shared.many : shared.usual;
  const isProxied = one.stream || one.proxied;
  const proxy = isProxied ? await new StreamProxy(daemon.url, { isAbsent: one.stream === 'absent', answers: one.proxied, graphql: one.graphql }).start() : null;
  const opened = await newPage(browser, proxy ? { url: proxy.url } : daemon, one.page ?? {});
  if (one.stream === 'absent') opened.expect(/404.*console\/api\/v1\/stream/);
  try {
    await one.run({ ...opened, browser, daemon, tokens, proxy });
    assert.deepEqual(opened.problems, [], 'problems of the page');
  } finally {
    await opened.close();
    await proxy?.stop();
  }
}

async function seedMany(daemon) {
  const token = await daemon.addRuntime('large');
  const batch = 100;
  for (let number = 0; number < 10_000; number += batch) {
    await Promise.all(Array.from({ length: batch }, (_, index) => daemon.report(token, application(`app-${number + index}`, { number: number + index, resources: deployment('x') }))));
  }
  return { large: token };
}

const browser = await launch();
const shared = {};
let failed = 0;
try {
  const chosen = cases.filter((one) => one.name.includes(wanted) && (!(one.many || one.long) || process.env.GITOPS_LONG));
  if (chosen.some((one) => !one.many)) {
    const daemon = new Daemon(program);
    shared.usual = { daemon };
    await daemon.start();
    const page = await fetch(daemon.url, { headers: { Accept: 'text/html' } });
    if ((await page.text()).includes('built without its console')) {
      console.log('the control plane was built without its console');
      await browser.close();
      await daemon.stop();
      process.exit(77);
    }
    shared.usual.tokens = await seed(daemon);
  }
  if (chosen.some((one) => one.many)) {
    const daemon = new Daemon(program);
    shared.many = { daemon };
    await daemon.start();
    shared.many.tokens = await seedMany(daemon);
  }
  for (const one of chosen) {
    const begin = Date.now();
    try {
      await runCase(one, browser, shared);
      console.log(`ok      ${one.name} (${Date.now() - begin} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${one.name}\n${error.stack ?? error}`);
    }
  }
  console.log(failed === 0 ? `${chosen.length} cases passed` : `${failed} of ${chosen.length} cases failed`);
} finally {
  await browser.close();
  for (const { daemon } of Object.values(shared)) await daemon.stop();
}
process.exit(failed === 0 ? 0 : 1);
