#include "common/http/client.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "common/core/encoding.hpp"
#include "common/http/buffer.hpp"
#include "common/http/gzip.hpp"
#include "common/http/parser.hpp"
#include "common/http/stream.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kReadBuffer = 16 * 1024;
// Compressed bytes are inflated this many at a time: a thousandfold bomb gives 2 MiB, not 16.
constexpr std::size_t kInflateStep = 2 * 1024;
constexpr std::size_t kKeepOutput = 16 * 1024;

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_number(std::string& out, std::uint64_t number, int base = 10) {
  std::array<char, 24> digits;
  const auto [end, ec] = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  out.append(digits.data(), end);
}

std::string host_port(const Url& url) {
  const std::string host = url.host.contains(':') ? "[" + url.host + "]" : url.host;
  return host + ":" + std::to_string(url.port);
}

// The value of Proxy-Authorization for a proxy's userinfo.
Result<std::string> basic_credentials(const std::string& userinfo) {
  const auto colon = userinfo.find(':');
  auto user = percent_decode(userinfo.substr(0, colon));
  auto password = colon == std::string::npos ? Result<std::string>("")
                                             : percent_decode(userinfo.substr(colon + 1));
  if (!user || !password)
    return fail(ErrorCode::invalid_argument, "the proxy's user name or password is badly encoded");
  return "Basic " + base64_encode(*user + ":" + *password);
}

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

bool is_target(std::string_view text) {
  if (text != "*" && !text.starts_with('/')) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '#') return false;
  }
  return true;
}

struct Connection {
  Connection(Stream s, std::size_t max_head) : stream(std::move(s)), parser(max_head) {}
  Stream stream;
  ResponseParser parser;
  ReadBuffer in;
  std::string out;
};

struct Idle {
  std::unique_ptr<Connection> connection;
  Clock::time_point expires;
};

}  // namespace

struct Client::State : std::enable_shared_from_this<Client::State> {
  State(const Executor& e, Resolver& r, ClientOptions o)
      : executor(e),
        resolver(r),
        options(std::move(o)),
        tls(TlsContext::Role::client, options.tls),
        sweeper(e) {}

  // Names what a connection may be reused for: origin, proxy and TLS generation.
  [[nodiscard]] std::string pool_key(const Url& url, const Url* proxy) const;
  Task<Result<std::unique_ptr<Connection>>> connect(const Url& url, const Url* proxy,
                                                    Deadline deadline);
  Task<Result<void>> open_tunnel(Connection& connection, const Url& url, const Url& proxy);
  std::unique_ptr<Connection> take_idle(const std::string& key);
  void put_idle(const std::string& key, std::unique_ptr<Connection> connection);
  void sweep(Clock::time_point now);
  void arm_sweeper();

  Executor executor;
  Resolver& resolver;
  ClientOptions options;
  TlsContext tls;
  std::unordered_map<std::string, std::deque<Idle>> idle;
  Timer sweeper;  // closes what was idle for too long; runs while something is idle
  bool sweeping = false;
};

struct ClientExchange::State {
  explicit State(std::shared_ptr<Client::State> c) : client(std::move(c)) {}

  Result<void> append_head(std::string& out) const;
  Task<Result<void>> obtain(bool may_reuse);
  Task<Result<void>> send_request();
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<Response>> read_head();
  Task<Result<void>> read_into(std::string& out);
  Task<Result<ParseStep>> step(bool& any_byte);
  void complete();
  [[nodiscard]] std::unexpected<Error> failed(Error error) const {
    return fail(host_port(url), std::move(error));
  }

  std::shared_ptr<Client::State> client;
  std::unique_ptr<Connection> connection;  // none once the answer was read to its end
  Url url;                                 // the origin only
  const Url* proxy = nullptr;
  Request request;
  Client::Body body_kind = Client::Body::inline_body;
  std::string key;
  Deadline deadline = kNever;
  bool reused = false;
  bool request_ended = false;
  bool head_read = false;
  bool response_ended = false;
  std::optional<Error> write_error;  // the peer may still have answered
  std::optional<Inflater> inflater;
  std::string compressed;  // received and not yet inflated from `inflated` on
  std::size_t inflated = 0;
};

