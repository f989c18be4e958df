// The reference server of GraphQL over HTTP with fields as app-proxy has them, for benchmarks. It asks nobody: its
// answers are values in memory.
// usage: node server.mjs
// Prints "port N" once it listens. The modules lie in the folder GRAPHQL_HTTP_MODULES.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { join } from 'node:path';

const require = createRequire(join(process.env.GRAPHQL_HTTP_MODULES ?? process.cwd(), 'x.js'));
const { buildSchema } = require('graphql');
const { createHandler } = require('graphql-http/lib/use/http');

const schema = buildSchema(`
  enum GitProviders { GITHUB GITLAB BITBUCKET BITBUCKET_SERVER GERRIT GITEA }
  type Query {
    versionInfo: AppProxyVersionInfo!
    gitRepositories(args: GitRepositoriesArgs, filter: RepositoriesFilterArgs): RepositoriesPage!
  }
  input GitRepositoriesArgs { integrationName: String page: Int = 1 limit: Int = 100 }
  input RepositoriesFilterArgs { name: String! }
  type RepositoriesPage { data: [Repository]! page: Int! count: Int! hasNext: Boolean! }
  type Repository {
    id: String! provider: GitProviders! fullName: String! isRepoPrivate: Boolean! pushedAt: String!
    openIssues: Int! cloneUrl: String! sshUrl: String! ownerLogin: String! ownerAvatarUrl: String!
    repoCreator: String org: String defaultBranch: String! isRepoAdmin: Boolean webUrl: String!
    project: String
  }
  type AppProxyVersionInfo { version: String! platformHost: String! platformVersion: String! }
`);
const versionInfo = { version: '0.1.0', platformHost: 'https://g.codefresh.io', platformVersion: '2.0' };
const data = Array.from({ length: 100 }, (_, i) => ({
  id: `${i + 1}`, provider: 'GITHUB', fullName: `acme/repository-${i}`, isRepoPrivate: true,
  pushedAt: '2026-11-23T12:00:00Z', openIssues: 0,
  cloneUrl: `https://git.example.test/acme/repository-${i}.git`,
  sshUrl: `git@git.example.test:acme/repository-${i}.git`, ownerLogin: 'acme', ownerAvatarUrl: '',
  repoCreator: null, org: 'acme', defaultBranch: 'main', isRepoAdmin: true,
  webUrl: `https://git.example.test/acme/repository-${i}`, project: null,
}));
const gitRepositories = () => ({ data, page: 1, count: data.length, hasNext: false });
const rootValue = { versionInfo, gitRepositories };
const server = createServer(createHandler({ schema, rootValue }));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`));
