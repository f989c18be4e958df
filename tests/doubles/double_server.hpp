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
#include "test_http/responses.hpp"

namespace gitops::test {

// The base of every double of a peer: an HTTP server that can be stopped and started on the same
// port, a record of its requests, and faults that suit any peer. Runs on the loop of its
// test; call stop() before the destructor.
class DoubleServer {
 public:
  virtual ~DoubleServer();
  DoubleServer(const DoubleServer&) = delete;
  DoubleServer& operator=(const DoubleServer&) = delete;

  // Listens. Later starts use the port of the first one.
  Result<void> start();
  // Cuts every connection, even in the middle of an answer, and refuses new ones.
  Task<> stop();
  // stop(), then start(): clients lose their connections and can connect again at once.
  Task<Result<void>> restart();
  [[nodiscard]] bool running() const { return server_ != nullptr; }
  [[nodiscard]] http::Url url() const;

  // Faults. Each applies to request targets that contain `part`. Answers the next `requests` with
  // `status` and the peer's error format; 200: with page_of_a_proxy().
  void fail_next(std::size_t requests, int status, std::chrono::seconds retry_after = {},
                 std::string part = {});
  // Waits before each answer; zero ends it.
  void delay_answers(std::chrono::milliseconds delay, std::string part = {});
  // Reads the next `requests` requests and closes their connections without an answer.
  void abort_next(std::size_t requests, std::string part = {});
  // Ends all faults.
  void end_faults();

  // All requests, answered or not, oldest first.
  struct Seen {
    std::string method;
    std::string target;
    http::Headers headers;
    Clock::time_point when;
  };
  [[nodiscard]] const std::vector<Seen>& requests() const { return requests_; }
  // The number of requests with this method (empty: any) and a target that contains `part`.
  [[nodiscard]] std::size_t count(std::string_view method, std::string_view part = {}) const;
  void forget_requests() { requests_.clear(); }

 protected:
  DoubleServer(const Executor& executor, http::ServerOptions options);

  // Answers one request.
  virtual Task<> handle(http::Exchange& exchange) = 0;
  // The peer's error answer for a status.
  [[nodiscard]] virtual http::Response failure(int status) const = 0;

  // Waits for the next notify_change(). Every waiter has its own deadline.
  // False at the deadline.
  Task<bool> wait_for_change(Deadline deadline);
  // Wakes all waiters.
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

// The decoded values of a query string. '+' is a space; the first value of a name counts.
class Query {
 public:
  explicit Query(std::string_view text);
  [[nodiscard]] std::string get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// The non-empty segments of a path, percent-decoded.
std::vector<std::string> path_segments(std::string_view path);

// HTML, as something that stands in for a peer answers.
http::Response page_of_a_proxy(int status);

}  // namespace gitops::test
