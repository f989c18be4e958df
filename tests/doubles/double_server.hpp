#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/server.hpp"
#include "common/http/url.hpp"

namespace gitops::test {

// What every double of a peer shares: an HTTP server that can be stopped and started on the same
// port, a record of what was asked, and the faults that need no knowledge of the peer. Lives on the
// loop of its test; stop() before it is destroyed.
class DoubleServer {
 public:
  virtual ~DoubleServer();
  DoubleServer(const DoubleServer&) = delete;
  DoubleServer& operator=(const DoubleServer&) = delete;

  // Listens; the port of the first start is kept for later ones.
  Result<void> start();
  // Cuts every connection, in the middle of whatever is being sent, and refuses new ones.
  Task<> stop();
  // stop() and start(): clients see their connections die and reach the double again at once.
  Task<Result<void>> restart();
  [[nodiscard]] bool running() const { return server_ != nullptr; }
  [[nodiscard]] http::Url url() const;

  // Faults. `part` limits one to request targets that contain it.
  // Answers the next `requests` with `status`, in the peer's own shape of an error.
  void fail_next(std::size_t requests, int status, std::chrono::seconds retry_after = {},
                 std::string part = {});
  // Waits before each answer; zero ends it.
  void delay_answers(std::chrono::milliseconds delay, std::string part = {});
  // Reads the next `requests` and closes their connections without an answer.
  void abort_next(std::size_t requests, std::string part = {});
  // Forgets what is left of all of these.
  void end_faults();

  // Requests so far, answered or not, oldest first.
  struct Seen {
    std::string method;
    std::string target;
    http::Headers headers;
    Clock::time_point when;
  };
  [[nodiscard]] const std::vector<Seen>& requests() const { return requests_; }
  // How many of them have this method (empty: any) and a target that contains `part`.
  [[nodiscard]] std::size_t count(std::string_view method, std::string_view part = {}) const;
  void forget_requests() { requests_.clear(); }

 protected:
  DoubleServer(const Executor& executor, http::ServerOptions options);

  // Answers one request.
  virtual Task<> handle(http::Exchange& exchange) = 0;
  // The peer's error answer for a status.
  [[nodiscard]] virtual http::Response failure(int status) const = 0;

  // A coroutine's wait until something changed; every waiter has its own deadline.
  // False at the deadline.
  Task<bool> wait_for_change(Deadline deadline);
  // Wakes all of them.
  void notify_change();
  [[nodiscard]] const Executor& executor() const { return executor_; }

 private:
  struct Fault {
    std::size_t left = 0;
    int status = 0;  // 0: abort
    std::chrono::seconds retry_after{};
    std::string part;
  };
  Task<> serve(http::Exchange& exchange);

  Executor executor_;
  http::ServerOptions options_;
  std::unique_ptr<http::Server> server_;
  std::list<Fault> faults_;
  std::chrono::milliseconds delay_{0};
  std::string delay_part_;
  std::vector<Seen> requests_;
  std::list<Event> waiters_;
};

// The values of a query string, decoded; '+' is a space, the first of a name counts.
class Query {
 public:
  explicit Query(std::string_view text);
  [[nodiscard]] std::string get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// Path segments, percent-decoded, without empty ones.
std::vector<std::string> path_segments(std::string_view path);

http::Response json_response(int status, std::string body);

}  // namespace gitops::test
