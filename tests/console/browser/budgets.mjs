// The budgets of the console. Sizes are held by pages.mjs; here are times and memory, which are printed with their budget
// and never fail a run, since they say as much of the machine. GITOPS_LONG=1 runs them; GITOPS_SOAK_MINUTES=30 makes
// each case about memory last that long, in place of a minute.
import { signIn } from '../support/browser.mjs';
import { until } from '../support/daemon.mjs';

const APPLICATIONS = 10_000;
const PAGE = 1_000; // what the console asks for at once
const SOAK_MINUTES = Number(process.env.GITOPS_SOAK_MINUTES ?? 1);
const HEALTHS = ['HEALTHY', 'HEALTHY', 'HEALTHY', 'HEALTHY', 'HEALTHY', 'HEALTHY', 'DEGRADED', 'PROGRESSING', 'MISSING', 'SUSPENDED'];
const at = (seconds) => new Date(Date.now() - seconds * 1_000).toISOString();

function row(number) {
  const healthStatus = HEALTHS[number * 7 % HEALTHS.length];
  return {
    metadata: { uid: `uid-${number}`, runtime: `runtime-${number % 12}`, namespace: 'argocd', name: `app-${number}`, cluster: null, lastUpdated: at(number), labels: [{ key: 'team', value: `team-${number % 40}` }] },
    healthStatus, syncStatus: number % 9 ? 'SYNCED' : 'OUT_OF_SYNC', syncPolicy: 'Automated', revision: number.toString(16).padStart(40, 'a'), updatedAt: at(number), seenAt: at(number), presence: 'LIVE',
    repoURL: 'https://git.example.com/acme/deploy.git', project: `project-${number % 30}`, destination: { name: null, server: `https://cluster-${number % 25}.example.com`, namespace: `app-${number}` },
    status: { commitAuthor: `Author ${number % 50}`, commitMessage: `Raise replicas to ${number}` }, operationState: { phase: 'Succeeded' },
  };
}
// Made once: the time of the proxy is none of the console's.
const slices = Array.from({ length: APPLICATIONS / PAGE }, (_, slice) => JSON.stringify({ data: { applications: {
  edges: Array.from({ length: PAGE }, (_one, index) => ({ node: row(slice * PAGE + index) })),
  pageInfo: { endCursor: String(slice + 1), hasNextPage: (slice + 1) * PAGE < APPLICATIONS },
} } }));

function detail(number, count) {
  const kinds = ['Deployment', 'Service', 'ConfigMap', 'Secret', 'Pod', 'ReplicaSet', 'Ingress', 'Job'];
  return { ...row(number), healthMessage: null, size: count, path: 'apps/x', isHelmApp: false, isMultiSourced: false, errors: [], specSource: null, specSources: null, sync: null, appsRelations: null,
    history: { commitAuthor: null, commitMessage: null, commitDate: null, commitUrl: null, historyId: 1, syncStartedAt: null, syncFinishedAt: null }, operation: null,
    resources: Array.from({ length: count }, (_, index) => ({ group: '', version: 'v1', kind: kinds[index % kinds.length], namespace: 'x', name: `thing-${index}`, syncStatus: 'SYNCED', healthStatus: index % 97 ? 'HEALTHY' : 'DEGRADED', healthMessage: null, hook: false, requiresPruning: false })) };
}

/** Answers the documents of the console about 10,000 Applications, and leaves the others to the program. */
function script({ query, variables }) {
  if (query.startsWith('query Applications(')) return slices[Number(variables.after || 0)];
  if (query.startsWith('query Application(')) return JSON.stringify({ data: { application: detail(Number(variables.name.slice(4)), 1_000) } });
  if (query.startsWith('query Releases(')) return JSON.stringify({ data: { gitopsReleases: { edges: [], pageInfo: { endCursor: null, hasNextPage: false } } } });
  return undefined;
}

function figure(what, value, unit, budget) {
  const shown = value < 10 ? value.toFixed(1) : Math.round(value);
  console.log(`        ${value <= budget ? 'held  ' : 'MISSED'} ${what}: ${shown} ${unit} (budget ${budget})`);
}

