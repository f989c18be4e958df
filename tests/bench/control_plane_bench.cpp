// The intake and the pages of the real control plane on SQLite and PostgreSQL, beside their floors in the same run: the
// append of the same bytes with fdatasync and the same number in flight, the reading of an event alone, and the store's
// loop without the program. Floors and programs take slices of time in turns, and a ratio is that of medians. CPU is
// that of the program and of the database's server, without the client. Only ratios within one run count.
//
// usage: control_plane_bench [--quick | --replicas | --soak MINUTES]
//   --quick: every row once, in about two minutes; rows about a million events are extrapolated
//   --replicas: one, two and four programs on one PostgreSQL, and their streams
//   --soak: 1,000 runtimes that post for this long, two of them without pause
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include "bench/bench_row.hpp"
#include "bench/control_plane_bed.hpp"
#include "bench/control_plane_replicas.hpp"
#include "bench/control_plane_soak.hpp"
#include "bench/event_load.hpp"
#include "bench/event_pool.hpp"
#include "bench/intake_floor.hpp"
#include "bench/median.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"

namespace gitops::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRuntimes = 16;
constexpr std::size_t kApplications = 10'000;
constexpr std::size_t kManyApplications = 100'000;
constexpr std::size_t kInFlight = 256;
constexpr std::size_t kFewInFlight = 16;
constexpr double kSteadyRate = 2'000;
constexpr double kPageLoad = 1'000;
constexpr std::size_t kOverloadInFlight = 3'000;