std::string Client::State::pool_key(const Url& url, const Url* proxy) const {
  std::string key = url.is_tls() ? "s" : "p";
  if (url.is_tls()) append_number(key, tls.generation());
  // All origins of plain requests share a proxy's connections.
  if (url.is_tls() || proxy == nullptr)
    key.append("|").append(url.host).append(":").append(std::to_string(url.port));
  if (proxy != nullptr)
    key.append("|").append(proxy->host).append(":").append(std::to_string(proxy->port));
  return key;
}

std::unique_ptr<Connection> Client::State::take_idle(const std::string& key) {
  const auto found = idle.find(key);
  if (found == idle.end()) return nullptr;
  const auto now = Clock::now();
  std::unique_ptr<Connection> connection;
  auto& queue = found->second;
  while (!queue.empty() && !connection) {
    Idle last = std::move(queue.back());
    queue.pop_back();
    if (last.expires > now && !last.connection->stream.is_stale()) {
      connection = std::move(last.connection);
    } else {
      last.connection->stream.close();
    }
  }
  if (queue.empty()) idle.erase(found);
  return connection;
}

void Client::State::put_idle(const std::string& key, std::unique_ptr<Connection> connection) {
  connection->stream.set_deadline(kNever);
  if (options.max_idle_per_host == 0) return connection->stream.close();
  connection->in.release();
  if (connection->out.capacity() > kKeepOutput) connection->out = {};
  auto& queue = idle[key];
  if (queue.size() >= options.max_idle_per_host) {
    queue.front().connection->stream.close();
    queue.pop_front();
  }
  queue.push_back({std::move(connection), Clock::now() + options.idle_timeout});
  arm_sweeper();
}

void Client::State::sweep(Clock::time_point now) {
  for (auto item = idle.begin(); item != idle.end();) {
    auto& queue = item->second;
    while (!queue.empty() && queue.front().expires <= now) {
      queue.front().connection->stream.close();
      queue.pop_front();
    }
    item = queue.empty() ? idle.erase(item) : std::next(item);
  }
}

void Client::State::arm_sweeper() {
  if (sweeping || idle.empty()) return;
  sweeping = true;
  sweeper.expires_after(options.idle_timeout);
  sweeper.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (!self) return;
    self->sweeping = false;
    if (ec) return;
    self->sweep(Clock::now());
    self->arm_sweeper();
  });
}

// A new connection on which the request can be sent: through the proxy's tunnel and TLS, if any.
Task<Result<std::unique_ptr<Connection>>> Client::State::connect(const Url& url, const Url* proxy,
                                                                 Deadline deadline) {
  const std::string origin = host_port(url);
  const Deadline limit = std::min(deadline, deadline_after(options.connect_timeout));
  const Url& first = proxy == nullptr ? url : *proxy;
  const std::string first_name = proxy == nullptr ? origin : "proxy " + host_port(*proxy);
  if (first.is_tls() && proxy != nullptr) {
    co_return fail(ErrorCode::unsupported, first_name + ": only http:// proxies are supported");
  }
  std::shared_ptr<asio::ssl::context> context;
  if (url.is_tls()) {
    auto loaded = tls.get(Clock::now());
    if (!loaded) co_return fail(origin, loaded.error());
    context = std::move(*loaded);
  }
  auto endpoints = co_await resolver.resolve(first.host, first.port, limit);
  if (!endpoints) co_return fail(first_name, endpoints.error());
  auto socket = co_await connect_any(*endpoints, limit);
  if (!socket) {
    resolver.forget(first.host);
    co_return fail(first_name, socket.error());
  }
  auto connection =
      std::make_unique<Connection>(Stream(std::move(*socket)), options.max_response_head);
  if (context == nullptr) co_return connection;
  connection->stream.set_deadline(limit);
  if (proxy != nullptr) {
    if (auto opened = co_await open_tunnel(*connection, url, *proxy); !opened) {
      co_return fail(first_name, opened.error());
    }
  }
  connection->stream.start_tls(std::move(context));
  const auto shaken = co_await connection->stream.handshake_client(
      options.tls.server_name.empty() ? url.host : options.tls.server_name);
  if (!shaken) {
    Error error = shaken.error();
    if (error.code == ErrorCode::timeout) error.message = "the TLS handshake timed out";
    co_return fail(origin, std::move(error));
  }
  co_return connection;
}

