#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "suite/suite_bed.hpp"

namespace gitops::test {

// Users who ask app-proxy through the tunnel, one request after the other, and how many were failed that could have been
// answered.
//
// A request could have been answered when no outage overlaps it. An outage of a kind of requests begins with a fault
// that takes away what such a request needs: it kills a part on the way, cuts the way, or makes a peer refuse that has
// to be asked. It ends when the fault has ended and a request of this kind was answered again, which has to be soon.
// Faults of other parts, slow networks, and a network that holds bytes back for a moment are no outage: a
// request must be answered through them.
class SuiteUsers {
 public:
  // What a request needs besides the tunnel, the router and app-proxy.
  enum class Kind : std::uint8_t {
    version,      // nothing: app-proxy knows its user
    application,  // Argo CD
  };
  static constexpr std::array kKinds{Kind::version, Kind::application};

  // `application` is the name of one that exists.
  SuiteUsers(const Executor& executor, SuiteBed& bed, std::string application);

  // Starts to ask, until stop().
  void start();
  Task<> stop();
  // Sends one request. Empty: answered; otherwise why not.
  Task<std::string> ask(Kind kind);

  void begin_outage(Kind kind);
  // Call it when the fault has ended. Waits for an answer; false after `limit`.
  Task<bool> end_outage(Kind kind, Clock::duration limit);

  struct Figures {
    std::size_t requests = 0;
    std::size_t excused = 0;  // failed in an outage
    std::map<std::string, std::size_t> reasons;
    Clock::duration slowest = {};  // that was answered
  };
  [[nodiscard]] const Figures& figures() const { return figures_; }
  // One line for each request that failed outside of an outage. Call it when no outage goes on.
  [[nodiscard]] std::vector<std::string> failed();

 private:
  struct Span {
    Clock::time_point begin;
    Clock::time_point end = Clock::time_point::max();
  };
  struct Failed {
    Kind kind;
    Span span;
    std::string reason;
  };
  Task<> ask_on(Kind kind);

  SuiteBed& bed_;
  std::string document_of_[kKinds.size()];
  Metrics metrics_;
  net::Resolver resolver_;
  http::Client client_;
  std::map<Kind, std::vector<Span>> outages_;
  std::vector<Failed> failed_;
  Figures figures_;
  TaskGroup tasks_;
};

}  // namespace gitops::test
