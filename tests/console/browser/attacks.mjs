// AC-38: texts of others in every place of the console that shows them: node browser/attacks.mjs PROGRAM [PART-OF-A-CASE'S-NAME]
//
// Whoever can commit to Git, label an object or write a log decides these texts. None of them may run, load or become a
// link that is no address of the web.
import assert from 'node:assert/strict';

import { newPage, signIn } from '../support/browser.mjs';
import { application } from '../support/daemon.mjs';
import { inCluster, reportResource } from '../support/resources.mjs';
import { StreamProxy } from '../support/stream_proxy.mjs';
import { run, test } from '../support/suite.mjs';

const MARKUP = ['<img src=x onerror="globalThis.broken=1">', '<script>globalThis.broken=1</script>', '"><svg onload=globalThis.broken=1>', '\'"--></style></title><script>globalThis.broken=1</script>',
  '<a href="javascript:globalThis.broken=1">click</a>', '<iframe srcdoc="<script>parent.broken=1</script>"></iframe>', '<style>@import "https://evil.example/x.css";</style>', '<base href="https://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">', '{{constructor.constructor("globalThis.broken=1")()}}', '${globalThis.broken=1}', '<math><mtext><mglyph><style><img src=x onerror=globalThis.broken=1>',
  '\u202egnp.exe\u202c', '\u0000\u001b[31m<b>bold</b>'].join(' ');
const ADDRESSES = ['javascript:globalThis.broken=1', 'JaVaScRiPt:globalThis.broken=1//https://git.example.com/', ' javascript:globalThis.broken=1', 'java\nscript:globalThis.broken=1', '\u0001javascript:globalThis.broken=1',
  'data:text/html,<script>globalThis.broken=1</script>', 'vbscript:broken', 'blob:https://evil.example/1', 'file:///etc/passwd', '//evil.example/', '\\\\evil.example\\'];

const PLACES = [MARKUP, ...ADDRESSES];
const nameOf = (text) => text.replace(/[\x00-\x1f]/g, '').slice(0, 200); // the intake refuses others

/** An application all of whose texts are this one. */
function evil(name, text, number) {
  const app = application(name, { number, uid: `uid-evil-${number}`, health: 'Degraded', sync: 'OutOfSync', phase: 'Failed', message: text, operationMessage: text, author: text, commitMessage: text, project: text,
    server: text, labels: { team: text, [text.slice(0, 60)]: 'x' },
    resources: [{ group: '', version: 'v1', kind: 'ConfigMap', namespace: nameOf(text), name: nameOf(text), status: 'OutOfSync', health: { status: 'Degraded', message: text } },
      { group: text, version: text, kind: text, namespace: 'a', name: 'b', status: 'OutOfSync', health: { status: 'Missing', message: text } }] });
  app.metadata.annotations = { 'codefresh.io/app-group': text, 'argocd.argoproj.io/link': text, [text.slice(0, 60)]: text };
  app.spec.source = { repoURL: text, path: text, targetRevision: text };
  app.status.sync.revision = text;
  app.status.history[0].revision = text;
  app.status.operationState.syncResult.revision = text;
  app.status.operationState.operation = { initiatedBy: { username: text } };
  app.status.summary = { images: [text, `${text}:1`], externalURLs: [text] };
  app.status.conditions = [{ type: 'ComparisonError', message: text }];
  return app;
}

const sse = (type, data) => `event: ${type}\ndata: ${typeof data === 'string' ? data.replaceAll('\n', ' ') : JSON.stringify(data)}\n\n`;

