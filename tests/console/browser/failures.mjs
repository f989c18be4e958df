// What a page shows of a request that failed: node browser/failures.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { newPage, signIn } from '../support/browser.mjs';
import { fits, run, test } from '../support/suite.mjs';

const GRAPHQL = '**/2.0/api/graphql';
/** Answers a document with a failure, and passes on the others. */
async function failing(page, operation, status, id, body) {
  await page.route(GRAPHQL, (route) => (route.request().postDataJSON().query.startsWith(`query ${operation}(`) || route.request().postDataJSON().query.startsWith(`query ${operation} `)
    ? route.fulfill({ status, headers: { 'X-Request-Id': id }, json: body }) : route.continue()));
}
const copied = async (page, scope) => {
  await scope.getByRole('button', { name: 'Copy the id' }).click();
  await scope.getByText('Copied').waitFor();
  return page.evaluate(() => navigator.clipboard.readText());
};

test('the program names its answers, and a failed one shows that name', async ({ page, daemon, expect }) => {
  const answer = await fetch(`${daemon.url}/2.0/api/graphql`, { method: 'POST', headers: { Authorization: daemon.key, 'Content-Type': 'application/json' }, body: '{"query":"{ me { nothing } }"}' });
  const own = answer.headers.get('x-request-id');
  assert.ok(own, 'the answer has an id');
  expect(/400/);
  await signIn(page);
  // The page's document is made wrong on its way, so that the program itself refuses it.
  let id = '';
  await page.route(GRAPHQL, async (route) => {
    if (!route.request().postDataJSON().query.startsWith('query Runtimes')) return route.continue();
    const response = await route.fetch({ postData: JSON.stringify({ query: '{ nothing }' }) });
    id = response.headers()['x-request-id'];
    return route.fulfill({ response });
  });
  await page.goto('/runtimes');
  const alert = page.getByRole('alert').first();
  await alert.getByText('could not read the runtimes').waitFor();
  assert.equal(await copied(page, alert), id);
  assert.match(await alert.innerText(), new RegExp(`Request\\s+${id}`));
  await axe(page, 'a failure');
});

test('an error inside of an answer has the id, too, and leaves the rest of the page', async ({ page }) => {
  await signIn(page);
  await failing(page, 'Releases', 200, 'in-the-answer', { data: null, errors: [{ message: 'The store is busy', extensions: { code: 'UNAVAILABLE', statusCode: 503 } }] });
  await page.goto('/applications/prod-eu/argocd/api/timeline');
  const alert = page.getByRole('alert').first();
  await alert.getByText('The store is busy').waitFor();
  await alert.getByText('Status 503').waitFor();
  assert.equal(await copied(page, alert), 'in-the-answer');
  await page.getByRole('heading', { name: 'api', level: 1 }).waitFor();
});

test('without a runtime the pages lead to all that is needed for one', async ({ page }) => {
  const none = { edges: [], pageInfo: { endCursor: null, hasNextPage: false } };
  await page.route(GRAPHQL, (route) => {
    const asked = route.request().postDataJSON().query;
    if (asked.startsWith('query Applications')) return route.fulfill({ json: { data: { applications: none } } });
    return asked.startsWith('query Runtimes') ? route.fulfill({ json: { data: { runtimes: none } } }) : route.continue();
  });
  await signIn(page);
  await page.getByRole('heading', { name: 'No applications yet' }).waitFor();
  await page.getByRole('link', { name: 'The page of the runtimes' }).click();
  await page.getByRole('heading', { name: 'No runtimes yet' }).waitFor();
  await page.getByRole('link', { name: 'Access, Tokens' }).waitFor();
  const commands = await page.getByLabel('Command', { exact: true }).allInnerTexts();
  assert.deepEqual(commands.map((text) => text.split(' ', 1)[0]), ['kubectl', 'helm']);
});

test('a refusal and an answer that is no list have the id', async ({ page, expect }) => {
  expect(/403/);
  await signIn(page);
  await page.route('**/console/api/v1/audit*', (route) => route.fulfill({ status: 403, headers: { 'X-Request-Id': 'refused-1' }, json: { message: 'Only for administrators' } }));
  await page.goto('/audit');
  await page.getByRole('heading', { name: 'You may not see the audit log' }).waitFor();
  await page.getByText('Request refused-1').waitFor();
  await page.route('**/api/team', (route) => route.fulfill({ headers: { 'X-Request-Id': 'no-list-1' }, json: {} }));
  await page.goto('/access/teams');
  const alert = page.getByRole('alert').filter({ hasText: 'The response is no list.' });
  assert.equal(await copied(page, alert), 'no-list-1');
});

test('a sign-in that failed has the id of the request, on a phone, too', async ({ browser, daemon }) => {
  const opened = await newPage(browser, daemon, { width: 390, theme: 'dark' });
  const { page } = opened;
  opened.expect(/503/);
  await page.route('**/console/api/v1/login', (route) => route.fulfill({ status: 503, headers: { 'X-Request-Id': 'sign-in-1' }, json: { message: 'The store is busy' } }));
  await page.goto('/sign-in');
  await page.getByLabel('Name').fill('ann');
  await page.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  const alert = page.getByRole('alert');
  assert.equal(await copied(page, alert), 'sign-in-1');
  await fits(page, 'sign-in');
  await axe(page, 'a failed sign-in');
  assert.deepEqual(opened.problems, []);
  await opened.close();
});

await run(process.argv);
