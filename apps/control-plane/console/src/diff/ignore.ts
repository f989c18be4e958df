// What makes Argo CD ignore a field: an entry of ignoreDifferences for a line of a diff. Pure.
import { treesOf, type Task } from './compare';
import { yamlLines, type Path, type Tree } from './tree';

export interface Ignored {
  group: string | null;
  kind: string;
  namespace: string | null;
  name: string;
}

function partAt(tree: Tree, path: Path): Tree | undefined {
  let part: Tree | undefined = tree;
  for (const step of path) part = part instanceof Map ? part.get(String(step)) : Array.isArray(part) ? part[Number(step)] : undefined;
  return part;
}

/** The name of a list's item as JSON, by which it is found wherever it stands. */
function nameOf(item: Tree | undefined): string {
  const name = item instanceof Map ? item.get('name') : undefined;
  return typeof name === 'string' && name.startsWith('"') ? name : '';
}

function pointer(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** A path in the language of jq; items that have a name are found by it. */
function expression(tree: Tree, path: Path): string {
  return path.map((step, at) => {
    if (typeof step === 'string') return /^[A-Za-z_]\w*$/.test(step) ? `.${step}` : `${at === 0 ? '.' : ''}[${JSON.stringify(step)}]`;
    const name = nameOf(partAt(tree, path.slice(0, at + 1)));
    const rest = at === path.length - 1 ? '' : ' | ';
    return name ? `[] | select(.name == ${name})${rest}` : `[${step}]`;
  }).join('').replaceAll(' | [', ' | .[');
}

// A text that YAML could take for something else stands in quotes.
const quoted = (text: string) => (/^[A-Za-z_/][\w./~-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : `'${text.replaceAll("'", "''")}'`);

/** Returns the path of a line of a side, or null where it has none. */
export function pathOf(task: Task, side: 'left' | 'right', line: number): { tree: Tree; path: Path } | null {
  const tree = treesOf(task)[side];
  if (!tree) return null;
  const places: Path[] = [];
  yamlLines(tree, places);
  const path = places[line];
  if (!path || path.length === 0) return null;
  // The name of an item is what finds it, so that the whole item is meant.
  const isName = path.at(-1) === 'name' && typeof path.at(-2) === 'number';
  return { tree, path: isName ? path.slice(0, -1) : path };
}

/** Returns the entry for the spec of an Application. */
export function ignoreSnippet({ group, kind, namespace, name }: Ignored, tree: Tree, path: Path): string {
  const isByName = path.some((step, at) => typeof step === 'number' && nameOf(partAt(tree, path.slice(0, at + 1))) !== '');
  const place = isByName ? ['    jqPathExpressions:', `      - ${quoted(expression(tree, path))}`] : ['    jsonPointers:', `      - ${quoted(pointer(path))}`];
  const object = [...(group ? [`group: ${quoted(group)}`] : []), `kind: ${quoted(kind)}`, `name: ${quoted(name)}`, ...(namespace ? [`namespace: ${quoted(namespace)}`] : [])];
  return ['ignoreDifferences:', ...object.map((line, at) => `${at === 0 ? '  - ' : '    '}${line}`), ...place, ''].join('\n');
}
