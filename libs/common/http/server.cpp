#include "common/http/server.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/log.hpp"
#include "common/core/race.hpp"
#include "common/core/task_group.hpp"
#include "common/core/text.hpp"
#include "common/http/body_pace.hpp"
#include "common/http/buffer.hpp"
#include "common/http/content_coding.hpp"
#include "common/http/parser.hpp"
#include "common/http/upgraded.hpp"
#include "common/http/wire_text.hpp"
#include "common/net/address_list.hpp"
#include "common/net/idlest.hpp"
#include "common/net/listener.hpp"
#include "common/net/tls_channel.hpp"

namespace gitops::http {
namespace {

const Log kLog("http-server");

constexpr std::size_t kHeadBuffer = 4 * 1024;  // initial size; grows with the head
constexpr std::size_t kBodyBuffer = 16 * 1024;
constexpr std::size_t kMaxDrain = 64 * 1024;
constexpr std::string_view kEmptyLine = "\r\n";
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMaxAhead = 64 * 1024;    // bytes of further requests, read during a stream
constexpr std::size_t kKeepOutput = 16 * 1024;  // capacity an idle connection may keep
// Maximum size of a write. Each has its own time limit, so that a slow client may read for long: 64
// KiB in body_timeout are about the minimum rate of a body.
constexpr std::size_t kMaxWrite = 64 * 1024;
// Part of body_timeout, 1/12 of it, after which a silent client gives way in a full server.
constexpr int kSilentPart = 12;

bool has_no_body(int status) {
  return status == 204 || status == 304;
}

// Returns the path of a request without a route for a log line. Leaves out segments that may be
// secrets, such as a token: those that are long, or have other characters than small letters and
// punctuation.
std::string loggable_path(std::string_view path) {
  constexpr std::size_t kShort = 3;  // as "v1"
  constexpr std::size_t kLong = 32;
  const auto is_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
  };
  std::string out;
  while (true) {
    const auto end = path.find('/');
    const auto segment = path.substr(0, end);
    const bool is_word = segment.size() <= kLong && std::ranges::all_of(segment, is_of_word);
    out.append(is_word || segment.size() <= kShort ? segment : std::string_view("*"));
    if (end == std::string_view::npos) return out;
    out += '/';
    path.remove_prefix(end + 1);
  }
}

}  // namespace

struct Server::State {
  State(const Executor& e, ServerOptions o, Handler h)
      : executor(e),
        options(std::move(o)),
        handler(std::move(h)),
        listener(e),
        tasks(e),
        ended(e),
        drained(e) {
    if (options.tls) tls.emplace(net::TlsContext::Role::server, *options.tls);
  }

  // Slot of a new connection.
  enum class Slot { none, regular, reserve };

  void adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& peer);
  Slot make_room();
  bool end_silent_requests();

  Executor executor;
  ServerOptions options;
  Handler handler;
  std::optional<net::TlsContext> tls;
  net::Listener listener;
  std::uint16_t port = 0;
  bool draining = false;
  std::list<ServerConnection*> connections;
  DateField date;
  RepeatFilter repeated{std::chrono::minutes(1)};
  TaskGroup tasks;
  Event ended;    // set when a connection ends
  Event drained;  // set when draining begins
};

// Accepted connection with its current exchange.
class ServerConnection {
 public:
  ServerConnection(Server::State& s, std::unique_ptr<net::Channel> c, asio::ip::address p,
                   bool of_reserve)
      : server(s),
        channel(std::move(c)),
        peer(net::plain_address(p).to_string()),
        network(net::client_network(net::plain_address(p))),
        in_reserve(of_reserve),
        parser(s.options.max_head),
        place(s.connections.insert(s.connections.end(), this)) {}
  ~ServerConnection() {
    server.connections.erase(place);
    server.ended.notify_all();
  }
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  enum class Answer {
    none,       // nothing was sent yet
    streaming,  // start() was called
    complete,
    broken,    // cannot be completed
    upgraded,  // the stream was returned to the handler
  };