struct Plan {
  int rounds = 7;
  milliseconds slice = 3s;
  milliseconds steady = 10s;
  milliseconds pages = 20s;
  std::size_t timeline_rows = 100;  // of each of 10,000 Applications
  std::size_t releases = 20;
  std::size_t size_events = 1'000'000;
};
constexpr Plan kQuick{
    .rounds = 1, .slice = 1500ms, .steady = 3s, .pages = 5s, .size_events = 30'000};

double median_of(const std::vector<double>& values) {
  return median(values);
}

void progress(const std::string& text) {
  std::fprintf(stderr, "control_plane: %s\n", text.c_str());
}

// One engine: the program, and a database of the same content for the store's loop.
struct EngineBench {
  explicit EngineBench(store::Engine engine)
      : bed(engine, kRuntimes),
        loop(make_database(engine, folder.path().string()), kApplications, kRuntimes,
             server_of(engine)) {
    bed.fill(0, kApplications);
    loop.fill(0, kApplications);
  }

  test::TempDir folder;
  ControlPlaneBed bed;
  StoreLoop loop;
  std::vector<double> loop_rate;
  std::vector<double> loop_cpu;
  std::vector<double> rate;
  std::vector<double> cpu;
  std::vector<double> few_rate;
  std::vector<double> few_written;
  double memory = 0;           // with kInFlight events
  double overload_memory = 0;  // after the overload
};

struct Bench {
  explicit Bench(const Plan& p) : plan(p) {}

  Plan plan;
  EventPool pool{kApplications, kRuntimes};
  test::TempDir folder;
  AppendFloor append{pool, folder / "append"};
  std::vector<std::unique_ptr<EngineBench>> engines;
  std::vector<double> append_rate;
  std::vector<double> few_append_rate;
  std::vector<double> few_append_written;
  std::vector<double> read_cost;  // µs to inflate and read
  std::vector<double> pack_cost;
};

// Posts in a closed loop; returns the outcome and what it cost.
struct Measured {
  EventLoad::Outcome outcome;
  Usage usage;

  [[nodiscard]] double events() const { return static_cast<double>(outcome.all.acknowledged); }
};
Measured measure(Bench& bench, const ControlPlaneBed& bed, std::size_t in_flight) {
  EventLoad load(bench.pool, bed.target());
  const auto before = bed.usage();
  Measured measured{.outcome = load.run_closed(in_flight, bench.plan.slice), .usage = {}};
  measured.usage = bed.usage() - before;
  if (measured.outcome.all.failed > 0 || measured.outcome.all.acknowledged == 0) {
    throw std::runtime_error(bed.name() + ": events failed");
  }
  return measured;
}

void measure_once(Bench& bench) {
  const auto few = bench.append.run_closed(kFewInFlight, bench.plan.slice / 2);
  bench.few_append_rate.push_back(few.rate());
  bench.few_append_written.push_back(few.usage.written / few.events);
  bench.append_rate.push_back(bench.append.run_closed(kInFlight, bench.plan.slice / 2).rate());
  const auto codec = codec_cost(bench.pool, 2'000);
  bench.read_cost.push_back(codec.inflate + codec.read);
  bench.pack_cost.push_back(codec.pack);
  for (const auto& engine : bench.engines) {
    const auto loop = engine->loop.run(kInFlight, bench.plan.slice);
    engine->loop_rate.push_back(loop.rate());
    engine->loop_cpu.push_back(loop.cpu_us());
    const auto many = measure(bench, engine->bed, kInFlight);
    engine->rate.push_back(many.outcome.rate());
    engine->cpu.push_back(many.usage.cpu * 1e6 / many.events());
    engine->memory = std::max(engine->memory, engine->bed.memory());
    const auto some = measure(bench, engine->bed, kFewInFlight);
    engine->few_rate.push_back(some.outcome.rate());
    engine->few_written.push_back(some.usage.written / some.events());
  }
}

void compare_intake(Bench& bench) {
  for (int round = 0; round < bench.plan.rounds; ++round) {
    progress("intake, round " + std::to_string(round + 1) + " of " +
             std::to_string(bench.plan.rounds));
    measure_once(bench);
  }
  const auto reading = median_of(bench.read_cost);
  for (const auto& engine : bench.engines) {
    const auto& name = engine->bed.name();
    print_at_least("S1 intake, 256 in flight, " + name, "events/s", median_of(engine->rate),
                   median_of(engine->loop_rate), 0.35,
                   "peer: the store's loop alone, batches of 256; the append alone " +
                       rounded(median_of(bench.append_rate)));
    print_at_least("S2 intake, 16 in flight, " + name, "events/s", median_of(engine->few_rate),
                   median_of(bench.few_append_rate), 0.40, "peer: append with fdatasync");
    const auto parts = reading + median_of(engine->loop_cpu);
    print_limit("S3 CPU of an event, 256 in flight, " + name, "us", median_of(engine->cpu), 150,
                "the program and the database's server");
    print_at_most("S3 the same against its parts, " + name, "us", median_of(engine->cpu), parts,
                  1.7,
                  "peer: inflate and read " + rounded(reading) + ", store's loop " +
                      rounded(median_of(engine->loop_cpu)) + " with zstd " +
                      rounded(median_of(bench.pack_cost)));
    print_at_most("S10 written to disk, 16 in flight, " + name, "KB/event",
                  median_of(engine->few_written) / 1e3, median_of(bench.few_append_written) / 1e3,
                  6, "peer: append with fdatasync");
  }
}

// One event in a transaction beside batches.
void compare_batches(Bench& bench) {
  progress("batches");
  for (const auto& engine : bench.engines) {
    const auto one = engine->loop.run(1, bench.plan.slice);
    const auto many = engine->loop.run(kInFlight, bench.plan.slice);
    const bool has_goal = engine->bed.engine() == store::Engine::postgres;
    print_at_least("S4 CPU of an event, one in a transaction, " + engine->bed.name(), "us",
                   one.cpu_us(), many.cpu_us(), has_goal ? 5 : 0, "peer: batches of 256");
  }
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

void time_acknowledgements(Bench& bench) {
  progress("acknowledgements at 2,000 events/s");
  std::map<std::string, std::vector<double>> p99;
  for (int round = 0; round < std::max(1, bench.plan.rounds / 2); ++round) {
    p99["append"].push_back(quantile(bench.append.run_open(kSteadyRate, bench.plan.steady), 0.99) *
                            1e3);
    for (const auto& engine : bench.engines) {
      EventLoad load(bench.pool, engine->bed.target());
      const auto outcome = load.run_open(kSteadyRate, kOverloadInFlight, bench.plan.steady);
      if (outcome.all.failed + outcome.unsent > 0) throw std::runtime_error("events failed");
      p99[engine->bed.name()].push_back(outcome.quantile(0.99) * 1e3);
    }
  }
  for (const auto& engine : bench.engines) {
    const auto& name = engine->bed.name();
    print_at_most("S5 acknowledgement at 2,000/s, p99, " + name, "ms", median_of(p99[name]),
                  median_of(p99["append"]), 3, "peer: append with fdatasync at that rate");
  }
  for (const auto& engine : bench.engines) {
    EventLoad load(bench.pool, engine->bed.target());
    const auto rate = 2 * median_of(engine->rate);
    const auto outcome = load.run_open(rate, kOverloadInFlight, bench.plan.steady);
    print_limit("S5 longest wait at twice the rate it holds, " + engine->bed.name(), "s",
                outcome.all.longest, 1,
                rounded(rate) + " events/s were due, " + rounded(outcome.rate()) +
                    " acknowledged, " + std::to_string(outcome.all.deferred) + " got 429, " +
                    std::to_string(outcome.all.failed) + " failed, " +
                    std::to_string(outcome.unsent) +
                    " were not sent: all 3,000 connections waited");
    engine->overload_memory = engine->bed.memory();
  }
}

// --- Pages ---

struct PageKind {
  std::string_view name;
  std::string_view arguments;
  double few;  // goal in ms with 10,000 Applications
  double many;
};
constexpr std::array<PageKind, 3> kPages{{
    {"first page", "", 10, 20},
    {"filter", "filters:{healthStatuses:[DEGRADED],statuses:[OUT_OF_SYNC]},", 50, 100},
    {"substring", R"(filters:{applicationName:\"-00999\"},)", 20, 50},
}};

std::string page_query(const PageKind& page) {
  return R"({"query":"{applications()" + std::string(page.arguments) +
         "pagination:{first:50}){edges{node{metadata{name namespace runtime} syncStatus "
         R"(healthStatus healthMessage updatedAt revision}} pageInfo{endCursor hasNextPage}}}"})";
}

// Asks while events arrive, and returns the milliseconds of each question by its index.
std::vector<std::vector<double>> ask_during_load(Bench& bench, const ControlPlaneBed& bed,
                                                 const std::vector<std::string>& queries) {
  std::vector<std::vector<double>> times(queries.size());
  std::atomic<bool> ends = false;
  std::string failure;
  std::thread asker([&] {
    try {
      const auto connection = bed.queries();
      for (std::size_t i = 0; !ends; i = (i + 1) % queries.size()) {
        const auto began = Clock::now();
        connection->ask(queries[i]);
        times[i].push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
        std::this_thread::sleep_for(2ms);
      }
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  EventLoad load(bench.pool, bed.target());
  const auto outcome = load.run_open(kPageLoad, kOverloadInFlight, bench.plan.pages);
  ends = true;
  asker.join();
  if (!failure.empty()) throw std::runtime_error(failure);
  if (outcome.all.failed > 0) throw std::runtime_error("events failed");
  return times;
}

void time_pages(Bench& bench, bool is_many) {
  progress(is_many ? "pages of 100,000" : "pages of 10,000");
  std::vector<std::string> queries;
  for (const auto& page : kPages) queries.push_back(page_query(page));
  for (const auto& engine : bench.engines) {
    const auto times = ask_during_load(bench, engine->bed, queries);
    for (std::size_t i = 0; i < kPages.size(); ++i) {
      const auto& page = kPages[i];
      print_limit("S8 " + std::string(page.name) + " of " + (is_many ? "100,000" : "10,000") +
                      ", p99, " + engine->bed.name(),
                  "ms", quantile(times[i], 0.99), is_many ? page.many : page.few,
                  "over HTTP, beside 1,000 events/s; median " + rounded(quantile(times[i], 0.5)) +
                      " of " + std::to_string(times[i].size()));
    }
  }
}

constexpr store::Statement kTimeline{
    .name = "bench.timeline",
    .sql =
        "SELECT sequence, at, step, revision, sync, health, phase, commit_at, author, message FROM "
        "timeline WHERE object = $1 ORDER BY sequence DESC LIMIT 100"};
constexpr store::Statement kDora{
    .name = "bench.dora",
    .sql =
        "SELECT at / 86400000000, count(*), sum(CASE WHEN phase IN (4, 5) THEN 1 ELSE 0 END), "
        "sum(at - commit_at) FROM timeline WHERE account = 1 AND at >= $1 AND commit_at > 0 "
        "GROUP BY 1 ORDER BY 1"};

std::unique_ptr<store::Connection> open_reader(const store::Location& location) {
  if (location.engine == store::Engine::sqlite) {
    auto opened = store::open_sqlite(location.path, store::Access::read_only, 16LL << 20);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  auto opened = store::open_postgres(location, "control-plane-bench");
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

double ms_of(store::Connection& connection, const store::Statement& statement,
             std::int64_t parameter) {
  const auto began = Clock::now();
  const auto rows = connection.run(statement, {parameter});
  if (!rows) throw std::runtime_error(rows.error().message);
  if (rows->empty()) throw std::runtime_error("no rows of history");
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

void time_history(Bench& bench) {
  progress("history");
  const auto rows = rounded(static_cast<double>(bench.plan.timeline_rows * kApplications));
  for (const auto& engine : bench.engines) {
    const auto& bed = engine->bed;
    const auto query =
        R"({"query":"{gitopsReleases(filters:{runtime:\"runtime-7\",namespace:\"team-1\",)"
        R"(name:\"application-000007\"},pagination:{first:50}){edges{node{historyId )"
        R"(syncOperationRevision applicationMetadata{name}}} pageInfo{endCursor}}}"})";
    const auto times = ask_during_load(bench, bed, {query});
    print_limit("S9 releases of one Application, p99, " + bed.name(), "ms",
                quantile(times[0], 0.99), 10, "over HTTP, beside 1,000 events/s");
    const auto connection = open_reader(bed.location());
    std::vector<double> timeline;
    std::vector<double> dora;
    const auto month_ago = std::chrono::duration_cast<std::chrono::microseconds>(
                               (std::chrono::system_clock::now() - 24h * 30).time_since_epoch())
                               .count();
    for (std::int64_t i = 0; i < 200; ++i) {
      timeline.push_back(ms_of(*connection, kTimeline, 1 + i * 37));
    }
    for (int i = 0; i < 7; ++i) dora.push_back(ms_of(*connection, kDora, month_ago));
    print_limit("S9 timeline of one Application, p99, " + bed.name(), "ms",
                quantile(timeline, 0.99), 10, "the statement alone; " + rows + " rows");
    print_limit("S9 deployments of 30 days, " + bed.name(), "ms", median_of(dora), 300,
                "the statement alone; " + rows + " rows; no page shows it yet");
  }
}

// --- Sizes ---

void measure_memory(Bench& bench) {
  for (const auto& engine : bench.engines) {
    const auto& bed = engine->bed;
    print_limit("S11 memory, idle, " + bed.name(), "MB", bed.idle_memory(), 20,
                "resident, an empty database");
    print_limit(
        "S11 memory, 10,000 Applications, " + bed.name(), "MB", engine->memory, 64,
        "resident, after 256 in flight; after 3,000 in flight " + rounded(engine->overload_memory));
  }
}

void fill_up(Bench& bench) {
  for (const auto& engine : bench.engines) {
    progress("filling " + engine->bed.name() + " with 100,000 Applications");
    engine->bed.fill(kApplications, kManyApplications - kApplications);
    engine->bed.add_history(kApplications, bench.plan.timeline_rows, bench.plan.releases);
  }
}

void measure_many(Bench& bench) {
  EventPool pool(kManyApplications, kRuntimes);
  for (const auto& engine : bench.engines) {
    const auto& bed = engine->bed;
    EventLoad load(pool, bed.target());
    const auto before = bed.usage();
    const auto outcome = load.run_closed(kInFlight, bench.plan.slice);
    const auto used = bed.usage() - before;
    print_limit("S11 memory, 100,000 Applications, " + bed.name(), "MB", bed.memory(), 160,
                "resident, after 256 in flight; " + rounded(outcome.rate()) + " events/s at " +
                    rounded(used.cpu * 1e6 / static_cast<double>(outcome.all.acknowledged)) +
                    " us of CPU");
  }
}

void time_restart(Bench& bench) {
  progress("start after a kill");
  for (const auto& engine : bench.engines) {
    if (engine->bed.engine() != store::Engine::sqlite) continue;
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
      EventLoad(bench.pool, engine->bed.target()).run_closed(kInFlight, 500ms);
      seconds.push_back(engine->bed.restart_after_kill());
    }
    print_limit("S12 start after kill -9, 100,000 Applications, SQLite", "s", median_of(seconds),
                0.5, "to the listening port; killed after events; seen every 25 ms");
  }
}

void measure_size(Bench& bench) {
  for (const auto& engine : bench.engines) {
    progress("size on " + engine->bed.name());
    auto& loop = engine->loop;
    const auto before = compacted_size(loop.connection());
    const auto sample = loop.run_events(kInFlight, bench.plan.size_events);
    const auto after = compacted_size(loop.connection());
    const auto million = before + (after - before) * 1e6 / sample.events;
    print_limit("S10 size after a million events, 10,000 Applications, " + engine->bed.name(), "MB",
                million, 150,
                "after vacuum; " + rounded(before) + " MB before, " + rounded(after) + " after " +
                    rounded(sample.events) + " events, 30 % milestones; " +
                    rounded(sample.usage.written / sample.events / 1e3) + " KB/event to disk");
  }
}

// SQLite beside readers: the rows that the soak shows for longer.
void report_sqlite(Bench& bench, double largest_wal) {
  for (const auto& engine : bench.engines) {
    if (engine->bed.engine() != store::Engine::sqlite) continue;
    print_limit("S16 write-ahead log beside readers, SQLite", "MB", largest_wal / 1e6, 64,
                "the largest of this run");
    print_limit("S16 errors about a locked database, SQLite", "lines",
                static_cast<double>(engine->bed.log_lines("locked")), 0, "in the program's log");
  }
}

int run(const Plan& plan) {
  Bench bench(plan);
  progress("making events");
  bench.pool.prepare();
  for (const auto engine : {store::Engine::sqlite, store::Engine::postgres}) {
    progress("preparing");
    bench.engines.push_back(std::make_unique<EngineBench>(engine));
  }
  double largest_wal = 0;
  const auto note_wal = [&] {
    for (const auto& engine : bench.engines) {
      largest_wal = std::max(largest_wal, engine->bed.wal_size());
    }
  };
  compare_intake(bench);
  note_wal();
  compare_batches(bench);
  time_acknowledgements(bench);
  note_wal();
  time_pages(bench, false);
  note_wal();
  measure_memory(bench);
  measure_size(bench);
  fill_up(bench);
  measure_many(bench);
  note_wal();
  time_pages(bench, true);
  time_history(bench);
  note_wal();
  report_sqlite(bench, largest_wal);
  time_restart(bench);
  return 0;
}

// Each connection takes a file here and one in the program, which inherits the limit.
void allow_many_files() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

int dispatch(int argc, char** argv) {
  allow_many_files();
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode.empty()) return run({});
  if (mode == "--quick" && argc == 2) return run(kQuick);
  if (mode == "--replicas" && argc == 2) return compare_replicas(3s, 5);
  if (mode == "--soak" && argc == 3) {
    return soak(std::chrono::minutes(std::max(1, std::atoi(argv[2]))));
  }
  std::fprintf(stderr, "usage: control_plane_bench [--quick | --replicas | --soak MINUTES]\n");
  return 2;
}

}  // namespace
}  // namespace gitops::bench

int main(int argc, char** argv) {
  try {
    return gitops::bench::dispatch(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "control_plane: %s\n", error.what());
    return 1;
  }
}
