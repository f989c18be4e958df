// Reading Applications: how fast a list becomes trimmed records, and what 10,000 of them hold in an
// informer that lists them over HTTP from another process.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/median.hpp"
#include "common/http/server.hpp"
#include "k8s-client/informer.hpp"
#include "k8s-client/watch.hpp"
#include "support/sample_application.hpp"

namespace {

using namespace gitops;
using gitops::bench::median;
using namespace gitops::k8s;
using namespace std::chrono_literals;

const std::vector<std::string> kFields{
    "metadata.deletionTimestamp", "metadata.generation",         "spec.project",
    "spec.destination.server",    "status.sync.status",          "status.sync.revision",
    "status.health.status",       "status.operationState.phase", "status.controllerNamespace",
};  // and the four of the identity: 13

constexpr int kListed = 1'000;
constexpr int kHeld = 10'000;
constexpr int kPage = 500;

std::string application(int index) {
  return test::sample_application("argocd", "app-" + std::to_string(index),
                                  std::to_string(1'000 + index));
}

std::string list_of(int first, int last, std::string_view continue_token) {
  std::string list = R"({"apiVersion":"argoproj.io/v1alpha1","items":[)";
  for (int i = first; i < last; ++i) list += application(i) + ",";
  list.back() = ']';
  return list + R"(,"kind":"ApplicationList","metadata":{"continue":")" +
         std::string(continue_token) + R"(","resourceVersion":"20000"}})";
}

// CPU time, so that other processes on the machine do not count.
double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

void print_row(const nlohmann::ordered_json& row) {
  std::puts(row.dump().c_str());
}

// ---- speed ----

std::size_t decode_ours(ObjectDecoder& decoder, const std::string& list) {
  std::size_t kept = 0;
  const auto meta = decoder.decode_list(
      list,
      [&](Record&& record, std::string_view) { kept += record.field(2) == "default" ? 1 : 0; },
      [](Quarantined&&) {});
  return meta ? kept : 0;
}

std::size_t decode_dom(const std::string& list) {
  const auto dom = nlohmann::json::parse(list);
  std::vector<std::vector<std::string>> kept;
  for (const auto& item : dom.at("items")) {
    auto& record = kept.emplace_back();
    for (const auto* path :
         {"/metadata/namespace", "/metadata/name", "/metadata/uid", "/metadata/resourceVersion"}) {
      record.push_back(item.at(nlohmann::json::json_pointer(path)));
    }
    for (const auto& path : kFields) {
      std::string pointer = "/" + path;
      std::ranges::replace(pointer, '.', '/');
      const nlohmann::json::json_pointer at(pointer);
      const auto value = item.contains(at) ? item.at(at) : nlohmann::json();
      record.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return kept.size();
}

void measure_lists() {
  const auto list = list_of(0, kListed, "");
  ObjectDecoder decoder{FieldSet(kFields)};
  std::vector<double> ours;
  std::vector<double> dom;
  std::vector<double> dropping;
  ObjectDecoder dropper(FieldSet(kFields), [](auto, auto) { return false; });
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < 10; ++i) {
      ours.push_back(seconds([&] {
        if (decode_ours(decoder, list) != kListed) std::abort();
      }));
      dropping.push_back(seconds([&] {
        if (decode_ours(dropper, list) != 0) std::abort();
      }));
    }
    dom.push_back(seconds([&] {
      if (decode_dom(list) != kListed) std::abort();
    }));
  }
  const auto bytes = static_cast<double>(list.size());
  const auto rate = [&](const std::vector<double>& times) { return bytes / median(times) / 1e9; };
  print_row({{"name", "list of 1,000 applications into records of 13 fields"},
             {"unit", "GB/s"},
             {"ours", rate(ours)},
             {"peer", rate(dom)},
             {"ratio", rate(ours) / rate(dom)},
             {"goal", ">= 2 GB/s"},
             {"holds", rate(ours) >= 2.0},
             {"note", "CPU time; peer: nlohmann::json parse and the same fields; " +
                          std::to_string(list.size() / kListed) + " bytes each"}});
  print_row({{"name", "the same, all of another shard"},
             {"unit", "GB/s"},
             {"ours", rate(dropping)},
             {"peer", nullptr},
             {"ratio", nullptr},
             {"goal", ""},
             {"holds", nullptr},
             {"note", "left as soon as the name is known"}});
}

