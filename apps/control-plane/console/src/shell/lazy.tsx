import { useEffect, useState } from 'preact/hooks';
import type { ComponentType } from 'preact';

import type { Failure } from '../data/request';
import { Failed, Loading } from '../ui/parts';

interface Given {
  parameters: Record<string, string>;
}

/** Makes a page whose code is loaded when it is opened for the first time. */
export function lazy(load: () => Promise<ComponentType<Given>>): ComponentType<Given> {
  let Loaded: ComponentType<Given> | null = null;
  return function Lazy(given: Given) {
    const [, show] = useState(false);
    const [failure, fail] = useState<Failure | null>(null);
    useEffect(() => {
      if (Loaded) return undefined;
      let isLeft = false;
      load().then((page) => { Loaded = page; if (!isLeft) show(true); }, (error: unknown) => {
        if (!isLeft) fail({ tried: 'load this page', kind: 'failed', status: 0, requestId: '', message: `${String(error)} The console may have been updated since it was opened.` });
      });
      return () => { isLeft = true; };
    }, []);
    // Browsers remember that a module failed, so only a new page asks for it again.
    if (failure) return <div class="page"><Failed failure={failure} retry={() => location.reload()} /></div>;
    return Loaded ? <Loaded {...given} /> : <div class="page"><Loading what="the page" /></div>;
  };
}
