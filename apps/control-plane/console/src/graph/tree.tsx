import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { state } from '../store/states';
import { Icon } from '../ui/icons';
import { layout, NODE, type Node, type Placed, type Unfolded } from './layout';

const PAD = 12;

interface BoxProps {
  one: Placed;
  chosen: boolean;
  matches: number | null; // of the text that is looked for; null without one
  focus: boolean;
  choose: () => void;
  reach: () => void; // it has the focus now
}

function Box({ one, chosen, matches, focus, choose, reach }: BoxProps) {
  const box = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    box.current!.style.transform = `translate(${one.x + PAD}px, ${one.y + PAD}px)`;
  }, [one.x, one.y]);
  const { node, folded, isOpen } = one;
  const dim = matches === 0;
  const worst = state(node.health || node.sync || 'Unknown');
  const words = [node.health, node.sync === 'Synced' && node.health ? '' : node.sync].filter(Boolean).join(', ');
  return (
    <button ref={box} type="button" id={`node-${one.id}`} role="treeitem" aria-level={one.depth + 1} aria-selected={chosen} aria-expanded={folded > 0 ? isOpen : undefined} tabIndex={focus ? 0 : -1}
      class={['node', worst.tone, dim && 'dim', folded && 'folded'].filter(Boolean).join(' ')} onClick={choose} onFocus={reach}>
      {node.health || node.sync ? <span class={`state ${worst.tone}`}><Icon name={worst.shape} /></span> : <span class="mute">·</span>}
      <span class="texts">
        <span class="clip">{folded ? `${folded} × ${node.kind}` : node.name}</span>
        <span class="clip small mute">{folded ? `${words || 'no state'} · ${matches ? `${matches} found · ` : ''}${isOpen ? 'fold' : 'open'}` : `${node.kind}${words && ` · ${words}`}`}</span>
      </span>
    </button>
  );
}

interface TreeProps {
  root: Node;
  chosen: string;
  choose: (node: Node) => void;
  wanted: string; // nodes without this text are dimmed
  unfolded: Unfolded;
  unfold: (fold: string, open: boolean) => void;
}

/** The picture of a tree. Arrows walk it and open and close folds, Enter opens a node. */
export function Tree({ root, chosen, choose, wanted, unfolded, unfold }: TreeProps) {
  const { placed, width, height, hidden } = useMemo(() => layout(root, unfolded), [root, unfolded]);
  const [at, setAt] = useState(root.id);
  const space = useRef<HTMLDivElement>(null);
  const places = useMemo(() => new Map(placed.map((one) => [one.id, one])), [placed]);
  useLayoutEffect(() => {
    space.current!.style.width = `${width + 2 * PAD}px`;
    space.current!.style.height = `${height + 2 * PAD}px`;
  }, [width, height]);
  const focused = places.has(at) ? at : root.id;
  const go = (id: string | undefined) => {
    if (id === undefined) return;
    setAt(id);
    document.getElementById(`node-${id}`)?.focus();
  };
  const open = (one: Placed) => {
    setAt(one.id);
    if (one.folded > 0) unfold(one.id, !one.isOpen);
    else choose(one.node);
  };
  const key = (event: KeyboardEvent) => {
    const index = placed.findIndex((one) => one.id === focused);
    const one = placed[index]!;
    const steps: Record<string, () => void> = {
      ArrowDown: () => go(placed[index + 1]?.id), ArrowUp: () => go(placed[index - 1]?.id),
      ArrowRight: () => { if (one.folded > 0 && !one.isOpen) unfold(one.id, true); else go(placed.find((other) => other.parent === one.id)?.id); },
      ArrowLeft: () => { if (one.isOpen) unfold(one.id, false); else go(one.parent || undefined); },
      Home: () => go(placed[0]!.id), End: () => go(placed.at(-1)!.id),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const text = wanted.toLowerCase();
  const fits = (node: Node) => `${node.kind} ${node.name}`.toLowerCase().includes(text);
  const matchesOf = (one: Placed) => (text === '' ? null : one.folded > 0 ? one.members.filter(fits).length : Number(fits(one.node)));
  return (
    <div class="canvas scroll" data-scroller>
      <div ref={space} class="tree" role="tree" aria-label="Resources" onKeyDown={key}>
        <svg class="edges" width={width + 2 * PAD} height={height + 2 * PAD} aria-hidden="true">
          {placed.map((one) => {
            const from = places.get(one.parent);
            if (!from) return null;
            const [x1, y1] = [from.x + NODE.width + PAD, from.y + NODE.height / 2 + PAD];
            const [x2, y2] = [one.x + PAD, one.y + NODE.height / 2 + PAD];
            const middle = (x1 + x2) / 2;
            return <path key={one.id} d={`M${x1} ${y1}H${middle}V${y2}H${x2}`} />;
          })}
        </svg>
        {placed.map((one) => (
          <Box key={one.id} one={one} chosen={chosen === one.id} focus={focused === one.id} choose={() => open(one)} reach={() => setAt(one.id)} matches={matchesOf(one)} />
        ))}
      </div>
      {hidden > 0 && <p class="mute small">{hidden} more resources are not drawn. Use the list.</p>}
    </div>
  );
}