async function metrics(cdp) {
  const { metrics: all } = await cdp.send('Performance.getMetrics');
  return Object.fromEntries(all.map(({ name, value }) => [name, value]));
}
async function heapOf(cdp) {
  await cdp.send('HeapProfiler.collectGarbage');
  return (await metrics(cdp)).JSHeapUsedSize;
}
async function inspect(context, page) {
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  return cdp;
}

// Opens the list and returns the milliseconds from the navigation until its first rows were painted.
async function openList(page, address) {
  await page.goto(address);
  await page.locator('[data-count]').getByText(String(APPLICATIONS)).waitFor({ timeout: 60_000 });
  return until('the time of the first rows', () => page.evaluate(() => globalThis.firstRows), 60_000);
}
const markFirstRows = () => {
  const observer = new MutationObserver(() => {
    if (!document.querySelector('.grid .row')) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.firstRows = performance.now(); }));
  });
  observer.observe(document, { childList: true, subtree: true });
};

/** Sends changes of random rows as the program does, every 100 ms, until the returned function is called. */
function change(proxy, perSecond) {
  let number = 0;
  const timer = setInterval(() => {
    const seenAt = new Date(Date.now() + 3_600_000 + number).toISOString();
    const rows = Array.from({ length: perSecond / 10 }, () => {
      const uid = `uid-${(++number * 7_919) % APPLICATIONS}`;
      return { topic: 'index', uid, health: HEALTHS[number % HEALTHS.length], sync: 'SYNCED', message: `Change ${number}`, seenAt };
    });
    proxy.send('patch', { rows });
  }, 100);
  return () => clearInterval(timer);
}
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Main-thread milliseconds in each second under changes.
async function load(cdp, proxy, perSecond, seconds) {
  const stop = change(proxy, perSecond);
  await pause(2_000);
  const before = await metrics(cdp);
  await pause(seconds * 1_000);
  const after = await metrics(cdp);
  stop();
  return (after.TaskDuration - before.TaskDuration) * 1_000 / seconds;
}

