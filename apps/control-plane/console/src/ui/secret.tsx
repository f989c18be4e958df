import { useEffect } from 'preact/hooks';

import { Icon } from './icons';
import { Copy } from './parts';

/**
 * A secret that is shown once. It lives in the state of the page alone, which ends with the page; `forget` is called
 * when the browser leaves the site, since it may keep the page and show it again.
 */
export function Secret({ title, text, note, forget }: { title: string; text: string; note: string; forget: () => void }) {
  useEffect(() => {
    addEventListener('pagehide', forget);
    return () => removeEventListener('pagehide', forget);
  }, []);
  return (
    <section class="secret" aria-label={title} role="status">
      <header><strong>{title}</strong><button type="button" class="quiet" aria-label={`Close: ${title}`} onClick={forget}><Icon name="close" size={12} /></button></header>
      <div class="command"><pre tabIndex={0} aria-label={title}>{text}</pre><Copy text={text} /></div>
      <p class="mute small">{note}</p>
    </section>
  );
}
