// Chromium with a page that reports what went wrong in it.
import { chromium } from 'playwright-core';

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--no-proxy-server'] });
}

// A program without the list of ways to sign in answers 404, which Chromium writes to its console.
const NO_WAYS = /404.*console\/api\/v1\/sign-in/;

/** Opens a page of its own profile. `problems` collects errors of the console, exceptions and reports of the policy. */
export async function newPage(browser, daemon, { theme = 'light', width = 1440, height = 900, context: options = {} } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, baseURL: daemon.url, colorScheme: theme, reducedMotion: 'reduce', ...options });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  const problems = [];
  const expected = [NO_WAYS];
  const note = (text) => { if (!expected.some((one) => one.test(text))) problems.push(text); };
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) note(`${message.type()}: ${message.text()} ${message.location().url ?? ''}`); });
  page.on('pageerror', (error) => note(`exception: ${error.stack}`));
  return { context, page, problems, expect: (pattern) => expected.push(pattern), close: () => context.close() };
}


const sessions = new Map(); // name -> cookies: the program limits sign-ins

export function forgetSessions() {
  sessions.clear();
}

/** Signs in by the page, and from the second time on by the session of the first. */
export async function signIn(page, name = 'ann') {
  const known = sessions.get(name);
  if (known) {
    await page.context().addCookies(known);
    await page.goto('/applications');
  } else {
    await page.goto('/sign-in');
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Password').fill('correct horse battery staple');
    await page.getByRole('button', { name: 'Sign in' }).click();
  }
  await page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor();
  sessions.set(name, await page.context().cookies());
}
