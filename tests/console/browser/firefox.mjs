// The console in Firefox, driven by WebDriver BiDi: node browser/firefox.mjs PROGRAM
//
// One way through the page: the cases of Chromium stand for what both do alike.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import puppeteer from 'puppeteer-core';

import { application, Daemon, deployment, seed } from '../support/daemon.mjs';
import { hasConsole } from '../support/suite.mjs';

function findFirefox() {
  if (process.env.FIREFOX) return process.env.FIREFOX;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return ['firefox-esr', 'firefox'].flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

function skip(why) {
  console.log(why);
  process.exitCode = 77;
}

/** Waits for a text in the page, or an element with one. */
const seen = (page, selector, text) => page.waitForSelector(`${selector} ::-p-text(${text})`, { timeout: 20_000 });

async function way(page, daemon, tokens) {
  const problems = [];
  page.on('pageerror', (error) => problems.push(`exception: ${error.stack ?? error}`));
  page.on('console', (message) => {
    // A program without the list of ways to sign in answers 404.
    if (['error', 'warn'].includes(message.type()) && !/sign-in/.test(message.text())) problems.push(`${message.type()}: ${message.text()}`);
  });
  await page.evaluateOnNewDocument(() => {
    globalThis.reports = [];
    document.addEventListener('securitypolicyviolation', (event) => globalThis.reports.push(`${event.effectiveDirective} ${event.blockedURI}`));
  });
  await page.goto(`${daemon.url}/applications`);
  await page.locator('::-p-aria([name="Name"][role="textbox"])').fill('ann');
  await page.locator('input[type="password"]').fill('correct horse battery staple');
  await page.keyboard.press('Enter');
  await seen(page, '.grid', 'Degraded');
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts cannot read the session');

  // A change arrives by the stream, in the worker of all pages.
  await seen(page, '.top', 'Live');
  await page.keyboard.press('/');
  await page.keyboard.type('ledger runtime:prod-us');
  await page.keyboard.press('Enter');
  await seen(page, '.grid .row', 'ledger');
  await daemon.report(tokens['prod-us'], application('ledger', { number: 700, uid: 'uid-prod-us-ledger', server: 'https://prod-us.example.com', health: 'Degraded', message: 'changed under the page', commitMessage: 'Break the ledger', resources: deployment('ledger') }));
  await seen(page, '.grid .row', 'Break the ledger');

  await page.keyboard.press('Enter');
  await seen(page, 'h1', 'ledger');
  await page.keyboard.press('2');
  await page.waitForSelector('[role="tree"] [role="treeitem"]');
  await page.keyboard.press('3');
  await seen(page, '.timeline', 'Break the ledger');
  await page.keyboard.press('5');
  await seen(page, 'table', 'Application ledger');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.grid');
  assert.deepEqual([...problems, ...await page.evaluate(() => globalThis.reports)], [], 'problems of the page');
}

async function run() {
  const executablePath = findFirefox();
  if (!executablePath) return skip('Firefox is not installed (Debian: firefox-esr)');
  const daemon = new Daemon(process.argv[2]);
  let browser;
  try {
    await daemon.start();
    if (!(await hasConsole(daemon))) return skip('the control plane was built without its console');
    const tokens = await seed(daemon);
    browser = await puppeteer.launch({ browser: 'firefox', executablePath, headless: true });
    const page = await browser.newPage();
    await page.setViewport({ width: 1440, height: 900 });
    await way(page, daemon, tokens);
    console.log(`1 case passed in ${await browser.version()}`);
  } catch (error) {
    console.log(`FAILED  ${error.stack ?? error}`);
    process.exitCode = 1;
  } finally {
    await browser?.close();
    await daemon.stop();
  }
  return undefined;
}

await run();