  // Returns whether the connection waits: no complete head, and no rest of a served request, has
  // been received.
  [[nodiscard]] bool waits() const { return awaits_request && channel->is_open(); }
  [[nodiscard]] Clock::time_point waits_since() const { return awaits_since; }
  void give_way() { channel->close(); }
  // Returns whether the client of a request has neither sent its body nor read its response since
  // this time.
  [[nodiscard]] bool is_silent_since(Clock::time_point time) const {
    return silent_since <= time && !in_reserve && channel && channel->is_open();
  }
  void begin_waiting() {
    awaits_request = true;
    awaits_since = Clock::now();
  }

  Task<> run();
  Task<bool> start_tls();
  Task<bool> read_request();
  Task<bool> check_request();
  Task<bool> run_handler();
  Task<bool> drain_body();
  Task<> refuse(int status, std::string_view why);

  Task<Result<void>> fill(std::size_t capacity);
  Task<Result<void>> fill_body();
  Task<Result<void>> read_into(std::string& out);
  Task<Result<void>> read_part(std::string& out);
  [[nodiscard]] std::unexpected<Error> too_large() const;
  Task<> watch();
  Task<> until_draining() {
    while (!server.draining) co_await server.drained.wait();
  }
  Result<void> append_head(const Response& response, std::optional<std::uint64_t> length,
                           bool chunked);
  Task<Result<void>> send(std::string_view body);
  void begin_write() {
    silent_since = Clock::now();
    channel->set_write_deadline(silent_since + server.options.body_timeout);
  }

  Server::State& server;
  std::unique_ptr<net::Channel> channel;
  std::string peer;                 // its address
  const asio::ip::address network;  // by which its use is limited
  const bool in_reserve;
  RequestParser parser;
  ReadBuffer in;
  std::string out;    // the next head, or chunk header, to send
  bool idle = false;  // no byte of a request was received
  bool awaits_request = true;
  Clock::time_point awaits_since = Clock::now();
  // State of the current exchange.
  Answer answer = Answer::none;
  std::string_view route = {};  // its pattern; empty: not named
  bool body_ended = false;
  std::size_t body_limit = kUnlimited;
  std::size_t body_left = kUnlimited;  // bytes that may still be read
  BodyPace body_pace;
  Clock::time_point silent_since = kNever;  // during a wait for the client of a request
  bool awaits_continue = false;             // the client sends its body after "100 Continue"
  bool is_head = false;
  bool chunked = false;
  bool keep_alive = false;
  Headers added;  // added to any response
  std::list<ServerConnection*>::iterator place;
};

// Reads more bytes. An end of the stream is an error.
Task<Result<void>> ServerConnection::fill(std::size_t capacity) {
  const auto size = co_await channel->read_some(in.prepare(capacity));
  if (!size) co_return std::unexpected(size.error());
  if (*size == 0) co_return fail(ErrorCode::unavailable, "the client closed the connection");
  in.commit(*size);
  co_return Result<void>{};
}

// Reads more bytes of the body.
Task<Result<void>> ServerConnection::fill_body() {
  if (answer == Answer::none) silent_since = Clock::now();
  const auto before = in.bytes().size();
  channel->set_read_deadline(body_pace.wait(Clock::now()));
  auto filled = co_await fill(kBodyBuffer);
  silent_since = kNever;
  channel->set_read_deadline(kNever);
  body_pace.came(in.bytes().size() - before, Clock::now());
  co_return filled;
}

// Reads the head of a request. Returns false when the connection is done.
Task<bool> ServerConnection::read_request() {
  parser.reset();
  added.clear();
  begin_waiting();
  const auto& options = server.options;
  bool head_begun = false;
  bool may_skip = true;
  while (true) {
    // RFC 9112, section 2.2: some clients send an empty line behind a body.
    if (may_skip && in.bytes().starts_with(kEmptyLine)) {
      in.consume(kEmptyLine.size());
      may_skip = false;
    }
    if (!in.empty()) {
      const auto step = parser.next(in.bytes());
      if (!step) {
        co_await refuse(step.error().http_status, step.error().message);
        co_return false;
      }
      in.consume(step->consumed);
      if (step->event == ParseStep::Event::head) break;
      if (!head_begun) {
        head_begun = true;
        channel->set_deadline(Clock::now() + options.head_timeout);
      }
    } else {
      if (server.draining) co_return false;
      in.release();
      channel->set_deadline(Clock::now() + options.idle_timeout);
    }
    idle = in.empty();
    const auto filled = co_await fill(kHeadBuffer);
    idle = false;
    if (!filled) {
      if (head_begun && filled.error().code == ErrorCode::timeout) {
        co_await refuse(408, "the request head took too long");
      }
      co_return false;
    }
  }
  channel->set_deadline(kNever);
  co_return co_await check_request();
}