/** Adds the cases. */
export function addBudgets(test) {
  const scripted = { long: true, stream: true, graphql: script };

  test('budget: first rows of 10,000 applications', scripted, async ({ page, proxy }) => {
    await page.addInitScript(markFirstRows);
    await signIn(page);
    const first = await openList(page, `${proxy.url}/applications`);
    figure('first rows of 10,000, first', first, 'ms', 600);
    const times = [];
    for (let round = 0; round < 5; ++round) times.push(await openList(page, `${proxy.url}/applications?round=${round}`));
    figure('first rows of 10,000, median of 5 more', times.sort((a, b) => a - b)[2], 'ms', 600);
  });

  test('budget: the main thread under changes', scripted, async ({ page, context, proxy }) => {
    await signIn(page);
    for (const [form, address] of [['table', '/applications'], ['cards', '/applications?as=cards'], ['tiles', '/applications?as=tiles']]) {
      await page.goto(proxy.url + address);
      await page.locator('[data-count]').getByText(String(APPLICATIONS)).waitFor({ timeout: 60_000 });
      await page.getByText('Live', { exact: true }).waitFor();
      const cdp = await inspect(context, page);
      figure(`100 changes/s, ${form}`, await load(cdp, proxy, 100, 10), 'ms per s', 100);
      figure(`2,000 changes/s, ${form}`, await load(cdp, proxy, 2_000, 10), 'ms per s', 120);
    }
  });

  for (const hidden of [false, true]) {
    test(`budget: memory under changes${hidden ? ', of a page that gets no frames' : ''}`, scripted, async ({ page, context, proxy }) => {
      await signIn(page);
      await page.goto(`${proxy.url}/applications`);
      await page.locator('[data-count]').getByText(String(APPLICATIONS)).waitFor({ timeout: 60_000 });
      await page.getByText('Live', { exact: true }).waitFor();
      const cdp = await inspect(context, page);
      // What a hidden page gets: events, and no frames.
      if (hidden) await page.evaluate(() => { globalThis.requestAnimationFrame = () => 0; });
      const stop = change(proxy, hidden ? 2_000 : 100);
      const quarter = SOAK_MINUTES * 15_000;
      await pause(quarter);
      const first = await heapOf(cdp);
      await pause(quarter);
      const half = await heapOf(cdp);
      await pause(2 * quarter);
      const last = await heapOf(cdp);
      stop();
      figure(`heap after ${SOAK_MINUTES / 2} min`, half / 2 ** 20, 'MiB', 16);
      figure(`heap after ${SOAK_MINUTES} min`, last / 2 ** 20, 'MiB', 16);
      figure('slope over the last three quarters', Math.max(0, (last - first) / 1024 / (0.75 * SOAK_MINUTES)), 'KiB per min', 50);
    });
  }

  test('budget: a key press in the filter of 10,000', scripted, async ({ page, context, proxy }) => {
    await signIn(page);
    await page.goto(`${proxy.url}/applications`);
    await page.locator('[data-count]').getByText(String(APPLICATIONS)).waitFor({ timeout: 60_000 });
    const cdp = await inspect(context, page);
    await page.keyboard.press('/');
    const text = 'health:degraded app-12';
    const before = await metrics(cdp);
    for (const letter of text) {
      await page.keyboard.type(letter);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    const after = await metrics(cdp);
    figure('script for each key', (after.ScriptDuration - before.ScriptDuration) * 1_000 / text.length, 'ms', 16);
    figure('script, style, layout and paint for each key', (after.TaskDuration - before.TaskDuration) * 1_000 / text.length, 'ms', 50);
  });

  test('budget: a tree of 1,000 resources', scripted, async ({ page, proxy }) => {
    await signIn(page);
    await page.goto(`${proxy.url}/applications/runtime-1/argocd/app-1/overview`);
    await page.getByRole('heading', { name: 'app-1', level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'Images' }).waitFor();
    for (const [what, address] of [['folded', 'tree'], ['all drawn', 'tree?fold=none']]) {
      const spent = await page.evaluate((to) => new Promise((done) => {
        const link = document.querySelector('nav.tabs a[href$="tree"]');
        link.setAttribute('href', link.getAttribute('href').replace(/tree.*$/, to));
        const begin = performance.now();
        const observer = new MutationObserver(() => {
          if (!document.querySelector('.tree .node')) return;
          observer.disconnect();
          requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
        });
        observer.observe(document.getElementById('main'), { childList: true, subtree: true });
        link.click();
      }), address);
      console.log(`        ${await page.locator('.tree .node').count()} nodes drawn`);
      figure(`tree of 1,000, ${what}, until painted`, spent, 'ms', 600);
      await page.goto(`${proxy.url}/applications/runtime-1/argocd/app-1/overview`);
      await page.getByRole('heading', { name: 'Images' }).waitFor();
    }
  });

  test('budget: eight tabs by HTTP/1.1', scripted, async ({ page, context, proxy }) => {
    await signIn(page);
    const begin = Date.now();
    const pages = [page, ...await Promise.all(Array.from({ length: 7 }, () => context.newPage()))];
    await Promise.all(pages.map(async (one) => {
      await one.goto(`${proxy.url}/applications`);
      await one.locator('[data-count]').getByText(String(APPLICATIONS)).waitFor({ timeout: 60_000 });
      await one.getByText('Live', { exact: true }).waitFor();
    }));
    console.log(`        eight tabs ready, opened at once: ${Date.now() - begin} ms`);
    figure('their streams', proxy.streams, 'streams', 1);
    const seenAt = new Date(Date.now() + 7_200_000).toISOString();
    for (const one of pages) await one.getByRole('combobox', { name: 'Filter' }).fill('name:app-42 runtime:runtime-6');
    proxy.send('patch', { rows: [{ topic: 'index', uid: 'uid-42', message: 'to all tabs', seenAt }] });
    for (const one of pages) {
      await one.bringToFront();
      await one.locator('.grid').getByText('to all tabs').waitFor();
    }
  });
}
