// The journal of an application: node browser/journal.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { signIn } from '../support/browser.mjs';
import { application } from '../support/daemon.mjs';
import { inCluster, reportResource } from '../support/resources.mjs';
import { fits, run, test } from '../support/suite.mjs';

const ADDRESS = '/applications/prod-eu/argocd/shop/journal';
const app = application('shop', { number: 900, uid: 'uid-prod-eu-shop', commitMessage: 'Open the shop' });
const config = (name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' }, data: { a: '1' } });

async function prepare(daemon, tokens) {
  const token = tokens['prod-eu'];
  await daemon.report(token, app);
  for (let at = 0; at < 60; ++at) await reportResource(daemon, token, app, { live: inCluster(config(`settings-${at}`)) });
  // An event that is none, of this application.
  const refused = await fetch(`${daemon.url}/2.0/api/events`, { method: 'POST', body: '{"data":7}',
    headers: { Authorization: token, 'Content-Type': 'application/json', 'X-Event-Id': 'uid-prod-eu-shop/application/77/broken', 'X-Event-Sequence': '77' } });
  assert.equal(refused.status, 400);
  return { token };
}

const rows = (page) => page.getByRole('region', { name: 'Deliveries' }).locator('tbody tr:not(.details)');

test('the journal has what arrived, the newest first, with pages and details', async ({ page }) => {
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/shop');
  await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor();
  await page.keyboard.press('5');
  await page.waitForURL(/\/journal$/);
  await rows(page).first().getByText('Quarantined').waitFor();
  assert.equal(await rows(page).count(), 50);
  await rows(page).first().getByText('data is not an object').waitFor();
  await rows(page).nth(1).getByText('ConfigMap settings-59').waitFor();
  await rows(page).nth(1).getByRole('button', { name: 'Details: ConfigMap settings-59' }).click();
  await page.getByText('made by the reporter').waitFor();
  const json = JSON.parse(await page.getByLabel('The entry as JSON').innerText());
  assert.equal(json.object.name, 'settings-59');
  assert.match(json.eventId, /^uid-prod-eu-shop\//);
  assert.ok(new URL(page.url()).searchParams.get('event'));
  await page.getByRole('button', { name: 'Older' }).click();
  await rows(page).last().getByText('Application shop, seen first').waitFor();
  assert.equal(await rows(page).count(), 12);
  await page.goBack();
  await rows(page).first().getByText('Quarantined').waitFor();
});

test('an event that comes again is a duplicate, and the journal follows', async ({ page, daemon, token }) => {
  const own = application('twice', { number: 901, uid: 'uid-prod-eu-twice' });
  const send = () => daemon.send('/2.0/api/events', { token, headers: { 'X-Event-Id': 'uid-prod-eu-twice/application/7/x', 'X-Event-Sequence': '7' }, body: { data: {
    object: Buffer.from(JSON.stringify(own)).toString('base64'), source: { desiredManifest: '', actualManifest: JSON.stringify(own), gitManifest: '', revision: '', syncStatus: 'Synced', healthStatus: 'Healthy', historyId: 1 } } } });
  await send();
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/twice/journal');
  await rows(page).first().getByText('Stored').waitFor();
  assert.equal(await rows(page).count(), 1);
  await send();
  await page.reload();
  await rows(page).first().getByText('Duplicate').waitFor();
  assert.equal(await rows(page).count(), 2);
});

test('the application is reported again after a question, by keys alone', async ({ page, daemon, token }) => {
  const own = application('again', { number: 902, uid: 'uid-prod-eu-again' });
  await daemon.report(token, own);
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/again/journal');
  await rows(page).first().waitFor();
  const button = page.getByRole('button', { name: 'Report again…' });
  await button.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Report again again?' });
  await dialog.getByText('once more, although nothing changed').waitFor();
  await axe(page, 'the question before a report again');
  await dialog.getByRole('button', { name: 'Report again' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('Requested: the reporter hears of it').waitFor();
  await button.click();
  await dialog.getByRole('button', { name: 'Report again' }).click();
  await page.getByRole('status').getByText('Requested before, and no event has arrived since').waitFor();
  // The reporter is told with the answer to an event, once the request is a second old.
  const deadline = Date.now() + 10_000;
  let head = null;
  while (head === null && Date.now() < deadline) {
    const answer = await fetch(`${daemon.url}/2.0/api/events`, { method: 'POST', headers: { Authorization: token, 'Content-Type': 'application/json', 'X-Reporter': 'app/0/1' },
      body: JSON.stringify({ data: { object: Buffer.from(JSON.stringify(app)).toString('base64'), source: { desiredManifest: '', actualManifest: JSON.stringify(app), syncStatus: 'Synced' } } }) });
    head = answer.headers.get('X-Intake-Again');
  }
  assert.match(head ?? '', /^uid-prod-eu-again;[0-9]+$/);
});

test('a question and what came of it stay while the application reports', async ({ page, daemon, token }) => {
  const report = (health) => daemon.report(token, application('asked', { number: 903, uid: 'uid-prod-eu-asked', health }));
  await report('Healthy');
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/asked/journal');
  await rows(page).first().getByText('Healthy').waitFor();
  await page.getByRole('button', { name: 'Report again…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Report asked again?' });
  await dialog.getByText('once more, although nothing changed').waitFor();
  await report('Degraded');
  await rows(page).first().getByText('Degraded').waitFor();
  await dialog.getByRole('button', { name: 'Report again' }).click();
  const outcome = page.getByRole('status').getByText('Requested: the reporter hears of it');
  await outcome.waitFor();
  await report('Healthy');
  await rows(page).first().getByText('Healthy').waitFor();
  assert.ok(await outcome.isVisible());
});

test('who does not see the application sees no journal', async ({ page, daemon }) => {
  const query = '{applicationJournal(runtime: "prod-eu", namespace: "argocd", name: "nothing"){edges{node{kind}}}}';
  assert.deepEqual(await daemon.graphql(query), { applicationJournal: null });
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/nothing/journal');
  await page.getByRole('heading', { name: 'There is no application nothing' }).waitFor();
});

for (const theme of ['light', 'dark']) {
  for (const width of [1440, 390]) {
    test(`the journal is for everybody in the ${theme} theme, ${width} wide`, { page: { theme, width } }, async ({ page }) => {
      await signIn(page);
      await page.goto(ADDRESS);
      await rows(page).first().getByRole('button').click();
      await page.getByLabel('The entry as JSON').waitFor();
      await axe(page, 'journal');
      await fits(page, 'journal');
    });
  }
}

await run(process.argv, prepare);
