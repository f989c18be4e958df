// One stream for all pages of the browser: a stream for each would use up the six connections of HTTP/1.1.
import { Stream, type Live, type Message } from './stream';

const PING = 10_000;
const MISSED = 3;

interface Client {
  port: MessagePort;
  topics: string[];
  missed: number;
}
const clients = new Map<MessagePort, Client>();
let live: Live = { state: 'connecting' };
let age: Message | null = null; // the last event that called the data old or fresh again

const stream = new Stream((message) => {
  if (message.kind === 'state') live = message.live;
  else if (message.type === 'stale' || message.type === 'fresh') age = message;
  for (const { port } of clients.values()) port.postMessage(message);
});

function follow(): void {
  stream.follow([...clients.values()].flatMap((client) => client.topics));
}
function drop(port: MessagePort): void {
  if (clients.delete(port)) follow();
}

addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0]!;
  const client: Client = { port, topics: [], missed: 0 };
  clients.set(port, client);
  port.onmessage = ({ data }: MessageEvent<{ kind: string; topics?: string[] }>) => {
    client.missed = 0;
    if (data.kind === 'bye') return drop(port);
    // The browser stops pages that are not seen, and goes back to those that were left. Such a page has missed events.
    const isBack = !clients.has(port);
    clients.set(port, client);
    if (data.kind === 'follow') client.topics = data.topics ?? [];
    if (data.kind === 'follow' || isBack) {
      // A page that comes later has read its data after the stream began.
      port.postMessage({ kind: 'state', live });
      if (age) port.postMessage(age);
      follow();
    }
    if (isBack) port.postMessage({ kind: 'event', type: 'reset', data: {} });
    if (data.kind === 'retry') stream.retry();
  };
});

setInterval(() => {
  for (const client of clients.values()) {
    if (++client.missed > MISSED) drop(client.port);
    else client.port.postMessage({ kind: 'ping' });
  }
}, PING);
