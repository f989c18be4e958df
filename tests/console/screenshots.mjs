// Makes pictures of every page in both themes, wide and narrow: node screenshots.mjs PROGRAM FOLDER
// With --docs the folder gets those of docs/reference/console.md alone.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { launch, newPage, signIn } from './support/browser.mjs';
import { Daemon, seed, seedAccess } from './support/daemon.mjs';
import { reduced } from './support/png.mjs';

const [program, folder, flag] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

const PAGES = {
  applications: '/applications',
  filtered: '/applications?q=health:Degraded,Missing',
  nothing: '/applications?q=nothing-like-this+health:Degraded',
  columns: '/applications?cols=name,health,sync,runtime,labels,project,revision,author,changedAt',
  cards: '/applications?as=cards',
  tiles: '/applications?as=tiles',
  overview: '/applications/prod-eu/argocd/api/overview',
  tree: '/applications/prod-eu/argocd/api/tree',
  'tree-node': '/applications/prod-eu/argocd/api/tree?node=apps:Deployment:api:api',
  'tree-open': '/applications/prod-eu/argocd/api/tree?fold=none&q=api-3',
  'tree-list': '/applications/prod-eu/argocd/api/tree?layout=list',
  timeline: '/applications/prod-eu/argocd/api/timeline',
  runtimes: '/runtimes',
  runtime: '/runtimes/prod-eu',
  lab: '/runtimes/lab',
  audit: '/audit',
  users: '/access/users',
  user: '/access/users?user=BOB',
  teams: '/access/teams',
  team: '/access/teams?team=TEAM',
  'service-accounts': '/access/service-accounts',
  'service-account': '/access/service-accounts?account=ROBOT',
  tokens: '/access/tokens',
  rules: '/access/rules',
  tester: '/access/rules?runtime=prod-eu&namespace=argocd&name=api',
  help: '/help',
  'help-search': '/help?q=runtime+token',
  'help-page': '/help/troubleshooting',
  'tester-person': '/access/rules?runtime=prod-eu&namespace=argocd&name=api&who=BOB',
};

const DOCS = {
  'console-applications': '/applications',
  'console-tiles': '/applications?as=tiles',
  'console-tree': '/applications/prod-eu/argocd/api/tree?node=apps:Deployment:api:api',
  'console-timeline': '/applications/prod-eu/argocd/api/timeline',
};

async function show(page, address) {
  await page.goto(address);
  await page.locator('h1').waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
  await page.waitForTimeout(250);
}

const daemon = new Daemon(program);
const browser = await launch();
try {
  await daemon.start();
  await seed(daemon);
  const ids = await seedAccess(daemon);
  if (flag === '--docs') {
    const { page, close } = await newPage(browser, daemon, { width: 1400, height: 680 });
    await signIn(page);
    for (const [name, address] of Object.entries(DOCS)) {
      await show(page, address);
      writeFileSync(join(folder, `${name}.png`), reduced(await page.screenshot()));
    }
    await close();
  }
  for (const theme of flag === '--docs' ? [] : ['light', 'dark']) {
    for (const width of [1440, 390]) {
      const { page, close } = await newPage(browser, daemon, { theme, width, height: width === 390 ? 844 : 900 });
      await page.goto('/sign-in?to=/runtimes');
      await page.getByLabel('Name').waitFor();
      const save = (name) => page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
      await save('sign-in');
      await signIn(page);
      for (const [name, address] of Object.entries(PAGES)) {
        await show(page, address.replace(/BOB|TEAM|ROBOT/g, (id) => ids[id]));
        await save(name);
      }
      await page.goto('/access/rules');
      await page.getByRole('button', { name: 'Create a rule…' }).click();
      const rule = page.getByRole('dialog');
      await rule.getByLabel('pay', { exact: true }).check();
      await rule.getByLabel('SYNC', { exact: true }).check();
      await rule.getByRole('button', { name: 'Add a condition' }).click();
      await rule.getByLabel('Condition 1: namespace').fill('argocd');
      await save('make-rule');
      await page.goto('/access/tokens');
      await page.getByRole('button', { name: 'Create a token…' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('picture');
      await save('make-token');
      await page.keyboard.press('Enter');
      await page.getByRole('status', { name: 'Token picture' }).waitFor();
      await save('token');
      await page.goto(`/access/users?user=${ids.BOB}`);
      await page.getByRole('button', { name: 'Remove…' }).click();
      await save('remove-user');
      await page.goto('/applications');
      await page.getByRole('grid').waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('ap');
      await save('palette');
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await save('keys');
      await close();
    }
  }
} finally {
  await browser.close();
  await daemon.stop();
}
console.log(`pictures are in ${folder}`);
