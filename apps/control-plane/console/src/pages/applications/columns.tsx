// The columns of the table. A new column gets a row here.
import type { ComponentChildren } from 'preact';

import { clusterName, type ApplicationRow } from '../../store/applications';
import { Revision } from '../../ui/parts';
import { Status } from '../../ui/status';
import { Age } from '../../ui/time';

export interface Column {
  key: keyof ApplicationRow;
  title: string;
  width: string; // of a grid's track
  cell: (row: ApplicationRow) => ComponentChildren;
  isExtra?: boolean; // shown only when it is chosen
}

/** The address of an Application's page. */
export function applicationPath({ runtime, namespace, name }: Pick<ApplicationRow, 'runtime' | 'namespace' | 'name'>): string {
  return `/applications/${[runtime, namespace, name].map(encodeURIComponent).join('/')}`;
}

export { clusterName };
const clip = (text: string) => <span class="clip" title={text}>{text || '–'}</span>;

export const COLUMNS: readonly Column[] = [
  { key: 'name', title: 'Name', width: 'minmax(150px, 2.4fr)', cell: (row) => <a class="clip name" tabIndex={-1} href={applicationPath(row)} title={row.name}>{row.name}</a> },
  { key: 'health', title: 'Health', width: '116px', cell: (row) => <Status value={row.health} /> },
  { key: 'sync', title: 'Sync', width: '112px', cell: (row) => <Status value={row.sync} /> },
  { key: 'phase', title: 'Operation', width: '112px', cell: (row) => <Status value={row.phase} none /> },
  { key: 'runtime', title: 'Runtime', width: 'minmax(80px, 1fr)', cell: (row) => clip(row.runtime) },
  { key: 'namespace', title: 'Namespace', width: 'minmax(76px, .8fr)', cell: (row) => clip(row.namespace) },
  { key: 'cluster', title: 'Cluster', width: 'minmax(80px, 1fr)', cell: (row) => clip(clusterName(row.cluster)) },
  { key: 'revision', title: 'Revision', width: '72px', cell: (row) => <Revision value={row.revision} /> },
  { key: 'author', title: 'Author', width: 'minmax(80px, .9fr)', cell: (row) => clip(row.author) },
  { key: 'message', title: 'Commit', width: 'minmax(100px, 1.8fr)', cell: (row) => clip(row.message) },
  { key: 'changedAt', title: 'Changed', width: '64px', cell: (row) => <Age at={row.changedAt} /> },
  { key: 'seenAt', title: 'Reported', width: '72px', cell: (row) => <Age at={row.seenAt} />, isExtra: true },
  { key: 'project', title: 'Project', width: 'minmax(80px, .9fr)', cell: (row) => clip(row.project), isExtra: true },
  { key: 'repo', title: 'Repository', width: 'minmax(120px, 1.6fr)', cell: (row) => clip(row.repo.replace(/^https?:\/\//, '')), isExtra: true },
  { key: 'labels', title: 'Labels', width: 'minmax(100px, 1.4fr)', cell: (row) => clip(row.labels.join(', ')), isExtra: true },
  { key: 'autoSync', title: 'Auto-sync', width: '72px', cell: (row) => (row.autoSync ? 'on' : 'off'), isExtra: true },
];

/** The columns that `cols=` names, in their usual order; the usual ones without it. The name is always there, and columns
 * that do not exist are left out. */
export function columnsOf(text: string | undefined): readonly Column[] {
  const wanted = text?.split(',') ?? [];
  const known = COLUMNS.filter((column) => wanted.includes(column.key));
  if (known.length === 0) return COLUMNS.filter((column) => !column.isExtra);
  return COLUMNS.filter((column) => column.key === 'name' || known.includes(column));
}

/** The text of `cols=` with a column put in or taken out; empty for the usual ones. */
export function toggledColumn(columns: readonly Column[], key: Column['key']): string {
  const shown = columns.map((column) => column.key);
  const next = COLUMNS.filter((column) => (column.key === key) !== shown.includes(column.key));
  const isUsual = COLUMNS.every((column) => next.includes(column) === !column.isExtra);
  return isUsual ? '' : next.map((column) => column.key).join(',');
}

/** The least width of a row with these columns, in pixels. */
export function leastWidth(columns: readonly Column[]): number {
  const [gap, padding] = [12, 32];
  return columns.reduce((sum, column) => sum + Number(/\d+/.exec(column.width)![0]) + gap, padding - gap);
}
