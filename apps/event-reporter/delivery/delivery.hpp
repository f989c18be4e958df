#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/control_plane/events.hpp"
#include "common/control_plane/report_requests.hpp"
#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/credential.hpp"
#include "common/core/log.hpp"
#include "common/core/metrics.hpp"
#include "common/core/secret.hpp"
#include "common/core/status_report.hpp"
#include "common/core/trace.hpp"
#include "common/core/wait_line.hpp"
#include "common/core/worker_pool.hpp"
#include "event-reporter/delivery/breaker.hpp"
#include "event-reporter/delivery/intake_history.hpp"
#include "event-reporter/delivery/journal.hpp"

namespace gitops::reporter {

// The meaning of a response of the control plane. A response that every event would get concerns the
// control plane or the path to it, and the event is retried; a response to the event itself is final.
//
//   2xx                                      acknowledged
//   2xx with an HTML page                    misdirected: a proxy or a login responds
//   401 403                                  unauthorized: a newer token is tried once; then
//                                            attempts are rare and an error is logged. 403 while
//                                            other events are acknowledged with the same token:
//                                            refused
//   413                                      too_large: sent once more in its reduced form, else
//                                            refused
//   408 425 429 499, 5xx but 501 and 505     outage: retried, Retry-After is honoured
//   no response (refused, cut, late, TLS)    outage
//   3xx 402 404 405 406 407 410 411 415 417
//   421 426 501 505                          misdirected: this is not the event endpoint; handled
//                                            like an outage
//   any other 4xx (400 409 414 422 431 …)    refused: by the control plane for the event's content,
//                                            or by an intermediary; see Delivered
enum class Verdict { acknowledged, unauthorized, too_large, outage, misdirected, refused };
Verdict verdict_of(int http_status);

// The outcome of an event that got a response.
struct Delivered {
  enum class Kind {
    acknowledged,
    reduced,  // acknowledged in its reduced form
    // Refused twice, with another event acknowledged in between: the event is the cause, not the
    // path.
    refused,
    put_off,  // refused, and to be retried: the path may be the cause
  } kind = Kind::acknowledged;
  Error error = {};  // when refused or put off: the status and the beginning of the response
};

// Delivers events to the control plane: permits of the circuit breaker, attempts, pauses and the
// journal. The caller keeps an event that was not acknowledged. Loop thread only; the arguments
// outlive it, and it outlives its callers.
class Delivery {
 public:
  struct Options {
    unsigned max_attempts = 5;  // attempts for one event, while the breaker is closed
    Backoff::Options backoff{.initial = std::chrono::milliseconds(200),
                             .max = std::chrono::seconds(5)};
    std::chrono::milliseconds post_timeout = std::chrono::seconds(30);
    // Shortest pause between attempts while the control plane refuses the token.
    std::chrono::milliseconds unauthorized_pause = std::chrono::seconds(10);
    // Time for which a probe is reserved for the caller that ready() let through.
    std::chrono::milliseconds probe_turn = std::chrono::seconds(5);
    Breaker::Options breaker = {};
    Journal::Options journal = {};
  };

  using MakeBody = std::function<std::string()>;
  struct Event {
    std::string part;     // label in metrics: "application", "resource", …
    std::string subject;  // the subject of Journal::add()
    std::string id;
    std::uint64_t sequence = 0;  // orders the events of an object
    std::string body;
    // Makes the body as soon as the event may be sent; `body` is then left empty. So a body exists only
    // for events in flight.
    MakeBody make_body = {};
    // Returns the reduced form of the body; empty when there is none.
    std::function<std::string(std::string_view body)> reduce = {};
    // The body takes long to make, to reduce, to compress or to search, so a worker thread does this.
    // `make_body` and `reduce` then own the objects that they use.
    bool large = false;
    // Called before each attempt; returns false when the event must not be sent any more. Empty: it
    // may.
    std::function<bool()> allowed = {};
    // The event was refused for good before: another refusal is final and does not concern the path.
    bool refused_before = false;
    SpanContext trace = {};  // of the report; each attempt is a span of it
  };

  Delivery(const Executor& executor, control_plane::Client& platform, Credential& token,
           Options options, Metrics& metrics);

  // Waits until an event can be sent; call it before the reads for an event. While the breaker is
  // open, lets one caller at a time through, for the next probe.
  Task<> ready();

