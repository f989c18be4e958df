// Runs operations over WebSocket by one of two real clients, and prints what each gave as JSON.
// usage: node clients.mjs graphql-ws|subscriptions-transport-ws URL OPERATIONS
//
// OPERATIONS is a JSON list of {query, variables}. They run side by side on one connection. The API
// key is in CF_API_KEY; ORIGIN, if it is set, is sent as a browser would.
import { createRequire } from 'node:module';
import { join } from 'node:path';

// The modules lie in the folder that the test names, away from the sources.
const require = createRequire(join(process.env.GRAPHQL_CLIENTS_MODULES ?? process.cwd(), 'x.js'));
const WebSocket = require('ws');

const [name, url, operations] = [process.argv[2], process.argv[3], JSON.parse(process.argv[4])];
const connectionParams = process.env.CF_API_KEY ? { Authorization: process.env.CF_API_KEY } : {};
const headers = process.env.ORIGIN ? { Origin: process.env.ORIGIN } : {};

class Socket extends WebSocket {
  constructor(address, protocols) {
    super(address, protocols, { headers });
  }
}

// Both clients end in: answers of one operation, in order, or what went wrong.
const runners = {
  'graphql-ws': () => {
    const { createClient } = require('graphql-ws');
    const client = createClient({
      url, connectionParams, webSocketImpl: Socket, retryAttempts: 0, lazy: true,
    });
    const run = (operation) => new Promise((resolve) => {
      const answers = [];
      client.subscribe(operation, {
        next: (answer) => answers.push(answer),
        error: (error) => resolve({ answers, error: describe(error) }),
        complete: () => resolve({ answers }),
      });
    });
    return { run, end: () => client.dispose() };
  },
  'subscriptions-transport-ws': () => {
    const { SubscriptionClient } = require('subscriptions-transport-ws');
    let refuse;
    const refused = new Promise((resolve) => {
      refuse = (error) => resolve({ answers: [], error: describe(error) });
    });
    const connectionCallback = (error) => error && refuse(error);
    const client = new SubscriptionClient(
      url, { connectionParams, connectionCallback, reconnect: false, timeout: 20000 }, Socket);
    client.onError(refuse);
    const run = (operation) => Promise.race([refused, new Promise((resolve) => {
      const answers = [];
      client.request(operation).subscribe({
        next: (answer) => answers.push(answer),
        error: (error) => resolve({ answers, error: describe(error) }),
        complete: () => resolve({ answers }),
      });
    })]);
    return { run, end: () => client.close() };
  },
};

function describe(error) {
  if (Array.isArray(error)) return error;
  if (error && typeof error === 'object' && 'code' in error && 'reason' in error) {
    return `closed ${error.code} ${error.reason}`;
  }
  return error instanceof Error ? error.message : String(error?.message ?? error);
}

const { run, end } = runners[name]();
const results = await Promise.all(operations.map(run));
process.stdout.write(`${JSON.stringify(results)}\n`);
end();
setTimeout(() => process.exit(0), 100);
