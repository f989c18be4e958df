import { milliseconds, minute } from '../../ui/time';
import { shellWord } from './install';

export interface ReportedError {
  level: string;
  title: string;
  message: string;
  suggestion: string | null;
  lastSeen: string;
}

export interface Runtime {
  metadata: { name: string; namespace: string | null; cluster: string | null; lastUpdated: string | null; created: string | null };
  syncStatus: string;
  healthStatus: string | null;
  healthMessage: string | null;
  available: boolean;
  installationStatus: string;
  accessMode: string;
  ingressHost: string | null;
  runtimeVersion: string;
  chartVersion: string | null;
  lastUpdated: string | null;
  managedClustersNum: number;
  isConfigurationRuntime: boolean;
  gitProvider: string | null;
  repo: string | null;
  errors: ReportedError[];
}

export interface Part {
  status: string;
  description: string | null;
}

export interface RuntimeDetail {
  runtime: (Runtime & { status: { syncMode: string; argoCdState: string } & Record<string, Part | string> }) | null;
  clusters: { edges: { node: {
    metadata: { name: string };
    server: string;
    updatedAt: string | null;
    inactive: boolean | null;
    info: { connectionState: { status: string; message: string | null; attemptedAt: string | null }; serverVersion: string | null; applicationsCount: number };
  } }[] };
  components: { edges: { node: { metadata: { name: string; namespace: string | null }; version: string; syncStatus: string; healthStatus: string | null } }[] };
  gitSources: { edges: { node: {
    metadata: { name: string; namespace: string | null };
    syncStatus: string;
    healthStatus: string | null;
    isRestricted: boolean;
    self: { repoURL: string | null; path: string | null; revision: string | null; errors: ReportedError[] | null } | null;
  } }[] };
}

export interface Verdict {
  state: string;
  sentence: string;
  action?: { text: string; command?: string; link?: string };
  help?: string; // words that find the documents about it
}

/** Says in one sentence how a runtime is. Pure. */
export function connectivity(runtime: Runtime): Verdict {
  const namespace = shellWord(runtime.metadata.namespace || 'argocd');
  if (!runtime.lastUpdated) {
    return { state: 'Pending', sentence: 'It is registered and has not reported yet.',
      action: { text: 'Check the installation', command: `helm test gitops-runtime -n ${namespace} --logs` } };
  }
  if (!runtime.available) {
    return { state: 'Offline', sentence: `It has been silent since ${minute(milliseconds(runtime.lastUpdated))}. What is shown of it is of that time or before.`,
      action: { text: 'Check its connections in its cluster', command: `gitopsctl check -n ${namespace}` }, help: 'troubleshooting events arrive' };
  }
  const way = runtime.accessMode === 'TUNNEL' ? 'reached through the tunnel' : runtime.ingressHost ? `reached at ${runtime.ingressHost}` : 'without an address of its own';
  return { state: 'Online', sentence: `It reports, and is ${way}.` };
}

/** Sums up states: the most severe one is the group's. */
export function summary(states: readonly string[], what: string, bad: readonly string[]): Verdict {
  const wrong = states.filter((state) => bad.includes(state));
  if (states.length === 0) return { state: 'Unknown', sentence: `No ${what} are reported.` };
  if (wrong.length === 0) return { state: 'Healthy', sentence: `All ${states.length} ${what} are in order.` };
  return { state: wrong.includes('Degraded') || wrong.includes('Failed') ? 'Degraded' : wrong[0]!, sentence: `${wrong.length} of ${states.length} ${what} ${wrong.length === 1 ? 'is' : 'are'} not in order.` };
}

const WORST = ['Degraded', 'Missing', 'Unknown'];
/** Says what is worst among the applications of a runtime, by their number for each health. */
export function applicationsVerdict(runtime: string, counts: readonly { word: string; count: number }[]): Verdict {
  const total = counts.reduce((sum, one) => sum + one.count, 0);
  const worst = WORST.map((word) => counts.find((one) => one.word === word)).find((one) => one !== undefined);
  const link = `/applications?q=runtime:${encodeURIComponent(runtime)}`;
  if (total === 0) return { state: 'Unknown', sentence: 'No applications are reported.' };
  if (!worst) return { state: 'Healthy', sentence: `None of the ${total} applications is Degraded, Missing or Unknown.`, action: { text: 'Show them', link } };
  return { state: worst.word, sentence: `${worst.count} of ${total} applications ${worst.count === 1 ? 'is' : 'are'} ${worst.word}.`, action: { text: 'Show them', link: `${link}+health:${worst.word}` } };
}

/** Says whether the clusters of a runtime can be reached, by what Argo CD says of its connection to each. */
export function clustersVerdict(connections: readonly string[]): Verdict {
  const [all, failed, unknown] = [connections.length, connections.filter((one) => one === 'Failed').length, connections.filter((one) => one !== 'Successful').length];
  if (all === 0) return { state: 'Unknown', sentence: 'No clusters are reported.' };
  if (failed > 0) return { state: 'Degraded', sentence: `${failed} of ${all} clusters can't be reached.` };
  if (unknown > 0) return { state: 'Unknown', sentence: `Whether ${unknown} of ${all} ${all === 1 ? 'cluster' : 'clusters'} can be reached is not known.` };
  return { state: 'Healthy', sentence: `${all} ${all === 1 ? 'cluster is' : 'clusters are'} reached.` };
}
