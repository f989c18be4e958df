#include "tunnel-client/link_keeper.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace gitops::tunnel_client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Full jitter: the clients of a restarted server spread over the first quarter of a second, then
// over longer and longer times.
constexpr Backoff::Options kReconnect{.initial = milliseconds(250), .max = seconds(30)};
// Minimum duration of a session that resets the backoff.
constexpr auto kGoodSession = seconds(1);
// Minimum time between replacements, for a server that keeps sending its clients away.
constexpr auto kBetweenReplacements = seconds(1);
// Time limit for the server's responses during a replacement.
constexpr auto kAnswer = seconds(10);
// Maximum number of draining sessions; the oldest is closed when there are more.
constexpr std::size_t kMaxDraining = 8;

const Log& log() {
  static const Log kLog("link");
  return kLog;
}

}  // namespace

struct LinkKeeper::Live {
  Live(const Executor& executor, std::unique_ptr<net::Channel> server, Session::Options options,
       Session::Connect connect, Traffic& traffic, Event& changed)
      : session(executor, std::move(server), std::move(options), std::move(connect), traffic,
                changed) {}
  Session session;
  Clock::time_point begin = Clock::now();
  std::optional<Error> ending;
};

LinkKeeper::LinkKeeper(const Executor& executor, const LinkSettings& settings, int number,
                       Traffic traffic, Event& changed, std::uint64_t seed)
    : executor_(executor),
      settings_(settings),
      number_(number),
      traffic_(traffic),
      changed_(changed),
      backoff_(kReconnect, seed),
      tasks_(executor) {}

void LinkKeeper::start() {
  tasks_.spawn("keep", [this] { return keep(); });
}

void LinkKeeper::want(bool wanted) {
  if (std::exchange(wanted_, wanted) != wanted) changed_.notify_all();
}

void LinkKeeper::replace() {
  is_replacing_ = true;
  changed_.notify_all();
}

void LinkKeeper::stop() {
  is_stopping_ = true;
  if (current_) current_->session.stop();
  if (next_) next_->session.close("the program stops");
}

Task<> LinkKeeper::end() {
  tasks_.cancel();
  co_await tasks_.join();
}

// -- the loop --

bool LinkKeeper::wants_session() const {
  if (is_stopping_ || !wanted_) return false;
  return !current_ || is_replacing_ || current_->session.server_is_draining() ||
         current_->session.is_worn_out();
}

Task<> LinkKeeper::keep() {
  while (true) {
    co_await until_due();
    refused_ = co_await renew();
    if (!refused_) continue;
    if (!current_) down_ = refused_->message;
    wait_before_next();
    log().warning(current_ ? "the link cannot be replaced; the present one goes on"
                           : "no link to the server; connecting again",
                  {{"server", settings_.server},
                   {"link", number_},
                   {"error", refused_->message},
                   {"code", gitops::to_string(refused_->code)}});
    changed_.notify_all();
  }
}

void LinkKeeper::wait_before_next() {
  auto wait = backoff_.next();
  if (!current_) {
    // Bounds the wait by the time that the server has been away. Otherwise clients that drew short
    // waits would have backed off far before a restarted server is back.
    const auto now = Clock::now();
    if (!away_since_) away_since_ = now;
    const auto away = std::chrono::duration_cast<milliseconds>(now - *away_since_);
    wait %= std::max(away, kReconnect.initial) + milliseconds(1);
  }
  due_ = deadline_after(wait);
}

Task<> LinkKeeper::until_due() {
  while (true) {
    if (!wants_session()) {
      co_await changed_.wait();
    } else if (current_ && !std::exchange(is_scheduled_, true)) {
      // Spreads the reconnects: a draining server notifies all its clients at once.
      due_ = std::max(current_->begin + kBetweenReplacements, deadline_after(backoff_.next()));
    } else if (Clock::now() < due_) {
      co_await changed_.wait(due_);
    } else {
      co_return;
    }
  }
}

template <class Condition>
Task<> LinkKeeper::until(Condition condition, Deadline deadline) {
  while (!condition() && Clock::now() < deadline) co_await changed_.wait(deadline);
}

Task<std::optional<Error>> LinkKeeper::renew() {
  const bool asked = std::exchange(is_replacing_, false);
  auto options = settings_.session();
  auto server = co_await settings_.dial(deadline_after(options.connect_timeout));
  if (!server) {
    is_replacing_ = is_replacing_ || asked;
    co_return server.error();
  }
  if (is_stopping_) co_return std::nullopt;
  // `old` may have been lost in the meantime.
  const auto old = current_;
  if (!old) options.control.login.run_id = run_id_;
  options.control.hold_proxies = old != nullptr;
  const auto live = std::make_shared<Live>(executor_, std::move(*server), std::move(options),
                                           settings_.connect, traffic_, changed_);
  traffic_.sessions.Increment();
  (old ? next_ : current_) = live;
  tasks_.spawn("session", [this, live] { return serve(live); });
  changed_.notify_all();
  is_scheduled_ = false;
  if (!old) co_return std::nullopt;
  auto error = co_await succeed(old, live);
  next_.reset();
  if (error) {
    live->session.close("it cannot take over");
    is_replacing_ = is_scheduled_ = true;  // the next attempt follows
  }
  co_return error;
}

