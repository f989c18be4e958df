// Installs the packages of a lock, unless they are there: node install.mjs FOLDER
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Runs a program; throws with its output when it fails. */
export function run(program, args, cwd) {
  const ended = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (ended.status === 0) return;
  const text = `${ended.stderr ?? ''}${ended.stdout ?? ''}`.trim() || String(ended.error);
  throw new Error(text);
}

// npm beside this Node, or the one of the PATH.
function npm(args, cwd) {
  const beside = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js');
  if (existsSync(beside)) run(process.execPath, [beside, ...args], cwd);
  else run('npm', args, cwd);
}

// Two build folders may want the packages at the same time: one installs, the other waits.
function alone(folder, work) {
  const lock = join(folder, 'node_modules.lock');
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
    work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** Installs the packages. Without `retries` a machine without network knows at once. */
export function install(folder, retries = 2) {
  const wanted = createHash('sha256').update(readFileSync(join(folder, 'package-lock.json'))).digest('hex');
  const stamp = join(folder, 'node_modules', '.installed');
  alone(folder, () => {
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
    npm(['ci', `--fetch-retries=${retries}`, '--fetch-timeout=20000', '--loglevel=error'], folder);
    writeFileSync(stamp, wanted);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    install(resolve(process.argv[2]));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