// Asks a proxy for a connection to the origin.
Task<Result<void>> Client::State::open_tunnel(Connection& connection, const Url& url,
                                              const Url& proxy) {
  const std::string origin = host_port(url);
  std::string head = "CONNECT " + origin + " HTTP/1.1\r\n";
  append_field(head, "Host", origin);
  if (!proxy.userinfo.empty()) {
    auto credentials = basic_credentials(proxy.userinfo);
    if (!credentials) co_return std::unexpected(credentials.error());
    append_field(head, "Proxy-Authorization", *credentials);
  }
  head += "\r\n";
  if (auto sent = co_await connection.stream.write(head); !sent) co_return sent;
  connection.parser.reset(true);
  while (true) {
    const auto step = connection.parser.next(connection.in.bytes());
    if (!step) co_return std::unexpected(step.error());
    connection.in.consume(step->consumed);
    if (step->event == ParseStep::Event::head) {
      const int status = connection.parser.head().status;
      if (status < 200) {
        connection.parser.reset(true);
        continue;
      }
      if (status >= 300) {
        Error error{.code = ErrorCode::unavailable,
                    .message = "refused to connect to " + origin + ": " + std::to_string(status) +
                               " " + std::string(reason_phrase(status)),
                    .http_status = status};
        if (status == 407) error.code = ErrorCode::unauthenticated;
        if (status == 403) error.code = ErrorCode::forbidden;
        co_return std::unexpected(std::move(error));
      }
      // The origin speaks TLS, where the client begins: nothing can follow yet.
      if (!connection.in.empty())
        co_return fail(ErrorCode::protocol, "sent data before the tunnel was used");
      co_return Result<void>{};
    }
    const auto size = co_await connection.stream.read_some(connection.in.prepare(kReadBuffer));
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return fail(ErrorCode::unavailable, "the connection was closed");
    connection.in.commit(*size);
  }
}

// Serialises the request's head; fails on anything that must not be sent.
Result<void> ClientExchange::State::append_head(std::string& out) const {
  if (!is_token(request.method))
    return fail(ErrorCode::invalid_argument, "the method is malformed");
  if (!is_target(request.target))
    return fail(ErrorCode::invalid_argument, "the request target is malformed");
  out.append(request.method).append(" ");
  const bool absolute_form = proxy != nullptr && !url.is_tls();
  if (absolute_form) out.append(url.scheme).append("://").append(url.host_header());
  out.append(request.target).append(" HTTP/1.1\r\n");
  bool has_host = false;
  bool has_agent = false;
  bool has_encoding = false;
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      return fail(ErrorCode::invalid_argument,
                  "a header of the request holds characters that must not be sent");
    }
    if (equal_ignoring_case(name, "Content-Length") ||
        equal_ignoring_case(name, "Transfer-Encoding")) {
      return fail(ErrorCode::invalid_argument, name + " is set by the client itself");
    }
    has_host = has_host || equal_ignoring_case(name, "Host");
    has_agent = has_agent || equal_ignoring_case(name, "User-Agent");
    has_encoding = has_encoding || equal_ignoring_case(name, "Accept-Encoding");
    append_field(out, name, value);
  }
  if (!has_host) append_field(out, "Host", url.host_header());
  if (!has_agent && !client->options.user_agent.empty())
    append_field(out, "User-Agent", client->options.user_agent);
  if (!has_encoding) append_field(out, "Accept-Encoding", "gzip");
  if (absolute_form && !proxy->userinfo.empty()) {
    auto credentials = basic_credentials(proxy->userinfo);
    if (!credentials) return std::unexpected(credentials.error());
    append_field(out, "Proxy-Authorization", *credentials);
  }
  const std::string& method = request.method;
  if (body_kind == Client::Body::streamed) {
    append_field(out, "Transfer-Encoding", "chunked");
  } else if (!request.body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    out.append("Content-Length: ");
    append_number(out, request.body.size());
    out.append("\r\n");
  }
  out.append("\r\n");
  return {};
}

