import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { RUNTIME_DETAIL, RUNTIMES } from '../../data/documents';
import { query } from '../../data/request';
import { live, onChanges, onReset } from '../../live/client';
import { addKeys } from '../../shell/keys';
import { applications, pulse } from '../../store/state';
import { state as stateOf, word } from '../../store/states';
import { AsOf } from '../../ui/as_of';
import { HelpLink } from '../../ui/help_link';
import { Icon } from '../../ui/icons';
import { Command, Copy, Dialog, Empty, Facts, Failed, Loading } from '../../ui/parts';
import { useReading, type Reading } from '../../ui/read';
import { Status } from '../../ui/status';
import { Age, pageClock } from '../../ui/time';
import { clusterName } from '../applications/columns';
import { INSTALL, installCommand, isRuntimeName, TOKEN_COMMAND } from './install';
import { applicationsVerdict, clustersVerdict, connectivity, summary, type ReportedError, type Runtime, type RuntimeDetail, type Verdict } from './types';

const SOONEST = 5_000;

/** Reads again when the stream says that a runtime changed, at most once in 5 s, and every 15 s without a stream. */
function useFresh(reading: Reading<unknown>): void {
  const { again } = reading;
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      due ??= setTimeout(() => {
        due = undefined;
        again();
      }, SOONEST);
    };
    const ends = [onReset(again), onChanges(({ patches, gone }) => { if ([...patches.keys(), ...gone.keys()].some((key) => key.startsWith('runtimes '))) soon(); })];
    const timer = setInterval(() => { if (!document.hidden) again(); }, live.value.state === 'live' ? 60_000 : 15_000);
    return () => {
      ends.forEach((end) => end());
      clearInterval(timer);
      clearTimeout(due);
    };
  }, [again, live.value.state]);
}

