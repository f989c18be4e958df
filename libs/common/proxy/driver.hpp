#pragma once

#include <memory>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/wire_text.hpp"
#include "common/net/channel.hpp"
#include "common/proxy/transaction.hpp"
#include "common/proxy/upstream.hpp"

namespace gitops::proxy {

// Shared state of one server's connections. Loop thread only; it must outlive them.
struct DriverContext {
  DriverContext(net::Reactor& r, Policy p)
      : reactor(r), policy(std::move(p)), transactions{r.blocks} {}

  // Lends a transaction. Reuses transactions last in, first out, so that their memory is still in
  // the CPU's caches. An idle connection has none.
  [[nodiscard]] std::unique_ptr<Transaction> lend();
  void take_back(std::unique_ptr<Transaction> transaction);

  net::Reactor& reactor;
  Policy policy;
  TransactionContext transactions;
  std::chrono::milliseconds idle_timeout{65'000};  // between requests
  http::DateField date;
  Tracer* tracer = nullptr;  // null: requests have no spans

 private:
  std::vector<std::unique_ptr<Transaction>> spare_;
};

// Serves one client connection: runs one Transaction after the other and performs their actions.
// Loop thread only.
class Driver {
 public:
  Driver(DriverContext& context, std::unique_ptr<net::Channel> client, PeerInfo peer);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Serves the client. Returns when the client has finished or close() was called; the channel is
  // closed then.
  Task<> run();
  // Returns whether no request is in flight, so that the connection may be closed at any time.
  [[nodiscard]] bool idle() const { return idle_ && client_->is_open(); }
  // Returns whether no complete request head was received, so that the connection may be closed for
  // another client.
  [[nodiscard]] bool waits() const {
    return client_->is_open() && (idle_ || (transaction_ && transaction_->reads_head()));
  }
  // Time at which waiting began.
  [[nodiscard]] Clock::time_point waits_since() const { return waits_since_; }
  void close() { client_->close(); }

 private:
  Task<bool> wait_for_request();
  // Lets other coroutines of the loop run after much work without waiting.
  Task<> yield_after_much();
  // Performs actions until the transaction is finished.
  Task<> serve();
  Task<> wait_for(Verdict verdict, Transaction& transaction);
  Task<> keep(Transaction& transaction);
  Task<> get_upstream(Transaction& transaction);
  Task<> relay(Transaction& transaction);
  bool move_bytes(Transaction& transaction);
  void begin_span(const http::RequestHead& head, Forward& forward) const;
  [[nodiscard]] bool write_to(net::Channel& channel, const Outgoing& out, net::Transfer& written);
  void set_deadlines(const Transaction::Deadlines& deadlines);
  // Returns the upstream connection to its pool and records the request. Returns the fate of the
  // client connection.
  Transaction::ClientEnd end(Transaction& transaction);

  DriverContext& context_;
  std::unique_ptr<net::Channel> client_;
  const PeerInfo peer_;
  net::Buffer in_;
  std::unique_ptr<Transaction> transaction_;
  std::unique_ptr<UpstreamConnection> upstream_;
  bool idle_ = true;
  Clock::time_point waits_since_;
  std::size_t done_ = 0;  // work since the last wait, in bytes; see kMuch
};

}  // namespace gitops::proxy