// Gets a connection: an idle one, if that is allowed and there is one, or a new one.
Task<Result<void>> ClientExchange::State::obtain(bool may_reuse) {
  connection = may_reuse ? client->take_idle(key) : nullptr;
  reused = connection != nullptr;
  if (!connection) {
    auto made = co_await client->connect(url, proxy, deadline);
    if (!made) co_return std::unexpected(made.error());
    connection = std::move(*made);
    // Connecting may have loaded rotated certificates.
    key = client->pool_key(url, proxy);
  }
  connection->stream.set_deadline(deadline);
  connection->parser.reset(request.method == "HEAD");
  co_return Result<void>{};
}

// Sends head and inline body; goes over to a new connection when a reused one cannot be written to.
Task<Result<void>> ClientExchange::State::send_request() {
  while (true) {
    std::string& out = connection->out;
    out.clear();
    if (auto head = append_head(out); !head) {
      connection->stream.close();
      co_return failed(head.error());
    }
    const std::array<asio::const_buffer, 2> buffers{asio::buffer(out), asio::buffer(request.body)};
    auto sent = co_await connection->stream.write(buffers);
    if (sent) {
      request_ended = body_kind == Client::Body::inline_body;
      co_return Result<void>{};
    }
    if (sent.error().code == ErrorCode::timeout) co_return failed(sent.error());
    if (!reused) {
      // An early answer, such as 413, may have arrived before the connection broke.
      write_error = sent.error();
      co_return Result<void>{};
    }
    if (auto again = co_await obtain(false); !again) co_return again;
  }
}

Task<Result<void>> ClientExchange::State::write(std::string_view bytes) {
  if (body_kind != Client::Body::streamed || request_ended) {
    co_return fail(ErrorCode::internal, "the request has no streamed body to write to");
  }
  if (write_error) co_return failed(*write_error);
  if (!connection)
    co_return failed(
        {.code = ErrorCode::unavailable, .message = "the answer ended before the request"});
  if (bytes.empty()) co_return Result<void>{};
  std::array<char, 20> size;
  auto end = std::to_chars(size.data(), size.data() + size.size() - 2, bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  const std::array<asio::const_buffer, 3> buffers{
      asio::buffer(size.data(), static_cast<std::size_t>(end - size.data())),
      asio::buffer(bytes.data(), bytes.size()), asio::buffer("\r\n", 2)};
  auto sent = co_await connection->stream.write(buffers);
  if (!sent) {
    write_error = sent.error();
    co_return failed(sent.error());
  }
  co_return Result<void>{};
}

// The parser's next finding, reading as needed. Sets any_byte when something was received.
Task<Result<ParseStep>> ClientExchange::State::step(bool& any_byte) {
  while (true) {
    auto found = connection->parser.next(connection->in.bytes());
    if (!found || found->event != ParseStep::Event::more) co_return found;
    connection->in.consume(found->consumed);
    const auto size = co_await connection->stream.read_some(connection->in.prepare(kReadBuffer));
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) {
      if (!any_byte && connection->in.empty()) {
        co_return fail(ErrorCode::unavailable, "the connection was closed before an answer came");
      }
      auto ended = connection->parser.next_eof();
      if (!ended)
        co_return std::unexpected(
            Error{.code = ErrorCode::unavailable, .message = "the answer is cut off"});
      co_return ParseStep{.event = ParseStep::Event::end, .consumed = 0, .body = {}};
    }
    any_byte = true;
    connection->in.commit(*size);
  }
}

