// The pages of access in a browser: cases of pages.mjs.
import assert from 'node:assert/strict';

import { forgetSessions, newPage, signIn } from '../support/browser.mjs';
import { until } from '../support/daemon.mjs';

const PASSWORD = 'correct horse battery staple';
const row = (page, name, exact = false) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact }) });
const decision = (page, action) => row(page, action, true);
const field = (page, name) => page.getByRole('combobox', { name: new RegExp(`^${name}`) });
const panel = (page, name) => page.getByRole('complementary', { name });
const status = (scope) => scope.getByRole('status').filter({ hasText: 'Done' });

async function open(page, address, heading) {
  await page.goto(address);
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}
/** Where a secret must not be: the address, the storage of the browser, and its history. */
async function leaks(page, secret) {
  return page.evaluate((text) => [location.href, JSON.stringify(history.state), JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage })].filter((one) => one?.includes(text)), secret);
}
async function accountOf(daemon) {
  const { me } = await daemon.graphql('{ me { activeAccount { id } } }');
  return me.activeAccount.id;
}
/** Makes a user by an invitation and returns its id. */
async function addUser(daemon, name, email) {
  const account = await accountOf(daemon);
  const { inviteUrl } = await daemon.send(`/api/accounts/${account}/adduser`, { body: { userDetails: email } });
  const token = new URL(inviteUrl, daemon.url).searchParams.get('token');
  await daemon.send('/console/api/v1/invitation', { body: { token, name, password: PASSWORD }, token: '' });
  const users = await daemon.send(`/api/accounts/${account}/users`, { method: 'GET' });
  return users.find((user) => user.email === email)._id;
}
const idOf = async (daemon, name) => (await daemon.send(`/api/accounts/${await accountOf(daemon)}/users`, { method: 'GET' })).find((user) => user.userName === name)._id;
const accepted = async (daemon, key) => (await fetch(`${daemon.url}/api/user`, { headers: { Authorization: key } })).status;

