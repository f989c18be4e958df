// Records the page while the demo plays its scene: node recording.mjs GITOPS_DEMO FILE.png
// The file is an animated PNG of at most 2 MB.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

import { launch } from './support/browser.mjs';
import { animated } from './support/png.mjs';

const [program, file] = process.argv.slice(2);
const STEP = 250; // ms between two looks at the page
const LONGEST = 2_500; // ms of one picture: where nothing happens the picture goes on
const MOST = 2 * 1024 * 1024; // bytes

const demo = spawn(program, [], { stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => demo.on('exit', resolve));
let text = '';
demo.stdout.on('data', (data) => {
  text += data;
  process.stdout.write(data);
});

async function said(pattern) {
  for (;;) {
    const found = pattern.exec(text);
    if (found) return found;
    if (demo.exitCode !== null) throw new Error(`the demo ended before it printed ${pattern}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const frames = [];
const browser = await launch();
try {
  const [, user, password] = await said(/first administrator: (\S+), password (\S+)/);
  const [, origin, path] = await said(/(http:\/\/127\.0\.0\.1:\d+)(\/applications\/\S+\/timeline)/);
  const page = await browser.newPage({ viewport: { width: 1100, height: 620 }, baseURL: origin, reducedMotion: 'reduce' });
  await page.goto(`/sign-in?to=${encodeURIComponent(path)}`);
  await page.getByLabel('Name').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`**${path}`);
  while (demo.exitCode === null) {
    const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
    frames.push({ png, milliseconds: STEP });
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, STEP))]);
  }
} finally {
  await browser.close();
  if (demo.exitCode === null) demo.kill('SIGTERM');
}
if ((await ended) !== 0) throw new Error('the demo failed');

const shown = [];
for (const frame of frames) {
  const last = shown.at(-1);
  if (last?.png.equals(frame.png)) last.milliseconds = Math.min(last.milliseconds + STEP, LONGEST);
  else shown.push({ ...frame });
}
shown.at(-1).milliseconds = LONGEST;
const picture = animated(shown);
if (picture.length > MOST) throw new Error(`the picture has ${picture.length} bytes, more than ${MOST}`);
writeFileSync(file, picture);
console.log(`${file}: ${shown.length} pictures, ${Math.round(picture.length / 1024)} KB`);