// Replaces `old` by `next`.
Task<std::optional<Error>> LinkKeeper::succeed(LivePtr old, LivePtr next) {
  auto& session = next->session;
  co_await until([&] { return next->ending || session.control().is_logged_in(); },
                 deadline_after(kAnswer));
  if (next->ending) co_return next->ending;
  if (!session.control().is_logged_in()) {
    co_return Error{.code = ErrorCode::timeout, .message = "no answer to the login"};
  }
  if (settings_.has_group || session.control().links() > 1) {
    session.offer();
    using State = Session::State;
    co_await until(
        [&] {
          return next->ending || session.state() == State::serving ||
                 session.state() == State::refused;
        },
        deadline_after(kAnswer));
    if (next->ending) co_return next->ending;
    if (session.state() != State::serving) {
      const auto why = session.refusal();
      co_return Error{.code = ErrorCode::forbidden,
                      .message = why.empty() ? "no answer for the proxy" : why};
    }
    retire(old);
    current_ = next;
    co_return std::nullopt;
  }
  // Swaps the sessions: only one may offer the host at a time.
  retire(old);
  current_ = next;
  co_await until([&] { return old->ending || old->session.has_withdrawn() || next->ending; },
                 deadline_after(kAnswer));
  session.offer();
  co_return std::nullopt;
}

void LinkKeeper::retire(const LivePtr& old) {
  backoff_.reset();
  if (old->ending) return;
  old->session.stop();
  draining_.push_back(old);
  log().info("replaced the link", {{"server", settings_.server},
                                   {"link", number_},
                                   {"connections_left", old->session.carrying()}});
  if (draining_.size() > kMaxDraining) {
    draining_.front()->session.close("too many sessions are being left");
  }
}

Task<> LinkKeeper::serve(LivePtr live) {
  const auto error = co_await live->session.run();
  live->ending = error;
  std::erase(draining_, live);
  if (live == current_) {
    current_.reset();
    run_id_ = live->session.run_id();
    down_ = error.message;
    const auto since = live->session.serving_since();
    if (since && Clock::now() - *since >= kGoodSession) {
      backoff_.reset();
      away_since_.reset();
    }
    wait_before_next();
    if (!is_stopping_) {
      log().warning("lost the link; connecting again", {{"server", settings_.server},
                                                        {"link", number_},
                                                        {"error", error.message},
                                                        {"code", gitops::to_string(error.code)}});
    }
  }
  changed_.notify_all();
}

// -- status --

const Session* LinkKeeper::session() const {
  return current_ ? &current_->session : nullptr;
}

bool LinkKeeper::is_shared() const {
  return settings_.has_group || (current_ && current_->session.control().links() > 1);
}

std::string LinkKeeper::not_serving_because() const {
  if (!current_) return down_.empty() ? "connecting" : down_;
  const auto state = current_->session.state();
  if (state == Session::State::serving) return {};
  const auto refusal = current_->session.refusal();
  std::string why(to_string(state));
  if (state == Session::State::logging_in && !down_.empty()) why += "; before: " + down_;
  return refusal.empty() ? why : why + ": " + refusal;
}

void LinkKeeper::count() {
  traffic_.serving.Set(current_ && not_serving_because().empty() ? 1 : 0);
}

StatusState LinkKeeper::state() const {
  if (!current_) return down_.empty() ? StatusState::pending : StatusState::failed;
  switch (current_->session.state()) {
    case Session::State::serving:
      return current_->session.server_is_draining() || refused_ ? StatusState::degraded
                                                                : StatusState::ok;
    case Session::State::refused:
      return StatusState::failed;
    case Session::State::logging_in:
      return down_.empty() ? StatusState::pending : StatusState::failed;
    case Session::State::registering:
    case Session::State::stopping:
      break;
  }
  return StatusState::pending;
}

StatusEntry LinkKeeper::status() const {
  StatusEntry entry{.name = "link " + std::to_string(number_)};
  if (!current_ && !wanted_) {
    entry.state = StatusState::unavailable;
    entry.message = "not kept, since the server takes fewer";
    return entry;
  }
  const auto why = not_serving_because();
  entry.state = state();
  entry.message = why.empty() ? "serving" : why;
  if (current_) {
    const auto& session = current_->session;
    if (why.empty() && session.serving_since()) {
      entry.since = wall_now() - std::chrono::duration_cast<milliseconds>(Clock::now() -
                                                                          *session.serving_since());
    }
    if (session.server_is_draining()) entry.add_text("server_state", "the server is leaving", "");
    if (!session.control().server_version().empty()) {
      entry.add_text("server_version", session.control().server_version());
    }
    entry.add_count("connections", session.carrying());
    if (refused_) entry.add_text("replacement_error", refused_->message, "cannot be replaced");
  }
  const auto number = [](const Counter& counter) {
    return static_cast<std::uint64_t>(counter.Value());
  };
  entry.add_count("requests", number(traffic_.requests), "requests in total");
  entry.add_count("bytes_from_users", number(traffic_.bytes_from_server));
  entry.add_count("bytes_to_users", number(traffic_.bytes_to_server));
  for (const auto& old : draining_) {
    StatusEntry left{.name = "replaced session", .message = "being left"};
    left.add_count("connections", old->session.carrying());
    entry.add_detail(std::move(left));
  }
  return entry;
}

}  // namespace gitops::tunnel_client
