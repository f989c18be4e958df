// Questions to the app-proxy of a runtime, from the browser itself: a runtime may be reachable for its users alone. The
// token for it is in a variable of this page and nowhere else.
import { OutcomeError, sentence, type Outcome } from './outcome';
import { failureOf, request, RequestError, requestIdOf, type Failure } from './request';
import { VERSION } from './runtime_documents';

const PATH = '/app-proxy/api/graphql';
const MARGIN = 30; // seconds before its end in which a token is not used any more
const PATIENCE = 60_000; // milliseconds; app-proxy gives up after 55 s

/** An outcome that is not Done, with what a reading shows of it. */
export interface Problem extends Outcome {
  kind: 'refused' | 'failed' | 'unknown';
  failure: Failure['kind'];
  status: number; // of the response; 0: none
  code: string; // of app-proxy: "ARGO_CD_AUTO_SYNC"
}
export type Answer<T> = { kind: 'done'; data: T } | Problem;

interface Access {
  token: string;
  address: string; // origin
  until: number;
}

const known = new Map<string, Access>();
const asked = new Map<string, Promise<Access>>();
const reached = new Set<string>(); // runtimes that have answered this page
const kept = new Set<string>(); // origins that the policy of this page does not name

globalThis.document?.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
  if (effectiveDirective === 'connect-src' && URL.canParse(blockedURI)) kept.add(new URL(blockedURI).origin);
});

async function newAccess(runtime: string): Promise<Access> {
  const tried = `get a token for the runtime ${runtime}`;
  const wrong = (answer: unknown) => {
    const { token, address, expiresIn } = answer as Record<string, unknown>;
    return typeof token === 'string' && typeof address === 'string' && typeof expiresIn === 'number' ? '' : 'The control plane answered without a token';
  };
  const { token, address, expiresIn } = await request<{ token: string; address: string; expiresIn: number }>(tried,
    `/console/api/v1/runtimes/${encodeURIComponent(runtime)}/token`, { method: 'POST', body: {}, wrong });
  const access = { token, address, until: Date.now() + (expiresIn - MARGIN) * 1_000 };
  known.set(runtime, access);
  return access;
}

/** Returns the token and the address; requests at the same time share one question. `refused` is a token that is not taken any more. */
export function accessTo(runtime: string, refused = ''): Promise<Access> {
  const access = known.get(runtime);
  if (access && access.token !== refused && Date.now() < access.until) return Promise.resolve(access);
  const running = asked.get(runtime) ?? newAccess(runtime).finally(() => asked.delete(runtime));
  asked.set(runtime, running);
  return running;
}

interface Said {
  message: string;
  code: string;
  status: number;
  requestId: string;
}

/** Who refuses by a code, and what would allow it. */
const REFUSALS: Record<string, { by: string; allows: string; help?: string }> = {
  ARGO_CD_OPERATION_IN_PROGRESS: { by: 'Argo CD', allows: 'Wait until the other operation has ended, or terminate it.' },
  ARGO_CD_AUTO_SYNC: { by: 'Argo CD', allows: 'Revert the commit in Git, or switch automated sync off there first.', help: 'automated sync rollback' },
  NOT_POSSIBLE_NOW: { by: 'Argo CD', allows: '' },
  NOT_FOUND_ERROR: { by: 'Argo CD', allows: '' },
  ARGO_NOT_INSTALLED: { by: 'The cluster', allows: 'Install the controller of this kind in the cluster of the runtime.' },
  FORBIDDEN: { by: 'The runtime', allows: 'An administrator of the account can do it.' },
};

const RULES = 'rules teams';
const FOREIGN = 'FOREIGN'; // the code of a response that is none of a runtime, but a page of a proxy
const OWN_CODES = ['UNAUTHENTICATED', 'TOO_MANY_REQUESTS', 'HTTP', FOREIGN, 'GRAPHQL_VALIDATION_FAILED', 'GRAPHQL_PARSE_FAILED'];

