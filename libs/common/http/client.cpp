#include "common/http/client.hpp"

#include <array>
#include <limits>
#include <utility>

#include "common/http/connection_pool.hpp"
#include "common/http/connector.hpp"
#include "common/http/gzip.hpp"
#include "common/http/upgraded.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

// Number of compressed bytes inflated at a time: a thousandfold bomb produces 2 MiB, not 16.
constexpr std::size_t kInflateStep = 2 * 1024;
// Number of inflated bytes, about a millisecond's work, before other tasks of the loop run.
constexpr std::size_t kInflateSlice = 256 * 1024;

bool is_target(std::string_view text) {
  if (text != "*" && !text.starts_with('/')) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '#') return false;
  }
  return true;
}

}  // namespace

struct Client::State {
  State(const Executor& executor, net::Resolver& resolver, ClientOptions o)
      : options(std::move(o)),
        connector(resolver, options.tls, options.connect_timeout, options.max_response_head),
        pool(std::make_shared<ConnectionPool>(executor, options.idle_timeout, options.max_age,
                                              options.max_idle_per_host)) {}

  ClientOptions options;
  Connector connector;
  std::shared_ptr<ConnectionPool> pool;
};

struct ClientExchange::State {
  explicit State(std::shared_ptr<Client::State> c) : client(std::move(c)) {}

  // Sets the target of the request. Fails if the required proxy is unusable.
  Result<void> set_target(const Url& target, Request asked) {
    url.scheme = target.is_tls() ? "https" : "http";
    url.host = target.host;
    url.port = target.port;
    request = std::move(asked);
    auto found = client->options.proxy.proxy_for(target);
    if (!found) return failed(std::move(found.error()));
    proxy = *found;
    return {};
  }
  Result<void> append_head(std::string& out) const;
  Task<Result<void>> obtain(bool may_reuse);
  Task<Result<void>> send_request();
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<Response>> read_head();
  Task<Result<void>> read_into(std::string& out);
  [[nodiscard]] bool was_lost(const Error& error) const;
  // Returns whether the request is sent to an HTTP proxy, which forwards it.
  [[nodiscard]] bool is_forwarded() const {
    return proxy != nullptr && !proxy->is_socks() && !url.is_tls() && !may_switch;
  }
  [[nodiscard]] Result<void> check_final_head() const;
  void begin_inflating(Response& response);
  void complete();
  [[nodiscard]] std::unexpected<Error> failed(Error error) const {
    return fail(host_port(url), std::move(error));
  }

  std::shared_ptr<Client::State> client;
  std::unique_ptr<Connection> connection;  // null after the end of the response
  Url url;                                 // origin only
  const Url* proxy = nullptr;
  Request request;
  Client::Body body_kind = Client::Body::inline_body;
  std::optional<std::uint64_t> length;  // of a streamed body, if it was announced
  std::uint64_t written = 0;            // bytes of the body
  std::string key;                      // of an idle connection to reuse
  Deadline deadline = kNever;
  bool may_switch = false;  // the request asks for another protocol
  bool reused = false;
  bool request_ended = false;
  bool head_read = false;
  bool response_ended = false;
  std::optional<Error> write_error;  // the peer may still have responded
  std::optional<Inflater> inflater;
  std::string compressed;  // received bytes, to be inflated from `inflated` on
  std::size_t inflated = 0;
  std::size_t in_slice = 0;  // bytes inflated since other tasks ran
};

// Serializes the request's head. Fails for anything that must not be sent.
Result<void> ClientExchange::State::append_head(std::string& out) const {
  if (!is_token(request.method))
    return fail(ErrorCode::invalid_argument, "the method is malformed");
  if (!is_target(request.target))
    return fail(ErrorCode::invalid_argument, "the request target is malformed");
  out.append(request.method).append(" ");
  const bool absolute_form = is_forwarded();
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
  if (body_kind == Client::Body::streamed && length) {
    append_field(out, "Content-Length", *length);
  } else if (body_kind == Client::Body::streamed) {
    append_field(out, "Transfer-Encoding", "chunked");
  } else if (!request.body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    append_field(out, "Content-Length", request.body.size());
  }
  out.append("\r\n");
  return {};
}

// Obtains a connection: an idle one if that is allowed and there is one, otherwise a new one.
Task<Result<void>> ClientExchange::State::obtain(bool may_reuse) {
  connection = may_reuse ? client->pool->take(key) : nullptr;
  reused = connection != nullptr;
  if (!connection) {
    auto made = co_await client->connector.connect(url, proxy, deadline, may_switch);
    if (!made) co_return std::unexpected(made.error());
    connection = std::move(*made);
  }
  connection->channel->set_deadline(deadline);
  connection->expect_answer(request.method == "HEAD");
  co_return Result<void>{};
}

