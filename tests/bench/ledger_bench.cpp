// The event-reporter's ledger with 10,000 applications of 30 resources: what a commit, a start and
// the index cost.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "event-reporter/ledger/ledger.hpp"

namespace {

using namespace gitops;
using namespace gitops::reporter;
namespace fs = std::filesystem;

constexpr int kApplications = 10'000;
constexpr int kResources = 30;

std::string key_of(int number) {
  return "team-" + std::to_string(number % 50) + "/application-" + std::to_string(number);
}

Digest digest_of(int number) {
  Hasher hasher;
  hasher.add(std::to_string(number));
  return hasher.finish();
}

LedgerEntry entry_of(int number) {
  char uid[40];
  std::snprintf(uid, sizeof uid, "%08x-0000-4000-8000-%012x", static_cast<unsigned>(number), 0U);
  LedgerEntry entry{.uid = uid, .change = digest_of(number)};
  entry.acknowledge(digest_of(-number));
  entry.sequence = 1'772'625'600'000'000;
  static constexpr std::string_view kKinds[] = {"ConfigMap", "Deployment", "Service",
                                                "ServiceAccount", "Secret"};
  for (int i = 0; i < kResources; ++i) {
    entry.acknowledge(
        {.group = i % 5 == 1 ? "apps" : "",
         .version = "v1",
         .kind = std::string(kKinds[i % 5]),
         .ns = "team-" + std::to_string(number % 50),
         .name = "application-" + std::to_string(number) + "-part-" + std::to_string(i)},
        digest_of(i));
  }
  return entry;
}

// A line of /proc/self/status in MB.
double memory(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::atof(line.c_str() + name.size() + 1) * 1024 / 1e6;
  }
  return 0;
}

void print_row(const char* name, const char* unit, double ours, const nlohmann::json& goal,
               const nlohmann::json& holds, const std::string& note) {
  const nlohmann::ordered_json row = {{"name", name},    {"unit", unit},     {"ours", ours},
                                      {"peer", nullptr}, {"ratio", nullptr}, {"goal", goal},
                                      {"holds", holds},  {"note", note}};
  std::puts(row.dump().c_str());
  std::fflush(stdout);
}

// Runs `body` with a ledger in a child process, so that its memory is its own.
void in_child(const std::function<Task<>(Loop&)>& body) {
  std::fflush(stdout);
  const auto child = ::fork();
  if (child != 0) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) std::abort();
    return;
  }
  Loop loop(1);
  asio::co_spawn(
      loop, [&] { return body(loop); },
      [](const std::exception_ptr& failure) {
        if (failure) std::abort();
      });
  loop.run();
  ::_exit(0);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of the whole process.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Task<> fill(Loop& loop, std::string path) {
  Metrics metrics;
  Ledger ledger(loop.get_executor(), {.path = std::move(path)}, metrics);
  TaskGroup tasks(loop.get_executor());
  if (!co_await ledger.open()) std::abort();
  ledger.start(tasks);
  for (const auto* name : {"entries stored for the first time", "entries stored again"}) {
    double on_loop = 0;
    const auto begin = Clock::now();
    for (int i = 0; i < kApplications; ++i) {
      const auto entry = entry_of(i);
      const auto before = Clock::now();
      ledger.store(key_of(i), entry);
      on_loop += seconds_since(before);
      // As between two reports: the loop does other things.
      if (i % 50 == 0) co_await asio::post(loop, use_task);
    }
    if (!co_await ledger.flush(deadline_after(std::chrono::seconds(120)))) std::abort();
    const double took = seconds_since(begin);
    char note[120];
    std::snprintf(note, sizeof note,
                  "%d resources each; until all are in the file; %.1f us of the loop each",
                  kResources, on_loop * 1e6 / kApplications);
    print_row(name, "1/s", kApplications / took, ">= 4,000", kApplications / took >= 4000, note);
  }
  tasks.cancel();
  co_await tasks.join();
}

Task<> reopen(Loop& loop, std::string path) {
  const auto bytes = static_cast<double>(fs::file_size(path));
  const double before = memory("VmRSS:");
  Metrics metrics;
  Ledger ledger(loop.get_executor(), {.path = std::move(path)}, metrics);
  const auto begin = Clock::now();
  const double cpu_before = cpu_seconds();
  if (!co_await ledger.open()) std::abort();
  const double took = seconds_since(begin) * 1000;
  const double cpu = (cpu_seconds() - cpu_before) * 1000;
  const double after = memory("VmRSS:");
  if (ledger.known().size() != kApplications) std::abort();
  char note[160];
  std::snprintf(note, sizeof note,
                "%.0f ms of CPU; file of %.1f MB, in the page cache; every row is checked", cpu,
                bytes / 1e6);
  print_row("start with 10,000 entries", "ms", took, "<= 200", took <= 200, note);
  std::snprintf(note, sizeof note, "resident, more than before it was opened; %.1f MB at most",
                memory("VmHWM:") - before);
  print_row("memory of a ledger with 10,000 entries", "MB", after - before, "<= 10",
            after - before <= 10, note);

  const auto read = Clock::now();
  constexpr int kReads = 2000;
  for (int i = 0; i < kReads; ++i) {
    const auto entry = co_await ledger.load(key_of(i * 5));
    if (!entry || entry->resources.size() != kResources) std::abort();
  }
  print_row("load of one entry", "us", seconds_since(read) * 1e6 / kReads, "", nullptr,
            "through the ledger's thread and back");
}

}  // namespace

int main() {
  std::string folder = (fs::temp_directory_path() / "ledger-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) std::abort();
  const auto path = folder + "/ledger.db";
  in_child([&](Loop& loop) { return fill(loop, path); });
  in_child([&](Loop& loop) { return reopen(loop, path); });
  fs::remove_all(folder);
}
