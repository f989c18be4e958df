// Builds the page and packs it for the program: node build.mjs --out FOLDER [--auto]
//
// With --auto, a machine that cannot get the packages gets the plain page unbuilt.html and one line that says why.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { pack } from './pack.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({ options: { out: { type: 'string' }, auto: { type: 'boolean' } } });
const out = resolve(values.out);

function run(program, args, cwd) {
  const ended = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (ended.status === 0) return;
  const text = `${ended.stderr ?? ''}${ended.stdout ?? ''}`.trim() || String(ended.error);
  throw new Error(text);
}

// npm of the PATH, or the one that lies beside this Node.
function npm(args, cwd) {
  const beside = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js');
  if (existsSync(beside)) run(process.execPath, [beside, ...args], cwd);
  else run('npm', args, cwd);
}

// Two build folders may want the packages at the same time: one installs, the other waits.
function alone(work) {
  const lock = join(here, 'node_modules.lock');
  for (let tries = 0; ; ++tries) {
    try {
      mkdirSync(lock);
      break;
    } catch {
      const isLeftover = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 120_000;
      if (isLeftover) rmSync(lock, { recursive: true, force: true });
      if (tries > 1_200) throw new Error(`${lock} is held by another build`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
  try {
    return work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

// Installs the packages of a lock unless they are there.
export function install(folder) {
  const wanted = createHash('sha256').update(readFileSync(join(folder, 'package-lock.json'))).digest('hex');
  const stamp = join(folder, 'node_modules', '.installed');
  alone(() => {
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
    npm(['ci', '--fetch-retries=1', '--loglevel=error'], folder);
    writeFileSync(stamp, wanted);
  });
}

function build() {
  install(here);
  const dist = join(out, 'dist');
  run(process.execPath, [join(here, 'node_modules/vite/bin/vite.js'), 'build', '--outDir', dist, '--emptyOutDir',
    '--logLevel', 'error'], here);
  pack(dist, out);
}

try {
  build();
} catch (error) {
  const [first] = String(error.message).split('\n');
  if (!values.auto) {
    console.error(`console: ${error.message}`);
    process.exit(1);
  }
  console.error(`console: the page could not be built (${first}); the control plane gets a plain one. To try again: ` +
    'touch apps/control-plane/console/package-lock.json');
  const plain = join(out, 'plain');
  rmSync(plain, { recursive: true, force: true });
  mkdirSync(plain, { recursive: true });
  writeFileSync(join(plain, 'index.html'), readFileSync(join(here, 'unbuilt.html')));
  pack(plain, out);
}
