#include "bench/control_plane_replicas.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench_row.hpp"
#include "bench/event_load.hpp"
#include "bench/event_pool.hpp"
#include "bench/median.hpp"
#include "control-plane/replicas_fixture.hpp"
#include "support/postgres_server.hpp"
#include "support/wait.hpp"

namespace gitops::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kApplications = 2'000;
constexpr std::size_t kRuntimes = 16;
constexpr std::size_t kInFlight = 256;
constexpr double kSteadyRate = 2'000;
constexpr std::size_t kMaxInFlight = 1'000;
constexpr auto kProbeEvery = 100ms;

// Some control planes on a database of their own. Each gets the events of its own runtimes.
class Group {
 public:
  explicit Group(std::size_t count)
      : database_(test::PostgresServer::shared().new_database()), replicas_(count, database_) {
    const auto runtimes = kRuntimes / count;
    for (std::size_t i = 0; i < count; ++i) {
      auto& load = loads_.emplace_back();
      for (std::size_t k = 0; k < runtimes; ++k) {
        load.tokens.push_back(replicas_.at(0).register_runtime(
            replicas_.key, "runtime-" + std::to_string(i * runtimes + k)));
      }
      load.pool = std::make_unique<EventPool>(kApplications / count, runtimes);
      load.pool->prepare();
    }
  }

  [[nodiscard]] std::size_t size() const { return loads_.size(); }
  test::Replicas& replicas() { return replicas_; }
  // Posts to all of them at once. Returns the acknowledged events a second.
  double rate(milliseconds slice) {
    std::vector<std::thread> threads;
    std::mutex mutex;
    double sum = 0;
    std::uint64_t failed = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      threads.emplace_back([&, i] {
        const auto outcome = load(i).run_closed(kInFlight / size(), slice);
        const std::lock_guard lock(mutex);
        sum += outcome.rate();
        failed += outcome.all.failed;
      });
    }
    for (auto& thread : threads) thread.join();
    if (failed > 0) throw std::runtime_error("events failed");
    return sum;
  }
  EventLoad load(std::size_t i) {
    return {*loads_[i].pool, {replicas_.at(i).port(), loads_[i].tokens}};
  }
  // Turns the outbox off and on: PostgreSQL drops its rows as if nobody had written them.
  void set_outbox(bool is_on) const {
    test::PostgresServer::shared().query(
        database_, is_on ? "DROP RULE no_outbox ON change"
                         : "CREATE RULE no_outbox AS ON INSERT TO change DO INSTEAD NOTHING");
  }
  [[nodiscard]] double deadlocks() const {
    return std::stod(test::PostgresServer::shared().query(
        database_, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"));
  }

 private:
  struct Load {
    std::unique_ptr<EventPool> pool;
    std::vector<std::string> tokens;
  };
  std::string database_;
  test::Replicas replicas_;
  std::vector<Load> loads_;
};

// Notes when the rows of marked Applications arrive on a stream, which the curl program reads into a file.
class Arrivals {
 public:
  explicit Arrivals(Group& group, std::size_t replica)
      : stream_(group.replicas().at(replica), group.replicas().header()),
        reader_([this](const std::stop_token& stop) { read(stop); }) {}

  std::map<std::string, Clock::time_point> take() {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    return times_.size();
  }

 private:
  void read(const std::stop_token& stop) {
    std::size_t at = 0;
    std::string rest;
    while (!stop.stop_requested()) {
      const auto text = stream_.text_from(at);
      if (text.empty()) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const auto now = Clock::now();
      at += text.size();
      rest += text;
      constexpr std::string_view kMark = "\"probe-";
      std::size_t begin = 0;
      for (auto found = rest.find(kMark); found != std::string::npos;
           found = rest.find(kMark, begin)) {
        const auto end = rest.find('"', found + 1);
        if (end == std::string::npos) break;
        const std::lock_guard lock(mutex_);
        times_.try_emplace(rest.substr(found + 1, end - found - 1), now);
        begin = end + 1;
      }
      rest.erase(0, std::max(begin, rest.size() < 64 ? 0 : rest.size() - 64));
    }
  }

  test::LiveStream stream_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> times_;
  std::jthread reader_;
};

void compare_rates(std::vector<std::unique_ptr<Group>>& groups, milliseconds slice, int rounds) {
  std::vector<std::vector<double>> rates(groups.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < groups.size(); ++i) rates[i].push_back(groups[i]->rate(slice));
  }
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const auto count = std::to_string(groups[i]->size());
    print_at_least("S6 intake of " + count + " replicas, PostgreSQL", "events/s", median(rates[i]),
                   median(rates[0]), 0.9,
                   "peer: one; 256 in flight in all, disjoint runtimes, all on this machine");
    print_limit("S6 deadlocks, " + count + " replicas", "", groups[i]->deadlocks(), 0, "");
  }
}

