// Parts of the page that are loaded when they are shown first.
import { useEffect, useState } from 'preact/hooks';
import type { ComponentType } from 'preact';

import { Loading } from './parts';

/** A component whose code is loaded with its first use. A load that fails is tried again with the next one. */
export function lazy<Props extends object>(what: string, load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [, draw] = useState(0);
    const [failure, setFailure] = useState('');
    useEffect(() => {
      let isShown = true;
      if (!loaded) {
        load().then((part) => {
          loaded = part;
          if (isShown) draw(1);
        }, (error: unknown) => { if (isShown) setFailure(String(error)); });
      }
      return () => { isShown = false; };
    }, []);
    const Part = loaded;
    if (Part) return <Part {...props} />;
    // The usual cause is a program that was upgraded under an open page.
    if (failure) return <div class="notice bad" role="alert"><div><strong>Could not load {what}.</strong><p>{failure}</p></div><button type="button" onClick={() => location.reload()}>Reload the page</button></div>;
    return <Loading what={what} />;
  };
}
