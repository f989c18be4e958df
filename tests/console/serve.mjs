// Serves the console by Vite, with the real program and demo data behind it: node serve.mjs PROGRAM
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { application, Daemon, deployment, seed, seedAccess } from './support/daemon.mjs';

const console_ = join(dirname(fileURLToPath(import.meta.url)), '../../apps/control-plane/console');
const daemon = new Daemon(process.argv[2]);
await daemon.start();
const tokens = await seed(daemon);
await seedAccess(daemon);
console.log(`\nThe control plane serves its built console at ${daemon.url}, and Vite the sources at the address below.
Sign in as ann (administrator) or bob, with the password "correct horse battery staple".\n`);

const vite = spawn(process.execPath, [join(console_, 'node_modules/vite/bin/vite.js')], { cwd: console_, stdio: 'inherit', env: { ...process.env, GITOPS_DAEMON: daemon.url } });

// Something happens now and then.
let step = 300;
const timer = setInterval(() => {
  const health = step % 4 === 0 ? 'Degraded' : step % 2 ? 'Progressing' : 'Healthy';
  void daemon.report(tokens.staging, application('web', { number: ++step, health, phase: health === 'Progressing' ? 'Running' : 'Succeeded', minutes: 0, uid: 'uid-staging-web', resources: deployment('web', { health }), project: 'platform' }));
}, 5_000);

let isStopping = false;
async function stop() {
  if (isStopping) return;
  isStopping = true;
  clearInterval(timer);
  vite.kill('SIGTERM');
  await daemon.stop();
  process.exit(0);
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => void stop());
vite.on('exit', () => void stop());