/** Says what an error that app-proxy reports means. Pure. */
export function problemOf({ message, code, status, requestId }: Said, runtime: string, isChange: boolean): Problem {
  const base = { requestId, code, status };
  const refused = (by: string, text: string, allows: string, help?: string): Problem =>
    ({ ...base, ...(help && { help }), kind: 'refused', failure: 'refused', by, allows, text: isChange ? `${sentence(text)} Nothing was changed.` : sentence(text) });
  if (status === 403 && code === '') {
    return refused('A rule', `The runtime ${runtime} found no rule that allows it, or the object is not there any more`, 'An administrator of the account can make a rule for one of your teams.', RULES);
  }
  const known = REFUSALS[code];
  if (known) return refused(known.by, message, known.allows, known.help);
  if (/sync window/i.test(message)) return refused('A sync window', message, 'Wait until the sync windows of the project allow it.');
  if (code === 'ARGO_NOT_AVAILABLE' && message.includes('does not let the runtime')) {
    return refused('Argo CD', message, 'Whoever manages Argo CD gives the account of the runtime this right.');
  }
  // It is said before anything is tried: by its values the runtime lets nobody act.
  if (code === 'ARGO_NOT_AVAILABLE' && message.includes('is not configured for')) return refused('The runtime', message, '', 'let users act');
  if (status >= 400 && status < 500) return refused(OWN_CODES.includes(code) ? 'The runtime' : 'Argo CD', message, '');
  // The check of the rules comes before every action. A proxy says 503, too, when it has lost an answer.
  const isBefore = status === 503 && code !== 'ARGO_NOT_AVAILABLE' && code !== FOREIGN;
  if (isChange && !isBefore) return { ...base, kind: 'unknown', failure: 'failed', text: `${sentence(message)} Check the timeline before trying again.` };
  return { ...base, kind: 'failed', failure: 'failed', text: isChange ? `${sentence(message)} Nothing was changed.` : sentence(message) };
}

interface Body {
  data?: unknown;
  message?: string;
  error?: string;
  errors?: { message?: string; extensions?: number | { code?: string; statusCode?: number } }[];
}

async function send(access: Access, document: string, variables: object, signal: AbortSignal): Promise<Response> {
  return fetch(access.address + PATH, {
    method: 'POST', mode: 'cors', credentials: 'omit', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer', signal,
    headers: { 'Content-Type': 'application/json', 'x-access-token': access.token }, body: JSON.stringify({ query: document, variables }),
  });
}

/** What is known when no response came. */
async function lost(runtime: string, { address }: Access, isChange: boolean): Promise<Problem> {
  await new Promise((resolve) => setTimeout(resolve, 0)); // the report of the policy comes behind the exception
  const base = { requestId: '', code: '', status: 0, failure: 'unreachable' as const };
  if (kept.has(address)) {
    return { ...base, kind: 'failed', isOutdated: true, text: `This page was loaded before the runtime ${runtime} had the address ${address}, so it may not ask there.${isChange ? ' Nothing was sent.' : ''}`,
      allows: 'Load the page again.' };
  }
  const help = 'browser reaches runtime';
  const text = `The runtime ${runtime} could not be reached by your browser at ${address}.`;
  const allows = 'Your network has to reach this address, and the setting cors of the runtime has to name this console.';
  if (!isChange) return { ...base, help, kind: 'failed', allows, text };
  reached.delete(runtime); // the next change looks first
  return { ...base, help, kind: 'unknown', text: `The runtime ${runtime} did not answer. Whether the request reached it is not known. Check the timeline before trying again.` };
}

/** Reads a response. A text: the token is not taken, in the request of this id. */
async function read<T>(runtime: string, response: Response, isChange: boolean): Promise<Answer<T> | string> {
  const requestId = requestIdOf(response);
  const { status } = response;
  const body = (await response.json().catch(() => null)) as Body | null;
  const problem = (message: string, code = '', of = status) => problemOf({ message, code, status: of, requestId }, runtime, isChange);
  if (status === 401) return requestId;
  if (status === 429) return problem(`The runtime ${runtime} has too many requests of you or of your address now`, 'TOO_MANY_REQUESTS');
  if (status !== 200) return problem(body?.message ?? body?.errors?.[0]?.message ?? `The runtime ${runtime} answered ${status}`, body === null ? FOREIGN : 'HTTP');
  const error = body?.errors?.[0];
  if (error) {
    const said = typeof error.extensions === 'number' ? { statusCode: error.extensions } : error.extensions;
    return problem(error.message ?? 'No reason was given', said?.code ?? '', said?.statusCode ?? 500);
  }
  if (typeof body?.data !== 'object' || body.data === null) return problem(`The answer of the runtime ${runtime} cannot be read`, 'UNREADABLE', 500);
  return { kind: 'done', data: body.data as T };
}

