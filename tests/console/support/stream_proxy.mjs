// A server before the daemon that passes everything on, but answers the stream itself by a script.
import http from 'node:http';

export class StreamProxy {
  #server;
  #open = new Set();
  #all = new Set();
  url = '';
  streams = 0;
  isBroken = false; // refuses streams
  lastId = 0;
  resumedFrom = '';
  topics = []; // of the stream that began last

  constructor(daemon, { isAbsent = false, answers = {}, graphql, handle } = {}) {
    this.handle = handle; // (request, response) -> whether it answers the request
    this.answers = answers; // path -> JSON that is answered instead
    this.graphql = graphql; // request -> text of an answer, or nothing to ask the daemon
    this.isAbsent = isAbsent; // as a server without the stream
    this.daemon = new URL(daemon);
  }

  async start() {
    this.#server = http.createServer((request, response) => {
      if (request.url.startsWith('/console/api/v1/stream')) return this.#stream(request, response);
      if (this.handle?.(request, response)) return undefined;
      const scripted = this.answers[request.url];
      if (scripted) {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        return response.end(JSON.stringify(scripted));
      }
      if (this.graphql && request.url === '/2.0/api/graphql') return void this.#answer(request, response);
      this.#pass(request, response);
    });
    this.#server.on('connection', (socket) => {
      this.#all.add(socket);
      socket.on('close', () => this.#all.delete(socket));
    });
    await new Promise((done) => this.#server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this;
  }
  async #answer(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const text = this.graphql(JSON.parse(body.toString()));
    if (text === undefined) return this.#pass(request, response, body);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(text);
  }
  #pass(request, response, body) {
    const passed = http.request({ host: this.daemon.hostname, port: this.daemon.port, path: request.url, method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    if (body) passed.end(body);
    else request.pipe(passed);
  }
  #stream(request, response) {
    if (this.isAbsent) {
      response.writeHead(404, { 'Content-Type': 'application/json' });
      return response.end('{"message":"There is no such path."}');
    }
    if (this.isBroken) return response.destroy();
    this.topics = (new URL(request.url, this.url).searchParams.get('topics') ?? '').split(',');
    this.resumedFrom = request.headers['last-event-id'] ?? '';
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    response.write(': hello\n\n');
    this.#open.add(response);
    ++this.streams;
    response.on('close', () => {
      this.#open.delete(response);
      --this.streams;
    });
  }
  send(type, data) {
    for (const response of this.#open) response.write(`id: ${++this.lastId}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }
  /** Breaks all streams. */
  drop() {
    for (const response of this.#open) response.destroy();
  }
  async stop() {
    for (const socket of this.#all) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }
}