Task<Result<Response>> ClientExchange::State::read_head() {
  if (head_read) co_return fail(ErrorCode::internal, "the head of the answer was already read");
  head_read = true;
  bool any_byte = false;
  while (true) {
    const auto found = co_await step(any_byte);
    if (!found) {
      const Error& error = found.error();
      const bool lost = error.code == ErrorCode::unavailable && !any_byte && connection->in.empty();
      const bool repeatable =
          body_kind == Client::Body::inline_body && is_idempotent(request.method);
      if (lost && reused && repeatable) {
        // The peer closed the idle connection while the request was on its way.
        if (auto again = co_await obtain(false); !again) co_return std::unexpected(again.error());
        if (auto sent = co_await send_request(); !sent) co_return std::unexpected(sent.error());
        continue;
      }
      connection->stream.close();
      co_return failed(lost && write_error ? *write_error : error);
    }
    connection->in.consume(found->consumed);
    Response& head = connection->parser.head();
    if (head.status == 101) {
      connection->stream.close();
      co_return failed(
          {.code = ErrorCode::protocol, .message = "the peer switched protocols unasked"});
    }
    if (head.status < 200) {
      connection->parser.reset(request.method == "HEAD");
      continue;
    }
    if (head.status == 407 && proxy != nullptr && !url.is_tls()) {
      connection->stream.close();
      co_return std::unexpected(
          Error{.code = ErrorCode::unauthenticated,
                .message = "proxy " + host_port(*proxy) + ": proxy authentication required",
                .http_status = 407});
    }
    break;
  }
  Response response = std::move(connection->parser.head());
  if (connection->parser.complete()) {
    complete();
    co_return response;
  }
  const auto coding = response.headers.find("Content-Encoding");
  if (!request.headers.find("Accept-Encoding") && coding &&
      (equal_ignoring_case(*coding, "gzip") || equal_ignoring_case(*coding, "x-gzip"))) {
    inflater.emplace(std::numeric_limits<std::size_t>::max());
    response.headers.erase("Content-Encoding");
    response.headers.erase("Content-Length");
  }
  co_return response;
}

// Appends the next part of the body; nothing at its end.
Task<Result<void>> ClientExchange::State::read_into(std::string& out) {
  const std::size_t before = out.size();
  bool any_byte = true;
  while (!response_ended && out.size() == before) {
    if (inflated < compressed.size()) {
      const auto part = std::string_view(compressed).substr(inflated, kInflateStep);
      inflated += part.size();
      if (auto fed = inflater->feed(part, out); !fed) {
        connection->stream.close();
        co_return failed(fed.error());
      }
      continue;
    }
    const auto found = co_await step(any_byte);
    if (!found) {
      connection->stream.close();
      co_return failed(found.error());
    }
    if (found->event == ParseStep::Event::body) {
      if (inflater) {
        compressed.assign(found->body);
        inflated = 0;
      } else {
        out.append(found->body);
      }
    }
    connection->in.consume(found->consumed);
    if (found->event == ParseStep::Event::end) {
      if (inflater && !inflater->finished()) {
        connection->stream.close();
        co_return failed(
            {.code = ErrorCode::invalid_data, .message = "the compressed answer is cut off"});
      }
      complete();
    }
  }
  co_return Result<void>{};
}

// The answer was read to its end: the connection goes back to the pool when it can be used again.
void ClientExchange::State::complete() {
  response_ended = true;
  const bool reusable = request_ended && !write_error && connection->parser.keep_alive() &&
                        connection->in.empty() && !request.headers.has_token("Connection", "close");
  if (reusable) {
    client->put_idle(key, std::move(connection));
  } else {
    connection->stream.close();
    connection.reset();
  }
}