async function prepare(daemon, tokens) {
  const token = tokens['prod-eu'];
  let number = 2_000;
  for (const [index, text] of PLACES.entries()) {
    const app = evil(`evil-${index}`, text, ++number);
    await daemon.report(token, app, { errors: [{ type: 'sync', level: 'error', message: text, lastSeen: text, sourceReference: { group: text, version: 'v1', kind: text, name: text, namespace: text } }] });
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: nameOf(text), namespace: nameOf(text), labels: { a: text } }, data: { [text]: text, lines: `${text}\n${text}\n` } };
    await reportResource(daemon, token, app, { live: inCluster({ ...object, data: { ...object.data, other: text } }), desired: object, git: `# ${text}\n${text}\n`, sync: 'OutOfSync', event: `uid-evil-${number}/${encodeURIComponent(text)}/1/x` });
    // Its refusal names the text.
    await fetch(`${daemon.url}/2.0/api/events`, { method: 'POST', body: JSON.stringify({ data: text }), headers: { Authorization: token, 'Content-Type': 'application/json', 'X-Event-Id': `uid-evil-${number}/${text.replace(/[^\x20-\x7e]/g, '?')}/2/y` } });
    await daemon.graphql('mutation($args: ReportRuntimeErrorsArgs!) { reportRuntimeErrors(reportErrorsArgs: $args) }', { args: { runtime: 'prod-eu', errors: [{ level: 'ERROR', message: text }] } }, token);
  }
  // One whose name is markup: names come from the runtime.
  await daemon.report(token, evil(nameOf(MARKUP), 'a', ++number));
  await daemon.graphql('mutation($clusters: [ClusterUpsertArgs]) { updateRuntimeClusters(clusters: $clusters) }', { clusters: [{ name: nameOf(MARKUP), runtime: 'prod-eu', server: ADDRESSES[0],
    info: { connectionState: { status: 'Failed', message: MARKUP }, serverVersion: MARKUP, applicationsCount: 1 } }] }, token);
  return { names: PLACES.map((_, index) => `evil-${index}`) };
}

