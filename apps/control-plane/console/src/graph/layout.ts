// Lays out a tree of resources, left to right, in O(n). Siblings of one kind and state above a number fold into one node,
// and trouble comes first. Pure.
import { state } from '../store/states';

export interface Node {
  id: string;
  kind: string;
  name: string;
  health: string; // '' when it has none
  sync: string;
  children: Node[];
}

export interface Placed {
  id: string;
  node: Node;
  folded: number; // nodes that it stands for; 0: itself alone
  members: readonly Node[]; // these nodes
  isOpen: boolean; // a fold whose nodes are drawn behind it
  x: number;
  y: number;
  depth: number;
  parent: string; // '' for the root
}
export interface Layout {
  placed: Placed[];
  width: number;
  height: number;
  hidden: number; // nodes beyond the most that are drawn
}

export const NODE = { width: 228, height: 44, gapX: 44, gapY: 10 };
const FOLD_ABOVE = 6;
const MOST = 1_500;

export function severity(node: Node): number {
  const own = Math.max(node.health ? state(node.health).severity : 0, node.sync ? state(node.sync).severity : 0);
  return node.children.reduce((worst, child) => Math.max(worst, severity(child)), own);
}

interface Item {
  id: string;
  node: Node;
  folded: number;
  members: readonly Node[];
}
const single = (node: Node): Item => ({ id: node.id, node, folded: 0, members: [] });
const byTrouble = (a: Item, b: Item): number =>
  severity(b.node) - severity(a.node) || a.node.kind.localeCompare(b.node.kind) || a.node.name.localeCompare(b.node.name);

/** Which folds are open: those with these ids, or every node is drawn by itself. */
export type Unfolded = ReadonlySet<string> | 'all';

/** Returns what is drawn for siblings: the worst first, equal and healthy ones of a kind as one. */
export function siblings(parent: Node, unfolded: Unfolded): Item[] {
  const groups = new Map<string, Node[]>();
  for (const child of parent.children) {
    const key = `${child.kind} ${child.health} ${child.sync}`;
    const group = groups.get(key);
    if (group) group.push(child);
    else groups.set(key, [child]);
  }
  const items: Item[] = [];
  for (const [key, nodes] of groups) {
    const canFold = unfolded !== 'all' && nodes.length > FOLD_ABOVE && nodes.every((node) => severity(node) < 7);
    if (canFold) items.push({ id: `${parent.id}/${key}`, node: nodes[0]!, folded: nodes.length, members: nodes });
    else items.push(...nodes.map(single));
  }
  return items.sort(byTrouble);
}

/** Places a tree. A parent stands beside its first child, so that the root is always in sight. */
export function layout(root: Node, unfolded: Unfolded = new Set()): Layout {
  const placed: Placed[] = [];
  let y = 0;
  let depths = 0;
  let hidden = 0;
  const place = (item: Item, depth: number, parent: string): void => {
    if (placed.length >= MOST) {
      hidden += Math.max(1, item.folded);
      return;
    }
    depths = Math.max(depths, depth);
    const isOpen = item.folded > 0 && unfolded !== 'all' && unfolded.has(item.id);
    placed.push({ ...item, isOpen, x: depth * (NODE.width + NODE.gapX), y, depth, parent });
    const children = item.folded === 0 ? siblings(item.node, unfolded) : isOpen ? item.members.map(single).sort(byTrouble) : [];
    for (const child of children) place(child, depth + 1, item.id);
    if (children.length === 0) y += NODE.height + NODE.gapY;
  };
  place(single(root), 0, '');
  return { placed, width: depths * (NODE.width + NODE.gapX) + NODE.width, height: Math.max(NODE.height, y - NODE.gapY), hidden };
}