void measure_watch() {
  std::string stream;
  for (int i = 0; i < kListed; ++i)
    stream += R"({"type":"MODIFIED","object":)" + application(i) + "}\n";
  ObjectDecoder objects{FieldSet(kFields)};
  std::vector<double> times;
  for (int round = 0; round < 50; ++round) {
    WatchDecoder decoder(objects);
    std::size_t events = 0;
    times.push_back(seconds([&] {
      for (std::size_t at = 0; at < stream.size(); at += 16 * 1024) {
        decoder.feed(std::string_view(stream).substr(at, 16 * 1024), [&](WatchEvent&& event) {
          events += event.type == WatchEvent::Type::modified ? 1 : 0;
        });
      }
    }));
    if (events != kListed) std::abort();
  }
  const double rate = static_cast<double>(stream.size()) / median(times) / 1e9;
  print_row({{"name", "watch events of applications, read in 16 KiB pieces"},
             {"unit", "GB/s"},
             {"ours", rate},
             {"peer", nullptr},
             {"ratio", nullptr},
             {"goal", ""},
             {"holds", nullptr},
             {"note", ""}});
}

// ---- memory ----

// Lists the applications in pages, and streams them to watches with initial events.
Task<> serve(http::Exchange& exchange) {
  const auto query = std::string(exchange.query());
  if (!query.contains("watch=1")) {
    const auto token = query.find("continue=");
    const int first = token == std::string::npos ? 0 : std::atoi(query.c_str() + token + 9);
    const int next = std::min(first + kPage, kHeld);
    (void)co_await exchange.reply(
        {.body = list_of(first, next, next < kHeld ? std::to_string(next) : "")});
    co_return;
  }
  if (!co_await exchange.start({})) co_return;
  if (query.contains("sendInitialEvents")) {
    for (int i = 0; i < kHeld; ++i) {
      if (!co_await exchange.write(R"({"type":"ADDED","object":)" + application(i) + "}\n"))
        co_return;
    }
    const std::string end =
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20000","annotations":{"k8s.io/initial-events-end":"true"}}}})"
        "\n";
    if (!co_await exchange.write(end)) co_return;
  }
  co_await sleep_until(kNever);
}

// A process of its own that serves until it is killed; its port comes through a pipe.
struct ServerProcess {
  pid_t pid = -1;
  std::uint16_t port = 0;

  ServerProcess() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Loop loop;
      http::Server server(loop.get_executor(), {},
                          [](http::Exchange& exchange) { return serve(exchange); });
      if (!server.listen()) _exit(1);
      const auto own = server.port();
      if (write(ends[1], &own, sizeof own) != sizeof own) _exit(1);
      loop.run();
      _exit(0);
    }
    if (read(ends[0], &port, sizeof port) != sizeof port) std::abort();
    close(ends[0]);
    close(ends[1]);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

// A line of /proc/self/status in MB.
double memory(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::atof(line.c_str() + name.size() + 1) * 1024 / 1e6;
  }
  return 0;
}

// Measures in a child process, so that the heap is fresh.
void measure_memory(bool streaming) {
  std::fflush(stdout);
  const auto child = fork();
  if (child != 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  const ServerProcess server;
  const double before = memory("VmRSS:");
  Loop loop;
  Metrics metrics;
  net::Resolver resolver(metrics);
  ClusterConfig config;
  config.server = *http::parse_url("http://127.0.0.1:" + std::to_string(server.port));
  Client client(loop.get_executor(), resolver, config, {}, "bench");
  std::size_t told = 0;
  Informer informer(loop.get_executor(), client,
                    {.resource = resources::kApplications,
                     .fields = FieldSet(kFields),
                     .reflector = {.streaming_list = streaming, .page_limit = kPage}},
                    metrics, "bench");
  const auto subscription = informer.subscribe([&](const Change&) { ++told; });
  TaskGroup tasks(loop.get_executor());
  informer.start(tasks);
  double after = 0;
  double took = 0;
  const auto begin = Clock::now();
  asio::co_spawn(
      loop.get_executor(),
      [&]() -> Task<> {
        if (!co_await informer.wait_synced(deadline_after(120s))) std::abort();
        took = std::chrono::duration<double>(Clock::now() - begin).count();
        after = memory("VmRSS:");
        tasks.cancel();
        co_await tasks.join();
        loop.stop();
      },
      [](std::exception_ptr failure) {
        if (failure) std::abort();
      });
  loop.run();
  if (informer.size() != kHeld || told != kHeld) std::abort();
  char note[200];
  std::snprintf(note, sizeof note, "resident; %.1f MB before, %.1f MB at most; synced in %.2f s",
                before, memory("VmHWM:"), took);
  print_row({{"name", std::string("10,000 applications in an informer, by ") +
                          (streaming ? "a streaming list" : "pages of 500")},
             {"unit", "MB"},
             {"ours", after},
             {"peer", nullptr},
             {"ratio", nullptr},
             {"goal", "<= 64 MB"},
             {"holds", after <= 64.0},
             {"note", note}});
  std::fflush(stdout);
  _exit(0);
}

}  // namespace

int main() {
  measure_memory(true);
  measure_memory(false);
  measure_lists();
  measure_watch();
}
