// Actions in a browser, from the real program's pages to the scripted app-proxy of a runtime:
// node browser/actions.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';

import { AppProxy, failing, forbidden, liveState } from '../support/app_proxy.mjs';
import { axe } from '../support/axe.mjs';
import { forgetSessions, launch, newPage, signIn } from '../support/browser.mjs';
import { application, Daemon, deployment, until } from '../support/daemon.mjs';
import { RealAppProxy } from '../support/real_app_proxy.mjs';

const [program, wanted = ''] = process.argv.slice(2);
const cases = [];
const test = (name, run) => cases.push({ name, run });

const SHOP = '/applications/act/argocd/shop';
const DIFFERENT = [['Deployment', 'web', 'OUT_OF_SYNC'], ['Service', 'web', 'SYNCED'], ['ConfigMap', 'new', 'OUT_OF_SYNC', 'MISSING'], ['Job', 'old', 'OUT_OF_SYNC', 'HEALTHY', true], ['ConfigMap', 'left', 'OUT_OF_SYNC', 'HEALTHY', true]];
const operation = (startedAt, phase = 'Running') => ({ phase, message: 'waiting for hooks', startedAt, finishedAt: null, operation: { initiatedBy: { username: 'dana' } } });

const bar = (page) => page.getByRole('group', { name: 'Actions' });
const button = (page, name) => bar(page).getByRole('button', { name });
const panel = (page, name) => page.getByRole('dialog', { name });
/** The element goes after the event of the dialog, which is hidden before. */
const closed = (page) => page.locator('dialog').waitFor({ state: 'detached' });
const outcome = (scope, word) => scope.locator('.outcome').filter({ hasText: word });

async function open(page, address = SHOP, heading = 'shop') {
  await page.goto(address);
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  await bar(page).waitFor();
}
async function show(page, who = 'ann', address = SHOP) {
  await signIn(page, who);
  await open(page, address);
}

test('a sync says what it will do and is done, by keyboard', async ({ page, proxy }) => {
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }), Sync: { sync: { metadata: { name: 'shop' } } } };
  await show(page);
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByText('Changes 1, creates 1. Leaves 2 that are not in Git any more: Job old, ConfigMap left.').waitFor();
  assert.equal(proxy.sent('Sync').length, 0, 'the panel never acts at once');
  await axe(page, 'sync panel');
  await dialog.getByLabel('Revision').focus();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await outcome(page, 'Done').getByText('Argo CD has begun the sync.').waitFor();
  const [sent] = proxy.sent('Sync');
  assert.deepEqual(sent.variables, { name: 'shop', namespace: 'argocd', options: { prune: false, dryRun: false } });
  assert.equal(sent.user, 'ann');
  assert.equal(sent.cookie, undefined, 'the session stays with the control plane');
  await outcome(page, 'Done').getByRole('button', { name: 'Dismiss' }).click();
  await outcome(page, 'Done').waitFor({ state: 'detached' });
  const secrets = await page.evaluate(() => [location.href, JSON.stringify(history.state), JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })].join());
  assert.ok(!secrets.includes('page_'), 'the token is in no storage');
});

test('what a sync deletes has to be typed', async ({ page, proxy }) => {
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT, automated: { prune: false } }), Sync: { sync: null } };
  await show(page);
  await button(page, /^Sync/).click();
  const dialog = panel(page, 'Sync shop');
  await dialog.getByLabel(/prune/).check();
  await dialog.getByText('Changes 1, creates 1, deletes 2: Job old, ConfigMap left.').waitFor();
  await dialog.getByText('Automated sync is on').waitFor();
  const send = dialog.getByRole('button', { name: 'Sync' });
  assert.equal(await send.getAttribute('aria-disabled'), 'true');
  await send.click({ force: true });
  assert.equal(proxy.sent('Sync').length, 0);
  await dialog.getByLabel('Type shop to confirm').fill('shop');
  await dialog.getByLabel('Revision').fill('v2');
  await dialog.getByText('What changes at v2 is not known before.').waitFor();
  await send.click();
  await outcome(page, 'Done').waitFor();
  assert.deepEqual(proxy.sent('Sync')[0].variables.options, { prune: true, dryRun: false, revision: 'v2' });
});

