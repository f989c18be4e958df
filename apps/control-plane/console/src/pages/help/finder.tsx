// The field that finds sections of the documents, and what it has found.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { announce } from '../../shell/announce';
import { navigate } from '../../shell/router';
import { Icon } from '../../ui/icons';
import { Failed } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { readIndex } from './load';
import { marked, search, unknownWords, wordsOf, type Found } from './search';

const MOST = 30;

function Marked({ text, words }: { text: string; words: readonly string[] }) {
  return <>{marked(text, words).map((piece, at) => (at % 2 ? <mark key={at}>{piece}</mark> : piece))}</>;
}

function Result({ one, words, open }: { one: Found; words: readonly string[]; open: () => void }) {
  return (
    <li>
      <a href={one.address} onClick={open}><Marked text={one.title} words={words} /></a>
      {one.trail.length > 0 && <span class="mute small">{one.trail.join(' › ')}</span>}
      <p class="small"><Marked text={one.snippet} words={words} /></p>
    </li>
  );
}

/** Arrows walk from the field through the links that were found, and back. */
function walk(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>('input, ol a')];
  const next = stops[stops.indexOf(document.activeElement as HTMLElement) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** `set` gets each key, `open` is called when a result was chosen. */
export function Finder({ text, set, open = () => {}, focus = false }: { text: string; set: (text: string) => void; open?: () => void; focus?: boolean }) {
  const { value: index, failure, again } = useReading('documents', 'read the documents', readIndex);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => { if (focus) field.current?.focus(); }, []);
  const words = useMemo(() => wordsOf(text), [text]);
  const found = useMemo(() => (index ? search(index, text) : []), [index, text]);
  const unknown = index && words.length > 0 && found.length === 0 ? unknownWords(index, text) : [];
  const told = !index || words.length === 0 ? '' : found.length === 0 ? 'Nothing has all of these words' : `${found.length} ${found.length === 1 ? 'section' : 'sections'}`;
  useEffect(() => { if (told) announce(told); }, [told]);
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.isComposing || !found[0]) return;
    event.preventDefault();
    open();
    navigate(found[0].address);
  };
  return (
    <div class="finder" role="search" aria-label="Documents" onKeyDown={walk}>
      <div class="filter">
        <Icon name="search" />
        <input ref={field} type="text" data-finder aria-label="Search the documents" placeholder="Search the documents" spellcheck={false} autocomplete="off" value={text} onInput={(event) => set(event.currentTarget.value)} onKeyDown={key} />
      </div>
      {failure && <Failed failure={failure} retry={again} />}
      {told && <p class="mute small">{told}{found.length > MOST && `, the best ${MOST}`}{unknown.length > 0 && `. No page has ${unknown.join(', ')}`}.</p>}
      {found.length > 0 && <ol class="found">{found.slice(0, MOST).map((one) => <Result key={one.address} one={one} words={words} open={open} />)}</ol>}
    </div>
  );
}

/** The finder of the sheet of keys: what is typed stays in the sheet until a result is opened. */
export function SheetFinder({ close }: { close: () => void }) {
  const [text, set] = useState('');
  return <Finder text={text} set={set} open={close} focus />;
}