/** Opens a page that notes reports of the policy and requests to other hosts. */
async function watched(browser, daemon, handle) {
  const proxy = new StreamProxy(daemon.url, { handle: (request, response) => handle(request, response, proxy) });
  await proxy.start();
  const opened = await newPage(browser, { url: proxy.url });
  const others = [];
  opened.page.on('request', (request) => { if (!request.url().startsWith(proxy.url) && !request.url().startsWith('blob:')) others.push(request.url()); });
  opened.page.on('dialog', (dialog) => { others.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  await opened.page.addInitScript(() => {
    globalThis.reports = [];
    document.addEventListener('securitypolicyviolation', (event) => globalThis.reports.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
  });
  return { ...opened, others, end: async () => { await opened.close(); await proxy.stop(); } };
}

async function harmless({ page, others }, where) {
  const found = await page.evaluate(() => ({
    broken: globalThis.broken ?? 0, reports: globalThis.reports,
    elements: [...document.querySelectorAll('#app script, #app img:not([src="/icon.svg"]), #app iframe, #app style, #app base, #app meta, #app object, #app embed, #app svg[onload], #app math, #app [onerror], #app [srcdoc]')].map((one) => one.outerHTML.slice(0, 200)),
    links: [...document.querySelectorAll('a[href], area[href], form[action], [formaction]')].map((one) => one.href ?? one.action).filter((address) => !/^https?:\/\//.test(address)),
    outside: [...document.querySelectorAll('a[href]')].map((one) => one).filter((one) => one.origin !== location.origin && !(one.rel.includes('noopener') && one.target === '_blank')).map((one) => one.href),
  }));
  assert.deepEqual(found, { broken: 0, reports: [], elements: [], links: [], outside: [] }, where);
  assert.deepEqual(others, [], `${where}: requests to others`);
}

// An app-proxy that writes these texts into its logs.
const logs = (text) => (request, response, proxy) => {
  const { pathname, searchParams } = new URL(request.url, proxy.url);
  if (pathname === '/console/api/v1/runtimes/prod-eu/token') {
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ token: 'page-token', address: proxy.url, expiresIn: 300 }));
    return true;
  }
  if (pathname !== '/app-proxy/api/applications/logs') return false;
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  if (searchParams.get('events')) response.end(sse('log', { podName: text, timestamp: text, content: text, reason: text, type: text }) + sse('end', {}));
  else response.end(sse('log', { podName: text, containerName: text, timestamp: text, content: text }) + sse('log', { podName: 'other', containerName: text, timestamp: '2026-11-27T03:00:00Z', content: `ERROR ${text}` }) + sse('trouble', `${text} is waiting to start`) + sse('end', {}));
  return true;
};

test('AC-38: the list in its three forms, its facets and the palette', async ({ browser, daemon, names }) => {
  const opened = await watched(browser, daemon, () => false);
  const { page } = opened;
  try {
    await signIn(page);
    await page.goto('/applications?q=evil&cols=name,health,sync,op,runtime,cluster,project,repo,labels,revision,message,author,auto,changed,age');
    await page.locator('.grid .row').getByText('evil-0').waitFor();
    await page.evaluate(() => document.querySelector('.grid').scrollTo(9_000, 0));
    await harmless(opened, 'table');
    await page.goto('/applications?q=evil&as=cards');
    await page.locator('.card').getByText('evil-0').waitFor();
    await harmless(opened, 'cards');
    await page.goto('/applications?q=evil&as=tiles&by=cluster');
    await page.locator('.tiles').waitFor();
    await harmless(opened, 'tiles');
    await page.goto(`/applications?q=${encodeURIComponent(MARKUP)}`);
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
    await harmless(opened, 'filter');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('<img');
    await page.getByRole('option').first().waitFor();
    await harmless(opened, 'palette');
    assert.equal(names.length, PLACES.length);
    assert.deepEqual(opened.problems, []);
  } finally {
    await opened.end();
  }
});

for (const [index, text] of PLACES.entries()) {
  test(`AC-38: all views of an application whose texts are ${index === 0 ? 'markup' : JSON.stringify(text)}`, async ({ browser, daemon }) => {
    const opened = await watched(browser, daemon, logs(text));
    const { page } = opened;
    try {
      await signIn(page);
      const base = `/applications/prod-eu/argocd/evil-${index}`;
      await page.goto(base);
      await page.getByRole('heading', { name: `evil-${index}`, level: 1 }).waitFor();
      await page.getByRole('heading', { name: 'Attention' }).waitFor();
      await harmless(opened, 'overview');
      await page.keyboard.press('2');
      await page.getByRole('treeitem', { name: /Application/ }).waitFor();
      await page.getByRole('treeitem').nth(1).click();
      await page.getByRole('complementary', { name: 'Resource' }).waitFor();
      await harmless(opened, 'tree');
      await page.keyboard.press('3');
      await page.locator('.timeline li').first().waitFor();
      await harmless(opened, 'timeline');
      await page.keyboard.press('4');
      await page.locator('.diff .line.add').first().waitFor();
      await harmless(opened, 'diff');
      await page.goto(`${base}/diff?left=git&form=split&noise=shown&object=${encodeURIComponent(`:ConfigMap:${nameOf(text)}:${nameOf(text)}`)}`);
      await page.locator('.diff .line').nth(1).waitFor();
      await harmless(opened, 'diff side by side');
      await page.goto(`${base}/journal`);
      await page.getByText('Quarantined', { exact: true }).waitFor();
      for (const button of await page.getByRole('button', { name: /^Details/ }).all()) {
        await button.click();
        await page.getByLabel('The entry as JSON').waitFor();
        await harmless(opened, 'journal');
      }
      await page.goto(`${base}/logs?pod=${encodeURIComponent(text)}&q=${encodeURIComponent(text.slice(0, 20))}&container=${encodeURIComponent(text)}&wrap=1`);
      await page.locator('.log .line').first().waitFor();
      await page.getByText('This is all of it').waitFor();
      await harmless(opened, 'logs');
      await page.goto(`${base}/${encodeURIComponent(nameOf(text).replaceAll('/', ''))}?node=${encodeURIComponent(text)}&entry=${encodeURIComponent(text)}`);
      await page.getByRole('heading', { name: `evil-${index}`, level: 1 }).waitFor();
      await harmless(opened, 'an address with the text in it');
      assert.deepEqual(opened.problems, []);
    } finally {
      await opened.end();
    }
  });
}

test('AC-38: an application whose name is markup, the runtime, its clusters, and the audit log', async ({ browser, daemon }) => {
  const opened = await watched(browser, daemon, () => false);
  const { page } = opened;
  try {
    await signIn(page);
    await page.goto('/applications?q=onerror');
    await page.locator('.grid .row').first().waitFor();
    await page.locator('.grid').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1 }).getByText('<img src=x').waitFor();
    for (const [key, place] of [['2', '[role="tree"]'], ['3', '.timeline'], ['5', 'table'], ['1', '.columns']]) {
      await page.keyboard.press(key);
      await page.locator(place).first().waitFor();
      await harmless(opened, `tab ${key}`);
    }
    await page.goto('/runtimes/prod-eu');
    await page.getByText('<img src=x').first().waitFor();
    await harmless(opened, 'runtime');
    await page.goto(`/audit?action=${encodeURIComponent(MARKUP)}`);
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
    await harmless(opened, 'audit log');
    await page.goto(`/access/rules?runtime=prod-eu&namespace=argocd&name=${encodeURIComponent(nameOf(MARKUP))}`);
    await page.getByRole('heading', { name: 'Rules' }).first().waitFor();
    await harmless(opened, 'rules');
    assert.deepEqual(opened.problems, []);
  } finally {
    await opened.end();
  }
});

await run(process.argv, prepare);
