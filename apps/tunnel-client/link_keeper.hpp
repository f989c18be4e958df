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

// Settings that all links to one server share.
struct LinkSettings {
  std::string server;  // for logs and /statusz
  Session::Dial dial;
  Session::Connect connect;
  // Returns the options of a new session, without run id. Called for each session, since tokens
  // rotate.
  std::function<Session::Options()> session;
  // The server balances users over all sessions that offer the same host, although its login
  // response does not say so (frp's groups).
  bool has_group = false;
};

// Maintains one link to a server: a session, and a new session whenever the current one ends.
// Replaces a session without a gap: the new session serves before the current one is stopped, and
// the current one drains its connections. If the server allows only one session to offer a host,
// the keeper swaps the two sessions, with a short gap (docs/contributing/design/swapping-links.md). Loop thread
// only.
class LinkKeeper {
 public:
  // `settings` and `changed` must outlive the keeper. `changed` is set whenever a result of the
  // functions below changes. `number` is the link's number in logs and status, from 1.
  LinkKeeper(const Executor& executor, const LinkSettings& settings, int number, Traffic traffic,
             Event& changed, std::uint64_t seed);

  // Starts the link's task. The link is not wanted yet.
  void start();
  // Sets whether the link is wanted. An existing session stays when it is not.
  void want(bool wanted);
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }
  // Replaces the current session by a new one.
  void replace();
  // Opens no further session and lets existing sessions end with their last connection.
  void stop();
  // Ends all sessions and tasks. Must be awaited before destruction.
  Task<> end();

  // The session that serves or is being set up; null if there is none.
  [[nodiscard]] const Session* session() const;
  [[nodiscard]] bool is_wanted() const { return wanted_; }
  // Returns whether several sessions may offer the same host to this server, according to its login
  // response.
  [[nodiscard]] bool is_shared() const;
  // Returns whether no session is left.
  [[nodiscard]] bool is_done() const { return !current_ && !next_ && draining_.empty(); }
  // The reason why this link serves no users; empty while it serves.
  [[nodiscard]] std::string not_serving_because() const;
  // Updates the metric of the link's state.
  void count();
  // Entry of /statusz, with the draining sessions as details.
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
  LivePtr next_;  // will replace current_
  std::vector<LivePtr> draining_;
  std::string run_id_;                           // of the last session that was lost
  std::string down_;                             // reason why there is no session
  std::optional<Error> refused_;                 // error of the last attempt to replace current_
  Clock::time_point due_{};                      // no attempt before this time
  std::optional<Clock::time_point> away_since_;  // time at which the last good session was lost
  bool is_scheduled_ = false;                    // due_ is set for the wanted replacement
  bool wanted_ = false;
  bool is_replacing_ = false;  // replace() was called
  bool is_stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_client
