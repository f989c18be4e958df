#include "common/proxy/exchange.hpp"

#include <array>
#include <utility>

#include "common/http/wire_text.hpp"
#include "common/proxy/connection.hpp"

// A request from its head to its record, and what we answer ourselves.
namespace gitops::proxy {
namespace {

constexpr std::size_t kMaxTrailers = 8 * 1024;
constexpr std::size_t kKeepOutput = 2 * 1024;  // capacity that may be lent again
constexpr std::size_t kMaxReason = 200;
constexpr HeadLimits kAnswerLimits{.max_line = 32 * 1024, .max_head = 32 * 1024, .max_fields = 200};

void append_hex(std::string& out, std::uint64_t value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[value >> shift & 0xfU];
}

// One of SplitMix64's steps: neighbours get ids that do not look like neighbours.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30U) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27U) * 0x94d049bb133111ebU;
  return value ^ value >> 31U;
}

}  // namespace

ProxyExchange::ProxyExchange(ProxyServer& server)
    : server_(server),
      body_in_(server.loop_.blocks),
      parser_(server.options_.limits),
      answer_parser_(kAnswerLimits),
      request_body_(kMaxTrailers),
      answer_body_(kMaxTrailers),
      upload_ended_(server.loop_.executor) {}

ProxyExchange::~ProxyExchange() = default;

Wire& ProxyExchange::client() {
  return connection_->client_;
}

ProxyBuffer& ProxyExchange::in() {
  return connection_->in_;
}

const PeerInfo& ProxyExchange::peer() const {
  return connection_->peer_;
}

void ProxyExchange::begin(ProxyConnection& connection) {
  connection_ = &connection;
  parser_.reset();
  request_body_.start({}, BodyFraming::Kind::none);
  request_id_.clear();
  head_size_ = body_taken_ = 0;
  head_begun_ = head_read_ = body_read_ = continue_sent_ = recorded_ = reused_ = false;
  began_ = now();
  bytes_in_tunnel_ = bytes_out_ = 0;
  upload_stopped_ = client_gone_ = false;
  upload_problem_ = {};
  waiting_for_ = nullptr;
}

void ProxyExchange::end() {
  in().consume(head_size_ + body_taken_);
  if (in().empty() && !body_in_.empty()) in().swap(body_in_);
  body_in_.release();
  release_held();
  if (out_.capacity() > kKeepOutput) out_ = {};
}

void ProxyExchange::make_request_id(std::string_view given) {
  request_id_.clear();
  if (!given.empty()) {
    request_id_ = given;
    return;
  }
  append_hex(request_id_, server_.id_prefix_);
  append_hex(request_id_, mix(server_.id_prefix_ + ++server_.next_id_));
}

bool ProxyExchange::client_keeps() const {
  return head_read_ && parser_.head().keep_alive() && !server_.draining_;
}

// True: the connection goes on with its next request.
Task<bool> ProxyExchange::run() {
  in().compact();
  while (true) {
    if (in().grow()) {
      client().take_what_is_there(in());
      parser_.reset();  // its slices were of the smaller block
    }
    const auto size = parser_.next(in().bytes());
    if (!size) {
      co_return co_await refuse({.failure = ProxyFailure::malformed_request,
                                 .status = size.error().http_status,
                                 .detail = size.error().message},
                                nullptr);
    }
    head_size_ = *size;
    if (head_size_ > 0) break;
    if (!std::exchange(head_begun_, true)) {
      client().set_read_deadline(deadline_in(server_.options_.head_timeout));
    }
    auto read = client().read_now(in());
    while (read.what == WireRead::nothing) {
      co_await client().readable();
      read = client().read_now(in());
    }
    if (read.what == WireRead::timeout) {
      co_return co_await refuse({.failure = ProxyFailure::head_timeout,
                                 .status = 408,
                                 .detail = "the request head took too long"},
                                nullptr);
    }
    if (read.what != WireRead::data) co_return false;
  }
  head_read_ = true;
  client().set_read_deadline(kNever);
  began_ = now();
  auto decision = server_.policy_.decide(parser_.head(), peer());
  if (auto* to = std::get_if<Forward>(&decision)) {
    make_request_id(to->request_id);
    co_return co_await forward(*to);
  }
  auto& response = std::get<http::Response>(decision);
  const int status = response.status;
  const bool again = co_await reply(std::move(response));
  finish(nullptr, status);
  co_return again;
}

Task<bool> ProxyExchange::refuse(const Problem& problem, const ProxyRoute* route) {
  if (problem.failure == ProxyFailure::client_gone) {
    finish(route, 499, problem);
    client().abort();
    co_return false;
  }
  auto response = server_.policy_.failed(head_read_ ? &parser_.head() : nullptr, route,
                                         problem.failure, problem.status, problem.detail);
  const int status = response.status;
  const bool again = co_await reply(std::move(response));
  finish(route, status, problem);
  co_return again;
}