test('a sync of single objects changes those alone, and its operation has an address', async ({ page, proxy, daemon, tokens }) => {
  const startedAt = '2026-11-27T10:00:00Z';
  let began = false;
  proxy.answers = { LiveState: () => liveState({ resources: DIFFERENT, operation: began ? operation(startedAt) : null }), Sync: () => { began = true; return { sync: null }; } };
  await show(page);
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByRole('radio', { name: 'Only some' }).check();
  await dialog.getByText('Choose at least one object.').waitFor();
  await dialog.getByRole('checkbox', { name: /^ConfigMap new/ }).check();
  await dialog.getByText('Creates 1.').waitFor();
  await dialog.getByRole('checkbox', { name: /^Deployment web/ }).check();
  await dialog.getByText('Changes 1, creates 1.').waitFor();
  await axe(page, 'objects of a sync');
  await dialog.getByRole('button', { name: 'Sync' }).click();
  await outcome(page, 'Done').waitFor();
  assert.deepEqual(proxy.sent('Sync')[0].variables.options.resources, [{ group: '', kind: 'ConfigMap', namespace: 'shop', name: 'new' }, { group: '', kind: 'Deployment', namespace: 'shop', name: 'web' }]);
  await until('the operation in the address', () => new URL(page.url()).searchParams.get('op') === startedAt);
  const shown = page.getByRole('region', { name: 'Operation' });
  await shown.getByText('The runtime has not reported it yet.').or(shown.getByText('It is not the last one')).waitFor();
  await axe(page, 'an operation');
  // The address alone shows it, also that of an operation that is over.
  const link = page.getByRole('link', { name: 'Last sync' });
  await link.click();
  await shown.getByText('Succeeded').waitFor();
  await page.reload();
  await shown.getByText('Succeeded').waitFor();
  await shown.getByRole('button', { name: 'Close the operation' }).click();
  await shown.waitFor({ state: 'detached' });
  assert.equal(new URL(page.url()).search, '');
});

test('a panel has an address, which opens it and does nothing', async ({ page, proxy }) => {
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }) };
  await show(page, 'ann', `${SHOP}/overview?panel=sync`);
  await panel(page, 'Sync shop').getByText('Changes 1, creates 1.').waitFor();
  assert.equal(proxy.sent('Sync').length, 0);
  await page.keyboard.press('Escape');
  await closed(page);
  assert.equal(new URL(page.url()).search, '');
  await page.keyboard.press('r');
  await panel(page, 'Refresh shop').waitFor();
  await page.goBack();
  await closed(page);
  await page.goto(`${SHOP}/overview?panel=nonsense`);
  await bar(page).waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  // Whoever may not is told so by the panel, too.
  await show(page, 'bob', `${SHOP}/overview?panel=delete`);
  await panel(page, 'Delete shop').getByText('Only administrators of the account may do this').waitFor();
  assert.equal(await panel(page, 'Delete shop').getByRole('button', { name: 'Delete' }).getAttribute('aria-disabled'), 'true');
});

