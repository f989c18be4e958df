// Opens logs at a runtime's app-proxy, by the browser itself, as data/runtime.ts asks questions.
import { RequestError } from '../data/request';
import { accessTo } from '../data/runtime';

/** What to read: parameters of GET /api/applications/logs (docs/reference/app-proxy/actions.md, "Logs"). */
export type LogChoice = Record<string, string>;

/**
 * Opens a log as server-sent events. A refusal of the control plane to give a token is returned like one of the runtime.
 * Rejects with a sentence when the runtime could not be reached.
 */
export async function openLog(runtime: string, choice: LogChoice, signal: AbortSignal): Promise<Response> {
  const query = new URLSearchParams(Object.entries(choice).filter(([, value]) => value !== ''));
  for (let refused = ''; ;) {
    let access;
    try {
      access = await accessTo(runtime, refused);
    } catch (error) {
      if (!(error instanceof RequestError) || error.failure.status < 400 || error.failure.status >= 500) throw error;
      return new Response(JSON.stringify({ message: error.failure.message }), { status: error.failure.status, headers: { 'X-Request-Id': error.failure.requestId } });
    }
    try {
      const response = await fetch(`${access.address}/app-proxy/api/applications/logs?${query.toString()}`, {
        mode: 'cors', credentials: 'omit', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer', signal,
        headers: { Accept: 'text/event-stream', 'x-access-token': access.token },
      });
      // A token ends with the session that it was made in. Another one is asked for once.
      if (response.status !== 401 || refused) return response;
      refused = access.token;
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Error(`The runtime ${runtime} could not be reached by your browser at ${access.address}.`);
    }
  }
}
