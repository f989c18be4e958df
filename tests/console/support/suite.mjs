// What the files of browser cases share: they run one after another against one program with the usual data.
import assert from 'node:assert/strict';

import { launch, newPage } from './browser.mjs';
import { Daemon, seed } from './daemon.mjs';

const cases = [];

/** Adds a case. `options.page` goes to newPage(). */
export function test(name, options, run) {
  cases.push({ name, options: run ? options : {}, run: run ?? options });
}

/** Fails when something is wider than its place. */
export async function fits(page, where) {
  const wide = await page.evaluate(() => [...document.querySelectorAll('html, .page, dialog')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.tagName} ${one.scrollWidth} > ${one.clientWidth}`));
  assert.deepEqual(wide, [], `${where} is wider than its place`);
}

/** Returns whether the program has the page in it. */
export async function hasConsole(daemon) {
  const page = await fetch(daemon.url, { headers: { Accept: 'text/html' } });
  return !(await page.text()).includes('built without its console');
}

/** Runs the cases whose names have `argv[3]` in them, and ends the process: 0 all passed, 77 nothing to test. `prepare` gets the daemon and the runtimes' tokens. */
export async function run(argv, prepare = async () => ({})) {
  const [program, wanted = ''] = argv.slice(2);
  const daemon = new Daemon(program);
  const browser = await launch();
  let failed = 0;
  try {
    await daemon.start();
    if (!(await hasConsole(daemon))) {
      console.log('the control plane was built without its console');
      process.exitCode = 77;
      return;
    }
    const tokens = await seed(daemon);
    const prepared = await prepare(daemon, tokens);
    const chosen = cases.filter((one) => one.name.includes(wanted));
    for (const one of chosen) {
      const begin = Date.now();
      const opened = await newPage(browser, daemon, one.options.page ?? {});
      try {
        await one.run({ ...opened, browser, daemon, tokens, ...prepared });
        assert.deepEqual(opened.problems, [], 'problems of the page');
        console.log(`ok      ${one.name} (${Date.now() - begin} ms)`);
      } catch (error) {
        ++failed;
        console.log(`FAILED  ${one.name}\n${error.stack ?? error}`);
      } finally {
        await opened.close();
      }
    }
    console.log(failed === 0 ? `${chosen.length} cases passed` : `${failed} of ${chosen.length} cases failed`);
    if (failed > 0) process.exitCode = 1;
  } finally {
    await browser.close();
    await daemon.stop();
  }
}