// Prepares for the request whose head was read. Returns false if it was refused.
Task<bool> ServerConnection::check_request() {
  awaits_request = false;
  silent_since = kNever;
  answer = Answer::none;
  route = {};
  const Request& request = parser.head();
  is_head = request.method == "HEAD";
  keep_alive = parser.keep_alive() && !in_reserve;
  body_ended = parser.content_length() == 0;
  body_limit = body_left = kUnlimited;
  body_pace.start(
      {.body_grace = server.options.body_timeout, .body_timeout = server.options.body_timeout},
      Clock::now());
  awaits_continue = parser.expects_continue();
  const auto& reserved_for = server.options.reserved_for;
  if (in_reserve && !(reserved_for && reserved_for(request))) {
    co_await refuse(503, "too many connections");
    co_return false;
  }
  co_return true;
}

// Responds to a request that cannot be handled, and closes.
Task<> ServerConnection::refuse(int status, std::string_view why) {
  Response response{
      .status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = {}};
  response.body.append(why).append("\n");
  keep_alive = false;
  awaits_request = false;
  out.clear();
  if (append_head(response, response.body.size(), false)) {
    const auto sent = co_await send(response.body);
    // A client that was too slow gets no more time.
    if (sent && status != 408) co_await channel->close_gracefully();
  }
}

// Appends the next part of the body; nothing at its end.
Task<Result<void>> ServerConnection::read_into(std::string& target) {
  const std::size_t before = target.size();
  if (auto read = co_await read_part(target); !read) co_return read;
  const std::size_t size = target.size() - before;
  if (size > body_left) co_return too_large();
  body_left -= size;
  co_return Result<void>{};
}

std::unexpected<Error> ServerConnection::too_large() const {
  return std::unexpected(
      Error{.code = ErrorCode::too_large,
            .message = "the request body is larger than " + byte_count(body_limit) + ", the limit",
            .http_status = 413});
}

Task<Result<void>> ServerConnection::read_part(std::string& target) {
  if (awaits_continue) {
    awaits_continue = false;
    if (answer == Answer::none && in.empty()) {
      begin_write();
      if (auto sent = co_await channel->write("HTTP/1.1 100 Continue\r\n\r\n"); !sent) {
        answer = Answer::broken;
        co_return sent;
      }
    }
  }
  const std::size_t before = target.size();
  while (!body_ended && target.size() == before) {
    while (true) {
      const auto step = parser.next(in.bytes());
      if (!step) {
        keep_alive = false;
        co_return std::unexpected(step.error());
      }
      target.append(step->body);
      in.consume(step->consumed);
      body_ended = step->event == ParseStep::Event::end;
      if (body_ended || step->event == ParseStep::Event::more) break;
      if (target.size() - before >= kBodyBuffer) co_return Result<void>{};
    }
    if (body_ended || target.size() > before) break;
    if (auto filled = co_await fill_body(); !filled) {
      keep_alive = false;
      co_return filled;
    }
  }
  co_return Result<void>{};
}

