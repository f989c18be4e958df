import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { named } from '../store/applications';
import { applications } from '../store/state';
import { state } from '../store/states';
import { Icon, type IconName } from '../ui/icons';
import { Dialog } from '../ui/parts';
import { PAGES } from './pages';
import { navigate } from './router';
import { me, signOut } from './session';
import { nextTheme } from './theme';

interface Item {
  text: string;
  hint: string;
  icon: IconName;
  run: () => void;
}
const MOST = 12;
const MOST_SECTIONS = 3;

function commands(): Item[] {
  const items: Item[] = PAGES.flatMap((row) => (row.menu && (!row.menu.onlyAdmin || me.value?.isAdmin)
    ? [{ text: row.menu.text, hint: row.menu.key, icon: row.menu.icon, run: () => navigate(row.pattern) }] : []));
  const filters = [['Failing applications', 'is:failing'], ['Applications out of sync', 'sync:OutOfSync'], ['Changed in the last hour', 'changed:<1h']];
  for (const [text, query] of filters) {
    items.push({ text: text!, hint: query!, icon: 'search', run: () => navigate(`/applications?q=${encodeURIComponent(query!)}`) });
  }
  items.push({ text: 'Next theme', hint: 'm', icon: 'theme', run: nextTheme });
  items.push({ text: 'Sign out', hint: '', icon: 'user', run: () => void signOut() });
  return items;
}

/** Sections of the documents, which are loaded with the first text that is long enough to mean one. */
function useSections(text: string): readonly Item[] {
  const [items, set] = useState<readonly Item[]>([]);
  useEffect(() => {
    let isShown = true;
    set([]);
    if (text.trim().length > 2) {
      void Promise.all([import('../pages/help/load').then(({ readIndex }) => readIndex()), import('../pages/help/search')]).then(([index, { search }]) => {
        if (isShown) set(search(index, text).slice(0, MOST_SECTIONS).map((one) => ({ text: one.title, hint: ['Documents', ...one.trail].join(' › '), icon: 'question', run: () => navigate(one.address) })));
      }, () => {}); // the page of the help says why
    }
    return () => { isShown = false; };
  }, [text]);
  return items;
}

/** Returns what a text finds: commands first, then applications whose name contains it, the text as a filter, and sections. */
function found(text: string, sections: readonly Item[]): Item[] {
  const wanted = text.trim().toLowerCase();
  const items = commands().filter((item) => item.text.toLowerCase().includes(wanted));
  if (wanted === '') return items;
  for (const row of named(applications, wanted, Math.max(0, MOST - 1 - sections.length - items.length))) {
    const { name, runtime, namespace, health } = applications.at(row);
    items.push({ text: name, hint: `${runtime} / ${namespace}`, icon: state(health).shape,
      run: () => navigate(`/applications/${[runtime, namespace, name].map(encodeURIComponent).join('/')}`) });
  }
  items.push({ text: `Filter applications by "${text.trim()}"`, hint: '', icon: 'search',
    run: () => navigate(`/applications?q=${encodeURIComponent(text.trim())}`) });
  return [...items, ...sections];
}

/** A combobox by the ARIA practices guide: focus stays in the field, arrows choose. */
export function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const items = found(text, useSections(text));
  const chosen = Math.min(at, items.length - 1);
  useLayoutEffect(() => field.current?.focus(), []);
  const run = (item: Item | undefined) => {
    if (!item) return;
    close();
    item.run();
  };
  const key = (event: KeyboardEvent) => {
    if (event.isComposing) return; // the keys are those of an input method
    if (event.key === 'ArrowDown') setAt((chosen + 1) % items.length);
    else if (event.key === 'ArrowUp') setAt((chosen + items.length - 1) % items.length);
    else if (event.key === 'Enter') run(items[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to or find" close={close}>
      <input ref={field} class="wide-field" role="combobox" aria-expanded="true" aria-controls="palette" aria-autocomplete="list" aria-label="Page, application or filter"
        aria-activedescendant={items.length > 0 ? `palette-${chosen}` : undefined} value={text} placeholder="Page, application or filter"
        onInput={(event) => { setText(event.currentTarget.value); setAt(0); }} onKeyDown={key} />
      <ul id="palette" role="listbox" aria-label="Found" class="options">
        {items.map((item, index) => (
          <li key={`${item.text} ${item.hint}`} id={`palette-${index}`} role="option" aria-selected={index === chosen}
            onMouseMove={() => setAt(index)} onClick={() => run(item)}>
            <Icon name={item.icon} /><span class="clip grow">{item.text}</span><span class="mute small clip">{item.hint}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
