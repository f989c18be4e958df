#include "bench/control_plane_soak.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench_row.hpp"
#include "bench/control_plane_bed.hpp"
#include "bench/event_load.hpp"
#include "bench/event_pool.hpp"

namespace gitops::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRuntimes = 1'000;
constexpr std::size_t kApplications = 10'000;
// The quiet runtimes post once a second each, the two busy ones half of all events.
constexpr double kRate = 2'000;
constexpr std::size_t kBusyRuntimes = 2;
constexpr std::size_t kMaxInFlight = 4'000;
constexpr std::string_view kQuery =
    R"({"query":"{applications(filters:{statuses:[OUT_OF_SYNC]},pagination:{first:50}){edges{node)"
    R"({metadata{name} syncStatus}} pageInfo{endCursor}}}"})";

// Chooses the Applications: of the quiet runtimes one after another, of the busy ones at random.
class Script {
 public:
  std::size_t next() {
    is_busy_ = !is_busy_;
    const auto of_runtime = random_() % (kApplications / kRuntimes);
    if (is_busy_) return of_runtime * kRuntimes + random_() % kBusyRuntimes;
    quiet_ = quiet_ + 1 < kRuntimes ? quiet_ + 1 : kBusyRuntimes;
    return of_runtime * kRuntimes + quiet_;
  }

 private:
  std::mt19937_64 random_{7};
  bool is_busy_ = false;
  std::size_t quiet_ = kBusyRuntimes;
};

struct Curve {
  std::vector<double> memory;  // MB, each second
  double wal = 0;              // bytes, the largest
};

void print_rows(const EventLoad::Outcome& outcome, const Curve& curve, const ControlPlaneBed& bed,
                std::uint64_t questions) {
  const auto largest_in = [&](double from, double to) {
    const auto size = static_cast<double>(curve.memory.size());
    const auto begin = curve.memory.begin();
    return *std::max_element(begin + static_cast<std::ptrdiff_t>(size * from),
                             begin + static_cast<std::ptrdiff_t>(size * to));
  };
  const auto early = largest_in(0.25, 0.5);
  const auto late = largest_in(0.75, 1);
  print_at_most("S16 memory in the last quarter, 1,000 runtimes", "MB", late, early, 1.05,
                "peer: the second quarter; " + rounded(outcome.rate()) + " events/s for " +
                    rounded(outcome.seconds) + " s");
  double slowest = 1e9;
  double fastest = 0;
  double longest = 0;
  for (std::size_t i = kBusyRuntimes; i < kRuntimes; ++i) {
    const auto count = static_cast<double>(outcome.runtimes[i].acknowledged);
    slowest = std::min(slowest, count);
    fastest = std::max(fastest, count);
    longest = std::max(longest, outcome.runtimes[i].longest);
  }
  print_at_least("S16 events of the slowest runtime", "events", slowest, fastest, 0.95,
                 "peer: the fastest of 998 that post one event a second, beside two that post half "
                 "of all events; longest wait " +
                     rounded(longest * 1e3) + " ms, " + std::to_string(outcome.all.deferred) +
                     " got 429");
  print_limit("S16 write-ahead log", "MB", curve.wal / 1e6, 64, "the largest");
  print_limit("S16 errors about a locked database", "lines",
              static_cast<double>(bed.log_lines("locked")), 0,
              "in the program's log; " + std::to_string(questions) + " pages were read, " +
                  std::to_string(outcome.all.failed) + " events failed");
}

}  // namespace

int soak(std::chrono::minutes duration) {
  ControlPlaneBed bed(store::Engine::sqlite, kRuntimes);
  bed.fill(0, kApplications);
  EventPool pool(kApplications, kRuntimes);
  std::atomic<bool> ends = false;
  std::uint64_t questions = 0;
  std::string failure;
  std::thread reader([&] {
    try {
      const auto connection = bed.queries();
      for (; !ends; ++questions) {
        connection->ask(std::string(kQuery));
        std::this_thread::sleep_for(50ms);
      }
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  Curve curve;
  Script script;
  EventLoad load(pool, bed.target());
  const auto outcome = load.run_open(
      kRate, kMaxInFlight, duration, [&script] { return script.next(); },
      [&](const EventLoad::Outcome& so_far) {
        curve.memory.push_back(bed.memory());
        curve.wal = std::max(curve.wal, bed.wal_size());
        if (curve.memory.size() % 60 == 0) {
          std::fprintf(stderr, "control_plane: %zu min, %.1f MB, %llu events, WAL %.1f MB\n",
                       curve.memory.size() / 60, curve.memory.back(),
                       static_cast<unsigned long long>(so_far.all.acknowledged), curve.wal / 1e6);
        }
      });
  ends = true;
  reader.join();
  if (!failure.empty()) throw std::runtime_error(failure);
  print_rows(outcome, curve, bed, questions);
  return 0;
}

}  // namespace gitops::bench