const REFUSALS = [
  ['a rule', forbidden(), /A rule: The runtime act found no rule that allows it.*Nothing was changed\..*can make a rule/],
  ['another operation', failing('an operation of shop is in progress', 'ARGO_CD_OPERATION_IN_PROGRESS', 409), /Argo CD: An operation of shop is in progress\. Nothing was changed\. Wait until/],
  ['a sync window', failing('cannot sync: blocked by sync window', 'INVALID_ARGUMENT', 400), /A sync window: Cannot sync: blocked by sync window\. Nothing was changed\./],
  ['Argo CD to the runtime', failing('Argo CD does not let the runtime do this; see the log of the runtime', 'ARGO_NOT_AVAILABLE', 503), /Argo CD: .*Nothing was changed\. Whoever manages Argo CD/],
  ['administrators only', failing('only an administrator of the account may do this', 'FORBIDDEN', 403), /The runtime: Only an administrator.*Nothing was changed\./],
  ['too many requests', 429, /The runtime: The runtime act has too many requests.*Nothing was changed\./],
  ['the object is gone', failing('Argo CD shows the runtime no application shop', 'NOT_FOUND_ERROR', 404), /Argo CD: Argo CD shows the runtime no application shop\. Nothing was changed\./],
];
test('each refusal says who refused and what would allow it, beside the button', async ({ page, proxy, expect }) => {
  expect(/429/);
  await show(page);
  for (const [name, answer, text] of REFUSALS) {
    proxy.answers = { Refresh: answer };
    await page.keyboard.press('r');
    const dialog = panel(page, 'Refresh shop');
    await dialog.getByRole('button', { name: 'Refresh', exact: true }).click();
    const said = dialog.getByRole('alert');
    await said.getByText('Refused').waitFor();
    assert.match(await said.innerText(), text, name);
    assert.match(await said.innerText(), /Request proxy-\d+/, name);
    if (name === 'a rule') await axe(page, 'a refusal');
    await page.keyboard.press('Escape');
    await closed(page);
    await outcome(page, 'Refused').getByRole('button', { name: 'Dismiss' }).click();
  }
});

test('a failure that came before the action changed nothing', async ({ page, proxy, expect }) => {
  expect(/503/);
  proxy.answers = { Refresh: failing('the rules of the account have not been fetched yet', 'UNAVAILABLE', 503) };
  await show(page);
  await page.keyboard.press('r');
  await panel(page, 'Refresh shop').getByRole('button', { name: 'Refresh', exact: true }).click();
  assert.match(await outcome(page, 'Failed').innerText(), /have not been fetched yet\. Nothing was changed\./);
});

test('a lost answer is Unknown, and the page finds out by itself', async ({ page, proxy, expect }) => {
  expect(/ERR_/);
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }), Sync: 'drop' };
  await show(page);
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByText('Changes 1').waitFor();
  await dialog.getByRole('button', { name: 'Sync' }).click();
  await outcome(dialog, 'Unknown').getByText('Check the timeline before trying again.').waitFor();
  await outcome(dialog, 'Unknown').getByText('Looking what happened').waitFor();
  await axe(page, 'unknown');
  proxy.answers.LiveState = liveState({ resources: DIFFERENT, operation: operation('2026-11-27T10:00:00Z') });
  await outcome(dialog, 'Unknown').getByText('An operation by dana has begun since, at 2026-11-27T10:00:00Z. It is Running.').waitFor({ timeout: 10_000 });
});

test('an answer that comes late does not close the panel that was opened meanwhile', async ({ page, proxy }) => {
  let answer;
  const late = new Promise((done) => { answer = done; });
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }), Refresh: () => late };
  await show(page);
  await page.keyboard.press('r');
  await panel(page, 'Refresh shop').getByRole('button', { name: 'Refresh', exact: true }).click();
  await until('the request', () => proxy.sent('Refresh').length === 1);
  await page.keyboard.press('Escape');
  await closed(page);
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByRole('button', { name: 'Sending' }).waitFor();
  answer({ refresh: { metadata: { name: 'shop' } } });
  await dialog.getByRole('button', { name: 'Sync', exact: true }).waitFor();
  assert.match(page.url(), /panel=sync/);
});

