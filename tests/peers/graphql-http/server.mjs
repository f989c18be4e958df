// The reference server of GraphQL over HTTP with a field as app-proxy has it, for benchmarks.
// usage: node server.mjs
// Prints "port N" once it listens. The modules lie in the folder GRAPHQL_HTTP_MODULES.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { join } from 'node:path';

const require = createRequire(join(process.env.GRAPHQL_HTTP_MODULES ?? process.cwd(), 'x.js'));
const { buildSchema } = require('graphql');
const { createHandler } = require('graphql-http/lib/use/http');

const schema = buildSchema(`
  type Query { versionInfo: AppProxyVersionInfo! }
  type AppProxyVersionInfo { version: String! platformHost: String! platformVersion: String! }
`);
const versionInfo = { version: '0.1.0', platformHost: 'https://g.codefresh.io', platformVersion: '2.0' };
const server = createServer(createHandler({ schema, rootValue: { versionInfo } }));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
