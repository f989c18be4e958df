#include "control-plane/live/change_notices.hpp"

#include <algorithm>
#include <utility>

#include <prometheus/counter.h>

#include "common/core/backoff.hpp"
#include "common/store/postgres_connection.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr store::Statement kNotify{.name = "live.notify",
                                   .sql = "SELECT pg_notify('gitops_change', $1)"};
constexpr std::string_view kListen = "LISTEN gitops_change";
// The notice itself is not durable, and the server need not wait for its disk.
constexpr std::string_view kNotDurable = "SET synchronous_commit = off";

constexpr auto kNotifyPeriod = std::chrono::milliseconds(50);  // 20 a second
constexpr auto kCallLimit = std::chrono::seconds(15);          // also connects
constexpr int kWaitMs = 200;                                   // between looks at the stop token
constexpr int kWaitsPerCall = 25;  // then the loop is told that the connection lives
constexpr auto kStopGrace = std::chrono::seconds(1);

Counter& notices(Metrics& metrics, const char* what) {
  return metrics.counter("gitops_control_plane_change_notices_total",
                         "NOTIFY between the processes on one PostgreSQL", {{"notice", what}});
}

}  // namespace

// Jobs with the same key run one at a time, so one thread at a time uses it.
struct ChangeNotices::Line {
  Line(store::Location at, std::string script)
      : location(std::move(at)), first(std::move(script)) {}

  // Returns whether the connection is a new one.
  Result<bool> connect() {
    if (connection && connection->is_usable()) return false;
    connection.reset();
    auto opened = store::open_postgres(location, "control-plane-live");
    if (!opened) return std::unexpected(std::move(opened.error()));
    if (auto ran = (*opened)->run_script(first); !ran) {
      return std::unexpected(std::move(ran.error()));
    }
    connection = std::move(*opened);
    return true;
  }
  // Returns whether there may be news: a notice of others came, or one may have been lost.
  Result<bool> wait(const std::string& own, const std::stop_token& stop) {
    const auto connected = connect();
    if (!connected || *connected) return connected;
    for (int i = 0; i < kWaitsPerCall && !stop.stop_requested(); ++i) {
      const auto payloads = connection->wait_for_notifications(kWaitMs);
      if (!payloads) {
        connection.reset();
        return std::unexpected(payloads.error());
      }
      if (std::ranges::any_of(*payloads,
                              [&](const auto& text) { return !text.starts_with(own + ' '); })) {
        return true;
      }
    }
    return false;
  }
  Result<void> send(const std::string& payload) {
    if (const auto connected = connect(); !connected) return std::unexpected(connected.error());
    auto sent = connection->execute(kNotify, {payload});
    if (!sent) connection.reset();
    return sent;
  }

  store::Location location;
  std::string first;
  std::unique_ptr<store::PostgresConnection> connection = {};
};

ChangeNotices::ChangeNotices(const Executor& executor, Metrics& metrics, store::Location location,
                             std::string instance, std::function<void()> heard)
    : instance_(std::move(instance)),
      heard_(std::move(heard)),
      listening_(std::make_shared<Line>(location, std::string(kListen))),
      notifying_(std::make_shared<Line>(location, std::string(kNotDurable))),
      due_(executor),
      sent_(notices(metrics, "sent")),
      heard_total_(notices(metrics, "heard")),
      lost_(notices(metrics, "lost")),
      pool_({.name = "live-notices", .threads = 2}, metrics),
      tasks_(executor) {}

ChangeNotices::~ChangeNotices() = default;

void ChangeNotices::start() {
  tasks_.spawn("listen", [this] { return listen(); });
  tasks_.spawn("notify", [this] { return notify(); });
}

Task<> ChangeNotices::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  pool_.stop(kStopGrace);
}

void ChangeNotices::announce(std::int64_t no) {
  last_ = std::max(last_, no);
  is_due_ = true;
  due_.notify_all();
}

Task<> ChangeNotices::listen() {
  Backoff backoff({.initial = std::chrono::milliseconds(200), .max = std::chrono::seconds(5)},
                  random_seed());
  while (true) {
    const auto heard = co_await pool_.run(
        "listen", deadline_after(kCallLimit),
        [line = listening_, own = instance_](const std::stop_token& stop) -> Result<bool> {
          return line->wait(own, stop);
        });
    if (heard) {
      backoff.reset();
      if (!*heard) continue;
      heard_total_.Increment();
      heard_();
      continue;
    }
    if (repeated_.check("listen", Clock::now()).pass) {
      log_.warning("PostgreSQL cannot be listened to; changes of other processes come by polling",
                   {{"error", heard.error().message}});
    }
    co_await sleep_for(backoff.next());
  }
}

Task<> ChangeNotices::notify() {
  while (true) {
    while (!is_due_) co_await due_.wait();
    is_due_ = false;
    const auto sent =
        co_await pool_.run("notify", deadline_after(kCallLimit),
                           [line = notifying_, payload = instance_ + ' ' + std::to_string(last_)](
                               const std::stop_token&) { return line->send(payload); });
    (sent ? sent_ : lost_).Increment();
    co_await sleep_for(kNotifyPeriod);
  }
}

}  // namespace gitops::control_plane_server
