// Reads a text/event-stream. Pure; https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6.

export interface SseEvent {
  type: string;
  data: string;
  id: string; // the last one that was sent
}

export class SseParser {
  #rest = '';
  #type = '';
  #data: string[] = [];
  #id: string;

  constructor(id = '') {
    this.#id = id;
  }

  /** Returns the events that these bytes complete. */
  feed(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop()!;
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#data.length > 0) events.push({ type: this.#type || 'message', data: this.#data.join('\n'), id: this.#id });
        this.#type = '';
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue; // a comment
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'event') this.#type = value;
      else if (name === 'data') this.#data.push(value);
      else if (name === 'id' && !value.includes('\0')) this.#id = value;
    }
    return events;
  }
}