export function addAccessCases(test, axe) {
  test('a user is invited, accepts in another browser, is managed by keyboard and removed', async ({ page, browser, daemon }) => {
    forgetSessions();
    await signIn(page);
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/access/users');
    await row(page, 'ann').getByText('Administrator').waitFor();
    await page.keyboard.press('+');
    await page.getByRole('dialog').getByLabel('E-mail').fill('lee@example.com');
    await page.keyboard.press('Enter');
    const secret = page.getByRole('status', { name: 'Link for lee@example.com' });
    const link = await secret.locator('pre').innerText();
    const { pathname, search, searchParams } = new URL(link);
    assert.equal(pathname, '/invitation');
    const token = searchParams.get('token');
    assert.deepEqual(await leaks(page, token), []);
    assert.ok(!daemon.log().includes(token));
    await row(page, 'lee@example.com').getByText('Pending').waitFor();
    const other = await newPage(browser, daemon);
    other.expect(/401/);
    await other.page.goto(pathname + search);
    await other.page.getByLabel('Name').fill('lee');
    await other.page.getByLabel('Password').fill(PASSWORD);
    await other.page.getByRole('button', { name: 'Accept' }).click();
    await other.page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor();
    await page.locator('#main').focus();
    await page.keyboard.press('r');
    await row(page, 'lee').getByText('Active').waitFor();
    // The link is gone with the page.
    await page.keyboard.press('2');
    await page.getByRole('heading', { name: 'Teams', level: 1 }).waitFor();
    await page.keyboard.press('1');
    await row(page, 'lee').waitFor();
    assert.equal(await page.getByText(token).count(), 0);
    await row(page, 'lee').getByRole('button', { name: 'lee' }).focus();
    await page.keyboard.press('Enter');
    await panel(page, 'lee').getByRole('button', { name: 'Make administrator' }).focus();
    await page.keyboard.press('Enter');
    await status(panel(page, 'lee')).getByText('lee is an administrator.').waitFor();
    await row(page, 'lee').getByText('Administrator').waitFor();
    await panel(page, 'lee').getByRole('button', { name: 'Remove administrator role' }).click();
    await row(page, 'lee').getByText('User', { exact: true }).waitFor();
    await panel(page, 'lee').getByRole('button', { name: 'Disable' }).click();
    await row(page, 'lee').getByText('Disabled').waitFor();
    await other.page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
    await panel(page, 'lee').getByRole('button', { name: 'Enable' }).click();
    await row(page, 'lee').getByText('Active').waitFor();
    await panel(page, 'lee').getByRole('button', { name: 'Remove…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Remove lee?' });
    await dialog.getByLabel('Type lee to confirm').fill('le');
    await page.keyboard.press('Enter');
    assert.equal(await dialog.getByRole('button', { name: 'Remove' }).getAttribute('aria-disabled'), 'true');
    await dialog.getByLabel('Type lee to confirm').fill('lee');
    await page.keyboard.press('Enter');
    await page.getByText('lee is removed from the account.').waitFor();
    await row(page, 'lee').waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).search, '');
    await other.close();
  });

  test('the last administrator stays, and the refusal is beside the button', async ({ page, expect }) => {
    expect(/409/);
    await signIn(page);
    await open(page, '/access/users', 'Users');
    await row(page, 'ann').getByRole('button', { name: 'ann' }).click();
    await panel(page, 'ann').getByRole('button', { name: 'Remove administrator role' }).click();
    const refusal = panel(page, 'ann').getByRole('alert');
    await refusal.getByText('Refused').waitFor();
    await refusal.getByText(/last administrator of the account.*Nothing was changed\./).waitFor();
    await row(page, 'ann').getByText('Administrator').waitFor();
    await refusal.getByRole('button', { name: 'Dismiss' }).click();
    await refusal.waitFor({ state: 'detached' });
  });

  test('a team is made, filled, renamed and deleted, and a wrong name is refused in place', async ({ page, expect }) => {
    expect(/400/);
    await signIn(page);
    await open(page, '/access/teams', 'Teams');
    await row(page, 'admins').getByText('built in').waitFor();
    await page.getByRole('button', { name: 'Create a team…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a team' });
    await dialog.getByLabel('Name').fill('Pay!');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').getByText(/lower-case letters/).waitFor();
    await dialog.getByLabel('Name').fill('pay');
    await page.keyboard.press('Enter');
    const side = panel(page, 'pay');
    await side.getByLabel('User to add').selectOption({ label: 'bob' });
    await side.getByRole('button', { name: 'Add' }).click();
    await status(side).getByText('bob is in pay.').waitFor();
    await side.getByRole('button', { name: 'Remove bob' }).click();
    await status(side).getByText('bob is not in pay any more.').waitFor();
    await side.getByLabel('Name').fill('payments');
    await side.getByRole('button', { name: 'Rename' }).click();
    await row(page, 'payments').waitFor();
    await panel(page, 'payments').getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByLabel('Type payments to confirm').fill('payments');
    await page.keyboard.press('Enter');
    await page.getByText('Team payments is deleted.').waitFor();
    await row(page, 'payments').waitFor({ state: 'detached' });
    // An address of a team that is gone is no empty page.
    await open(page, '/access/teams?team=0123456789abcdef01234567', 'Teams');
    await page.getByText('This team is gone.').waitFor();
  });

  test('a rule is a sentence, and the tester names it and its team', async ({ page, browser, daemon }) => {
    const { _id: team } = await daemon.send('/api/team', { body: { name: 'deploy' } });
    await daemon.send(`/api/team/${team}/${await idOf(daemon, 'bob')}/assignUserToTeam`, { method: 'PUT' });
    await signIn(page);
    await open(page, '/access/rules', 'Rules');
    await page.getByRole('heading', { name: 'No rules yet' }).waitFor();
    await page.locator('#main').focus();
    await page.keyboard.press('+');
    const dialog = page.getByRole('dialog', { name: 'Create a rule' });
    await dialog.getByRole('button', { name: 'Create the rule' }).click({ force: true });
    await dialog.getByRole('alert').getByText('Choose at least one team.').waitFor();
    await dialog.getByLabel('deploy', { exact: true }).check();
    await dialog.getByLabel('VIEW', { exact: true }).check();
    await dialog.getByText('This is the first rule with VIEW.').waitFor();
    await dialog.getByLabel('VIEW', { exact: true }).uncheck();
    await dialog.getByLabel('SYNC', { exact: true }).check();
    await dialog.getByRole('button', { name: 'Add a condition' }).click();
    await dialog.getByLabel('Condition 1: namespace').fill('argocd');
    await dialog.getByRole('button', { name: 'Add a condition' }).click();
    await dialog.getByLabel('Condition 2: attribute').selectOption('RUNTIME');
    await dialog.getByLabel('Condition 2: runtime').fill('prod-eu');
    const sentence = 'Team deploy may SYNC applications where namespace is argocd and runtime is prod-eu.';
    await dialog.getByText(sentence).waitFor();
    await dialog.getByRole('button', { name: 'Create the rule' }).click();
    await page.getByRole('list', { name: 'Rules' }).getByText(sentence).waitFor();
    // From the page of an application.
    await page.goto('/applications/prod-eu/argocd/web');
    await page.getByRole('link', { name: 'Who may…' }).click();
    await page.getByRole('heading', { name: 'Who may do what on this application?' }).waitFor();
    await row(page, 'ann').getByText('Administrators of the account are not restricted by rules.').waitFor();
    await row(page, 'bob').getByText('A rule allows it, since bob is in team deploy:').waitFor();
    await row(page, 'bob').getByText(sentence).waitFor();
    await field(page, 'Who').selectOption({ label: 'bob' });
    await decision(page, 'SYNC').getByText('may', { exact: true }).waitFor();
    await decision(page, 'REFRESH').getByText(sentence).waitFor();
    await decision(page, 'APP_ROLLBACK').getByText('No rule of the teams that bob is in allows it.').waitFor();
    await decision(page, 'VIEW').getByText('The account has no rule with VIEW').waitFor();
    await decision(page, 'SYNC').getByRole('link', { name: 'Show the rule' }).click();
    await page.locator('.rules li.chosen').getByText(sentence).waitFor();
    // An application that no rule names.
    await field(page, 'Application').fill('staging/argocd/web');
    await field(page, 'Who').selectOption({ label: 'bob' });
    await decision(page, 'SYNC').getByText('may not').waitFor();
    await field(page, 'Application').fill('staging/argocd/nothing');
    await page.getByRole('heading', { name: 'There is no such application' }).waitFor();
    // The same person asks for itself.
    const other = await newPage(browser, daemon);
    await signIn(other.page, 'bob');
    await other.page.goto('/applications/prod-eu/argocd/web');
    await other.page.getByRole('link', { name: 'Who may…' }).waitFor();
    await other.page.keyboard.press('w');
    await other.page.getByRole('heading', { name: 'What may you do on this application?' }).waitFor();
    await decision(other.page, 'SYNC').getByText('A rule allows it, since you are in team deploy:').waitFor();
    await decision(other.page, 'SYNC').getByText(sentence).waitFor();
    await other.page.getByRole('heading', { name: 'Only administrators manage the rules' }).waitFor();
    assert.deepEqual(other.problems, []);
    await other.close();
    await page.getByRole('list', { name: 'Rules' }).getByRole('button', { name: /^Remove: Team deploy may SYNC/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('The rule is removed.').waitFor();
    await page.getByRole('heading', { name: 'No rules yet' }).waitFor();
    await daemon.send(`/api/team/${team}`, { method: 'DELETE' });
  });

  test('a token is shown once and works until it is revoked', async ({ page, daemon }) => {
    await signIn(page);
    await open(page, '/access/tokens', 'Tokens');
    await row(page, 'seed').waitFor();
    await page.getByRole('button', { name: 'Create a token…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('laptop');
    await dialog.getByLabel('Only some of it').check();
    await dialog.getByText('Choose at least one scope.').waitFor();
    await dialog.getByLabel(/^read:/).check();
    await dialog.getByRole('button', { name: 'Create the token' }).click();
    const key = await page.getByRole('status', { name: 'Token laptop' }).locator('pre').innerText();
    assert.equal(await accepted(daemon, key), 200);
    assert.deepEqual(await leaks(page, key), []);
    assert.ok(!daemon.log().includes(key.split('.')[1]));
    await row(page, 'laptop').getByText('read', { exact: true }).waitFor();
    await row(page, 'laptop').getByText('in 12 w').waitFor();
    await page.getByRole('link', { name: 'Rules' }).click();
    await page.getByRole('heading', { name: 'Rules', level: 1 }).waitFor();
    await page.goBack();
    await row(page, 'laptop').waitFor();
    assert.equal(await page.getByText(key).count(), 0);
    await row(page, 'laptop').getByRole('button', { name: 'Revoke laptop…' }).click();
    await page.getByRole('dialog', { name: 'Revoke the token laptop?' }).getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Token laptop is revoked').waitFor();
    await row(page, 'laptop').waitFor({ state: 'detached' });
    assert.equal(await accepted(daemon, key), 401);
  });

  test('a service account has teams, a key that is shown once, and a switch', async ({ page, daemon }) => {
    await signIn(page);
    await open(page, '/access/service-accounts', 'Service accounts');
    await page.getByRole('heading', { name: 'No service accounts yet' }).waitFor();
    await page.locator('#main').focus();
    await page.keyboard.press('+');
    const dialog = page.getByRole('dialog', { name: 'Create a service account' });
    await dialog.getByLabel('Name').fill('robot');
    await dialog.getByLabel('users', { exact: true }).check();
    await dialog.getByRole('button', { name: 'Create' }).click();
    const side = panel(page, 'robot');
    await side.getByText('It has no keys').waitFor();
    await side.getByRole('button', { name: 'Create a key…' }).click();
    await page.getByRole('dialog', { name: 'Create a key of robot' }).getByLabel('Name').fill('pipeline');
    await page.keyboard.press('Enter');
    const key = await side.getByRole('status', { name: 'Key pipeline' }).locator('pre').innerText();
    assert.equal(await accepted(daemon, key), 200);
    await side.getByRole('button', { name: 'Disable' }).click();
    await row(page, 'robot').getByText('Disabled').waitFor();
    await until('the key to be refused', async () => await accepted(daemon, key) === 401);
    await side.getByRole('button', { name: 'Enable' }).click();
    await row(page, 'robot').getByText('Active').waitFor();
    await side.getByLabel('users', { exact: true }).uncheck();
    await side.getByRole('button', { name: 'Save the teams' }).click();
    await row(page, 'robot').getByText('none').waitFor();
    await side.getByRole('button', { name: 'Revoke pipeline…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await side.getByText('It has no keys').waitFor();
    assert.equal(await page.getByText(key).count(), 0);
    await side.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByLabel('Type robot to confirm').fill('robot');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No service accounts yet' }).waitFor();
  });

  test('a user who is not an administrator has its own pages, and a plain sentence for the rest', async ({ page }) => {
    await signIn(page, 'bob');
    await page.goto('/access');
    await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'You have no tokens' }).waitFor();
    for (const [tab, title] of [['Users', 'users'], ['Teams', 'teams'], ['Service accounts', 'service accounts']]) {
      await page.getByRole('link', { name: tab, exact: true }).click();
      await page.getByRole('heading', { name: `Only administrators manage the ${title}` }).waitFor();
    }
    await page.goto('/access/nothing');
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  });

  test('rights that were lost meanwhile are refused by the control plane, in place', async ({ page, daemon, expect }) => {
    expect(/403/);
    const address = `/api/accounts/${await accountOf(daemon)}/${await idOf(daemon, 'bob')}/admin`;
    await daemon.send(address);
    await signIn(page, 'bob');
    await open(page, '/access/teams', 'Teams');
    await page.getByRole('button', { name: 'Create a team…' }).click();
    await daemon.send(address, { method: 'DELETE' });
    const dialog = page.getByRole('dialog', { name: 'Create a team' });
    await dialog.getByLabel('Name').fill('mine');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').getByText('Only an administrator of the account may do this. Nothing was changed.').waitFor();
  });

  test('an answer that is lost leaves the action open', async ({ page, expect }) => {
    expect(/ERR_FAILED|Failed to load/);
    await signIn(page);
    await open(page, '/access/teams', 'Teams');
    await page.getByRole('button', { name: 'Create a team…' }).click();
    await page.route('**/api/team', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return route.abort();
    });
    const dialog = page.getByRole('dialog', { name: 'Create a team' });
    await dialog.getByLabel('Name').fill('lost');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').getByText('Unknown').waitFor();
    await page.keyboard.press('Escape');
    await row(page, 'lost').getByRole('button', { name: 'lost' }).click();
    await panel(page, 'lost').getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByLabel('Type lost to confirm').fill('lost');
    await page.keyboard.press('Enter');
    await row(page, 'lost').waitFor({ state: 'detached' });
  });

  test('what was not done is told beside the list when its dialog was closed before', async ({ page, expect }) => {
    expect(/503/);
    await signIn(page);
    await open(page, '/access/teams', 'Teams');
    let answer;
    await page.route('**/api/team', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await new Promise((go) => { answer = go; });
      return route.fulfill({ status: 503, json: { message: 'The store is busy' } });
    });
    await page.getByRole('button', { name: 'Create a team…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a team' });
    await dialog.getByLabel('Name').fill('late');
    await page.keyboard.press('Enter');
    await until('the request', async () => answer !== undefined);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    answer();
    await page.getByRole('alert').getByText('The store is busy').waitFor();
  });

  test('names that others gave stay texts on the pages of access', async ({ page, daemon }) => {
    const evil = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>{{7*7}}';
    const account = await accountOf(daemon);
    const user = await addUser(daemon, evil, 'evil@example.com');
    const { _id: robot } = await daemon.send('/api/service-users', { body: { userName: evil, teamIds: [], assignAdminRole: false } });
    const key = await fetch(`${daemon.url}/api/auth/key/service-user/${robot}`, { method: 'POST', headers: { Authorization: daemon.key, 'Content-Type': 'application/json' }, body: JSON.stringify({ name: evil }) });
    assert.equal(key.status, 200);
    const { _id: team } = await daemon.send('/api/team', { body: { name: 'evil' } });
    await daemon.send(`/api/team/${team}/${user}/assignUserToTeam`, { method: 'PUT' });
    const { createAbacRule } = await daemon.graphql('mutation($rule: CreateAbacRuleInput!) { createAbacRule(createAbacRuleInput: $rule) { id } }', { rule: {
      entityType: 'gitopsApplications', teams: [team], actions: ['SYNC'], attributes: [{ name: 'LABEL', key: evil, value: evil }, { name: 'RUNTIME', value: 'prod-eu' }] } });
    const harmless = async (where) => assert.equal(await page.evaluate(() => globalThis.broken ?? document.querySelectorAll('main img, main script, a[href^="javascript"]').length), 0, where);
    await signIn(page);
    await open(page, `/access/users?user=${user}`, 'Users');
    await panel(page, evil).waitFor();
    await harmless('users');
    await panel(page, evil).getByRole('button', { name: 'Remove…' }).click();
    await page.getByRole('dialog').getByLabel(`Type ${evil} to confirm`).waitFor();
    await harmless('remove');
    await open(page, `/access/teams?team=${team}`, 'Teams');
    await panel(page, 'evil').getByText('<img src=x').first().waitFor();
    await harmless('teams');
    await open(page, `/access/service-accounts?account=${robot}`, 'Service accounts');
    await panel(page, evil).getByRole('rowheader', { name: '<img src=x' }).waitFor();
    await harmless('service accounts');
    await open(page, '/access/rules?runtime=prod-eu&namespace=argocd&name=web', 'Rules');
    await page.getByRole('list', { name: 'Rules' }).getByText('label <img src=x').waitFor();
    await harmless('rules');
    await daemon.graphql('mutation($id: ID!) { removeAbacRule(id: $id) { id } }', { id: createAbacRule.id });
    await daemon.send(`/api/accounts/${account}/${user}`, { method: 'DELETE' });
    await daemon.send(`/api/service-users/${robot}`, { method: 'DELETE' });
    await daemon.send(`/api/team/${team}`, { method: 'DELETE' });
  });

  for (const theme of ['light', 'dark']) {
    for (const width of [1440, 390]) {
      test(`the pages of access are for everybody in the ${theme} theme, ${width} wide`, { page: { theme, width } }, async ({ page, daemon }) => {
        const { _id: team } = await daemon.send('/api/team', { body: { name: `look-${theme}-${width}` } });
        const { _id: robot } = await daemon.send('/api/service-users', { body: { userName: `look-${theme}-${width}`, teamIds: [team], assignAdminRole: false } });
        const bob = await idOf(daemon, 'bob');
        await daemon.send(`/api/team/${team}/${bob}/assignUserToTeam`, { method: 'PUT' });
        const { createAbacRule } = await daemon.graphql('mutation($rule: CreateAbacRuleInput!) { createAbacRule(createAbacRuleInput: $rule) { id } }', { rule: {
          entityType: 'gitopsApplications', teams: [team], actions: ['SYNC'], attributes: [{ name: 'RUNTIME', value: 'prod-eu' }] } });
        await signIn(page);
        const look = async (where) => {
          await axe(page, where);
          const wide = await page.evaluate(() => [...document.querySelectorAll('html, .page, dialog')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.tagName} ${one.scrollWidth} > ${one.clientWidth}`));
          assert.deepEqual(wide, [], `${where} is wider than its place`);
        };
        for (const [address, heading, button] of [[`/access/users?user=${bob}`, 'Users', 'Invite a user…'], [`/access/teams?team=${team}`, 'Teams', 'Create a team…'],
          [`/access/service-accounts?account=${robot}`, 'Service accounts', 'Create a service account…'], ['/access/tokens', 'Tokens', 'Create a token…'],
          [`/access/rules?runtime=prod-eu&namespace=argocd&name=web&rule=${createAbacRule.id}`, 'Rules', 'Create a rule…']]) {
          await open(page, address, heading);
          await look(address);
          await page.getByRole('button', { name: button }).first().click();
          await page.getByRole('dialog').waitFor();
          if (heading === 'Rules') {
            await page.getByLabel(`look-${theme}-${width}`, { exact: true }).check();
            await page.getByLabel('VIEW', { exact: true }).check();
            await page.getByRole('button', { name: 'Add a condition' }).click();
          }
          await look(button);
          await page.keyboard.press('Escape');
        }
        await open(page, `/access/users?user=${bob}`, 'Users');
        await panel(page, 'bob').getByRole('button', { name: 'Remove…' }).click();
        await look('remove');
        await daemon.graphql('mutation($id: ID!) { removeAbacRule(id: $id) { id } }', { id: createAbacRule.id });
        await daemon.send(`/api/service-users/${robot}`, { method: 'DELETE' });
        await daemon.send(`/api/team/${team}`, { method: 'DELETE' });
      });
    }
  }
}