// Serializes the head and appends it to `out`. Appends nothing if it fails.
Result<void> ServerConnection::append_head(const Response& response,
                                           std::optional<std::uint64_t> length, bool is_chunked) {
  if (response.status < 200 || response.status > 999) {
    return fail(ErrorCode::invalid_argument, "the status of an answer must be 200 to 999");
  }
  const std::size_t start = out.size();
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::uint64_t>(response.status));
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  bool has_date = false;
  std::string_view own_length;
  for (const auto& [name, value] : response.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      out.resize(start);
      return fail(ErrorCode::invalid_argument,
                  "a header of the answer holds characters that must not be sent");
    }
    if (equal_ignoring_case(name, "Content-Length")) {
      own_length = value;
      continue;
    }
    if (equal_ignoring_case(name, "Transfer-Encoding") || equal_ignoring_case(name, "Keep-Alive"))
      continue;
    if (equal_ignoring_case(name, "Connection")) {
      if (response.headers.has_token(name, "close")) keep_alive = false;
      continue;
    }
    if (equal_ignoring_case(name, "Date")) has_date = true;
    append_field(out, name, value);
  }
  for (const auto& [name, value] : added) append_field(out, name, value);
  if (server.draining) keep_alive = false;
  if (!has_date) append_field(out, "Date", server.date.now());
  if (is_head && !own_length.empty()) {
    append_field(out, "Content-Length", own_length);
  } else if (length && !has_no_body(response.status)) {
    append_field(out, "Content-Length", *length);
  }
  if (is_chunked) append_field(out, "Transfer-Encoding", "chunked");
  if (!keep_alive) {
    append_field(out, "Connection", "close");
  } else if (!parser.is_http_1_1()) {
    append_field(out, "Connection", "keep-alive");
  }
  out.append("\r\n");
  return {};
}

// Writes `out` and then `body`, and clears `out`.
Task<Result<void>> ServerConnection::send(std::string_view body) {
  Result<void> sent;
  do {
    const auto part = body.substr(0, kMaxWrite);
    body.remove_prefix(part.size());
    const std::array<asio::const_buffer, 2> buffers{asio::buffer(out),
                                                    asio::buffer(part.data(), part.size())};
    begin_write();
    sent = co_await channel->write(buffers);
    silent_since = kNever;
    out.clear();
  } while (sent && !body.empty());
  if (!sent) answer = Answer::broken;
  co_return sent;
}

// Reads the rest of the body, so that the next request can be read. Returns false if the connection
// must be closed instead.
Task<bool> ServerConnection::drain_body() {
  if (body_ended) co_return true;
  body_left = kUnlimited;
  std::string dropped;
  while (!body_ended) {
    if (!co_await read_into(dropped)) co_return false;
    if (dropped.size() > kMaxDrain) co_return false;
  }
  co_return true;
}

// Runs the handler. Returns whether the connection can be reused.
Task<bool> ServerConnection::run_handler() {
  Exchange exchange(*this);
  const auto logged_path = [&] {
    return route.empty() ? loggable_path(exchange.path()) : std::string(route);
  };
  std::exception_ptr failure;
  try {
    co_await server.handler(exchange);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    if ((co_await asio::this_coro::cancellation_state).cancelled() !=
        asio::cancellation_type::none) {
      std::rethrow_exception(failure);
    }
    std::string what = "unknown exception";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
    }
    kLog.error("a request handler failed",
               {{"method", parser.head().method}, {"path", logged_path()}, {"error", what}});
  } else if (answer == Answer::none) {
    kLog.error("a request handler gave no answer",
               {{"method", parser.head().method}, {"path", logged_path()}});
  }
  if (answer == Answer::none && channel->is_open()) {
    keep_alive = keep_alive && !failure;
    (void)co_await exchange.reply(Response{.status = 500, .headers = {}, .body = {}});
  }
  if (answer == Answer::upgraded) co_return false;
  channel->set_deadline(kNever);
  if (answer != Answer::complete) {
    channel->abort();
    co_return false;
  }
  begin_waiting();
  if (keep_alive && !awaits_continue && co_await drain_body()) co_return true;
  if (body_ended) {
    channel->close();
  } else {
    co_await channel->close_gracefully();
  }
  co_return false;
}

Task<bool> ServerConnection::start_tls() {
  auto context = server.tls->get(Clock::now());
  if (!context) co_return false;  // listen() has validated it; the last valid one stays in use
  auto made = std::make_unique<net::TlsChannel>(std::move(channel), std::move(*context));
  net::TlsChannel& tls = *made;
  channel = std::move(made);
  tls.set_deadline(Clock::now() + server.options.head_timeout);
  co_return (co_await tls.handshake_server()).has_value();
}

Task<> ServerConnection::run() {
  if (server.tls && !co_await start_tls()) co_return;
  while (co_await read_request() && co_await run_handler()) {
    if (out.capacity() > kKeepOutput) out = {};
  }
  if (answer != Answer::upgraded) channel->close();
}