// Answers ourselves. A request whose body has not come yet is not waited for.
Task<bool> ProxyExchange::reply(http::Response response) {
  const auto& head = parser_.head();
  if (request_id_.empty()) make_request_id({});
  absorb_body();
  const bool again = body_read_ && client_keeps();
  const bool bodiless =
      (head_read_ && head.method == "HEAD") || response.status == 204 || response.status == 304;
  out_.assign("HTTP/1.1 ");
  http::append_number(out_, static_cast<std::uint64_t>(response.status));
  out_.append(" ").append(http::reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) http::append_field(out_, name, value);
  http::append_field(out_, "Date", server_.loop_.date.now());
  http::append_field(out_, "X-Request-Id", request_id_);
  if (response.status != 204 && response.status != 304) {
    http::append_field(out_, "Content-Length", response.body.size());
  }
  if (!again) {
    out_.append("Connection: close\r\n");
  } else if (!head.http_1_1) {
    out_.append("Connection: keep-alive\r\n");
  }
  out_.append("\r\n");
  const std::array<asio::const_buffer, 2> buffers{
      asio::buffer(out_), bodiless ? asio::const_buffer{} : asio::buffer(response.body)};
  bytes_out_ = bodiless ? 0 : response.body.size();
  client().set_write_deadline(deadline_in(server_.options_.head_timeout));
  const bool sent = (co_await client().write(buffers)).has_value();
  client().set_write_deadline(kNever);
  if (sent && !again && response.status != 408) co_await client().close_gracefully();
  co_return sent&& again;
}

std::string_view ProxyExchange::body_input() {
  const auto with_head = in().bytes().substr(head_size_ + body_taken_);
  return with_head.empty() ? body_in_.bytes() : with_head;
}

void ProxyExchange::consume_body(std::size_t size) {
  if (in().bytes().size() > head_size_ + body_taken_) {
    body_taken_ += size;
  } else {
    body_in_.consume(size);
  }
}

Task<ProxyExchange::Problem> ProxyExchange::next_piece(const RouteLimits& limits,
                                                       std::size_t& taken) {
  if (body_input().empty()) {
    if (!co_await send_continue()) co_return Problem{.failure = ProxyFailure::client_gone};
    client().set_read_deadline(deadline_in(limits.body_timeout));
    const auto read = co_await client().read_into(body_in_);
    client().set_read_deadline(kNever);
    if (read.what == WireRead::timeout) {
      co_return Problem{.failure = ProxyFailure::body_timeout,
                        .status = 408,
                        .detail = "the request body took too long"};
    }
    if (read.what != WireRead::data) {
      co_return Problem{.failure = ProxyFailure::client_gone,
                        .status = 499,
                        .detail = "the client went away within its request"};
    }
  }
  co_return feed_request(limits, taken);
}

// Takes in a body that came with its head and is of no use.
void ProxyExchange::absorb_body() {
  const auto& head = parser_.head();
  if (!head_read_ || body_read_) return;
  if (!head.has_body()) {
    body_read_ = true;
    return;
  }
  if (continue_sent_ || request_body_.total() > 0) return;
  request_body_.start(request_framing(head), BodyFraming::Kind::none);
  body_taken_ = 0;
  while (!request_body_.done()) {
    const auto fed = request_body_.feed(in().bytes().substr(head_size_ + body_taken_));
    if (!fed || *fed == 0) return;
    body_taken_ += *fed;
  }
  body_read_ = true;
}

// False when the client has gone.
Task<bool> ProxyExchange::send_continue() {
  if (!parser_.head().expects_continue || continue_sent_ || in().bytes().size() > head_size_) {
    co_return true;
  }
  continue_sent_ = true;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::array<asio::const_buffer, 1> buffers{asio::buffer(kContinue)};
  client().set_write_deadline(deadline_in(server_.options_.head_timeout));
  const bool sent = (co_await client().write(buffers)).has_value();
  client().set_write_deadline(kNever);
  co_return sent;
}

void ProxyExchange::check_client() {
  if (waiting_for_ == nullptr || uploading_ || Clock::now() - began_ < std::chrono::seconds(1)) {
    return;
  }
  if (!client().peer_closed()) return;
  client_gone_ = true;
  waiting_for_->abort();
}

void ProxyExchange::release_held() {
  if (held_.capacity() <= kKeepOutput && held_.empty()) return;
  server_.options_.totals->held -= held_.size();
  held_ = {};
}

void ProxyExchange::finish(const ProxyRoute* route, int status, const Problem& problem) {
  release_held();
  if (std::exchange(recorded_, true) || !server_.policy_.done) return;
  ExchangeRecord record;
  if (head_read_) record.head = &parser_.head();
  record.route = route;
  record.peer = &peer();
  record.status = status;
  record.failure = problem.failure;
  record.detail = std::string_view(problem.detail).substr(0, kMaxReason);
  record.request_id = request_id_;
  record.bytes_in = request_body_.total() + bytes_in_tunnel_;
  record.bytes_out = bytes_out_;
  record.took = Clock::now() - began_;
  record.reused = reused_;
  record.upgraded = status == 101;
  server_.policy_.done(record);
}

}  // namespace gitops::proxy