ClientExchange::ClientExchange(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClientExchange::ClientExchange(ClientExchange&&) noexcept = default;
ClientExchange& ClientExchange::operator=(ClientExchange&&) noexcept = default;
ClientExchange::~ClientExchange() = default;

Task<Result<void>> ClientExchange::write(std::string_view bytes) {
  return state_->write(bytes);
}

Task<Result<void>> ClientExchange::finish() {
  State& state = *state_;
  if (state.body_kind != Client::Body::streamed || state.request_ended) {
    co_return fail(ErrorCode::internal, "the request has no streamed body to finish");
  }
  if (state.write_error) co_return state.failed(*state.write_error);
  if (!state.connection) {
    co_return state.failed(
        {.code = ErrorCode::unavailable, .message = "the answer ended before the request"});
  }
  auto sent = co_await state.connection->stream.write("0\r\n\r\n");
  if (!sent) {
    state.write_error = sent.error();
    co_return state.failed(sent.error());
  }
  state.request_ended = true;
  co_return Result<void>{};
}

Task<Result<Response>> ClientExchange::read_head() {
  return state_->read_head();
}

Task<Result<std::string>> ClientExchange::read_some() {
  std::string part;
  if (auto read = co_await state_->read_into(part); !read) co_return std::unexpected(read.error());
  co_return part;
}

void ClientExchange::set_deadline(Deadline deadline) {
  state_->deadline = deadline;
  if (state_->connection) state_->connection->stream.set_deadline(deadline);
}

Client::Client(const Executor& executor, Resolver& resolver, ClientOptions options)
    : state_(std::make_shared<State>(executor, resolver, std::move(options))) {}
Client::~Client() {
  state_->sweeper.cancel();
}

Task<Result<ClientExchange>> Client::open(const Url& url, Request request, Deadline deadline,
                                          Body body) {
  auto exchange = std::make_unique<ClientExchange::State>(state_);
  exchange->url.scheme = url.is_tls() ? "https" : "http";
  exchange->url.host = url.host;
  exchange->url.port = url.port;
  exchange->proxy = state_->options.proxy.proxy_for(url);
  exchange->request = std::move(request);
  exchange->body_kind = body;
  exchange->deadline = deadline;
  if (url.is_tls()) {  // notices rotated certificates
    if (auto context = state_->tls.get(Clock::now()); !context)
      co_return exchange->failed(context.error());
  }
  exchange->key = state_->pool_key(url, exchange->proxy);
  if (auto got = co_await exchange->obtain(true); !got) co_return std::unexpected(got.error());
  if (auto sent = co_await exchange->send_request(); !sent) co_return std::unexpected(sent.error());
  co_return ClientExchange(std::move(exchange));
}

Task<Result<Response>> Client::send(const Url& url, Request request, Deadline deadline,
                                    std::size_t max_body) {
  auto exchange = co_await open(url, std::move(request), deadline);
  if (!exchange) co_return std::unexpected(exchange.error());
  ClientExchange::State& state = *exchange->state_;
  auto response = co_await state.read_head();
  if (!response) co_return response;
  const auto too_large = [&] {
    if (state.connection) state.connection->stream.close();
    return state.failed(
        {.code = ErrorCode::too_large,
         .message = "the answer is larger than " + std::to_string(max_body) + " bytes"});
  };
  if (state.connection) {
    const auto length = state.connection->parser.content_length();
    if (length.value_or(0) > max_body) co_return too_large();
    if (length) response->body.reserve(std::min<std::size_t>(*length, 1024 * 1024));
  }
  while (!state.response_ended) {
    if (auto read = co_await state.read_into(response->body); !read)
      co_return std::unexpected(read.error());
    if (response->body.size() > max_body) co_return too_large();
  }
  co_return response;
}

void Client::close_idle() {
  for (auto& [key, queue] : state_->idle) {
    for (Idle& entry : queue) entry.connection->stream.close();
  }
  state_->idle.clear();
  state_->sweeper.cancel();
}

std::size_t Client::idle_connections() const {
  std::size_t count = 0;
  for (const auto& [key, queue] : state_->idle) count += queue.size();
  return count;
}

}  // namespace gitops::http