// Returns when the client has disconnected. Reads further requests ahead and keeps them.
Task<> ServerConnection::watch() {
  std::string dropped;
  while (!body_ended && dropped.size() <= kMaxDrain) {
    if (!co_await read_part(dropped)) co_return;
  }
  // Above the limit, only a write detects that the client has disconnected.
  while (body_ended && in.bytes().size() < kMaxAhead) {
    if (!co_await fill(kHeadBuffer)) {
      keep_alive = false;
      co_return;
    }
  }
  co_await sleep_until(kNever);
}

const Request& Exchange::request() const {
  return connection_->parser.head();
}

std::string_view Exchange::path() const {
  const std::string_view target = request().target;
  return target.substr(0, target.find('?'));
}

std::string_view Exchange::query() const {
  const std::string_view target = request().target;
  const auto question = target.find('?');
  return question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
}

const std::string& Exchange::peer_address() const {
  return connection_->peer;
}

Result<void> Exchange::limit_body(std::size_t limit) {
  ServerConnection& c = *connection_;
  if (limit < c.body_limit) c.body_limit = c.body_left = limit;
  if (c.parser.content_length().value_or(0) > c.body_limit) return c.too_large();
  return {};
}

Task<Result<std::string>> Exchange::read_body() {
  ServerConnection& c = *connection_;
  const auto length = c.parser.content_length();
  if (length && *length > c.body_left) co_return c.too_large();
  std::string body;
  if (length) body.reserve(std::min<std::size_t>(*length, kMaxDrain));
  while (!c.body_ended) {
    if (auto read = co_await c.read_into(body); !read) co_return std::unexpected(read.error());
  }
  co_return body;
}

Task<Result<std::string>> Exchange::read_body(std::size_t limit) {
  if (auto limited = limit_body(limit); !limited) co_return std::unexpected(limited.error());
  co_return co_await read_body();
}

Task<Result<std::string>> Exchange::read_decoded_body(ContentCodings more) {
  ServerConnection& c = *connection_;
  auto decoder = ContentDecoder::make(request().headers, c.body_limit, more);
  if (!decoder) co_return std::unexpected(decoder.error());
  std::string body;
  std::string part;
  while (!c.body_ended) {
    part.clear();
    if (auto read = co_await c.read_into(part); !read) co_return std::unexpected(read.error());
    if (auto fed = decoder->feed(part, body); !fed) co_return std::unexpected(fed.error());
  }
  if (auto whole = decoder->finish(); !whole) co_return std::unexpected(whole.error());
  co_return body;
}

Task<Result<std::string>> Exchange::read_some() {
  std::string part;
  if (auto read = co_await connection_->read_into(part); !read)
    co_return std::unexpected(read.error());
  co_return part;
}

void Exchange::name_route(std::string_view pattern) {
  connection_->route = pattern;
}

void Exchange::add_to_answer(std::string name, std::string value) {
  if (is_token(name) && is_field_value(value)) {
    connection_->added.add(std::move(name), std::move(value));
  }
}

std::string_view Exchange::added_to_answer(std::string_view name) const {
  return connection_->added.find(name).value_or(std::string_view());
}

Task<Result<void>> Exchange::reply(Response response) {
  ServerConnection& c = *connection_;
  if (c.answer != ServerConnection::Answer::none)
    co_return fail(ErrorCode::internal, "the answer was already begun");
  // Announces the close if the rest of the body is not going to be read.
  if (c.awaits_continue || (!c.body_ended && c.parser.content_length().value_or(0) > kMaxDrain)) {
    c.keep_alive = false;
  }
  c.out.clear();
  if (auto head = c.append_head(response, response.body.size(), false); !head) co_return head;
  c.answer = ServerConnection::Answer::complete;
  const bool bodiless = c.is_head || has_no_body(response.status);
  co_return co_await c.send(bodiless ? std::string_view{} : std::string_view(response.body));
}

Task<Result<void>> Exchange::start(Response head) {
  ServerConnection& c = *connection_;
  if (c.answer != ServerConnection::Answer::none)
    co_return fail(ErrorCode::internal, "the answer was already begun");
  c.chunked = c.parser.is_http_1_1() && !has_no_body(head.status);
  if (c.awaits_continue || !c.parser.is_http_1_1()) c.keep_alive = false;
  c.out.clear();
  if (auto appended = c.append_head(head, std::nullopt, c.chunked); !appended) co_return appended;
  c.answer = ServerConnection::Answer::streaming;
  // No body follows these heads.
  if (has_no_body(head.status)) c.is_head = true;
  co_return co_await c.send({});
}

