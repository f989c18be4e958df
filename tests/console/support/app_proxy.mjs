// The app-proxy of a runtime from a script. It asks the real control plane who sends a token, as the program does.
import { createServer } from 'node:http';

const FORBIDDEN = { errors: [{ message: 'Forbidden', extensions: 403 }], data: null };
/** The body of an error as app-proxy has it. */
export const failing = (message, code, statusCode) => ({ errors: [{ message, extensions: { code, statusCode } }], data: null });
export const forbidden = () => FORBIDDEN;

export class AppProxy {
  #server;
  url = '';
  /** By name of the operation: what it answers, or a function of its variables. A number is a bare status, 'drop' closes the connection. */
  answers = {};
  requests = []; // { operation, variables, user }
  allowed; // origin of the console

  constructor(daemon, runtime) {
    this.daemon = daemon;
    this.runtime = runtime;
    this.allowed = daemon.url;
  }
  async start() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    await new Promise((done) => this.#server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this;
  }
  async stop() {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
  sent(operation) {
    return this.requests.filter((one) => one.operation === operation);
  }

  async #owner(token) {
    if (!token) return null;
    const response = await fetch(`${this.daemon.url}/2.0/api/graphql`, { method: 'POST', headers: { 'x-access-token': token, 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: '{ me { id name runtimeName } }' }) });
    if (!response.ok) return null;
    const { me } = (await response.json()).data;
    return me.runtimeName === this.runtime ? me : null;
  }
  async #serve(request, response) {
    if (this.allowed === request.headers.origin) {
      response.setHeader('Access-Control-Allow-Origin', this.allowed);
      response.setHeader('Access-Control-Allow-Headers', 'content-type,x-access-token,authorization,traceparent');
      response.setHeader('Access-Control-Expose-Headers', 'x-request-id,retry-after');
    }
    const answer = (status, body) => {
      response.writeHead(status, { 'Content-Type': 'application/json', 'X-Request-Id': `proxy-${this.requests.length}` });
      response.end(JSON.stringify(body));
    };
    if (request.method === 'OPTIONS') return answer(204);
    if (request.url !== '/app-proxy/api/graphql') return answer(404, { message: 'not found' });
    let text = '';
    for await (const part of request) text += part;
    const { query, variables } = JSON.parse(text);
    const operation = /(?:query|mutation) (\w+)/.exec(query)[1];
    if (operation === 'Version') return answer(200, { data: { versionInfo: { version: '1.0.0' } } });
    const user = await this.#owner(request.headers['x-access-token']);
    if (!user) return answer(401, { error: 'Unauthorized: Invalid token.' });
    this.requests.push({ operation, variables, user: user.name, cookie: request.headers.cookie });
    let said = this.answers[operation];
    if (typeof said === 'function') said = await said(variables);
    if (said === 'drop') return request.socket.destroy();
    if (typeof said === 'number') return answer(said, { message: 'from a script' });
    return answer(200, said?.errors ? said : { data: said ?? {} });
  }
}

/** The live state of an Application, as the operation LiveState has it. */
export function liveState({ automated = null, resources = [], operation = null, revision = 'f'.repeat(40) } = {}) {
  return { applicationProxyQuery: { metadata: { name: 'shop' }, spec: { syncPolicy: { automated } },
    status: { sync: { status: 'OUT_OF_SYNC', revision, revisions: null }, operationState: operation,
      resources: resources.map(([kind, name, status, health = 'HEALTHY', requiresPruning = false]) =>
        ({ group: '', version: 'v1', kind, namespace: 'shop', name, status, health: { status: health }, requiresPruning, hook: false })) } } };
}