// Sends head and inline body. Switches to a new connection if writing to a reused one fails.
Task<Result<void>> ClientExchange::State::send_request() {
  while (true) {
    std::string& out = connection->out;
    out.clear();
    if (auto head = append_head(out); !head) {
      connection->channel->close();
      co_return failed(head.error());
    }
    const std::array<asio::const_buffer, 2> buffers{asio::buffer(out), asio::buffer(request.body)};
    auto sent = co_await connection->channel->write(buffers);
    if (sent) {
      request_ended = body_kind == Client::Body::inline_body;
      co_return Result<void>{};
    }
    if (sent.error().code == ErrorCode::timeout) co_return failed(sent.error());
    if (!reused) {
      // Continues, since an early response, such as 413, may have arrived before the connection
      // broke.
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
  if (length && bytes.size() > *length - written) {
    co_return fail(ErrorCode::internal, "more of the body than its announced length");
  }
  written += bytes.size();
  std::string size;
  if (!length) {
    append_number(size, bytes.size(), 16);
    size += "\r\n";
  }
  const std::array<asio::const_buffer, 3> buffers{asio::buffer(size),
                                                  asio::buffer(bytes.data(), bytes.size()),
                                                  asio::buffer("\r\n", length ? 0 : 2)};
  auto sent = co_await connection->channel->write(buffers);
  if (!sent) {
    write_error = sent.error();
    co_return failed(sent.error());
  }
  co_return Result<void>{};
}

// Returns whether the peer closed the connection before a response and may not have seen the
// request.
bool ClientExchange::State::was_lost(const Error& error) const {
  return error.code == ErrorCode::unavailable && !connection->answered && connection->in.empty();
}

// Checks the final head of the response, after interim ones.
Result<void> ClientExchange::State::check_final_head() const {
  const int status = connection->parser.head().status;
  if (status == 101 && !may_switch) {
    return failed({.code = ErrorCode::protocol, .message = "the peer switched protocols unasked"});
  }
  if (status == 407 && is_forwarded()) {
    return fail(ErrorCode::unauthenticated,
                "proxy " + host_port(*proxy) + ": proxy authentication required");
  }
  return {};
}

void ClientExchange::State::begin_inflating(Response& response) {
  const auto coding = response.headers.find("Content-Encoding");
  if (request.headers.find("Accept-Encoding") || !coding) return;
  if (!equal_ignoring_case(*coding, "gzip") && !equal_ignoring_case(*coding, "x-gzip")) return;
  inflater.emplace(std::numeric_limits<std::size_t>::max());
  response.headers.erase("Content-Encoding");
  response.headers.erase("Content-Length");
}

Task<Result<Response>> ClientExchange::State::read_head() {
  if (head_read) co_return fail(ErrorCode::internal, "the head of the answer was already read");
  head_read = true;
  const bool repeatable = body_kind == Client::Body::inline_body && is_idempotent(request.method);
  while (true) {
    const auto found = co_await connection->next();
    if (!found) {
      const bool lost = was_lost(found.error());
      if (lost && reused && repeatable) {
        // The peer closed the idle connection while the request was in flight.
        if (auto again = co_await obtain(false); !again) co_return std::unexpected(again.error());
        if (auto sent = co_await send_request(); !sent) co_return std::unexpected(sent.error());
        continue;
      }
      connection->channel->close();
      co_return failed(lost && write_error ? *write_error : found.error());
    }
    connection->in.consume(found->consumed);
    const int status = connection->parser.head().status;
    if (status >= 200 || status == 101) break;
    connection->parser.reset(request.method == "HEAD");
  }
  if (auto checked = check_final_head(); !checked) {
    connection->channel->close();
    co_return std::unexpected(checked.error());
  }
  Response response = std::move(connection->parser.head());
  if (response.status == 101) co_return response;
  if (const auto field = response.headers.find("Keep-Alive")) {
    connection->kept_for = keep_alive_timeout(*field);
  }
  if (connection->parser.complete()) {
    complete();
  } else {
    begin_inflating(response);
  }
  co_return response;
}

// Appends the next part of the body; nothing at its end.
Task<Result<void>> ClientExchange::State::read_into(std::string& out) {
  const std::size_t before = out.size();
  while (!response_ended && out.size() == before) {
    if (inflated < compressed.size()) {
      const auto part = std::string_view(compressed).substr(inflated, kInflateStep);
      inflated += part.size();
      const auto made = out.size();
      if (auto fed = inflater->feed(part, out); !fed) {
        connection->channel->close();
        co_return failed(fed.error());
      }
      in_slice += out.size() - made;
      if (in_slice >= kInflateSlice) {
        in_slice = 0;
        co_await asio::post(co_await asio::this_coro::executor, use_task);
      }
      continue;
    }
    const auto found = co_await connection->next();
    if (!found) {
      connection->channel->close();
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
        connection->channel->close();
        co_return failed(
            {.code = ErrorCode::invalid_data, .message = "the compressed answer is cut off"});
      }
      complete();
    }
  }
  co_return Result<void>{};
}

// Completes the exchange after the end of the response: pools the connection if it is reusable.
void ClientExchange::State::complete() {
  response_ended = true;
  const bool reusable = request_ended && !write_error && connection->parser.keep_alive() &&
                        connection->in.empty() && !request.headers.has_token("Connection", "close");
  if (reusable) {
    client->pool->put(std::move(connection));
  } else {
    connection->channel->close();
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
  if (state.length) {
    if (state.written < *state.length) {
      state.connection->channel->close();
      co_return fail(ErrorCode::internal, "less of the body than its announced length");
    }
  } else if (auto sent = co_await state.connection->channel->write("0\r\n\r\n"); !sent) {
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
  if (state_->connection) state_->connection->channel->set_deadline(deadline);
}

Task<Result<Response>> ClientExchange::read_all(std::size_t max_body) {
  State& state = *state_;
  auto response = co_await state.read_head();
  if (!response) co_return response;
  const auto too_large = [&] {
    if (state.connection) state.connection->channel->close();
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

Client::Client(const Executor& executor, net::Resolver& resolver, ClientOptions options)
    : state_(std::make_shared<State>(executor, resolver, std::move(options))) {}
Client::~Client() = default;

Task<Result<ClientExchange>> Client::open(const Url& url, Request request, Deadline deadline,
                                          Body body, std::optional<std::uint64_t> length) {
  auto exchange = std::make_unique<ClientExchange::State>(state_);
  if (auto set = exchange->set_target(url, std::move(request)); !set) {
    co_return std::unexpected(std::move(set.error()));
  }
  exchange->body_kind = body;
  exchange->length = length;
  exchange->deadline = deadline;
  auto key = state_->connector.key_of(url, exchange->proxy);
  if (!key) co_return exchange->failed(key.error());
  exchange->key = std::move(*key);
  if (auto got = co_await exchange->obtain(true); !got) co_return std::unexpected(got.error());
  if (auto sent = co_await exchange->send_request(); !sent) co_return std::unexpected(sent.error());
  co_return ClientExchange(std::move(exchange));
}

Task<Result<Response>> Client::send(const Url& url, Request request, Deadline deadline,
                                    std::size_t max_body) {
  auto exchange = co_await open(url, std::move(request), deadline);
  if (!exchange) co_return std::unexpected(exchange.error());
  co_return co_await exchange->read_all(max_body);
}

Task<Result<Upgraded>> Client::upgrade(const Url& url, Request request, Deadline deadline) {
  request.headers.set("Accept-Encoding", "identity");
  ClientExchange::State exchange(state_);
  if (auto set = exchange.set_target(url, std::move(request)); !set) {
    co_return std::unexpected(std::move(set.error()));
  }
  exchange.may_switch = true;
  exchange.deadline = deadline;
  if (auto got = co_await exchange.obtain(false); !got) co_return std::unexpected(got.error());
  if (auto sent = co_await exchange.send_request(); !sent) co_return std::unexpected(sent.error());
  auto head = co_await exchange.read_head();
  if (!head) co_return std::unexpected(head.error());
  if (head->status != 101) {
    if (exchange.connection) exchange.connection->channel->close();
    Error error{.code = error_code_of_status(head->status),
                .message = "the peer did not switch protocols: " + std::to_string(head->status)};
    error.http_status = head->status;
    co_return exchange.failed(std::move(error));
  }
  Connection& connection = *exchange.connection;
  connection.channel->set_deadline(kNever);
  co_return Upgraded{.channel = std::move(connection.channel),
                     .received = std::string(connection.in.bytes()),
                     .head = std::move(*head)};
}

void Client::close_idle() {
  state_->pool->close_all();
}

std::size_t Client::idle_connections() const {
  return state_->pool->size();
}

}  // namespace gitops::http