Task<Result<void>> Exchange::write(std::string_view bytes) {
  ServerConnection& c = *connection_;
  if (c.answer == ServerConnection::Answer::broken)
    co_return fail(ErrorCode::unavailable, "the client is gone");
  if (c.answer != ServerConnection::Answer::streaming)
    co_return fail(ErrorCode::internal, "no answer is being streamed");
  if (c.is_head || bytes.empty()) co_return Result<void>{};
  if (!c.chunked) co_return co_await c.send(bytes);
  Result<void> sent;
  do {
    const auto part = bytes.substr(0, kMaxWrite);
    bytes.remove_prefix(part.size());
    append_number(c.out, part.size(), 16);
    c.out.append("\r\n");
    const std::array<asio::const_buffer, 3> buffers{
        asio::buffer(c.out), asio::buffer(part.data(), part.size()), asio::buffer("\r\n", 2)};
    c.begin_write();
    sent = co_await c.channel->write(buffers);
    c.silent_since = kNever;
    c.out.clear();
  } while (sent && !bytes.empty());
  if (!sent) c.answer = ServerConnection::Answer::broken;
  co_return sent;
}

Task<Result<void>> Exchange::finish() {
  ServerConnection& c = *connection_;
  if (c.answer == ServerConnection::Answer::broken)
    co_return fail(ErrorCode::unavailable, "the client is gone");
  if (c.answer != ServerConnection::Answer::streaming)
    co_return fail(ErrorCode::internal, "no answer is being streamed");
  c.answer = ServerConnection::Answer::complete;
  if (c.is_head || !c.chunked) co_return Result<void>{};
  c.out.assign("0\r\n\r\n");
  co_return co_await c.send({});
}

Task<> Exchange::gone() {
  return connection_->watch();
}

Task<> Exchange::draining() {
  return connection_->until_draining();
}

Task<StreamEnd> Exchange::stream(Task<> work) {
  const auto executor = co_await asio::this_coro::executor;
  const auto spawned = [&executor](Task<> task) {
    return asio::co_spawn(executor, spawnable(std::move(task)), asio::deferred);
  };
  auto all = asio::experimental::make_parallel_group(spawned(std::move(work)), spawned(gone()),
                                                     spawned(draining()));
  const auto [order, failed, watch_failed, drain_failed] =
      co_await all.async_wait(asio::experimental::wait_for_one(), use_task);
  connection_->silent_since = kNever;  // one of them may have waited for the client
  if (order[0] != 0) co_return order[0] == 1 ? StreamEnd::client_left : StreamEnd::draining;
  if (failed) std::rethrow_exception(failed);
  co_return StreamEnd::finished;
}

Task<Result<Upgraded>> Exchange::upgrade(Response head) {
  ServerConnection& c = *connection_;
  if (c.answer != ServerConnection::Answer::none)
    co_return fail(ErrorCode::internal, "the answer was already begun");
  if (!c.body_ended || !c.parser.is_http_1_1()) {
    co_return fail(ErrorCode::invalid_argument,
                   "a request with a body or of HTTP/1.0 cannot switch protocols");
  }
  c.out.assign("HTTP/1.1 101 Switching Protocols\r\n");
  for (const auto& [name, value] : head.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      co_return fail(ErrorCode::invalid_argument,
                     "a header of the answer holds characters that must not be sent");
    }
    append_field(c.out, name, value);
  }
  for (const auto& [name, value] : c.added) append_field(c.out, name, value);
  c.out.append("\r\n");
  if (auto sent = co_await c.send({}); !sent) co_return std::unexpected(sent.error());
  c.answer = ServerConnection::Answer::upgraded;
  c.channel->set_deadline(kNever);
  Upgraded upgraded{.channel = std::move(c.channel), .received = std::string(c.in.bytes())};
  c.in.consume(upgraded.received.size());
  c.in.release();
  co_return upgraded;
}

void Exchange::abort() {
  connection_->answer = ServerConnection::Answer::broken;
  connection_->channel->abort();
}