// The times at which a probe was posted and acknowledged: its commit lies between them.
struct Probe {
  Clock::time_point posted = {};
  Clock::time_point acknowledged = {};
};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double share_of(std::vector<double>& times, std::size_t percent) {
  std::ranges::sort(times);
  return times[std::min(times.size() - 1, times.size() * percent / 100)];
}

// The time begins before the request of the event, so it is an upper bound.
void time_stream(Group& group, milliseconds slice) {
  auto& replicas = group.replicas();
  Arrivals arrivals(group, 1);
  std::map<std::string, Probe> sent;
  std::atomic<bool> ends = false;
  std::exception_ptr failure;
  std::thread probes([&] {
    try {
      for (int i = 0; !ends; ++i) {
        const auto name = "probe-" + std::to_string(i);
        auto& probe = sent[name];
        probe.posted = Clock::now();
        if (replicas.post(0, name) != 200) throw std::runtime_error("a probe was refused");
        probe.acknowledged = Clock::now();
        std::this_thread::sleep_for(kProbeEvery);
      }
    } catch (...) {
      failure = std::current_exception();
    }
  });
  const auto outcome = group.load(0).run_open(kSteadyRate, kMaxInFlight, slice);
  ends = true;
  probes.join();
  if (failure) std::rethrow_exception(failure);
  test::require_until([&] { return arrivals.count() == sent.size(); }, 30s, "all rows");
  const auto arrived = arrivals.take();
  std::vector<double> times;
  std::vector<double> shortest;
  for (const auto& [name, probe] : sent) {
    const auto at = arrived.at(name);
    times.push_back(ms_between(probe.posted, at));
    shortest.push_back(ms_between(probe.acknowledged, at));
  }
  print_limit("S7 change to the stream of another replica, p99", "ms", share_of(times, 99), 250,
              "from before the request, by a program that starts for it; from its end " +
                  rounded(share_of(shortest, 99)) + "; beside " + rounded(outcome.rate()) +
                  " events/s; median " + rounded(share_of(times, 50)) + " of " +
                  std::to_string(times.size()));
}

// The outbox beside none. Nobody reads a stream, and what readers take is a row of its own.
void compare_feed(Group& group, milliseconds slice, int rounds) {
  std::vector<double> without;
  std::vector<double> with;
  std::vector<double> read;
  for (int round = 0; round < rounds; ++round) {
    group.set_outbox(false);
    without.push_back(group.rate(slice));
    group.set_outbox(true);
    with.push_back(group.rate(slice));
    const Arrivals here(group, 0);
    const Arrivals there(group, 1);
    read.push_back(group.rate(slice));
  }
  print_at_least("S7 intake of two replicas with the outbox", "events/s", median(with),
                 median(without), 0.95,
                 "peer: PostgreSQL drops its rows; at most 20 NOTIFY a second in both");
  print_at_least("intake with a stream of every row at each of two replicas", "events/s",
                 median(read), median(with), 0,
                 "peer: without streams; their readers are on this machine");
}

}  // namespace

int compare_replicas(milliseconds slice, int rounds) {
  std::vector<std::unique_ptr<Group>> groups;
  for (const std::size_t count : {1U, 2U, 4U}) {
    std::fprintf(stderr, "control_plane: starting %zu\n", count);
    groups.push_back(std::make_unique<Group>(count));
  }
  std::fprintf(stderr, "control_plane: intake of replicas\n");
  compare_rates(groups, slice, rounds);
  std::fprintf(stderr, "control_plane: streams\n");
  time_stream(*groups[1], 5 * slice);
  compare_feed(*groups[1], slice, rounds);
  return 0;
}

}  // namespace gitops::bench
