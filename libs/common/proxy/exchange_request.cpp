#include <array>
#include <span>

#include "common/proxy/exchange.hpp"

// A request on its way to the upstream, until the head of the answer is there.
namespace gitops::proxy {
namespace {

constexpr int kMaxInterim = 16;  // 1xx answers before the one that counts

ProxyProblem too_large() {
  return {.failure = ProxyFailure::body_too_large,
          .status = 413,
          .detail = "the request body is too large"};
}

}  // namespace

// Its frame is allocated for each request: what is rarely needed is elsewhere.
Task<bool> ProxyExchange::forward(Forward& to) {
  const auto& head = parser_.head();
  const auto& limits = to.route->limits;
  auto framing = request_framing(head);
  request_body_.start(framing, framing.kind);
  Problem problem;
  if (limits.max_body > 0 && head.content_length.value_or(0) > limits.max_body) {
    problem = too_large();
    co_return co_await refuse(problem, to.route.get());
  }
  if (to.verify) {
    bool again = false;
    if (!co_await verify_body(to, again)) co_return again;
    framing = {.kind = BodyFraming::Kind::length, .length = held_.size()};
  } else {
    problem = feed_request(limits, body_taken_);
    if (problem) co_return co_await refuse(problem, to.route.get());
    body_read_ = request_body_.done();
  }
  const bool whole = body_read_;
  out_.clear();
  build_request(to, framing);

  for (bool pooled = true;; pooled = false) {
    auto upstream = pooled ? to.route->upstream->take() : nullptr;
    reused_ = upstream != nullptr;
    if (!upstream) upstream = co_await connect_upstream(*to.route, problem);
    if (!upstream) co_return co_await refuse(problem, to.route.get());
    if (!whole && !co_await send_continue()) {
      problem = {.failure = ProxyFailure::client_gone};
      co_return co_await refuse(problem, to.route.get());
    }
    problem = {};  // of the first try
    std::size_t written = 0;
    upstream->wire.set_write_deadline(deadline_in(limits.body_timeout));
    bool sent = send_now(upstream->wire, to, written);
    if (!sent) {
      problem = co_await send_rest(upstream->wire, to, written);
      sent = !problem;
    }
    answer_parser_.reset();
    answer_begun_ = false;
    interim_ = 0;
    if (sent) {
      if (!whole) start_upload(upstream, limits);
      waiting_for_ = &upstream->wire;
      while (!take_answer(*upstream, limits, problem)) co_await upstream->wire.readable(this);
      waiting_for_ = nullptr;
      if (!problem) co_return co_await pass_answer(std::move(upstream), to);
    }
    upstream->wire.abort();
    co_await end_upload();
    if (upload_problem_) problem = std::exchange(upload_problem_, {});
    if (client_gone_) problem = {.failure = ProxyFailure::client_gone};
    const bool untouched = !sent && written == 0;
    const bool again = reused_ && whole && !answer_begun_ &&
                       problem.failure == ProxyFailure::upstream_lost &&
                       (untouched || head.is_idempotent());
    if (!again) co_return co_await refuse(problem, to.route.get());
  }
}

void ProxyExchange::build_request(const Forward& to, const BodyFraming& framing) {
  RequestEdits edits;
  edits.target = to.rewritten.empty() ? to.target : std::string_view(to.rewritten);
  edits.host = to.route->host;
  edits.client = peer().text;
  edits.scheme = peer().tls ? "https" : "http";
  edits.request_id = request_id_;
  edits.trusted_peer = to.trusted_peer;
  edits.websocket = to.route->limits.websocket && parser_.head().wants_websocket();
  append_forwarded_request(out_, parser_.head(), edits, framing);
}

// Feeds what can be sent at once and enforces the limit.
ProxyExchange::Problem ProxyExchange::feed_request(const RouteLimits& limits, std::size_t& taken) {
  const auto fed = request_body_.feed(body_input());
  if (!fed) {
    return {.failure = ProxyFailure::malformed_body,
            .status = fed.error().http_status,
            .detail = fed.error().message};
  }
  taken += *fed;
  if (limits.max_body > 0 && request_body_.total() > limits.max_body) {
    return too_large();
  }
  return {};
}

// Holds the body and has it verified. False: the request was answered; `again` as of run().
Task<bool> ProxyExchange::verify_body(const Forward& to, bool& again) {
  const auto problem = co_await hold_body(to.route->limits);
  if (problem) {
    again = co_await refuse(problem, to.route.get());
    co_return false;
  }
  auto refusal = to.verify(parser_.head(), held_);
  if (!refusal) co_return true;
  const int status = refusal->status;
  again = co_await reply(std::move(*refusal));
  finish(to.route.get(), status);
  co_return false;
}

// Reads the whole body into held_.
Task<ProxyExchange::Problem> ProxyExchange::hold_body(const RouteLimits& limits) {
  held_.clear();
  request_body_.start(request_framing(parser_.head()), BodyFraming::Kind::none);
  while (!request_body_.done()) {
    std::size_t taken = 0;
    auto problem = co_await next_piece(limits, taken);
    if (problem) co_return problem;
    for (const auto& slice : request_body_.data()) {
      held_.append(static_cast<const char*>(slice.data()), slice.size());
    }
    const auto held = server_.options_.totals->held += request_body_.fed();
    if (held > server_.options_.max_held) {
      co_return Problem{.failure = ProxyFailure::too_much_held,
                        .status = 503,
                        .detail = "too many bodies are being verified"};
    }
    consume_body(taken);
  }
  body_read_ = true;
  co_return Problem{};
}

Task<ProxyExchange::UpstreamPtr> ProxyExchange::connect_upstream(const ProxyRoute& route,
                                                                 Problem& problem) {
  auto connected = co_await route.upstream->connect();
  if (connected) co_return std::move(*connected);
  const auto& error = connected.error();
  problem = {.failure = ProxyFailure::connect_failed, .status = 502, .detail = error.message};
  if (error.code == ErrorCode::not_found) problem.failure = ProxyFailure::no_such_host;
  if (error.code == ErrorCode::forbidden) problem.failure = ProxyFailure::address_refused;
  if (error.code == ErrorCode::timeout) {
    problem.failure = ProxyFailure::connect_timeout;
    problem.status = 504;
  }
  co_return nullptr;
}

// The head and what there is of the body.
std::span<const asio::const_buffer> ProxyExchange::request_parts(
    const Forward& to, std::span<asio::const_buffer> parts) const {
  std::size_t count = 0;
  parts[count++] = asio::buffer(out_);
  if (to.verify) {
    parts[count++] = asio::buffer(held_);
  } else {
    for (const auto& buffer : request_body_.buffers()) parts[count++] = buffer;
  }
  return parts.first(count);
}

bool ProxyExchange::send_now(Wire& upstream, const Forward& to, std::size_t& written) {
  std::array<asio::const_buffer, 16> parts;
  return upstream.write_now(request_parts(to, parts), written);
}

Task<ProxyExchange::Problem> ProxyExchange::send_rest(Wire& upstream, const Forward& to,
                                                      std::size_t& written) {
  std::array<asio::const_buffer, 16> parts;
  const auto sent = co_await upstream.write(request_parts(to, parts), &written);
  if (sent) co_return Problem{};
  co_return Problem{
      .failure = ProxyFailure::upstream_lost, .status = 502, .detail = sent.error().message};
}

// Reads as much as there is of the answer, until its head is complete. False: there will be more.
bool ProxyExchange::take_answer(UpstreamConnection& upstream, const RouteLimits& limits,
                                Problem& problem) {
  const auto malformed = [&problem](std::string detail) {
    problem = {
        .failure = ProxyFailure::malformed_answer, .status = 502, .detail = std::move(detail)};
    return true;
  };
  while (true) {
    if (!upstream.in.empty()) {
      const auto size = answer_parser_.next(upstream.in.bytes());
      if (!size) return malformed(size.error().message);
      if (*size > 0) {
        const int status = answer_parser_.head().status;
        answer_head_size_ = *size;
        if (status >= 200 || status == 101) return true;
        if (++interim_ > kMaxInterim) return malformed("too many interim answers");
        upstream.in.consume(*size);
        upstream.in.compact();
        answer_parser_.reset();
        continue;
      }
    }
    // While the body is on its way, its own time limits hold.
    upstream.wire.set_read_deadline(uploading_ ? kNever : deadline_in(limits.answer_timeout));
    const auto read = upstream.wire.read_now(upstream.in);
    if (read.what == WireRead::nothing) return false;
    if (read.what == WireRead::timeout) {
      problem = {.failure = ProxyFailure::answer_timeout,
                 .status = 504,
                 .detail = "the upstream did not answer in time"};
      return true;
    }
    if (read.what != WireRead::data) {
      problem = {.failure = ProxyFailure::upstream_lost,
                 .status = 502,
                 .detail = "the upstream closed the connection before it answered"};
      return true;
    }
    answer_begun_ = true;
  }
}

}  // namespace gitops::proxy
