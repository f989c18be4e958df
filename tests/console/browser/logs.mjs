// Logs of an application, from a scripted app-proxy: node browser/logs.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
import assert from 'node:assert/strict';

import { axe } from '../support/axe.mjs';
import { newPage, signIn } from '../support/browser.mjs';
import { application, until } from '../support/daemon.mjs';
import { StreamProxy } from '../support/stream_proxy.mjs';
import { fits, run, test } from '../support/suite.mjs';

const ADDRESS = '/applications/prod-eu/argocd/talk/logs';
const TOKEN = 'page-token-of-this-page';
const at = (second) => new Date(Date.UTC(2026, 10, 27, 3, 0, second)).toISOString();
const event = (type, data) => `event: ${type}\ndata: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
const line = (content, second = 0, podName = 'api-1', more = {}) => event('log', { podName, containerName: 'main', timestamp: at(second), content, ...more });

/** Before the daemon, an app-proxy with the same address. `answer(query, response, connection)` writes the log. */
class Runtime {
  asked = []; // queries of the logs
  tokens = [];
  open = new Set();

  constructor(answer) {
    this.answer = answer;
  }
  async start(daemon) {
    this.proxy = new StreamProxy(daemon.url, { handle: (request, response) => this.handle(request, response) });
    await this.proxy.start();
    this.url = this.proxy.url;
    return this;
  }
  handle(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url);
    if (pathname === '/console/api/v1/runtimes/prod-eu/token') {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ token: TOKEN, address: this.url, expiresIn: 300 }));
      return true;
    }
    if (pathname !== '/app-proxy/api/applications/logs') return false;
    const query = Object.fromEntries(searchParams);
    this.asked.push(query);
    this.tokens.push(request.headers['x-access-token']);
    this.open.add(response);
    response.on('close', () => this.open.delete(response));
    const begin = () => response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    this.answer(query, response, begin, this.asked.length);
    return true;
  }
  send(text) {
    for (const response of this.open) response.write(text);
  }
}

async function prepare(daemon, tokens) {
  await daemon.report(tokens['prod-eu'], application('talk', { number: 930, uid: 'uid-prod-eu-talk', resources: [{ group: 'apps', version: 'v1', kind: 'Deployment', namespace: 'talk', name: 'api', status: 'Synced', health: { status: 'Progressing' } }] }));
}

/** A case with a runtime of its own. */
function logTest(name, options, answer, body) {
  test(name, async ({ browser, daemon, problems: _none, ...rest }) => {
    const runtime = await new Runtime(answer).start(daemon);
    const opened = await newPage(browser, { url: runtime.url }, options);
    try {
      await signIn(opened.page);
      await body({ ...rest, ...opened, daemon, runtime });
      assert.deepEqual(opened.problems, [], 'problems of the page');
    } finally {
      await opened.close();
      await runtime.proxy.stop();
    }
  });
}
const log = (page) => page.getByRole('region', { name: 'Log' });
const follow = (...lines) => (_query, response, begin) => begin() && lines.forEach((one) => response.write(one));
const shownLast = (page) => page.evaluate(() => { const element = document.querySelector('.log'); return element.scrollTop + element.clientHeight >= element.scrollHeight - 4; });

logTest('a log is followed with the token of this page, until it is scrolled up', {}, follow(...Array.from({ length: 300 }, (_, index) => line(`line ${index}`, index))), async ({ page, runtime }) => {
  await page.goto('/applications/prod-eu/argocd/talk');
  await page.getByRole('heading', { name: 'talk', level: 1 }).waitFor();
  await page.keyboard.press('6');
  await log(page).getByText('line 299', { exact: true }).waitFor();
  assert.deepEqual(runtime.asked, [{ applicationName: 'talk', appNamespace: 'argocd', follow: 'true', tailLines: '2000' }]);
  assert.deepEqual(runtime.tokens, [TOKEN]);
  assert.equal(page.url().includes(TOKEN), false);
  assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage })).then((text) => text.includes('page-token')), false);
  runtime.send(line('line 300', 300));
  await log(page).getByText('line 300', { exact: true }).waitFor();
  assert.equal(await shownLast(page), true);
  await log(page).hover();
  await page.mouse.wheel(0, -2_000);
  await page.getByRole('button', { name: 'Follow' }).waitFor();
  runtime.send(line('line 301', 301));
  await page.locator('[data-lines]').getByText('302 lines').waitFor();
  assert.equal(await shownLast(page), false);
  await page.getByRole('button', { name: 'Follow' }).click();
  await log(page).getByText('line 301', { exact: true }).waitFor();
  assert.equal(await shownLast(page), true);
  await page.goto('/runtimes');
  await until('the log to be closed', () => runtime.open.size === 0);
});

logTest('the search walks over all loaded lines, also those out of sight', {}, follow(...Array.from({ length: 900 }, (_, index) => line(index % 100 === 7 ? `ERROR needle ${index}` : `line ${index}`, index))), async ({ page }) => {
  await page.goto(ADDRESS);
  await log(page).getByText('line 899').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('NEEDLE');
  await page.locator('[data-hits]').getByText('9 lines').waitFor();
  assert.equal(new URL(page.url()).searchParams.get('q'), 'NEEDLE');
  await page.keyboard.press('Enter');
  await log(page).locator('.current').getByText('ERROR needle 7', { exact: true }).waitFor();
  await page.keyboard.press('Shift+Enter');
  await page.locator('[data-hits]').getByText('9 of 9').waitFor();
  await log(page).locator('.current mark').getByText('needle').waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  assert.equal(saved.suggestedFilename(), 'talk.log');
});

logTest('pod, container, since and previous are in the address and in the question', {}, (query, response, begin) => {
  begin();
  response.write(line(query.previous ? 'before the restart' : 'now', 1, 'api-1') + line('of the other', 2, 'api-2'));
  if (query.previous) response.end(event('end', {}));
}, async ({ page, runtime }) => {
  await page.goto(ADDRESS);
  await log(page).getByText('now').waitFor();
  await page.locator('label', { hasText: /^Pod/ }).locator('select').selectOption('api-2');
  await until('the pod to be asked for', () => runtime.asked.at(-1).podName === 'api-2');
  await page.getByPlaceholder('the usual one').fill('sidecar');
  // Lines that come while somebody types leave the field alone.
  runtime.send(line('meanwhile', 3, 'api-2'));
  await log(page).getByText('meanwhile').waitFor();
  await page.keyboard.press('Enter');
  await until('the container to be asked for', () => runtime.asked.at(-1).container === 'sidecar');
  await page.locator('label', { hasText: /^Since/ }).locator('select').selectOption('3600');
  await until('the age to be asked for', () => runtime.asked.at(-1).sinceSeconds === '3600');
  await page.getByRole('button', { name: 'Previous' }).click();
  await log(page).getByText('before the restart').waitFor();
  await page.getByText('This is all of it').waitFor();
  const { previous, follow: follows } = runtime.asked.at(-1);
  assert.deepEqual([previous, follows], ['true', undefined]);
  assert.equal(new URL(page.url()).search, '?pod=api-2&container=sidecar&since=3600&prev=1');
  await page.reload();
  await log(page).getByText('before the restart').waitFor();
});

logTest('a connection that breaks goes on behind the last line, and a token that ended gets a successor', {}, (_query, response, begin, count) => {
  begin();
  if (count === 1) {
    response.write(line('first', 1));
    setTimeout(() => response.destroy(), 200);
  } else if (count === 2) {
    response.end(line('first', 1) + line('second', 2) + event('trouble', 'Unauthorized') + event('end', {}));
  } else {
    response.write(line('second', 2) + line('third', 3));
  }
}, async ({ page, runtime, expect }) => {
  expect(/ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/);
  await page.goto(ADDRESS);
  await log(page).getByText('third').waitFor();
  assert.deepEqual(await log(page).locator('code').allInnerTexts(), ['first', 'second', 'third']);
  assert.equal(runtime.asked[1].sinceTime, '2026-11-27T02:59:56.000Z');
});

logTest('50,000 lines are kept, older ones are counted, and rows in sight alone are drawn', {}, (_query, response, begin) => {
  begin();
  for (let index = 0; index < 60_000; index += 1_000) response.write(Array.from({ length: 1_000 }, (_, part) => line(`line ${index + part}`, 0)).join(''));
}, async ({ page }) => {
  await page.goto(ADDRESS);
  await page.getByText('10000 older ones dropped').waitFor();
  await log(page).getByText('line 59999', { exact: true }).waitFor();
  assert.ok(await page.evaluate(() => document.querySelectorAll('.log .line').length) < 100);
  await page.getByRole('button', { name: 'Wrap' }).click();
  await log(page).getByText('line 59999', { exact: true }).waitFor();
});

logTest('long lines wrap into rows that are whole together', {}, follow(line(`begin ${'x'.repeat(400)} end`, 1)), async ({ page }) => {
  await page.goto(`${ADDRESS}?wrap=1`);
  await log(page).getByText('begin').waitFor();
  const parts = await log(page).locator('code').allInnerTexts();
  assert.ok(parts.length > 2);
  assert.equal(parts.join(''), `begin ${'x'.repeat(400)} end`);
  const wide = await page.evaluate(() => { const element = document.querySelector('.log'); return element.scrollWidth > element.clientWidth; });
  assert.equal(wide, false);
});

logTest('a refusal names its reason, and a runtime that does not answer is named', {}, (query, response, _begin, count) => {
  if (count === 1) response.writeHead(403, { 'Content-Type': 'application/json' }).end('{"statusCode":403,"message":"a rule with VIEW_POD_LOGS is needed"}');
  else response.destroy();
}, async ({ page, expect, runtime }) => {
  expect(/403|ERR_EMPTY_RESPONSE/);
  await page.goto(ADDRESS);
  await page.getByRole('alert').getByText('a rule with VIEW_POD_LOGS is needed').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText(`The runtime prod-eu could not be reached by your browser at ${runtime.url}.`).waitFor();
});

logTest('a container that never started has the events of its pod instead', {}, (query, response, begin) => {
  if (query.events) {
    begin();
    response.write(event('log', { podName: 'api-9', timestamp: at(1), content: 'Failed to pull image "x"', reason: 'Failed', type: 'Warning' }));
    return;
  }
  response.writeHead(400, { 'Content-Type': 'application/json' }).end('{"message":"container \\"main\\" in pod \\"api-9\\" is waiting to start: trying and failing to pull image"}');
}, async ({ page, expect, runtime }) => {
  expect(/400/);
  await page.goto(`${ADDRESS}?pod=api-9`);
  await page.getByRole('region', { name: 'Events of api-9' }).getByText('Failed to pull image').waitFor();
  assert.deepEqual(runtime.asked.at(-1), { events: 'true', applicationName: 'talk', appNamespace: 'argocd', namespace: 'talk', podName: 'api-9' });
});

logTest('a resource has its events and its diff beside the tree', {}, (_query, response, begin) => {
  begin();
  response.write(event('log', { podName: 'api', timestamp: at(1), content: 'Scaled up replica set api-1 to 2', reason: 'ScalingReplicaSet', type: 'Normal' }));
}, async ({ page, runtime }) => {
  await page.goto('/applications/prod-eu/argocd/talk/tree?node=apps:Deployment:talk:api');
  const panel = page.getByRole('complementary', { name: 'Resource' });
  await panel.getByRole('button', { name: 'Events' }).waitFor();
  assert.equal(runtime.asked.length, 0, 'the runtime is asked for events when they are wanted alone');
  await panel.getByRole('button', { name: 'Events' }).click();
  await panel.getByText('Scaled up replica set api-1 to 2').waitFor();
  assert.deepEqual(runtime.asked, [{ events: 'true', applicationName: 'talk', appNamespace: 'argocd', namespace: 'talk', group: 'apps', kind: 'Deployment', resourceName: 'api' }]);
  await axe(page, 'events');
  runtime.send(event('log', { podName: 'api', timestamp: at(2), content: 'Scaled down', reason: 'ScalingReplicaSet', type: 'Normal' }));
  await panel.getByRole('listitem').first().getByText('Scaled down').waitFor();
  await panel.getByRole('link', { name: 'Diff' }).click();
  await page.waitForURL(/diff\?object=apps:Deployment:talk:api$/);
  await until('the events to be closed', () => runtime.open.size === 0);
});

logTest('a log that ended with the session is read again after signing in', {}, (_query, response, begin, connection) => {
  if (connection === 1) response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"message":"Unauthorized"}');
  else begin() && response.write(line('after signing in'));
}, async ({ page, expect }) => {
  expect(/401/);
  let asked = 0;
  await page.route('**/console/api/v1/runtimes/prod-eu/token', (route) => (++asked === 2 ? route.fulfill({ status: 401, json: { message: 'Unauthorized' } }) : route.continue()));
  await page.goto(ADDRESS);
  await page.getByText('The log could not be read.').waitFor();
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await dialog.getByLabel('Password').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await log(page).getByText('after signing in').waitFor();
});

test('a runtime that the control plane gives no token for is named once, and not asked again and again', async ({ page, expect }) => {
  expect(/token/);
  await signIn(page);
  let asked = 0;
  page.on('request', (request) => { if (request.url().endsWith('/token')) ++asked; });
  await page.goto(ADDRESS);
  await page.getByRole('alert').getByText('The log could not be read.').waitFor();
  assert.equal(asked, 1);
  await page.getByRole('button', { name: 'Try again' }).click();
  await until('another try', () => asked === 2);
});

for (const theme of ['light', 'dark']) {
  for (const width of [1440, 390]) {
    logTest(`logs are for everybody in the ${theme} theme, ${width} wide`, { theme, width }, follow(line('ERROR a', 1), line('WARN b', 2, 'api-2'), line('debug c', 3, 'api-3'), line('plain needle', 4, 'api-4')), async ({ page }) => {
      await page.goto(`${ADDRESS}?q=needle`);
      await log(page).getByText('needle').waitFor();
      await axe(page, 'logs');
      await fits(page, 'logs');
    });
  }
}

await run(process.argv, prepare);
