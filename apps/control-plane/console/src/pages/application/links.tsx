import type { ComponentChildren } from 'preact';

import { Icon } from '../../ui/icons';
import { webAddress } from './types';

export interface Name {
  runtime: string;
  namespace: string;
  name: string;
}
/** The address of its page. */
export const pathOf = (name: Name) => `/applications/${[name.runtime, name.namespace, name.name].map(encodeURIComponent).join('/')}`;

/** A link if the address is one of the web, else the text alone. */
export function Link({ to, children }: { to: string | null | undefined; children: ComponentChildren }) {
  const href = webAddress(to);
  return href ? <a href={href} target="_blank" rel="noopener noreferrer">{children}<Icon name="link" size={12} /></a> : <>{children}</>;
}
