// The differences of an application: node browser/diff.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { signIn } from '../support/browser.mjs';
import { application, until } from '../support/daemon.mjs';
import { inCluster, reportResource } from '../support/resources.mjs';
import { fits, run, test } from '../support/suite.mjs';

const ADDRESS = '/applications/prod-eu/argocd/drift/diff';
const CANARY = 'Y2FuYXJ5LXZhbHVl';
const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'api', namespace: 'drift' },
  spec: { replicas: 2, selector: { matchLabels: { app: 'api' } }, template: { metadata: { labels: { app: 'api' } }, spec: { containers: [{ name: 'api', image: 'registry.example.com/api:1.4.2',
    env: Array.from({ length: 20 }, (_, at) => ({ name: `SETTING_${at}`, value: String(at) })) }] } } } };
const secret = (value) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace: 'drift' }, data: { user: 'Y2FuYXJ5LXVzZXI=', password: value } });
const large = (from) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large', namespace: 'drift' },
  data: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key-${String(at).padStart(5, '0')}`, `value ${at % 40 === from ? 'changed' : at}`])) });
const huge = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'huge', namespace: 'drift' }, data: { text: 'a,b\n'.repeat(210_000) } };

const ref = (object, status) => ({ group: object.apiVersion.includes('/') ? object.apiVersion.split('/')[0] : '', version: 'v1', kind: object.kind, namespace: 'drift', name: object.metadata.name, status });
const orphan = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'orphan', namespace: 'drift' }, data: { a: '1' } };
const absent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'absent', namespace: 'drift' }, data: { a: '1' } };
const app = application('drift', { number: 910, uid: 'uid-prod-eu-drift', sync: 'OutOfSync',
  resources: [ref(deployment, 'OutOfSync'), ref(secret(''), 'OutOfSync'), ref(orphan, 'OutOfSync'), ref(absent, 'OutOfSync'), ref(large(0), 'Synced'), ref(huge, 'Synced')] });

async function prepare(daemon, tokens) {
  const token = tokens['prod-eu'];
  await daemon.report(token, app);
  const live = inCluster(deployment);
  live.spec = { ...live.spec, replicas: 5, revisionHistoryLimit: 10 };
  live.status = { replicas: 5, readyReplicas: 5 };
  await reportResource(daemon, token, app, { live, desired: deployment, git: '# of team pay\nkind: Deployment\n', sync: 'OutOfSync' });
  await reportResource(daemon, token, app, { live: inCluster(secret(CANARY)), desired: secret('Y2FuYXJ5LW90aGVy'), git: `data:\n  password: ${CANARY}\n`, sync: 'OutOfSync' });
  await reportResource(daemon, token, app, { live: inCluster(orphan), sync: 'OutOfSync' });
  await reportResource(daemon, token, app, { desired: absent, sync: 'OutOfSync' });
  await reportResource(daemon, token, app, { live: inCluster(large(0)), desired: large(7) });
  await reportResource(daemon, token, app, { live: inCluster(huge), desired: huge });
}

const diff = (page) => page.getByRole('region', { name: 'Differences' });
const open = async (page, address = ADDRESS) => {
  await signIn(page);
  await page.goto(address);
  await diff(page).waitFor();
};
const objectOf = (object) => encodeURIComponent(ref(object).group + ':' + object.kind + ':drift:' + object.metadata.name);

test('all objects that differ are there, and noise is hidden until it is asked for', async ({ page }) => {
  await signIn(page);
  await page.goto('/applications/prod-eu/argocd/drift');
  await page.getByRole('heading', { name: 'drift', level: 1 }).waitFor();
  await page.keyboard.press('4');
  await diff(page).getByText('Deployment api').waitFor();
  await diff(page).getByText('replicas: 5').waitFor();
  await diff(page).getByText('The cluster does not have it.').waitFor();
  await diff(page).getByText('Git does not have it').waitFor();
  assert.equal(await diff(page).getByText('resourceVersion').count(), 0);
  const noise = page.getByRole('button', { name: /lines of noise hidden/ });
  assert.match(await noise.innerText(), /^\d+ lines of noise hidden$/);
  await noise.click();
  await diff(page).getByText('resourceVersion').first().waitFor();
  assert.equal(new URL(page.url()).searchParams.get('noise'), 'shown');
});

test('keys walk the changes, folds open, and the form is in the address', async ({ page }) => {
  await open(page, `${ADDRESS}?object=${objectOf(deployment)}`);
  await page.getByText('1 change', { exact: true }).waitFor();
  await page.keyboard.press('n');
  await page.getByText('1 of 1 change').waitFor();
  await diff(page).getByRole('button', { name: /equal lines/ }).first().click();
  await page.getByRole('button', { name: 'Side by side' }).click();
  await diff(page).locator('.split').first().waitFor();
  assert.equal(new URL(page.url()).searchParams.get('form'), 'split');
  await page.getByLabel('Left').selectOption('git');
  await diff(page).getByText('# of team pay').waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  assert.equal(saved.suggestedFilename(), 'drift.diff');
});

test('a field is ignored by a snippet that is ready to paste', async ({ page }) => {
  await open(page, `${ADDRESS}?object=${objectOf(deployment)}`);
  await page.getByText('1 change', { exact: true }).waitFor();
  await page.keyboard.press('i');
  const dialog = page.getByRole('dialog', { name: 'Ignore this field' });
  const text = 'ignoreDifferences:\n  - group: apps\n    kind: Deployment\n    name: api\n    namespace: drift\n    jsonPointers:\n      - /spec/replicas\n';
  assert.equal(await dialog.locator('pre').textContent(), text);
  await axe(page, 'ignore');
  await dialog.getByRole('button', { name: 'Copy' }).click();
  await dialog.getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Side by side' }).click();
  const line = diff(page).locator('.line.split').filter({ hasText: 'replicas' });
  await line.hover();
  await line.getByRole('button', { name: 'Ignore…' }).click();
  assert.equal(await dialog.locator('pre').textContent(), text);
});

test('AC-28: a Secret shows whether its values are equal, and never what they are', async ({ page }) => {
  const answers = [];
  page.on('response', async (response) => { if (response.url().includes('/graphql')) answers.push(await response.text().catch(() => '')); });
  await open(page, `${ADDRESS}?object=${objectOf(secret(''))}`);
  await diff(page).getByText('(differs, left)').waitFor();
  await diff(page).getByText('(equal)').waitFor();
  await page.getByLabel('Left').selectOption('git');
  await diff(page).getByText('The file of a Secret is not shown.').waitFor();
  assert.equal(answers.some((text) => text.includes('Y2FuYXJ5')), false);
  assert.equal((await page.content()).includes('Y2FuYXJ5'), false);
});

test('20,000 lines are compared without holding the page up', async ({ page }) => {
  await page.addInitScript(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => { for (const one of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, one.duration); }).observe({ type: 'longtask' });
  });
  await open(page, `${ADDRESS}?object=${objectOf(orphan)}`);
  await diff(page).getByText('ConfigMap orphan').waitFor();
  await page.evaluate(() => { globalThis.longest = 0; });
  await page.getByLabel('Object').selectOption(`:ConfigMap:drift:large`);
  await page.getByText('1000 changes').waitFor({ timeout: 120_000 });
  await until('the first change', async () => {
    await page.keyboard.press('n');
    return page.getByText(/\d+ of 1000 changes/).isVisible();
  }, 120_000);
  for (let at = 0; at < 20; ++at) await page.keyboard.press('n');
  assert.ok(await page.evaluate(() => document.querySelectorAll('.diff .line').length) < 150, 'only rows in sight are drawn');
  const longest = Math.round(await page.evaluate(() => globalThis.longest)); // only tasks from 50 ms on are told
  console.log(`        ${longest === 0 ? 'held   no task of 50 ms or more' : `MISSED a task of ${longest} ms (budget 50)`} with 20,000 lines`);
});

test('what is too large is counted and can be saved', async ({ page }) => {
  await open(page, `${ADDRESS}?object=${objectOf(huge)}`);
  await diff(page).getByText(/Too large to compare here: \d+ and \d+ lines/).waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download both' }).click()]);
  assert.equal(saved.suggestedFilename(), 'ConfigMap-huge.txt');
});

test('an address with an object that is gone says so', async ({ page }) => {
  await signIn(page);
  await page.goto(`${ADDRESS}?object=:ConfigMap:drift:none&left=nonsense`);
  await page.getByText('is gone').waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await diff(page).getByText('Deployment api').waitFor();
});

for (const theme of ['light', 'dark']) {
  for (const width of [1440, 390]) {
    test(`the diff is for everybody in the ${theme} theme, ${width} wide`, { page: { theme, width } }, async ({ page }) => {
      await open(page);
      await diff(page).getByText('replicas: 5').waitFor();
      await axe(page, 'diff');
      await fits(page, 'diff');
      await page.getByRole('button', { name: 'Side by side' }).click();
      await diff(page).locator('.split').first().waitFor();
      await axe(page, 'diff side by side');
    });
  }
}

await run(process.argv, prepare);