test('a runtime that the browser can not reach leaves nothing open', async ({ page, proxy, expect }) => {
  expect(/CORS|ERR_FAILED/);
  proxy.allowed = 'https://other.example';
  await show(page);
  await page.keyboard.press('r');
  const dialog = panel(page, 'Refresh shop');
  await dialog.getByRole('button', { name: 'Refresh', exact: true }).click();
  await outcome(dialog, 'Failed').getByText(`The runtime act could not be reached by your browser at ${proxy.url}. Nothing was sent.`).waitFor();
  await page.keyboard.press('Escape');
  await closed(page);
  await page.keyboard.press('s');
  await panel(page, 'Sync shop').getByRole('alert').getByText('could not be reached by your browser').waitFor();
  assert.equal(proxy.requests.length, 0);
});

test('an address that is newer than the page is asked after a reload', async ({ page, daemon, expect }) => {
  expect(/Content Security Policy|ERR_/);
  const moved = await new AppProxy(daemon, 'late').start();
  const token = await daemon.addRuntime('late', undefined, 'INGRESS');
  await daemon.report(token, application('moved', { uid: 'uid-late' }));
  await show(page, 'ann', SHOP);
  await page.goto('/applications/late/argocd/moved');
  await bar(page).waitFor();
  expect(/409/);
  await page.keyboard.press('r');
  const dialog = panel(page, 'Refresh moved');
  await dialog.getByRole('button', { name: 'Refresh', exact: true }).click();
  await outcome(dialog, 'Refused').getByText('The control plane: The runtime late has registered no address.').waitFor();
  await daemon.addRuntime('late', undefined, 'INGRESS', moved.url);
  moved.answers = { Refresh: { refresh: null } };
  await dialog.getByRole('button', { name: 'Refresh', exact: true }).click();
  await outcome(dialog, 'Failed').getByText('This page was loaded before the runtime late had the address').waitFor();
  await dialog.getByRole('button', { name: 'Load again' }).click();
  await bar(page).waitFor();
  await page.keyboard.press('r');
  await panel(page, 'Refresh moved').getByLabel(/Hard/).check();
  await panel(page, 'Refresh moved').getByRole('button', { name: 'Refresh', exact: true }).click();
  await outcome(page, 'Done').waitFor();
  assert.deepEqual(moved.sent('Refresh')[0].variables.options, { refresh: 'hard' });
  await moved.stop();
});

test('a rollback begins at the timeline, and automated sync forbids it before it is tried', async ({ page, proxy }) => {
  proxy.answers = { LiveState: liveState({ automated: { prune: true } }), Rollback: { appRollback: {} } };
  await show(page, 'ann', `${SHOP}/timeline`);
  await page.getByRole('button', { name: 'Roll back to here…' }).last().click();
  const dialog = panel(page, 'Roll back shop');
  await dialog.getByText('Automated sync is on, so a rollback would be undone at once.').waitFor();
  const send = dialog.getByRole('button', { name: 'Roll back' });
  assert.equal(await send.getAttribute('aria-disabled'), 'true');
  await axe(page, 'rollback panel');
  await send.focus();
  await page.keyboard.press('Enter');
  assert.equal(proxy.sent('Rollback').length, 0);
  await page.keyboard.press('Escape');
  await closed(page);
  proxy.answers.LiveState = liveState();
  await page.keyboard.press('b');
  await dialog.getByText('Automated sync').waitFor({ state: 'detached' });
  await dialog.getByRole('combobox', { name: /^To/ }).selectOption('1');
  await dialog.getByRole('button', { name: 'Roll back' }).click();
  await outcome(page, 'Done').getByText('Argo CD goes back to deployment no. 1.').waitFor();
  assert.deepEqual(proxy.sent('Rollback')[0].variables, { name: 'shop', namespace: 'argocd', historyId: 1, prune: false });
});

