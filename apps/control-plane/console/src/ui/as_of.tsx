import { offline } from '../store/state';
import { Icon } from './icons';
import { exact, milliseconds, minute } from './time';

/** "as of 10:42, runtime silent since 10:44". */
export function asOf(at: number, silentSince: number): string {
  return `${at > 0 ? `as of ${minute(at)}, ` : ''}runtime silent since ${minute(silentSince)}`;
}

/** The age of what is shown of a runtime that is silent; nothing of one that reports. */
export function AsOf({ at, runtime }: { at: string | number | null | undefined; runtime: string }) {
  const since = offline.value.get(runtime);
  if (since === undefined) return null;
  const time = milliseconds(at);
  return <span class="as-of" title={`${time > 0 ? `Reported ${exact(time)}. ` : ''}The runtime was last heard of ${exact(since)}.`}><Icon name="cut" size={12} /><span class="clip">{asOf(time, since)}</span></span>;
}
