#include "common/proxy/driver.hpp"

#include <string_view>
#include <utility>

#include "common/net/relay.hpp"

namespace gitops::proxy {
namespace {

using net::Transfer;

constexpr std::size_t kSpareTransactions = 1024;
// Work of one client without waiting before other clients get a turn. It is counted in bytes read;
// a request and each round of moving bytes add their own cost in bytes. About 16 small requests
// with immediate responses.
constexpr std::size_t kMuch = 256 * 1024;
constexpr std::size_t kRequestCost = 12 * 1024;
constexpr std::size_t kRoundCost = 4 * 1024;
// Time limit for a client without a notice that its connection ends: it was accepted last before a
// drain, or the head of its last response had already been sent.
constexpr auto kLastChance = std::chrono::seconds(1);
constexpr std::string_view kEmptyLine = "\r\n";

// Writes what became of a request into its span, and ends it. The target stays out: it may hold
// secrets.
void end_span(Span& span, const TransactionRecord& record) {
  if (!span.is_recorded()) return;
  if (record.head != nullptr) span.set("http.request.method", record.head->method);
  if (record.route != nullptr) span.set("http.route", record.route->name);
  span.set("http.response.status_code", record.status);
  span.set("gitops.request_id", record.request_id);
  if (record.failure != Failure::none) {
    span.fail(to_string(record.failure));
  } else if (record.status >= 500) {
    span.fail("");
  }
  span.end();
}

}  // namespace

std::unique_ptr<Transaction> DriverContext::lend() {
  if (spare_.empty()) return std::make_unique<Transaction>(transactions);
  auto transaction = std::move(spare_.back());
  spare_.pop_back();
  return transaction;
}

void DriverContext::take_back(std::unique_ptr<Transaction> transaction) {
  transaction->end();
  if (spare_.size() < kSpareTransactions) spare_.push_back(std::move(transaction));
}

Driver::Driver(DriverContext& context, std::unique_ptr<net::Channel> client, PeerInfo peer)
    : context_(context),
      client_(std::move(client)),
      peer_(std::move(peer)),
      in_(context.reactor.blocks, net::BlockPool::kSmall),
      waits_since_(context.reactor.now()) {}

Driver::~Driver() {
  if (transaction_) context_.take_back(std::move(transaction_));
}

Task<> Driver::run() {
  while (true) {
    if (done_ >= kMuch) co_await yield_after_much();
    waits_since_ = context_.reactor.now();
    bool has_request = true;
    for (bool may_skip = true; has_request;) {
      // RFC 9112, section 2.2: some clients send an empty line behind a body.
      if (may_skip && in_.bytes().starts_with(kEmptyLine)) {
        in_.consume(kEmptyLine.size());
        may_skip = false;
      }
      if (!in_.empty()) break;
      has_request = co_await wait_for_request();
    }
    if (!has_request) break;
    done_ += kRequestCost;
    transaction_ = context_.lend();
    transaction_->begin(in_, peer_, context_.reactor.now());
    co_await serve();
    const auto client_end = end(*transaction_);
    context_.take_back(std::move(transaction_));
    in_.release();
    if (client_end == Transaction::ClientEnd::keep) continue;
    if (client_end == Transaction::ClientEnd::linger) co_await client_->close_gracefully();
    if (client_end == Transaction::ClientEnd::abort) client_->abort();
    break;
  }
  client_->close();
}

Task<> Driver::yield_after_much() {
  done_ = 0;
  co_await asio::post(context_.reactor.executor, use_task);
}

// Waits for the next request. Returns false when the connection is done.
Task<bool> Driver::wait_for_request() {
  const bool draining = context_.transactions.draining;
  client_->set_read_deadline(waits_since_ + (draining ? kLastChance : context_.idle_timeout));
  idle_ = true;
  auto read = client_->read_now(in_);
  while (read.what == Transfer::nothing) {
    done_ = 0;
    co_await client_->readable();
    read = client_->read_now(in_);
  }
  done_ += read.size;
  // Reads a request longer than a small block, such as a webhook, at once, so that it is forwarded
  // in one write. The next read reports a failure of this second read again.
  if (read.what == Transfer::data && in_.grow()) client_->read_now(in_);
  idle_ = false;
  client_->set_read_deadline(kNever);
  co_return read.what == Transfer::data;
}

Task<> Driver::serve() {
  Transaction& transaction = *transaction_;
  auto& reactor = context_.reactor;
  while (true) {
    switch (transaction.action()) {
      case Transaction::Action::move_bytes:
        if (!move_bytes(transaction)) {
          done_ = 0;
          set_deadlines(transaction.deadlines());
          net::AnyChannel either{client_.get(), upstream_ ? upstream_->channel.get() : nullptr};
          co_await either.happens(reactor.executor);
        } else if ((done_ += kRoundCost) >= kMuch) {
          set_deadlines(transaction.deadlines());
          co_await yield_after_much();
        }
        break;
      case Transaction::Action::decide: {
        auto decision = context_.policy.decide(*transaction.head(), peer_);
        if (auto* forward = std::get_if<Forward>(&decision)) {
          begin_span(*transaction.head(), *forward);
          transaction.decided(std::move(*forward), reactor.now());
        } else {
          transaction.answer(std::move(std::get<http::Response>(decision)), context_.date.now(),
                             reactor.now());
        }
        break;
      }
      case Transaction::Action::await_room: {
        const bool came = co_await transaction.room(reactor.now());
        transaction.room_came(came, reactor.now());
        break;
      }
      case Transaction::Action::admit: {
        const auto request = transaction.whole();  // outlives the verdict on it
        auto& forward = transaction.forward();
        auto verdict = forward.inspection->admit(request, forward.admission);
        if (verdict) {
          co_await wait_for(std::move(*verdict), transaction);
        } else {
          transaction.admitted();
        }
        break;
      }
      case Transaction::Action::keep:
        co_await keep(transaction);
        break;
      case Transaction::Action::render_error: {
        const auto& problem = transaction.problem();
        transaction.answer(context_.policy.failed(transaction.head(), transaction.route(),
                                                  problem.failure, problem.status, problem.detail),
                           context_.date.now(), reactor.now());
        break;
      }
      case Transaction::Action::get_upstream:
        if (transaction.may_reuse()) upstream_ = transaction.route()->upstream->take();
        if (upstream_) {
          transaction.upstream_ready(upstream_->in, true, reactor.now());
        } else {
          co_await get_upstream(transaction);
        }
        break;
      case Transaction::Action::drop_upstream:
        upstream_->channel->abort();
        upstream_.reset();
        transaction.upstream_dropped();
        break;
      case Transaction::Action::relay:
        co_await relay(transaction);
        break;
      case Transaction::Action::finish:
        co_return;
    }
  }
}

void Driver::begin_span(const http::RequestHead& head, Forward& forward) const {
  if (context_.tracer == nullptr || !context_.tracer->is_recording()) return;
  forward.span = context_.tracer->serve(head.find(http::FieldId::traceparent).value_or(""),
                                        std::string(head.method) + " " + forward.route->name);
}

Task<> Driver::wait_for(Verdict verdict, Transaction& transaction) {
  if (auto refusal = co_await std::move(verdict)) {
    transaction.answer(std::move(*refusal), context_.date.now(), context_.reactor.now());
  } else {
    transaction.admitted();
  }
}

Task<> Driver::keep(Transaction& transaction) {
  auto answer = co_await transaction.forward().inspection->undelivered(transaction.whole(),
                                                                       transaction.problem());
  if (answer) {
    transaction.answer(std::move(*answer), context_.date.now(), context_.reactor.now());
  } else {
    transaction.not_kept();
  }
}

Task<> Driver::get_upstream(Transaction& transaction) {
  auto connected = co_await transaction.route()->upstream->connect(transaction.charged());
  if (connected) {
    upstream_ = std::move(*connected);
    transaction.upstream_ready(upstream_->in, false, context_.reactor.now());
  } else {
    transaction.upstream_failed(connected.error());
  }
}

// Writes the offered bytes. Returns false if there are none.
bool Driver::write_to(net::Channel& channel, const Outgoing& out, Transfer& written) {
  if (out.empty()) return false;
  written = channel.write_now(out.parts());
  return written.what != Transfer::nothing;
}

// Moves bytes without waiting. Returns false if none could be moved.
bool Driver::move_bytes(Transaction& transaction) {
  const auto now = context_.reactor.now();
  Transfer moved;
  bool any = false;
  if (upstream_ && write_to(*upstream_->channel, transaction.to_upstream(), moved)) {
    transaction.upstream_wrote(moved, now);
    any = true;
  }
  if (write_to(*client_, transaction.to_client(), moved)) {
    transaction.client_wrote(moved, now);
    any = true;
  }
  if (net::Buffer* room = transaction.upstream_room()) {
    moved = upstream_->channel->read_now(*room);
    done_ += moved.size;
    if (moved.what != Transfer::nothing) {
      transaction.upstream_read(moved, now);
      any = true;
    }
  }
  if (net::Buffer* room = transaction.client_room()) {
    moved = client_->read_now(*room);
    done_ += moved.size;
    if (moved.what != Transfer::nothing) {
      transaction.client_read(moved, now);
      any = true;
    }
  }
  if (!any && client_->peer_closed()) {
    transaction.client_hung_up(now);
    any = transaction.action() != Transaction::Action::move_bytes;
  }
  return any;
}

void Driver::set_deadlines(const Transaction::Deadlines& deadlines) {
  client_->set_read_deadline(deadlines.client_read);
  client_->set_write_deadline(deadlines.client_write);
  if (!upstream_) return;
  upstream_->channel->set_read_deadline(deadlines.upstream_read);
  upstream_->channel->set_write_deadline(deadlines.upstream_write);
}

Task<> Driver::relay(Transaction& transaction) {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  co_await net::relay(
      {.channel = *client_, .received = transaction.relay_buffer(), .passed_on = bytes_in},
      {.channel = *upstream_->channel, .received = upstream_->in, .passed_on = bytes_out},
      transaction.relay_idle());
  transaction.relayed(bytes_in, bytes_out);
}

Transaction::ClientEnd Driver::end(Transaction& transaction) {
  if (upstream_) {
    if (const auto keeps = transaction.upstream_keeps()) upstream_->kept_for = keeps;
    if (transaction.upstream_reusable()) {
      transaction.route()->upstream->put(std::move(upstream_));
    } else {
      upstream_.reset();
    }
  }
  if (transaction.recordable()) {
    const auto record = transaction.record(Clock::now());
    end_span(transaction.forward().span, record);
    if (context_.policy.done) context_.policy.done(record);
  }
  transaction.recorded();
  return transaction.client_end();
}

}  // namespace gitops::proxy
