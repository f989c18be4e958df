#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/backoff.hpp"
#include "common/core/log.hpp"
#include "common/core/status_report.hpp"
#include "common/core/task_group.hpp"
#include "tunnel-client/session.hpp"

namespace gitops::tunnel_client {

// What the links of a server have in common.
struct LinkSettings {
  std::string server;  // its name, for people
  Session::Dial dial;
  Session::Connect connect;
  // Made for each session, since tokens rotate. Without run id.
  std::function<Session::Options()> session;
  // The server gives a host that several sessions offer to all of them in turn, although it does not
  // tell so (frp's groups).
  bool has_group = false;
};

// Keeps one link to a server: a session, and another one whenever it is over. Replaces a session
// without a gap: the next one serves before the present one is told to stop, and that one goes on
// for those who are there. A server of which only one session may offer a host is asked to swap them
// instead, which takes a round trip. Loop thread only.
class LinkKeeper {
 public:
  // `settings`, `traffic` and `changed` outlive it; `changed` is told of everything that the
  // functions below tell. `number`: of the link, for people, from 1.
  LinkKeeper(const Executor& executor, const LinkSettings& settings, int number, Traffic traffic,
             Event& changed, std::uint64_t seed);

  // Begins to keep the link; it is not wanted yet.
  void start();
  // Whether the link is wanted. One that is there stays.
  void want(bool wanted);
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }
  // Another session takes the place of the present one.
  void replace();
  // Makes no further session, and lets those that exist end with their last connection.
  void stop();
  // Ends everything. To be called and awaited before it is destroyed.
  Task<> end();

  // The session that serves, or is about to; null while there is none.
  [[nodiscard]] const Session* session() const;
  [[nodiscard]] bool is_wanted() const { return wanted_; }
  // Several sessions may offer the same host to this server, as its login told.
  [[nodiscard]] bool is_shared() const;
  // No session is left.
  [[nodiscard]] bool is_done() const { return !current_ && !next_ && draining_.empty(); }
  // Why nobody is served by this link; empty when users are.
  [[nodiscard]] std::string not_serving_because() const;
  // Brings the metric of the link's state up to date.
  void count();
  // For /statusz, with the sessions that are being left as details.
  [[nodiscard]] StatusEntry status() const;

 private:
  struct Live;
  using LivePtr = std::shared_ptr<Live>;

  Task<> keep();
  Task<> until_due();
  [[nodiscard]] bool wants_session() const;
  [[nodiscard]] StatusState state() const;
  Task<std::optional<Error>> renew();
  Task<std::optional<Error>> succeed(LivePtr old, LivePtr next);
  Task<> serve(LivePtr live);
  void retire(const LivePtr& old);
  template <class Condition>
  Task<> until(Condition condition, Deadline deadline);
  void wait_before_next();

  Executor executor_;
  const LinkSettings& settings_;
  int number_;
  Traffic traffic_;
  Event& changed_;
  Backoff backoff_;
  LivePtr current_;
  LivePtr next_;  // is to replace current_
  std::vector<LivePtr> draining_;
  std::string run_id_;                           // of the last session that was lost
  std::string down_;                             // why there is no session
  std::optional<Error> refused_;                 // the last attempt to replace current_
  Clock::time_point due_{};                      // no attempt before
  std::optional<Clock::time_point> away_since_;  // the last good session was lost
  bool is_scheduled_ = false;                    // due_ was set for the replacement that is wanted
  bool wanted_ = false;
  bool is_replacing_ = false;  // replace() was called
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_client
