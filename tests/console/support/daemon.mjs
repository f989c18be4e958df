// The real control-plane program with demo data, for browser tests, screenshots and `./dev console`.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits for a condition; throws after the limit. */
export async function until(what, check, limit = 20_000) {
  const end = Date.now() + limit;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await wait(50);
  }
}

export class Daemon {
  #folder = mkdtempSync(join(tmpdir(), 'gitops-console-'));
  #process;
  #sequences = new Map();
  url = '';

  constructor(program) {
    this.program = program;
  }

  /** Runs a command of the program, which needs the database for itself. */
  command(...args) {
    const ended = spawnSync(this.program, [...args, ...this.#database()], { encoding: 'utf8' });
    if (ended.status !== 0) throw new Error(`${args.join(' ')}: ${ended.stderr}${ended.stdout}`);
    return ended.stdout.trim();
  }
  #database() {
    return [`--database.path=${join(this.#folder, 'database')}`];
  }

  /** Starts the program with the account acme, the administrator ann and the user bob. */
  async start({ port = 0 } = {}) {
    this.command('account', 'add', '--name=acme');
    this.command('user', 'add', '--name=ann', '--account=acme', '--admin');
    this.command('user', 'add', '--name=bob', '--account=acme');
    this.key = this.command('key', 'create', '--user=ann', '--name=seed', '--account=acme');
    await this.#serve(port);
    await this.#setPassword('ann', 'correct horse battery staple');
    await this.#setPassword('bob', 'correct horse battery staple');
  }
  async #serve(port) {
    const log = openSync(join(this.#folder, 'log'), 'a');
    const before = this.log().length;
    this.#process = spawn(this.program, ['--listen-address=127.0.0.1', `--port=${port}`, '--admin-address=127.0.0.1', '--admin-port=0',
      ...this.#database()], { stdio: ['ignore', log, log] });
    const serving = await until('the control plane to serve', () => {
      if (this.#process.exitCode !== null) throw new Error(`the control plane ended:\n${this.log()}`);
      return /"message":"serving","port":(\d+)/.exec(this.log().slice(before));
    });
    this.url = `http://127.0.0.1:${serving[1]}`;
  }
  async #end() {
    if (!this.#process || this.#process.exitCode !== null) return;
    const ended = new Promise((done) => this.#process.once('exit', done));
    this.#process.kill('SIGTERM');
    await ended;
  }
  /** Starts the program again at its address. `between` runs while it is away. */
  async restart(between = async () => {}) {
    await this.#end();
    await between();
    await this.#serve(Number(new URL(this.url).port));
  }
  log() {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }
  async stop() {
    await this.#end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async send(path, { method = 'POST', token = this.key, body, headers = {} } = {}) {
    const response = await fetch(this.url + path, {
      method, body: body === undefined ? undefined : JSON.stringify(body),
      headers: { Authorization: token, 'Content-Type': 'application/json', ...headers },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  }
  async graphql(query, variables = {}, token = this.key) {
    const answer = await this.send('/2.0/api/graphql', { token, body: { query, variables } });
    if (answer.errors) throw new Error(JSON.stringify(answer.errors));
    return answer.data;
  }
  async #setPassword(name, password) {
    const users = await this.send('/console/api/v1/users', { method: 'GET' });
    const { _id: id } = users.find((user) => user.userName === name);
    await this.send(`/console/api/v1/users/${id}/password`, { method: 'PUT', body: { password } });
  }

  /** Registers a runtime, with the address of its app-proxy if it has one, and returns its token. */
  async addRuntime(runtimeName, cluster = 'https://kubernetes.default.svc', accessMode = 'TUNNEL', ingressHost = undefined) {
    const { createRuntime } = await this.graphql(
      'mutation($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { newAccessToken } }',
      { args: { runtimeName, runtimeNamespace: 'argocd', cluster, installationType: 'HELM', runtimeVersion: '0.1.0', chartVersion: '0.1.0', accessMode, componentNames: [], ingressHost } });
    return createRuntime.newAccessToken;
  }

  /** Reports an Application as event-reporter does, also its deletion. `errors` are what is wrong with it, as docs/reference/events.md has them. */
  async report(token, application, { isDeleted = false, errors } = {}) {
    const sequence = (this.#sequences.get(token) ?? 0) + 1;
    this.#sequences.set(token, sequence);
    const text = JSON.stringify(application);
    const { status } = application;
    await this.send('/2.0/api/events', {
      token,
      headers: { 'X-Event-Id': `seed/${sequence}`, 'X-Event-Sequence': String(sequence) },
      body: { data: {
        object: Buffer.from(text).toString('base64'),
        source: { desiredManifest: '', actualManifest: isDeleted ? '' : text, gitManifest: '', revision: status.sync?.revision ?? '', syncStatus: status.sync?.status ?? '',
          healthStatus: status.health?.status ?? '', historyId: status.history?.at(-1)?.id ?? 0 },
        ...(errors && { errors }),
      } },
    });
  }
}

const minutesAgo = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
const commit = (number) => (number * 2654435761 % 2 ** 32).toString(16).padStart(8, '0').repeat(5);

/** Makes an Application as Argo CD has it. */
export function application(name, { number = 1, health = 'Healthy', sync = 'Synced', phase = 'Succeeded', message = '', author = 'Dana Ruiz', commitMessage = 'Raise replicas to 3',
  project = 'default', namespace = 'argocd', server = 'https://kubernetes.default.svc', resources = [], minutes = 12, labels = {}, uid = `uid-${namespace}-${name}`, operationMessage = '' } = {}) {
  const revision = commit(number);
  return {
    apiVersion: 'argoproj.io/v1alpha1', kind: 'Application',
    metadata: { name, namespace, uid, resourceVersion: String(1000 + number), creationTimestamp: minutesAgo(60 * 24 * 40),
      labels: { ...labels, 'app.meta.commit-author': author, 'app.meta.commit-message': commitMessage, 'app.meta.commit-date': minutesAgo(minutes + 7) } },
    spec: { project, destination: { server, namespace: name }, source: { repoURL: 'https://git.example.com/acme/deploy.git', path: `apps/${name}`, targetRevision: 'main' },
      syncPolicy: number % 3 ? { automated: { prune: true } } : {} },
    status: {
      sync: { status: sync, revision }, health: { status: health, ...(message && { message }) },
      history: [{ id: number, revision, deployedAt: minutesAgo(minutes) }],
      resources,
      operationState: { phase, message: operationMessage || (phase === 'Succeeded' ? 'successfully synced (all tasks run)' : 'one or more objects failed to apply'),
        startedAt: minutesAgo(minutes + 0.5), finishedAt: minutesAgo(minutes), operation: { initiatedBy: number % 4 ? { automated: true } : { username: 'ann' } },
        syncResult: { revision } },
    },
  };
}

export function deployment(name, { health = 'Healthy', sync = 'Synced', message = '', pods = 1 } = {}) {
  return [
    { group: 'apps', version: 'v1', kind: 'Deployment', namespace: name, name, status: sync, health: { status: health, ...(message && { message }) } },
    { version: 'v1', kind: 'Service', namespace: name, name, status: 'Synced', health: { status: 'Healthy' } },
    ...Array.from({ length: pods }, (_, index) => ({ version: 'v1', kind: 'ConfigMap', namespace: name, name: `${name}-${index}`, status: 'Synced' })),
    { group: 'networking.k8s.io', version: 'v1', kind: 'Ingress', namespace: name, name, status: 'Synced', health: { status: 'Healthy' } },
  ];
}

const NAMES = ['api', 'web', 'worker', 'billing', 'search', 'catalog', 'checkout', 'identity', 'mail', 'reports', 'gateway', 'audit-export', 'thumbnailer', 'ledger', 'notifier', 'pricing', 'inventory', 'session-store'];
const PEOPLE = ['Dana Ruiz', 'Ilse Brandt', 'Tomás Veiga', 'Mei Lin', 'Olu Adeyemi'];
const MESSAGES = ['Raise replicas to 3', 'Use the new base image', 'Roll back the cache size', 'Add a readiness probe', 'Move to the shared ingress', 'Bump chart to 4.2.1'];

/** Fills a daemon with what a team sees on a working day. */
export async function seed(daemon) {
  const tokens = { 'prod-eu': await daemon.addRuntime('prod-eu', 'https://prod-eu.example.com'), 'prod-us': await daemon.addRuntime('prod-us', 'https://prod-us.example.com', 'INGRESS'),
    staging: await daemon.addRuntime('staging') };
  await daemon.addRuntime('lab');
  let number = 0;
  for (const [runtime, token] of Object.entries(tokens)) {
    for (const name of NAMES) {
      ++number;
      const state = number % 17 === 3 ? { health: 'Degraded', message: 'Deployment exceeded its progress deadline' }
        : number % 13 === 5 ? { sync: 'OutOfSync' } : number % 11 === 7 ? { health: 'Progressing', phase: 'Running' }
          : number % 23 === 9 ? { health: 'Missing', sync: 'OutOfSync', phase: 'Failed' } : number % 29 === 4 ? { health: 'Suspended' } : {};
      const resources = deployment(name, { health: state.health === 'Missing' ? 'Missing' : state.health ?? 'Healthy', sync: state.sync ?? 'Synced', pods: 1 + (number % 9),
        message: state.health === 'Degraded' ? '2 of 4 pods crash, exit code 137' : '' });
      const options = { number, ...state, author: PEOPLE[number % PEOPLE.length], commitMessage: MESSAGES[number % MESSAGES.length], project: number % 2 ? 'payments' : 'platform',
        server: runtime === 'staging' ? undefined : `https://${runtime}.example.com`, resources, minutes: 3 + number * 7, uid: `uid-${runtime}-${name}`, labels: { team: number % 2 ? 'pay' : 'core' } };
      await daemon.report(token, application(name, options));
    }
  }
  // A history of deployments of one application.
  for (let step = 1; step <= 5; ++step) {
    await daemon.report(tokens['prod-eu'], application('api', { number: 200 + step, author: PEOPLE[step % 5], commitMessage: MESSAGES[step % 6], minutes: 60 - step * 11, uid: 'uid-prod-eu-api', project: 'payments',
      server: 'https://prod-eu.example.com', resources: deployment('api', step === 5 ? { health: 'Degraded', message: '2 of 4 pods crash, exit code 137', pods: 9 } : { pods: 9 }), ...(step === 5 ? { health: 'Degraded', message: 'Deployment exceeded its progress deadline' } : {}) }));
  }
  await daemon.graphql(`mutation($clusters: [ClusterUpsertArgs]) { updateRuntimeClusters(clusters: $clusters) }`, { clusters: [
    { name: 'in-cluster', runtime: 'prod-eu', server: 'https://kubernetes.default.svc', info: { connectionState: { status: 'Successful' }, serverVersion: '1.33', applicationsCount: 12 } },
    { name: 'edge', runtime: 'prod-eu', server: 'https://edge.example.com', info: { connectionState: { status: 'Failed', message: 'dial tcp: i/o timeout' }, serverVersion: '1.31', applicationsCount: 6 } }] }, tokens['prod-eu']);
  return tokens;
}

/** Adds teams, a service account, keys, rules and an invitation. Returns their ids. */
export async function seedAccess(daemon) {
  const { me } = await daemon.graphql('{ me { activeAccount { id } } }');
  const account = me.activeAccount.id;
  const users = await daemon.send(`/api/accounts/${account}/users`, { method: 'GET' });
  const bob = users.find((user) => user.userName === 'bob')._id;
  await daemon.send(`/api/accounts/${account}/adduser`, { body: { userDetails: 'mei@example.com' } });
  const { _id: pay } = await daemon.send('/api/team', { body: { name: 'pay' } });
  const { _id: core } = await daemon.send('/api/team', { body: { name: 'core' } });
  await daemon.send(`/api/team/${pay}/${bob}/assignUserToTeam`, { method: 'PUT' });
  const { _id: robot } = await daemon.send('/api/service-users', { body: { userName: 'terraform', teamIds: [core], assignAdminRole: false } });
  for (const [path, name, scopes] of [['/api/auth/key', 'laptop', []], ['/api/auth/key', 'build', ['images']], [`/api/auth/key/service-user/${robot}`, 'pipeline', ['read', 'write']]]) {
    const made = await fetch(daemon.url + path, { method: 'POST', headers: { Authorization: daemon.key, 'Content-Type': 'application/json' }, body: JSON.stringify({ name, scopes, expires: new Date(Date.now() + 90 * 86_400_000).toISOString() }) });
    if (!made.ok) throw new Error(`key ${name}: ${made.status}`);
  }
  for (const [teams, actions, attributes] of [
    [[pay], ['SYNC', 'REFRESH'], [{ name: 'NAMESPACE', value: 'argocd' }, { name: 'RUNTIME', value: 'prod-eu' }, { name: 'RUNTIME', value: 'prod-us' }]],
    [[pay, core], ['VIEW_POD_LOGS', 'RESTART'], [{ name: 'LABEL', key: 'team', value: 'pay' }]],
    [[core], ['APP_ROLLBACK', 'DELETE_RESOURCE'], []]]) {
    await daemon.graphql('mutation($rule: CreateAbacRuleInput!) { createAbacRule(createAbacRuleInput: $rule) { id } }', { rule: { entityType: 'gitopsApplications', teams, actions, attributes } });
  }
  return { BOB: bob, TEAM: pay, ROBOT: robot };
}