test('an operation that is in progress is named, and terminated', async ({ page, proxy, daemon, tokens }) => {
  await daemon.report(tokens.act, application('shop', { number: 3, uid: 'uid-shop', phase: 'Running', resources: deployment('shop') }));
  proxy.answers = { LiveState: liveState({ operation: operation('2026-11-27T10:00:00Z') }), Terminate: { terminateApplicationOperation: { terminated: true } } };
  await show(page);
  await page.keyboard.press('s');
  await panel(page, 'Sync shop').getByText(/Another operation is in progress: by dana since 27 Nov 2026/).waitFor();
  assert.equal(await panel(page, 'Sync shop').getByRole('button', { name: 'Sync' }).getAttribute('aria-disabled'), 'true');
  await page.keyboard.press('Escape');
  await closed(page);
  await page.keyboard.press('t');
  const dialog = panel(page, 'Terminate the operation of shop');
  await dialog.getByText('waiting for hooks').waitFor();
  await axe(page, 'terminate panel');
  await dialog.getByRole('button', { name: 'Terminate' }).click();
  await outcome(page, 'Done').getByText('Argo CD ends the operation.').waitFor();
  await daemon.report(tokens.act, application('shop', { number: 3, uid: 'uid-shop', resources: deployment('shop') }));
  proxy.answers.Terminate = { terminateApplicationOperation: { terminated: false } };
});

test('an application is deleted when its name is typed', async ({ page, proxy }) => {
  proxy.answers = { DeleteApplication: { deleteArgoApplication: null } };
  await show(page);
  await button(page, /^Delete/).click();
  const dialog = panel(page, 'Delete shop');
  await axe(page, 'delete panel');
  await dialog.getByLabel('Type shop to confirm').fill('sho');
  await page.keyboard.press('Enter');
  assert.equal(proxy.sent('DeleteApplication').length, 0);
  await dialog.getByLabel(/cascade/).uncheck();
  await dialog.getByText('Its objects stay in the cluster').waitFor();
  await dialog.getByLabel('Type shop to confirm').fill('shop');
  await page.keyboard.press('Enter');
  await outcome(page, 'Done').waitFor();
  assert.equal(proxy.sent('DeleteApplication')[0].variables.cascade, false);
});

