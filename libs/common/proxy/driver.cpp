#include "common/proxy/driver.hpp"

#include <utility>

#include "common/net/relay.hpp"

namespace gitops::proxy {
namespace {

using net::Transfer;

constexpr std::size_t kSpareExchanges = 1024;
// A client may keep the loop busy for so much without waiting; then other clients have their turn.
// It is counted in bytes that were read; a request and each round of moving bytes count as much as
// they cost beside that. About 16 small requests that are answered at once.
constexpr std::size_t kMuch = 256 * 1024;
constexpr std::size_t kRequestCost = 12 * 1024;
constexpr std::size_t kRoundCost = 4 * 1024;
// For a client that was not told that its connection ends: it was accepted last of all before a drain,
// or the head of its last answer had been sent by then.
constexpr auto kLastChance = std::chrono::seconds(1);

}  // namespace

std::unique_ptr<Exchange> DriverContext::lend() {
  if (spare_.empty()) return std::make_unique<Exchange>(exchanges);
  auto exchange = std::move(spare_.back());
  spare_.pop_back();
  return exchange;
}

void DriverContext::take_back(std::unique_ptr<Exchange> exchange) {
  exchange->end();
  if (spare_.size() < kSpareExchanges) spare_.push_back(std::move(exchange));
}

Driver::Driver(DriverContext& context, std::unique_ptr<net::Channel> client, PeerInfo peer)
    : context_(context),
      client_(std::move(client)),
      peer_(std::move(peer)),
      in_(context.reactor.blocks, net::BlockPool::kSmall),
      waits_since_(context.reactor.now()) {}

Driver::~Driver() {
  if (exchange_) context_.take_back(std::move(exchange_));
}

Task<> Driver::run() {
  while (true) {
    if (done_ >= kMuch) co_await yield_after_much();
    waits_since_ = context_.reactor.now();
    if (in_.empty() && !co_await wait_for_request()) break;
    done_ += kRequestCost;
    exchange_ = context_.lend();
    exchange_->begin(in_, peer_, context_.reactor.now());
    co_await serve();
    const auto client_end = end(*exchange_);
    context_.take_back(std::move(exchange_));
    in_.release();
    if (client_end == Exchange::ClientEnd::keep) continue;
    if (client_end == Exchange::ClientEnd::linger) co_await client_->close_gracefully();
    if (client_end == Exchange::ClientEnd::abort) client_->abort();
    break;
  }
  client_->close();
}

Task<> Driver::yield_after_much() {
  done_ = 0;
  co_await asio::post(context_.reactor.executor, use_task);
}

// False when the connection is done.
Task<bool> Driver::wait_for_request() {
  const bool draining = context_.exchanges.draining;
  client_->set_read_deadline(waits_since_ + (draining ? kLastChance : context_.idle_timeout));
  idle_ = true;
  auto read = client_->read_now(in_);
  while (read.what == Transfer::nothing) {
    done_ = 0;
    co_await client_->readable();
    read = client_->read_now(in_);
  }
  done_ += read.size;
  // A request that is longer than a small block, such as a webhook, is read at once, so that it is
  // forwarded in one write. A failure of this second read is reported again by the next read.
  if (read.what == Transfer::data && in_.grow()) client_->read_now(in_);
  idle_ = false;
  client_->set_read_deadline(kNever);
  co_return read.what == Transfer::data;
}

Task<> Driver::serve() {
  Exchange& exchange = *exchange_;
  auto& reactor = context_.reactor;
  while (true) {
    switch (exchange.action()) {
      case Exchange::Action::move_bytes:
        if (!move_bytes(exchange)) {
          done_ = 0;
          set_deadlines(exchange.deadlines());
          net::AnyChannel either{client_.get(), upstream_ ? upstream_->channel.get() : nullptr};
          co_await either.happens(reactor.executor);
        } else if ((done_ += kRoundCost) >= kMuch) {
          set_deadlines(exchange.deadlines());
          co_await yield_after_much();
        }
        break;
      case Exchange::Action::decide: {
        auto decision = context_.policy.decide(*exchange.head(), peer_);
        if (auto* forward = std::get_if<Forward>(&decision)) {
          exchange.decided(std::move(*forward), reactor.now());
        } else {
          exchange.answer(std::move(std::get<http::Response>(decision)), context_.date.now(),
                          reactor.now());
        }
        break;
      }
      case Exchange::Action::await_room: {
        const bool came = co_await exchange.room(reactor.now());
        exchange.room_came(came, reactor.now());
        break;
      }
      case Exchange::Action::admit:
        co_await admit(exchange);
        break;
      case Exchange::Action::keep:
        co_await keep(exchange);
        break;
      case Exchange::Action::render_error: {
        const auto& problem = exchange.problem();
        exchange.answer(context_.policy.failed(exchange.head(), exchange.route(), problem.failure,
                                               problem.status, problem.detail),
                        context_.date.now(), reactor.now());
        break;
      }
      case Exchange::Action::get_upstream:
        if (exchange.may_reuse()) upstream_ = exchange.route()->upstream->take();
        if (upstream_) {
          exchange.upstream_ready(upstream_->in, true, reactor.now());
        } else {
          co_await get_upstream(exchange);
        }
        break;
      case Exchange::Action::drop_upstream:
        upstream_->channel->abort();
        upstream_.reset();
        exchange.upstream_dropped();
        break;
      case Exchange::Action::relay:
        co_await relay(exchange);
        break;
      case Exchange::Action::finish:
        co_return;
    }
  }
}

Task<> Driver::admit(Exchange& exchange) {
  auto& forward = exchange.forward();
  auto refusal = co_await forward.inspection->admit(exchange.whole(), forward.admission);
  if (refusal) {
    exchange.answer(std::move(*refusal), context_.date.now(), context_.reactor.now());
  } else {
    exchange.admitted();
  }
}

Task<> Driver::keep(Exchange& exchange) {
  auto answer =
      co_await exchange.forward().inspection->undelivered(exchange.whole(), exchange.problem());
  if (answer) {
    exchange.answer(std::move(*answer), context_.date.now(), context_.reactor.now());
  } else {
    exchange.not_kept();
  }
}

Task<> Driver::get_upstream(Exchange& exchange) {
  auto connected = co_await exchange.route()->upstream->connect(exchange.charged());
  if (connected) {
    upstream_ = std::move(*connected);
    exchange.upstream_ready(upstream_->in, false, context_.reactor.now());
  } else {
    exchange.upstream_failed(connected.error());
  }
}

// False when there was nothing to write.
bool Driver::write_to(net::Channel& channel, const Outgoing& out, Transfer& written) {
  if (out.empty()) return false;
  written = channel.write_now(out.parts());
  return written.what != Transfer::nothing;
}

// Moves what can be moved at once. False when nothing could.
bool Driver::move_bytes(Exchange& exchange) {
  const auto now = context_.reactor.now();
  Transfer moved;
  bool any = false;
  if (upstream_ && write_to(*upstream_->channel, exchange.to_upstream(), moved)) {
    exchange.upstream_wrote(moved, now);
    any = true;
  }
  if (write_to(*client_, exchange.to_client(), moved)) {
    exchange.client_wrote(moved, now);
    any = true;
  }
  if (net::Buffer* room = exchange.upstream_room()) {
    moved = upstream_->channel->read_now(*room);
    done_ += moved.size;
    if (moved.what != Transfer::nothing) {
      exchange.upstream_read(moved, now);
      any = true;
    }
  }
  if (net::Buffer* room = exchange.client_room()) {
    moved = client_->read_now(*room);
    done_ += moved.size;
    if (moved.what != Transfer::nothing) {
      exchange.client_read(moved, now);
      any = true;
    }
  }
  if (!any && client_->peer_closed()) {
    exchange.client_hung_up(now);
    any = exchange.action() != Exchange::Action::move_bytes;
  }
  return any;
}

void Driver::set_deadlines(const Exchange::Deadlines& deadlines) {
  client_->set_read_deadline(deadlines.client_read);
  client_->set_write_deadline(deadlines.client_write);
  if (!upstream_) return;
  upstream_->channel->set_read_deadline(deadlines.upstream_read);
  upstream_->channel->set_write_deadline(deadlines.upstream_write);
}

Task<> Driver::relay(Exchange& exchange) {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  co_await net::relay(
      {.channel = *client_, .received = exchange.relay_buffer(), .passed_on = bytes_in},
      {.channel = *upstream_->channel, .received = upstream_->in, .passed_on = bytes_out},
      exchange.relay_idle());
  exchange.relayed(bytes_in, bytes_out);
}

Exchange::ClientEnd Driver::end(Exchange& exchange) {
  if (upstream_) {
    if (const auto keeps = exchange.upstream_keeps()) upstream_->kept_for = keeps;
    if (exchange.upstream_reusable()) {
      exchange.route()->upstream->put(std::move(upstream_));
    } else {
      upstream_.reset();
    }
  }
  if (exchange.recordable() && context_.policy.done) {
    context_.policy.done(exchange.record(Clock::now()));
  }
  exchange.recorded();
  return exchange.client_end();
}

}  // namespace gitops::proxy
