#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/http/router.hpp"
#include "doubles/double_server.hpp"
#include "doubles/fake_accounts.hpp"

namespace gitops::test {

// A control plane that records events: it checks POST /2.0/api/events (token, gzip, JSON, form
// of the payload) and keeps the events in order of arrival. GET /events returns them. It knows
// accounts, users, runtimes and rules (accounts()): at first the account "double" with the runtime
// "double", to which its token belongs. Faults: see DoubleServer.
class FakePlatform : public DoubleServer {
 public:
  using Json = nlohmann::json;

  struct Options {
    http::ServerOptions server = {};
    std::string token = "platform-token";  // the complete Authorization header; empty: not checked
  };
  explicit FakePlatform(const Executor& executor, Options options);
  explicit FakePlatform(const Executor& executor) : FakePlatform(executor, Options()) {}

  // One event that was received and acknowledged.
  struct Report {
    Clock::time_point arrived;
    http::Headers headers;
    std::string event_id;        // X-Event-Id, may be empty
    std::uint64_t sequence = 0;  // X-Event-Sequence; 0: missing
    Json data;                   // the payload, without its {"data":…} frame
    Json object;                 // data.object decoded, from base64 or from JSON text

    [[nodiscard]] std::string kind() const;
    [[nodiscard]] std::string name() const;
    // A string field of data.source; empty when absent.
    [[nodiscard]] std::string source(std::string_view field) const;
  };
  [[nodiscard]] const std::deque<Report>& reports() const { return reports_; }
  // Matching reports in order of arrival, from index `first`. An empty kind or name matches all.
  [[nodiscard]] std::vector<const Report*> find(std::string_view kind, std::string_view name,
                                                std::size_t first = 0) const;
  // Waits for a report that matches, among those from index `first`; nullptr at the
  // deadline.
  Task<const Report*> wait_for(std::function<bool(const Report&)> matches, Deadline deadline,
                               std::size_t first = 0);
  // Waits for at least `count` reports; false at the deadline.
  Task<bool> wait_for_count(std::size_t count, Deadline deadline);
  // Waits until no report has arrived for `quiet`; false at the deadline.
  Task<bool> wait_until_quiet(Clock::duration quiet, Deadline deadline);

  // Fault: acknowledges each n-th event without recording it; 0 ends it.
  void forget_every(std::size_t n) { forget_every_ = n; }
  [[nodiscard]] const std::vector<std::string>& forgotten() const { return forgotten_; }
  // Fault: records events that `which` selects and closes their connections without an answer.
  // nullptr ends it.
  void lose_answers(std::function<bool(const Report&)> which) { loses_answer_ = std::move(which); }

  // Fault: answers an event with the status that `status_of` returns, unless that is 0; such an answer
  // is not in refused(). nullptr ends it.
  void refuse_events(std::function<int(const Report&)> status_of) {
    refuses_ = std::move(status_of);
  }

  // Tells this position with each acknowledgement, and asks for the resync with this token; empty ones are left out.
  void acknowledge_with(std::string position, std::string resync) {
    position_ = std::move(position);
    resync_ = std::move(resync);
  }
  // Sends this X-Intake-Again with each acknowledgement; empty: none.
  void ask_again(std::string head) { again_ = std::move(head); }
  // The bodies of POST /2.0/api/events/inventory with this token, each answered as `answer` says. By default no object
  // is asked for. One with another token is answered 409, and "{}" with the heads of an acknowledgement.
  [[nodiscard]] const std::vector<Json>& inventories() const { return inventories_; }
  void answer_inventories(std::function<http::Response(const Json&)> answer) {
    answers_inventory_ = std::move(answer);
  }

  FakeAccounts& accounts() { return accounts_; }

  // One line with the reason for each 4xx answer; empty for a correct reporter.
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }
  void set_token(std::string token);

 protected:
  Task<> handle(http::Exchange& exchange) override;
  [[nodiscard]] http::Response failure(int status) const override;

 private:
  std::vector<http::Route> routes();
  Task<> take_report(http::Exchange& exchange);
  Task<> take_inventory(http::Exchange& exchange);
  // The body, inflated and parsed; discarded when that fails.
  static Json payload_of(const http::Request& request, std::string body);
  http::Response take(const http::Request& request, std::string body);
  void add_position(http::Response& response) const;
  // Records the reason and makes the 4xx answer.
  http::Response refuse(int status, std::string_view why);
  [[nodiscard]] std::string record() const;

  Options options_;
  FakeAccounts accounts_;
  http::Router routes_;
  std::deque<Report> reports_;
  std::vector<std::string> refused_;
  std::size_t forget_every_ = 0;
  std::size_t taken_ = 0;
  std::function<bool(const Report&)> loses_answer_;
  std::function<int(const Report&)> refuses_;
  std::vector<std::string> forgotten_;  // event ids
  std::string position_;
  std::string resync_;
  std::string again_;
  std::vector<Json> inventories_;
  std::function<http::Response(const Json&)> answers_inventory_;
};

}  // namespace gitops::test