test('what one may not do stays visible, with the reason', async ({ page, proxy, daemon }) => {
  proxy.answers = { Refresh: forbidden() };
  await daemon.graphql('mutation($rule: CreateAbacRuleInput!) { createAbacRule(createAbacRuleInput: $rule) { id } }', { rule: { entityType: 'gitopsApplications',
    teams: [(await daemon.send('/api/team', { method: 'GET' })).find((team) => team.name === 'users')._id], actions: ['REFRESH'], attributes: [] } });
  await show(page, 'bob');
  const sync = button(page, /^Sync/);
  await until('the rights', async () => await sync.getAttribute('aria-disabled') === 'true');
  assert.match(await page.locator(`#${await sync.getAttribute('aria-describedby')}`).innerText(), /You may not SYNC\. No rule of the teams that you are in allows it\./);
  await page.keyboard.press('s');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await bar(page).getByRole('status').getByText('You may not SYNC.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent.startsWith('Sync')), true);
  await axe(page, 'forbidden buttons');
  assert.match(await page.locator(`#${await button(page, /^Delete/).getAttribute('aria-describedby')}`).textContent(), /Only administrators/);
  assert.equal(await button(page, /^Refresh/).getAttribute('aria-disabled'), null);
  // The runtime decides, whatever the page knows.
  await page.keyboard.press('r');
  await panel(page, 'Refresh shop').getByRole('button', { name: 'Refresh', exact: true }).click();
  await outcome(page, 'Refused').waitFor();
  assert.equal(proxy.sent('Refresh')[0].user, 'bob');
});

test('an object has the actions of Argo CD, and is deleted by its name', async ({ page, proxy }) => {
  proxy.answers = { ResourceActions: { resourceActions: [{ name: 'restart', disabled: false }, { name: 'scale', disabled: true }] }, RunAction: { runResourceAction: {} }, DeleteResource: { deleteResource: null } };
  await show(page, 'ann', `${SHOP}/tree?node=apps:Deployment:shop:shop`);
  const side = page.getByRole('complementary', { name: 'Resource' });
  assert.equal(proxy.requests.length, 0, 'a runtime is asked when somebody wants to know');
  await side.getByRole('button', { name: 'Actions of Argo CD' }).click();
  assert.equal(await side.getByRole('button', { name: 'Scale…' }).getAttribute('aria-disabled'), 'true');
  await side.getByRole('button', { name: 'Restart…' }).click();
  await axe(page, 'resource action');
  await panel(page, 'Restart Deployment shop').getByRole('button', { name: 'Restart' }).click();
  await outcome(side, 'Done').waitFor();
  assert.deepEqual(proxy.sent('RunAction')[0].variables, { application: 'shop', appNamespace: 'argocd', group: 'apps', version: 'v1', kind: 'Deployment', namespace: 'shop', resourceName: 'shop', action: 'restart' });
  await side.getByRole('button', { name: 'Delete…' }).click();
  const dialog = panel(page, 'Delete Deployment shop');
  await dialog.getByLabel('Type shop to confirm').fill('shop');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(proxy.sent('DeleteResource').length, 1);
});

test('a rollout is promoted, paused, aborted and retried by keyboard', async ({ page, proxy }) => {
  proxy.answers = { RolloutAction: { rolloutAction: { changed: true, message: null } } };
  await signIn(page);
  await open(page, '/applications/act/argocd/canary/tree?node=argoproj.io:Rollout:canary:canary', 'canary');
  const side = page.getByRole('complementary', { name: 'Resource' });
  await side.getByRole('button', { name: 'Promote fully…' }).waitFor();
  await page.keyboard.press('p');
  await panel(page, 'Promote Rollout canary').getByText('Goes on from the pause').waitFor();
  await panel(page, 'Promote Rollout canary').getByRole('button', { name: 'Promote' }).focus();
  await page.keyboard.press('Enter');
  await outcome(side, 'Done').waitFor();
  for (const [text, action] of [['Promote fully', 'PROMOTE_FULL'], ['Pause', 'PAUSE'], ['Abort', 'ABORT'], ['Retry', 'RETRY']]) {
    await side.getByRole('button', { name: `${text}…` }).click();
    await panel(page, `${text} Rollout canary`).getByRole('button', { name: text }).click();
    await panel(page, `${text} Rollout canary`).waitFor({ state: 'detached' });
    assert.equal(proxy.sent('RolloutAction').at(-1).variables.action, action);
  }
  assert.deepEqual(proxy.sent('RolloutAction')[0].variables, { application: 'canary', appNamespace: 'argocd', namespace: 'canary', name: 'canary', action: 'PROMOTE' });
});

test('a session that ends in the middle of an action is begun again over the page', async ({ page, proxy, daemon, expect }) => {
  expect(/401/);
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }), Sync: { sync: null } };
  await page.goto('/sign-in');
  await page.getByLabel('Name').fill('ann');
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor();
  await open(page);
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByText('Changes 1').waitFor();
  await dialog.getByLabel('Revision').fill('v7');
  const [cookie] = (await page.context().cookies()).filter(({ name }) => name.endsWith('session'));
  await fetch(`${daemon.url}/console/api/v1/logout`, { method: 'POST', headers: { Cookie: `${cookie.name}=${cookie.value}` } });
  await dialog.getByRole('button', { name: 'Sync' }).evaluate((one) => one.click());
  const again = panel(page, 'Your session has ended');
  await again.getByLabel('Password').fill('correct horse battery staple');
  await axe(page, 'the session has ended over a panel');
  await page.keyboard.press('Enter');
  await again.waitFor({ state: 'detached' });
  assert.equal(await dialog.getByLabel('Revision').inputValue(), 'v7');
  assert.equal(proxy.sent('Sync').length, 0);
  await outcome(dialog, 'Refused').getByText('Nothing was changed.').waitFor();
  await dialog.getByRole('button', { name: 'Sync' }).click();
  await outcome(page, 'Done').waitFor();
  assert.equal(proxy.sent('Sync')[0].variables.options.revision, 'v7');
});

