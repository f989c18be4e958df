#include "common/http/proxy_connection.hpp"

#include <algorithm>
#include <array>

#include "common/http/address_list.hpp"
#include "common/http/wire_text.hpp"

namespace gitops::http {
namespace {

constexpr std::size_t kMaxTrailers = 8 * 1024;
constexpr std::size_t kKeepOutput = 2 * 1024;  // capacity that an idle connection may keep
constexpr std::size_t kMaxReason = 200;

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

ProxyConnection::ProxyConnection(ProxyServer& server, int descriptor,
                                 const asio::ip::address& client)
    : server_(server),
      client_(descriptor, server.loop_.poller, server.loop_.wheel),
      in_(server.loop_.blocks, BlockPool::kSmall),
      body_in_(server.loop_.blocks),
      parser_(server.options_.limits),
      request_body_(kMaxTrailers),
      answer_body_(kMaxTrailers),
      upload_ended_(server.loop_.executor) {
  peer_.address = plain_address(client);
  address_ = peer_.address.to_string();
  peer_.text = address_;
  peer_.tls = server.tls_.has_value();
  ++server_.options_.totals->connections;
  place_ = server_.connections_.insert(server_.connections_.end(), this);
}

ProxyConnection::~ProxyConnection() {
  release_held();
  server_.connections_.erase(place_);
  --server_.options_.totals->connections;
  server_.ended_.notify_all();
}

Task<> ProxyConnection::run() {
  const auto self = shared_from_this();
  if (server_.tls_) {
    auto context = server_.tls_->get(Clock::now());
    if (!context) co_return;  // listen() has checked it; later only good ones are taken over
    client_.set_read_deadline(deadline_in(server_.options_.head_timeout));
    if (!co_await client_.handshake_server(std::move(*context))) co_return;
  }
  while (co_await read_head() && co_await serve()) {
    in_.consume(head_size_ + body_taken_);
    if (in_.empty() && !body_in_.empty()) in_.swap(body_in_);
    if (out_.capacity() > kKeepOutput) out_ = {};
    in_.release();
    body_in_.release();
  }
  client_.close();
}

// True when a head is there; false when the connection is done.
Task<bool> ProxyConnection::read_head() {
  parser_.reset();
  in_.compact();
  in_.grow();
  head_read_ = body_read_ = continue_sent_ = recorded_ = reused_ = client_gone_ = false;
  upload_stopped_ = false;
  upload_problem_ = {};
  request_body_.start({}, BodyFraming::Kind::none);
  head_size_ = body_taken_ = 0;
  bytes_out_ = bytes_in_tunnel_ = 0;
  bool begun = false;
  while (true) {
    if (!in_.empty()) {
      const auto size = parser_.next(in_.bytes());
      if (!size) {
        began_ = now();
        make_request_id({});
        co_return co_await refuse({.failure = ProxyFailure::malformed_request,
                                   .status = size.error().http_status,
                                   .detail = size.error().message},
                                  nullptr);
      }
      if (*size > 0) {
        head_size_ = *size;
        head_read_ = true;
        break;
      }
      if (!begun) {
        begun = true;
        client_.set_read_deadline(deadline_in(server_.options_.head_timeout));
      }
    } else {
      if (server_.draining_) co_return false;
      client_.set_read_deadline(deadline_in(server_.options_.idle_timeout));
    }
    idle_ = in_.empty();
    auto looked = client_.read_now(in_);
    while (!looked) {
      co_await client_.readable();
      looked = client_.read_now(in_);
    }
    const auto& read = *looked;
    idle_ = false;
    if (!read && begun && read.error().code == ErrorCode::timeout) {
      began_ = now();
      make_request_id({});
      co_return co_await refuse({.failure = ProxyFailure::head_timeout,
                                 .status = 408,
                                 .detail = "the request head took too long"},
                                nullptr);
    }
    if (!read || *read == 0) co_return false;
    if (in_.grow()) {
      client_.take_what_is_there(in_);
      parser_.reset();  // its slices were of the smaller block
    }
  }
  client_.set_read_deadline(kNever);
  began_ = now();
  co_return true;
}

void ProxyConnection::make_request_id(std::string_view given) {
  request_id_.clear();
  if (!given.empty()) {
    request_id_ = given;
    return;
  }
  append_hex(request_id_, server_.id_prefix_);
  append_hex(request_id_, mix(server_.id_prefix_ + ++server_.next_id_));
}

bool ProxyConnection::client_keeps() const {
  return head_read_ && parser_.head().keep_alive() && !server_.draining_;
}

Task<bool> ProxyConnection::serve() {
  auto decision = server_.policy_.decide(parser_.head(), peer_);
  if (auto* to = std::get_if<Forward>(&decision)) {
    make_request_id(to->request_id);
    co_return co_await forward(*to);
  }
  make_request_id({});
  auto& response = std::get<Response>(decision);
  const int status = response.status;
  const bool again = co_await reply(std::move(response));
  finish(nullptr, status);
  co_return again;
}

Task<bool> ProxyConnection::refuse(const Problem& problem, const ProxyRoute* route) {
  if (problem.failure == ProxyFailure::client_gone) {
    finish(route, 499, problem);
    client_.abort();
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
Task<bool> ProxyConnection::reply(Response response) {
  const auto& head = parser_.head();
  absorb_body();
  const bool again = body_read_ && client_keeps();
  const bool bodiless =
      (head_read_ && head.method == "HEAD") || response.status == 204 || response.status == 304;
  out_.assign("HTTP/1.1 ");
  append_number(out_, static_cast<std::uint64_t>(response.status));
  out_.append(" ").append(reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) append_field(out_, name, value);
  append_field(out_, "Date", server_.loop_.date.now());
  append_field(out_, "X-Request-Id", request_id_);
  if (response.status != 204 && response.status != 304) {
    append_field(out_, "Content-Length", response.body.size());
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
  client_.set_write_deadline(deadline_in(server_.options_.head_timeout));
  const bool sent = (co_await client_.write(buffers)).has_value();
  client_.set_write_deadline(kNever);
  if (sent && !again && response.status != 408) co_await client_.close_gracefully();
  co_return sent&& again;
}

// Takes in a body that came with its head and is of no use.
void ProxyConnection::absorb_body() {
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
    const auto fed = request_body_.feed(in_.bytes().substr(head_size_ + body_taken_));
    if (!fed || *fed == 0) return;
    body_taken_ += *fed;
  }
  body_read_ = true;
}

// False when the client has gone.
Task<bool> ProxyConnection::send_continue() {
  if (!parser_.head().expects_continue || continue_sent_ || in_.bytes().size() > head_size_) {
    co_return true;
  }
  continue_sent_ = true;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  const std::array<asio::const_buffer, 1> buffers{asio::buffer(kContinue)};
  client_.set_write_deadline(deadline_in(server_.options_.head_timeout));
  const bool sent = (co_await client_.write(buffers)).has_value();
  client_.set_write_deadline(kNever);
  co_return sent;
}

void ProxyConnection::check_client() {
  if (waiting_for_ == nullptr || uploading_ || Clock::now() - began_ < std::chrono::seconds(1)) {
    return;
  }
  if (!client_.peer_closed()) return;
  client_gone_ = true;
  waiting_for_->abort();
}

void ProxyConnection::release_held() {
  if (held_.capacity() <= kKeepOutput && held_.empty()) return;
  server_.options_.totals->held -= held_.size();
  held_ = {};
}

void ProxyConnection::finish(const ProxyRoute* route, int status, const Problem& problem) {
  release_held();
  if (std::exchange(recorded_, true) || !server_.policy_.done) return;
  ExchangeRecord record;
  if (head_read_) record.head = &parser_.head();
  record.route = route;
  record.peer = &peer_;
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

}  // namespace gitops::http