  // Delivers one event, in up to max_attempts attempts. An Error means that the event was not
  // delivered, for a reason other than the event; it comes at once when the breaker is open and no
  // probe is due, and when the breaker opens. Cancellation ends the attempt.
  Task<Result<Delivered>> deliver(Event event);

  // Waits until no event is in flight, or for the deadline.
  Task<> idle(Deadline deadline);

  // Adds a callback for the end of each outage, when the breaker closes.
  using OnRecovery = std::function<void()>;
  void on_recovery(OnRecovery recovered) { recovered_.push_back(std::move(recovered)); }

  // Sets a function for the requests in acknowledgements to report objects again. It must not throw.
  using OnAsked = std::function<void(std::vector<control_plane::ReportRequest>)>;
  void on_asked(OnAsked asked) { asked_ = std::move(asked); }

  // Time of the last acknowledgement; the epoch before the first one.
  [[nodiscard]] Clock::time_point last_acknowledgement() const { return last_acknowledged_; }
  // The reason why events cannot be delivered now; empty when they can.
  [[nodiscard]] std::string last_error() const;
  // Returns the entries of /statusz.
  [[nodiscard]] StatusReport status() const;
  [[nodiscard]] const Journal& journal() const { return journal_; }
  [[nodiscard]] IntakeHistory& history() { return history_; }
  [[nodiscard]] const Breaker& breaker() const { return breaker_; }

 private:
  class Permit;
  struct Attempt;

  Task<Result<Permit>> acquire();
  void acknowledge(const Event& event, const Secret& token);
  // Makes the body, and compresses it: the event's own, or the one that `make` returns.
  Task<Result<std::string>> pack(Event& event);
  Task<Result<std::string>> pack(Event& event, MakeBody make);
  Task<Attempt> attempt(Event& event, const std::string& compressed, const Secret& token);
  Task<std::string> excerpt(Event& event, std::string quoting, Secret token);
  Task<bool> pause(std::chrono::milliseconds delay);
  Delivered refuse(const Event& event, unsigned number, const Attempt& attempt, Permit permit);
  void record(const Event& event, unsigned number, const Attempt& attempt, std::string_view result);
  Counter& reports(const std::string& part, std::string_view result);

  void succeeded(Breaker::Permit permit);
  void failed(Breaker::Permit permit, const Attempt& attempt);
  void refused(Breaker::Permit permit, const Attempt& attempt);
  void abandoned(Breaker::Permit permit);
  void on_opened(Breaker::State before, const Attempt& attempt);
  void on_closed();
  void look_for_newer_token(Clock::time_point now);
  // Publishes the breaker's state and wakes its waiters.
  void update(Breaker::State before);

  Executor executor_;
  control_plane::Client& platform_;
  Credential& token_;
  Options options_;
  Metrics& metrics_;
  Log log_{"delivery"};
  RepeatFilter attempts_log_{std::chrono::seconds(5)};
  RepeatFilter probes_log_{std::chrono::minutes(1)};

  Breaker breaker_;
  gitops::Event state_changed_;
  gitops::Event idle_;              // notified when no event is in flight any more
  WaitLine line_;                   // callers that wait for a permit, first come, first served
  Clock::time_point probe_turn_{};  // end of the reservation of a probe, see Options::probe_turn
  std::optional<Secret> refused_token_;
  std::optional<Secret>
      working_token_;  // an event was acknowledged with it, since the breaker closed
  std::vector<OnRecovery> recovered_;
  OnAsked asked_;
  std::uint64_t acknowledged_ = 0;  // number of events so far
  // Value of acknowledged_ at the first refusal of each event, by id.
  std::unordered_map<std::string, std::uint64_t> put_off_;

  Error because_;  // the reason why the breaker is not closed
  Clock::time_point opened_{};
  WallTime opened_time_{};
  unsigned failed_probes_ = 0;
  std::optional<WallTime> last_acknowledgement_;
  Clock::time_point last_acknowledged_{};
  std::string last_platform_error_;  // with its time
  Journal journal_;
  IntakeHistory history_;
  WorkerPool pool_;  // makes and compresses large bodies

  std::map<std::pair<std::string, std::string_view>, Counter*> reports_;  // by part and result
  Gauge& breaker_state_;
  Gauge& next_probe_;
  Gauge& permitted_;
  Gauge& in_flight_;
};

}  // namespace gitops::reporter