test('the buttons and a panel in the dark theme', async ({ browser, daemon, proxy }) => {
  proxy.answers = { LiveState: liveState({ resources: DIFFERENT }) };
  const dark = await newPage(browser, daemon, { theme: 'dark', width: 390, height: 844 });
  await show(dark.page);
  await axe(dark.page, 'the bar in the dark');
  await button(dark.page, /^Sync/).click();
  await panel(dark.page, 'Sync shop').getByText('Changes 1').waitFor();
  await axe(dark.page, 'a panel in the dark');
  assert.deepEqual(dark.problems, []);
  await dark.close();
});

test('chosen applications are refreshed one after the other, and what was refused is tried again', async ({ page, proxy }) => {
  proxy.answers = { Refresh: ({ name }) => (name === 'canary' ? failing('cannot refresh', 'INVALID_ARGUMENT', 400) : { refresh: null }) };
  await signIn(page);
  await page.goto('/applications?q=runtime%3Aact');
  await page.locator('[data-count]').getByText('2 of').waitFor();
  await page.getByRole('grid', { name: 'Applications' }).focus();
  await page.keyboard.press('x');
  await page.getByRole('button', { name: 'All 2 that match' }).click();
  await page.getByRole('button', { name: 'Refresh…' }).click();
  const dialog = panel(page, 'Refresh 2 applications');
  await dialog.getByText('2 applications of 1 runtime, one after the other').waitFor();
  await axe(page, 'a batch before it');
  assert.equal(proxy.sent('Refresh').length, 0);
  await dialog.getByRole('button', { name: 'Refresh' }).click();
  await dialog.getByText('Ended: 1 done, 1 refused.').waitFor();
  assert.match(await dialog.getByRole('list', { name: 'Not done' }).innerText(), /Refused\s+canary\s+act\s+Argo CD: Cannot refresh\. Nothing was changed\./);
  await axe(page, 'a batch after it');
  proxy.answers.Refresh = { refresh: null };
  await dialog.getByRole('button', { name: 'Try 1 again' }).click();
  await dialog.getByText('Ended: 1 done.').waitFor();
  assert.deepEqual(proxy.sent('Refresh').map(({ variables }) => variables.name), ['canary', 'shop', 'canary']);
  await dialog.locator('.action').getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
});

test('the number of many applications has to be typed, and a batch stops where one says', async ({ page, proxy, daemon, tokens, expect }) => {
  expect(/ERR_/);
  for (let number = 0; number < 49; ++number) await daemon.report(tokens.act, application(`many-${number}`, { uid: `uid-many-${number}` }));
  // The browser sends once more by itself what was lost on a connection that it used before.
  proxy.answers = { Sync: ({ name }) => (name === 'many-1' ? 'drop' : { sync: null }) };
  await signIn(page);
  await page.goto('/applications?q=runtime%3Aact');
  await page.locator('[data-count]').getByText('51 of').waitFor();
  await page.getByRole('grid', { name: 'Applications' }).focus();
  await page.keyboard.press('x');
  await page.getByRole('button', { name: 'All 51 that match' }).click();
  await page.getByRole('button', { name: 'Sync…' }).click();
  const dialog = panel(page, 'Sync 51 applications');
  await dialog.getByLabel('Type 51 to confirm').fill('50');
  await page.keyboard.press('Enter');
  assert.equal(proxy.sent('Sync').length, 0);
  await dialog.getByLabel('Type 51 to confirm').fill('51');
  await page.keyboard.press('Enter');
  await dialog.getByRole('listitem').filter({ hasText: 'Unknown' }).getByText('Check the timeline before trying again.').waitFor();
  await dialog.getByRole('button', { name: 'Stop after this one' }).click();
  const ended = dialog.getByText(/^Ended: \d+ done, 1 unknown, \d+ not tried\.$/);
  await ended.waitFor();
  const rest = Number(/(\d+) not tried/.exec(await ended.innerText())[1]);
  assert.ok(rest > 0);
  await dialog.getByRole('button', { name: `Try ${rest} again` }).waitFor();
});

