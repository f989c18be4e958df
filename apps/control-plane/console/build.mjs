// Builds the page and packs it for the program: node build.mjs --out FOLDER [--auto]
//
// With --auto, a machine that cannot get the packages gets the plain page unbuilt.html and one line that says why.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { install, run } from './install.mjs';
import { pack } from './pack.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({ options: { out: { type: 'string' }, auto: { type: 'boolean' } } });
const out = resolve(values.out);

function build() {
  install(here, values.auto ? 0 : 2);
  const dist = join(out, 'dist');
  const vite = join(here, 'node_modules/vite/bin/vite.js');
  run(process.execPath, [vite, 'build', '--outDir', dist, '--emptyOutDir', '--logLevel', 'error'], here);
  pack(dist, out);
}

function packPlainPage() {
  const plain = join(out, 'plain');
  rmSync(plain, { recursive: true, force: true });
  mkdirSync(plain, { recursive: true });
  writeFileSync(join(plain, 'index.html'), readFileSync(join(here, 'unbuilt.html')));
  pack(plain, out);
}

try {
  build();
} catch (error) {
  if (!values.auto) {
    console.error(`console: ${error.message}`);
    process.exit(1);
  }
  const [first] = String(error.message).split('\n');
  console.error(`console: the page could not be built (${first}); the control plane gets a plain one. To try again: ` +
    'touch apps/control-plane/console/package-lock.json');
  packPlainPage();
}
