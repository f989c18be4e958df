// The real app-proxy of a runtime, before an argocd-server from a script.
import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { until } from './daemon.mjs';

const listen = async (server) => {
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return server.address().port;
};

export class RealAppProxy {
  #folder = mkdtempSync(join(tmpdir(), 'gitops-app-proxy-'));
  #process;
  #argocd;
  syncs = []; // bodies that argocd-server has got
  url = '';

  /** Starts it for a new runtime of this name. `application` is what argocd-server has. */
  async start(program, daemon, runtime, application) {
    this.#argocd = createServer((request, response) => {
      const answer = (body) => {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify(body));
      };
      if (!request.url.endsWith('/sync') && !request.url.includes('/sync?')) return answer(application);
      let text = '';
      request.on('data', (part) => (text += part)).on('end', () => {
        this.syncs.push(JSON.parse(text));
        answer(application);
      });
      return undefined;
    });
    const argocd = await listen(this.#argocd);
    // Its address is registered before it begins.
    const place = createServer();
    const port = await listen(place);
    await new Promise((done) => place.close(done));
    this.url = `http://127.0.0.1:${port}`;
    this.token = await daemon.addRuntime(runtime, undefined, 'INGRESS', this.url);
    const log = openSync(join(this.#folder, 'log'), 'a');
    this.#process = spawn(program, [], { stdio: ['ignore', log, log], env: { ...process.env, LISTEN_ADDRESS: '127.0.0.1', PORT: String(port), METRICS_LISTEN_ADDRESS: '127.0.0.1', ADMIN_PORT: '0',
      CF_HOST: daemon.url, RUNTIME_TOKEN: this.token, RUNTIME_NAME: runtime, KUBECONFIG: '/no/such/file', CORS: daemon.url, REPOS_DIR: join(this.#folder, 'clones'),
      ARGO_CD_URL: `http://127.0.0.1:${argocd}`, ARGO_CD_TOKEN: 'token', USER_CACHE_TTL: '1s' } });
    await until('app-proxy to know its account', () => {
      if (this.#process.exitCode !== null) throw new Error(`app-proxy ended:\n${this.log()}`);
      return this.log().includes('the account is known');
    });
    return this;
  }
  log() {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }
  /** Asks with a page token, as a page does. Returns the status. */
  async ask(token, query = '{ applicationProxyQuery(name: "shop", appNamespace: "argocd") { metadata { name } } }') {
    const response = await fetch(`${this.url}/app-proxy/api/graphql`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'x-access-token': token }, body: JSON.stringify({ query }) });
    await response.text();
    return response.status;
  }
  async stop() {
    if (this.#process?.exitCode === null) {
      const ended = new Promise((done) => this.#process.once('exit', done));
      this.#process.kill('SIGTERM');
      await ended;
    }
    this.#argocd.closeAllConnections();
    this.#argocd.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