test('the real app-proxy takes the token of its own page, until the session ends', async ({ page, daemon, expect }) => {
  expect(/401/);
  const live = application('shop', { sync: 'OutOfSync', number: 3, resources: [{ version: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'settings', status: 'OutOfSync' }] });
  const real = await new RealAppProxy().start(join(dirname(program), 'app-proxy'), daemon, 'real', live);
  await daemon.report(real.token, { ...live, metadata: { ...live.metadata, uid: 'uid-real' } });
  await show(page, 'ann', '/applications/real/argocd/shop');
  await page.keyboard.press('s');
  const dialog = panel(page, 'Sync shop');
  await dialog.getByText('Changes 1.').waitFor();
  await dialog.getByRole('button', { name: 'Sync' }).click();
  await outcome(page, 'Done').waitFor();
  assert.equal(real.syncs.length, 1);
  assert.match(real.log(), /"action":"sync","result":"ok","user":"[0-9a-f]{24}","userName":"ann"/);
  // What a page holds is worth nothing at another runtime, and nothing at all after the session.
  const tokenFor = (runtime) => page.evaluate(async (name) => (await (await fetch(`/console/api/v1/runtimes/${name}/token`, { method: 'POST' })).json()).token, runtime);
  const [own, others] = [await tokenFor('real'), await tokenFor('act')];
  assert.equal(await real.ask(own), 200);
  assert.equal(await real.ask(others), 401);
  await page.evaluate(() => fetch('/console/api/v1/logout', { method: 'POST' }));
  await until('the token to be refused', async () => await real.ask(own) === 401);
  assert.ok(!real.log().includes(own) && !daemon.log().includes(own));
  forgetSessions();
  await real.stop();
});

async function seed(daemon, proxy) {
  const token = await daemon.addRuntime('act', undefined, 'INGRESS', proxy.url);
  for (let number = 1; number <= 3; ++number) {
    await daemon.report(token, application('shop', { number, minutes: 40 - number * 10, uid: 'uid-shop', sync: 'OutOfSync', resources: deployment('shop', { sync: 'OutOfSync' }) }));
  }
  await daemon.report(token, application('canary', { uid: 'uid-canary', resources: [{ group: 'argoproj.io', version: 'v1alpha1', kind: 'Rollout', namespace: 'canary', name: 'canary', status: 'Synced', health: { status: 'Suspended' } }] }));
  await daemon.report(await daemon.addRuntime('other'), application('elsewhere', { uid: 'uid-elsewhere' }));
  return { act: token };
}

const browser = await launch();
const daemon = new Daemon(program);
let failed = 0;
let proxy;
try {
  await daemon.start();
  const page = await fetch(daemon.url, { headers: { Accept: 'text/html' } });
  if ((await page.text()).includes('built without its console')) {
    console.log('the control plane was built without its console');
    await browser.close();
    await daemon.stop();
    process.exit(77);
  }
  proxy = await new AppProxy(daemon, 'act').start();
  const tokens = await seed(daemon, proxy);
  const chosen = cases.filter((one) => one.name.includes(wanted));
  for (const one of chosen) {
    const begin = Date.now();
    Object.assign(proxy, { answers: {}, requests: [], allowed: daemon.url });
    const opened = await newPage(browser, daemon);
    try {
      await one.run({ ...opened, browser, daemon, tokens, proxy });
      assert.deepEqual(opened.problems, [], 'problems of the page');
      console.log(`ok      ${one.name} (${Date.now() - begin} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${one.name}\n${error.stack ?? error}`);
    } finally {
      await opened.close();
    }
  }
  console.log(failed === 0 ? `${chosen.length} cases passed` : `${failed} of ${chosen.length} cases failed`);
} finally {
  await browser.close();
  await proxy?.stop();
  await daemon.stop();
}
process.exit(failed === 0 ? 0 : 1);