async function attempt<T>(runtime: string, document: string, variables: object, isChange: boolean, signal: AbortSignal | undefined): Promise<Answer<T>> {
  let access = await accessTo(runtime);
  let refusedId = '';
  for (const isLast of [false, true]) {
    const limit = AbortSignal.timeout(PATIENCE);
    let response: Response;
    try {
      response = await send(access, document, variables, signal ? AbortSignal.any([signal, limit]) : limit);
    } catch (error) {
      if (signal?.aborted) throw error;
      return lost(runtime, access, isChange);
    }
    const answer = await read<T>(runtime, response, isChange);
    if (typeof answer !== 'string') {
      if (answer.kind === 'done') reached.add(runtime);
      return answer;
    }
    refusedId = answer;
    if (!isLast) access = await accessTo(runtime, access.token);
  }
  // A new token was not taken either.
  return problemOf({ message: `The runtime ${runtime} does not accept your session. It asks its own control plane who you are`, code: 'UNAUTHENTICATED', status: 401, requestId: refusedId }, runtime, isChange);
}

/** The control plane gave no token, so nothing was sent to the runtime. */
function withoutToken(failure: Failure, isChange: boolean): Problem {
  const isRefusal = failure.status >= 400 && failure.status < 500;
  const nothing = isChange ? ' Nothing was changed.' : '';
  const text = failure.kind === 'unreachable' ? `The control plane did not answer, so that the runtime was not asked.${nothing}` : `${sentence(failure.message)}${nothing}`;
  return { kind: isRefusal ? 'refused' : 'failed', failure: failure.kind, status: failure.status, code: '', requestId: failure.requestId, text,
    ...(failure.status === 409 && { help: 'access modes' }), // it has no address that browsers can use
    ...(isRefusal && { by: 'The control plane' }), ...(failure.kind === 'signed-out' && { allows: 'Sign in again, then repeat it.' }) };
}

/** Asks a runtime's app-proxy a document of runtime_documents.ts. Throws only when `signal` aborts. A change is never sent to
 * a runtime that this page has not reached before, so that an address that does not work never leaves a change open. */
export async function askRuntime<T>(runtime: string, document: string, variables: object = {}, signal?: AbortSignal): Promise<Answer<T>> {
  const isChange = document.startsWith('mutation');
  try {
    if (isChange && !reached.has(runtime)) {
      const first = await attempt<unknown>(runtime, VERSION, {}, false, signal);
      if (first.kind !== 'done') return { ...first, text: `${first.text} Nothing was sent.` };
    }
    return await attempt<T>(runtime, document, variables, isChange, signal);
  } catch (error) {
    if (signal?.aborted) throw error;
    return withoutToken(failureOf(`ask the runtime ${runtime}`, error), isChange);
  }
}

/** Asks for a change. Throws OutcomeError for what is not Done. */
export async function changeRuntime<T>(runtime: string, document: string, variables: object): Promise<T> {
  const answer = await askRuntime<T>(runtime, document, variables);
  if (answer.kind === 'done') return answer.data;
  throw new OutcomeError(answer);
}

/** Asks for something to show: for useReading(). Throws RequestError. */
export async function readRuntime<T>(tried: string, runtime: string, document: string, variables: object = {}, signal?: AbortSignal): Promise<T> {
  const answer = await askRuntime<T>(runtime, document, variables, signal);
  if (answer.kind === 'done') return answer.data;
  const { failure, status, requestId, text, allows, help } = answer;
  throw new RequestError({ tried, kind: failure, status, requestId, ...(help && { help }), message: allows ? `${text} ${allows}` : text });
}
