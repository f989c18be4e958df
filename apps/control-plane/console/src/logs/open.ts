// Opens logs at a runtime's app-proxy, by the browser itself, as data/runtime.ts asks questions.
import { accessTo } from '../data/runtime';

/** What to read: parameters of GET /api/applications/logs (docs/app-proxy-api.md, "Logs"). */
export type LogChoice = Record<string, string>;

/** Opens a log as server-sent events. Rejects with a sentence when the runtime could not be reached. */
export async function openLog(runtime: string, choice: LogChoice, signal: AbortSignal): Promise<Response> {
  const { token, address } = await accessTo(runtime);
  const query = new URLSearchParams(Object.entries(choice).filter(([, value]) => value !== ''));
  try {
    return await fetch(`${address}/app-proxy/api/applications/logs?${query.toString()}`, {
      mode: 'cors', credentials: 'omit', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer', signal,
      headers: { Accept: 'text/event-stream', 'x-access-token': token },
    });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error(`The runtime ${runtime} could not be reached by your browser at ${address}.`);
  }
}
