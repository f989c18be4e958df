// The thin path in a browser over the whole suite: a commit arrives on an open page, and a sync that is pressed there
// happens in the cluster. node browser/whole_suite.mjs GITOPS-DEMO [--real]
// The demo starts all programs: the embedded doubles of Kubernetes and Argo CD, or with --real the real ones.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { axe } from '../support/axe.mjs';
import { launch, newPage } from '../support/browser.mjs';
import { until } from '../support/daemon.mjs';

const [program, ...options] = process.argv.slice(2);
const ARRIVAL = 30_000; // ms for what the suite tells an open page; Argo CD itself may take seconds
const START = 300_000; // ms for the scene that the demo plays first

const demo = spawn(program, ['--keep', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => demo.on('exit', resolve));
let text = '';
demo.stdout.on('data', (data) => (text += data));
const said = (pattern) => until(`the demo to print ${pattern}`, () => {
  const found = pattern.exec(text);
  if (!found && demo.exitCode !== null) throw new Error(`the demo ended:\n${text}`);
  return found;
}, START);

const folder = mkdtempSync(join(tmpdir(), 'gitops-clone-'));
function git(...args) {
  const done = spawnSync('git', ['-c', 'user.name=Mei Lin', '-c', 'user.email=mei@example.test', ...args], { cwd: folder, encoding: 'utf8', env: { ...process.env, GIT_TERMINAL_PROMPT: '0' } });
  assert.equal(done.status, 0, `git ${args[0]}: ${done.stderr}`);
  return done.stdout.trim();
}

let browser;
/** Pushes a commit, and presses Sync, before an open page. */
async function visit(user, password, origin, application, clone) {
  git('clone', '--quiet', clone, '.');
  const first = git('rev-parse', 'HEAD');

  browser = await launch();
  const { page, problems } = await newPage(browser, { url: origin });
  await page.goto('/sign-in?to=/runtimes');
  await page.getByLabel('Name').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Runtimes', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'demo', exact: true }).first().waitFor();
  await axe(page, 'runtimes of the suite');

  await page.goto(`${application}/timeline`);
  const newest = page.locator('.timeline li').first();
  await newest.getByText(first.slice(0, 7)).first().waitFor();

  const file = join(folder, 'deployment.yaml');
  const changed = readFileSync(file, 'utf8').replace(/replicas: \d+/, 'replicas: 7');
  writeFileSync(file, changed);
  git('commit', '--quiet', '--all', '--message', 'Raise replicas to 7');
  git('push', '--quiet', 'origin', 'HEAD');
  const pushed = Date.now();
  const second = git('rev-parse', 'HEAD');
  await newest.getByText(second.slice(0, 7)).first().waitFor({ timeout: ARRIVAL });
  await newest.getByText('Raise replicas to 7').first().waitFor({ timeout: ARRIVAL });
  console.log(`ok      a commit is on the open page ${Date.now() - pushed} ms after its push`);

  // The revision before, so that the sync has something to do.
  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: /^Sync / });
  await dialog.getByLabel('Revision').fill(first);
  await dialog.getByRole('button', { name: 'Sync' }).click();
  const pressed = Date.now();
  await page.locator('.outcome').filter({ hasText: 'Done' }).waitFor({ timeout: ARRIVAL });
  console.log(`ok      the runtime has accepted the sync after ${Date.now() - pressed} ms`);
  await newest.getByText(first.slice(0, 7)).first().waitFor({ timeout: ARRIVAL });
  console.log(`ok      the deployment of the sync is on the open page after ${Date.now() - pressed} ms`);
  await axe(page, 'timeline of the suite');
  assert.deepEqual(problems, [], 'problems of the page');
}

let hasConsole = true;
try {
  const [, user, password] = await said(/the console; user (\S+), password (\S+)/);
  const [, origin, application] = await said(/^ +(http:\/\/127\.0\.0\.1:\d+)(\/applications\/\S+)$/m);
  const [, clone] = await said(/git clone (\S+)/);
  hasConsole = !text.includes('its pages were left out');
  if (hasConsole) await visit(user, password, origin, application, clone);
} finally {
  await browser?.close();
  if (demo.exitCode === null) demo.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}
if (!hasConsole) {
  console.log('the control plane was built without its console');
  process.exitCode = 77;
}
assert.equal(await ended, 0, `the demo failed:\n${text}`);