/** Counts the applications of a runtime by health, the worst first. */
export function healthOf(runtime: string): { word: string; count: number }[] {
  const counts = new Map<string, number>();
  for (let row = 0; row < applications.length; ++row) {
    if (applications.columns.runtime[row] !== runtime || applications.isGone(row)) continue;
    const health = applications.columns.health[row]!;
    counts.set(health, (counts.get(health) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => ({ word: name, count })).sort((a, b) => stateOf(b.word).severity - stateOf(a.word).severity);
}

function Healths({ runtime }: { runtime: string }) {
  void pulse.value;
  const counts = healthOf(runtime);
  if (counts.length === 0) return <span class="mute">none</span>;
  return (
    <span class="states">
      {counts.map(({ word: name, count }) => (
        <a key={name} class={`state ${stateOf(name).tone}`} href={`/applications?q=runtime:${encodeURIComponent(runtime)}+health:${name}`} title={`${count} ${name}`}>
          <Icon name={stateOf(name).shape} />{count}<span class="sr"> {name}</span>
        </a>
      ))}
    </span>
  );
}

/** The steps that add a runtime. Without the token of the first one, the command installs a runtime that never registers. */
function InstallSteps({ command = INSTALL }: { command?: string }) {
  return (
    <ol class="steps">
      <li>Create a token under <a href="/access/tokens">Access, Tokens</a>, and write it to the file <code>user-token</code>. By it the runtime registers itself.<Command text={TOKEN_COMMAND} /></li>
      <li>Install the chart in the cluster, beside its Argo CD. The image registry is yours.<Command text={command} /></li>
      <li>The runtime appears on this page with its first report, usually within a minute.</li>
    </ol>
  );
}

function AddRuntime({ close }: { close: () => void }) {
  return (
    <Dialog title="Add a runtime" close={close}>
      <InstallSteps />
      <p class="mute small">This logs in to Argo CD as its first user. An account with the rights that it needs is better: <HelpLink help="argo cd account rights">see the documents</HelpLink>.</p>
    </Dialog>
  );
}

export function RuntimesPage() {
  const adding = useSignal(false);
  const reading = useReading('runtimes', 'read the runtimes', (signal) =>
    query<{ runtimes: { edges: { node: Runtime }[] } }>('read the runtimes', RUNTIMES, {}, signal));
  useFresh(reading);
  useLayoutEffect(() => addKeys('Runtimes', [{ keys: 'r', text: 'Read again', run: reading.again }, { keys: '+', text: 'Add a runtime', run: () => (adding.value = true) }]), []);
  const rows = (reading.value?.runtimes.edges.map(({ node }) => node) ?? [])
    .sort((a, b) => Number(a.available) - Number(b.available) || a.metadata.name.localeCompare(b.metadata.name));
  return (
    <div class="page">
      <header class="title">
        <h1>Runtimes</h1>
        {reading.value && <span class="mute">{rows.length}</span>}
        <span class="grow" />
        {reading.at > 0 && <span class="mute small wide">Read {pageClock(reading.at)}</span>}
        <button type="button" onClick={() => (adding.value = true)}><Icon name="plus" />Add a runtime…</button>
      </header>
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {!reading.value && !reading.failure && <Loading what="runtimes" />}
      {reading.value && rows.length === 0 && (
        <Empty title="No runtimes yet">
          <p>A runtime runs beside the Argo CD of a cluster and reports what happens there. Install one:</p>
          <InstallSteps />
          <p><HelpLink help="install runtime">How a runtime is installed</HelpLink></p>
        </Empty>
      )}
      {rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Runtimes">
          <table>
            <thead><tr><th scope="col">Runtime</th><th scope="col">Connection</th><th scope="col">Last report</th><th scope="col">Applications</th><th scope="col">Version</th><th scope="col">Cluster</th><th scope="col">Reached by</th><th scope="col">Errors</th></tr></thead>
            <tbody>
              {rows.map((runtime) => {
                const { name } = runtime.metadata;
                const { state } = connectivity(runtime);
                return (
                  <tr key={name}>
                    <th scope="row"><a href={`/runtimes/${encodeURIComponent(name)}`}>{name}</a>{runtime.isConfigurationRuntime && <span class="tag">configuration</span>}</th>
                    <td><Status value={state} /></td>
                    <td><Age at={runtime.lastUpdated} ago /><AsOf at={0} runtime={name} /></td>
                    <td><Healths runtime={name} /></td>
                    <td>{runtime.runtimeVersion || '–'}</td>
                    <td><span class="clip">{runtime.metadata.cluster ? clusterName(runtime.metadata.cluster) : '–'}</span></td>
                    <td>{runtime.accessMode === 'TUNNEL' ? 'Tunnel' : 'Ingress'}</td>
                    <td>{runtime.errors.length > 0 ? <span class="state bad"><Icon name="cross" />{runtime.errors.length}</span> : <span class="mute">none</span>}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {adding.value && <AddRuntime close={() => (adding.value = false)} />}
    </div>
  );
}

function Group({ title, verdict, children }: { title: string; verdict: Verdict; children?: ComponentChildren }) {
  return (
    <section class="group">
      <header><h2>{title}</h2><Status value={verdict.state} /><p>{verdict.sentence}</p></header>
      {verdict.action && (
        <div class="action">
          <span>{verdict.action.link ? <a href={verdict.action.link}>{verdict.action.text}</a> : verdict.action.text}</span>
          {verdict.action.command && <><code>{verdict.action.command}</code><Copy text={verdict.action.command} /></>}
          {verdict.help && <HelpLink help={verdict.help} />}
        </div>
      )}
      {children}
    </section>
  );
}

/** Errors as the runtime reports them. */
export function Errors({ errors }: { errors: readonly ReportedError[] }) {
  return (
    <ul class="errors">
      {errors.map((error) => (
        <li key={error.title + error.message} class={error.level === 'ERROR' ? 'bad' : 'warn'}>
          <Icon name="warning" />
          <div><strong>{error.title}</strong><p>{error.message}</p>{error.suggestion && <p class="mute">{error.suggestion}</p>}<p class="mute small">Seen <Age at={error.lastSeen} ago /></p></div>
        </li>
      ))}
    </ul>
  );
}

const PARTS: [string, string][] = [
  ['appProxyStarted', 'app-proxy'], ['gitSourceConfigured', 'Git source'], ['defaultGitIntegration', 'Default Git integration'], ['runtimeGitToken', 'Git token'],
  ['encryptionKey', 'Encryption key'], ['encryptionIv', 'Encryption vector'], ['eventReporterArgoCDToken', 'Argo CD token of event-reporter'], ['isc', 'Shared configuration repository'],
];
const PART_STATES: Record<string, string> = { SUCCESSFUL: 'Succeeded', FAILED: 'Failed', UNKNOWN: 'Unknown' };

function Details({ detail, name }: { detail: RuntimeDetail; name: string }) {
  void pulse.value;
  const runtime = detail.runtime!;
  const counts = healthOf(name);
  const total = counts.reduce((sum, one) => sum + one.count, 0);
  const components = detail.components.edges.map(({ node }) => node);
  const sources = detail.gitSources.edges.map(({ node }) => node);
  const clusters = detail.clusters.edges.map(({ node }) => node);
  return (
    <>
      {runtime.errors.length > 0 && <Errors errors={runtime.errors} />}
      <Group title="Connectivity" verdict={connectivity(runtime)}>
        <Facts facts={[
          ['Last report', <Age at={runtime.lastUpdated} ago />], ['Version', runtime.runtimeVersion], ['Chart', runtime.chartVersion], ['Reached by', runtime.accessMode === 'TUNNEL' ? 'Tunnel' : 'Ingress'],
          ['Address', runtime.ingressHost], ['Namespace', runtime.metadata.namespace], ['Argo CD', word(runtime.status.argoCdState)], ['Git provider', runtime.gitProvider], ['Repository', runtime.repo],
        ]} />
        <div class="chips">
          {PARTS.map(([key, title]) => {
            const part = runtime.status[key];
            if (typeof part !== 'object') return null;
            return <span key={key} class="part" title={part.description ?? undefined}><Status value={PART_STATES[part.status] ?? part.status} /><span>{title}</span>{part.status === 'FAILED' && <span class="mute">{part.description}</span>}</span>;
          })}
        </div>
      </Group>
      <Group title="Applications" verdict={applicationsVerdict(name, counts)}>{total > 0 && <Healths runtime={name} />}</Group>
      <Group title="Components" verdict={summary(components.map((one) => word(one.healthStatus)), 'components', ['Degraded', 'Missing', 'Unknown'])}>
        {components.length > 0 && <Table head={['Component', 'Health', 'Sync', 'Version']} rows={components.map((one) => [one.metadata.name, <Status value={one.healthStatus} />, <Status value={one.syncStatus} />, one.version || '–'])} />}
      </Group>
      <Group title="Git sources" verdict={summary(sources.map((one) => (one.self?.errors?.length ? 'Degraded' : word(one.healthStatus))), 'Git sources', ['Degraded', 'Missing', 'Unknown'])}>
        {sources.length > 0 && <Table head={['Git source', 'Health', 'Sync', 'Repository', 'Path']} rows={sources.map((one) => [one.metadata.name, <Status value={one.healthStatus} />, <Status value={one.syncStatus} />, one.self?.repoURL ?? '–', one.self?.path ?? '–'])} />}
        {sources.flatMap((one) => one.self?.errors ?? []).length > 0 && <Errors errors={sources.flatMap((one) => one.self?.errors ?? [])} />}
      </Group>
      <Group title="Clusters" verdict={clustersVerdict(clusters.map((one) => one.info.connectionState.status))}>
        {clusters.length > 0 && <Table head={['Cluster', 'Connection', 'Server', 'Version', 'Applications', 'Reported']} rows={clusters.map((one) => [
          one.metadata.name, <span title={one.info.connectionState.message ?? undefined}><Status value={one.info.connectionState.status === 'Successful' ? 'Online' : one.info.connectionState.status === 'Failed' ? 'Offline' : 'Unknown'} /></span>,
          clusterName(one.server), one.info.serverVersion ?? '–', String(one.info.applicationsCount), <Age at={one.updatedAt} ago />])} />}
      </Group>
    </>
  );
}

/** A plain table. */
function Table({ head, rows }: { head: string[]; rows: ComponentChildren[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${head[0]}s`}>
      <table>
        <thead><tr>{head.map((title) => <th key={title} scope="col">{title}</th>)}</tr></thead>
        <tbody>{rows.map((row, index) => <tr key={index}>{row.map((cell, column) => (column === 0 ? <th key={column} scope="row">{cell}</th> : <td key={column}>{cell}</td>))}</tr>)}</tbody>
      </table>
    </div>
  );
}

export function RuntimePage({ parameters }: { parameters: Record<string, string> }) {
  const name = parameters.runtime!;
  const reading = useReading(name, `read the runtime ${name}`, (signal) => query<RuntimeDetail>(`read the runtime ${name}`, RUNTIME_DETAIL, { name }, signal));
  useFresh(reading);
  useLayoutEffect(() => addKeys('Runtime', [{ keys: 'r', text: 'Read again', run: reading.again }]), []);
  const runtime = reading.value?.runtime;
  return (
    <div class="page">
      <header class="title">
        <p class="crumbs"><a href="/runtimes">Runtimes</a></p>
        <h1>{name}</h1>
        {runtime && <Status value={connectivity(runtime).state} />}
        <span class="grow" />
        {runtime?.lastUpdated && <span class="mute small">As of its last report, <Age at={runtime.lastUpdated} ago /></span>}
        <AsOf at={0} runtime={name} />
      </header>
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {!reading.value && !reading.failure && <Loading what={`the runtime ${name}`} />}
      {reading.value && !runtime && (
        <Empty title={`There is no runtime ${name}`}>
          <p>It was removed, never registered, or you may not see it.</p>
          {isRuntimeName(name) ? <><p>To add it:</p><InstallSteps command={installCommand(location.origin, name)} /></>
            : <p>The chart installs none of this name: it has 1 to 38 lower-case letters, digits and hyphens, begins with a letter, and has no hyphen at its end.</p>}
        </Empty>
      )}
      {runtime && <Details detail={reading.value!} name={name} />}
    </div>
  );
}
