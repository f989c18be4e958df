// Requests to the control plane, and failures that say what is known.
import { noteDate } from './clock';

export interface Failure {
  tried: string; // "read the applications"
  kind: 'signed-out' | 'refused' | 'failed' | 'unreachable';
  status: number; // 0: no response
  message: string;
  requestId: string; // X-Request-Id of the answer, by which the server logs it; empty: it sent none
  help?: string; // words that find the documents about it
}

export class RequestError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

function kindOf(status: number): Failure['kind'] {
  if (status === 401) return 'signed-out';
  return status === 403 ? 'refused' : 'failed';
}

const PATIENCE = 60_000; // milliseconds; a connection that is cut silently would keep a request for good

/** Called when a request was answered with 401. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

/** Returns the id by which the server logs a request. All failures take it from here: where servers answer with the id of a
 * trace (`traceresponse`), this is the one place that has to prefer it. */
export function requestIdOf(response: Response): string {
  return response.headers.get('X-Request-Id') ?? '';
}

interface Options {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
  cache?: RequestCache; // data are always read anew
  wrong?: (content: unknown) => string; // what is wrong with an answer that succeeded; empty: nothing
}

/** Sends a request and returns the response, whatever its status. Throws RequestError when there is none. */
async function send(tried: string, address: string, { method = 'GET', body, signal, cache = 'no-store' }: Options): Promise<Response> {
  const limit = AbortSignal.timeout(PATIENCE);
  const init: RequestInit = { method, headers: { Accept: 'application/json' }, cache, signal: signal ? AbortSignal.any([signal, limit]) : limit };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { Accept: 'application/json', 'Content-Type': 'application/json' };
  }
  const sent = Date.now();
  try {
    const response = await fetch(address, init);
    if (cache === 'no-store') noteDate(response.headers.get('Date'), sent);
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RequestError({ tried, kind: 'unreachable', status: 0, requestId: '',
      message: 'The control plane did not answer. Whether the request reached it is not known.' });
  }
}

function refusal(tried: string, response: Response, message: string): RequestError {
  const kind = kindOf(response.status);
  if (kind === 'signed-out') onSignedOut();
  return new RequestError({ tried, kind, status: response.status, requestId: requestIdOf(response), message });
}

type Content = { message?: string; errors?: { message: string }[] } | null;
/** Reads JSON. `isCut`: its end did not come. */
async function contentOf(response: Response): Promise<{ content: Content; isCut: boolean }> {
  try {
    return { content: (await response.json()) as Content, isCut: false };
  } catch (error) {
    return { content: null, isCut: !(error instanceof Error) || error.name !== 'SyntaxError' };
  }
}

async function read<T>(tried: string, address: string, options: Options): Promise<{ content: T; requestId: string }> {
  const response = await send(tried, address, options);
  const { content, isCut } = await contentOf(response);
  if (!response.ok || content === null) {
    const said = content?.message ?? content?.errors?.[0]?.message;
    const unread = isCut ? 'The response broke off.' : 'The response is not JSON.';
    throw refusal(tried, response, said ?? (response.ok ? unread : `The control plane answered ${response.status}.`));
  }
  const wrong = options.wrong?.(content);
  if (wrong) throw refusal(tried, response, wrong);
  return { content: content as T, requestId: requestIdOf(response) };
}

/** Sends a request and returns its JSON. Throws RequestError. */
export async function request<T>(tried: string, address: string, options: Options = {}): Promise<T> {
  return (await read<T>(tried, address, options)).content;
}

/** Sends a request that is answered with a text, as a new key is. Throws RequestError. */
export async function requestText(tried: string, address: string, options: Options = {}): Promise<string> {
  const response = await send(tried, address, options);
  if (!response.ok) {
    const content = (await response.json().catch(() => null)) as { message?: string } | null;
    throw refusal(tried, response, content?.message ?? `The control plane answered ${response.status}.`);
  }
  if (!response.headers.get('Content-Type')?.startsWith('text/plain')) throw refusal(tried, response, 'The response is no text.');
  const text = await response.text().catch(() => { throw refusal(tried, response, 'The response broke off.'); });
  const wrong = options.wrong?.(text);
  if (wrong) throw refusal(tried, response, wrong);
  return text;
}

/** Runs a GraphQL document of data/documents.ts. Data beside errors counts as failed: half of an answer is no answer. */
export async function query<T>(tried: string, document: string, variables: object = {}, signal?: AbortSignal): Promise<T> {
  const options: Options = { method: 'POST', body: { query: document, variables } };
  if (signal) options.signal = signal;
  const { content: answer, requestId } = await read<{ data?: T; errors?: { message: string; extensions?: { code?: string; statusCode?: number } | number }[] }>(
    tried, '/2.0/api/graphql', options);
  const error = answer.errors?.[0];
  if (error || !answer.data) {
    const said = typeof error?.extensions === 'number' ? { statusCode: error.extensions } : error?.extensions;
    const code = said?.code ?? '';
    const status = said?.statusCode ?? (error ? 500 : 200);
    const kind = /UNAUTHENTICATED/i.test(code) ? 'signed-out' : /FORBIDDEN/i.test(code) ? 'refused' : kindOf(status);
    if (kind === 'signed-out') onSignedOut();
    throw new RequestError({ tried, kind, status, requestId, message: error?.message ?? 'The response has no data.' });
  }
  return answer.data;
}

/** Returns the failure behind an exception. Mistakes of our own are shown as such. */
export function failureOf(tried: string, error: unknown): Failure {
  if (error instanceof RequestError) return error.failure;
  return { tried, kind: 'failed', status: 0, requestId: '', message: `The page itself failed: ${String(error)}` };
}