namespace {

Task<> serve(std::unique_ptr<ServerConnection> connection) {
  co_await connection->run();
}

}  // namespace

// Ends requests whose client is silent, to make room for new connections when all are busy: the
// longest silent ones of the peer with the most of them, so that one host does not keep the others
// out. Returns false if there is none.
bool Server::State::end_silent_requests() {
  const auto latest = Clock::now() - options.body_timeout / kSilentPart;
  std::unordered_map<asio::ip::address, std::vector<ServerConnection*>> by_peer;
  for (ServerConnection* connection : connections) {
    if (connection->is_silent_since(latest)) by_peer[connection->network].push_back(connection);
  }
  std::vector<ServerConnection*> most;
  for (auto& [peer, silent] : by_peer) {
    if (silent.size() > most.size()) most.swap(silent);
  }
  // Several at once, so that not every new connection needs a search.
  const auto count = std::min(most.size(), 1 + options.max_connections / 256);
  const auto last = most.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::partial_sort(most, last, {}, &ServerConnection::silent_since);
  std::for_each(most.begin(), last, [](ServerConnection* connection) { connection->give_way(); });
  return count > 0;
}

Server::State::Slot Server::State::make_room() {
  if (connections.size() < options.max_connections) return Slot::regular;
  const auto in_reserve = [](const ServerConnection& connection) { return connection.in_reserve; };
  const bool made =
      net::close_idlest(connections, options.max_connections, std::not_fn(in_reserve)) ||
      end_silent_requests();
  if (const auto verdict = repeated.check("limit", Clock::now()); verdict.pass) {
    kLog.warning(
        made ? "too many connections; idle or silent ones are closed for new ones"
             : "too many connections; new ones are closed",
        {{"limit", std::uint64_t{options.max_connections}}, {"suppressed", verdict.suppressed}});
  }
  if (made) return Slot::regular;
  if (connections.size() < options.max_connections + options.reserve) return Slot::reserve;
  // Replaces an idle connection in the reserve, so that silent clients do not block new ones.
  const bool replaced = net::close_idlest(connections, options.reserve, in_reserve);
  return replaced ? Slot::reserve : Slot::none;
}

void Server::State::adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& peer) {
  if (draining) return;
  const auto slot = make_room();
  if (slot == Slot::none) return;
  // Counts from here on. The shared pointer makes the std::function copyable.
  auto shared = std::make_shared<std::unique_ptr<ServerConnection>>(
      std::make_unique<ServerConnection>(*this, std::move(channel), peer, slot == Slot::reserve));
  tasks.spawn("connection", [shared] { return serve(std::move(*shared)); });
}

Server::Server(const Executor& executor, ServerOptions options, Handler handler)
    : state_(std::make_shared<State>(executor, std::move(options), std::move(handler))) {}
Server::~Server() = default;

Result<void> Server::listen() {
  State& state = *state_;
  if (state.tls) {
    if (auto context = state.tls->get(Clock::now()); !context)
      return std::unexpected(context.error());
  }
  const auto port =
      state.listener.listen({.address = state.options.address, .port = state.options.port});
  if (!port) return std::unexpected(port.error());
  state.port = *port;
  state.tasks.spawn("accept", [&state] {
    return state.listener.run([&state](std::unique_ptr<net::Channel> channel, const auto& peer) {
      state.adopt(std::move(channel), peer);
    });
  });
  return {};
}

void Server::adopt(std::unique_ptr<net::Channel> channel, const asio::ip::address& peer) {
  state_->adopt(std::move(channel), peer);
}

std::uint16_t Server::port() const {
  return state_->port;
}

void Server::drain() {
  State& state = *state_;
  state.draining = true;
  state.drained.notify_all();
  state.listener.close();
  for (ServerConnection* connection : state.connections) {
    if (connection->idle) connection->channel->close();
  }
}

Task<> Server::stop(Deadline deadline) {
  State& state = *state_;
  drain();
  while (!state.connections.empty() && Clock::now() < deadline) co_await state.ended.wait(deadline);
  state.tasks.cancel();
  co_await state.tasks.join();
}

std::size_t Server::connections() const {
  return state_->connections.size();
}

}  // namespace gitops::http
