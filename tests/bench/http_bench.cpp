// The HTTP library against nginx (as a server) and wrk (as a client): requests per second of CPU
// that the measured process used. One machine, loopback, 32 kept connections, one thread on each
// side.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <vector>

#include <boost/asio/signal_set.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/median.hpp"
#include "bench/proc.hpp"
#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/server.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using bench::cpu_of;
using bench::median;

constexpr int kConnections = 32;
constexpr int kRounds = 3;
constexpr int kSeconds = 3;
const std::string kBody = R"({"status":"ok","message":"a small answer as handlers give it"})";

// --- the measured processes of ours ---

// Serves kBody until SIGTERM; prints the port.
int serve() {
  Loop loop(1);
  http::Server server(loop.get_executor(), {}, [](http::Exchange& exchange) -> Task<> {
    const auto sent = co_await exchange.reply(
        {.headers = {{"Server", "gitops-runtime"}, {"Content-Type", "application/json"}},
         .body = kBody});
    if (!sent) std::fprintf(stderr, "%s\n", sent.error().message.c_str());
  });
  if (const auto listening = server.listen(); !listening) return 1;
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  asio::signal_set signals(loop, SIGTERM);
  signals.async_wait([&](const auto&, int) {
    asio::co_spawn(
        loop.get_executor(), [&] { return server.stop(deadline_after(std::chrono::seconds(1))); },
        [](const std::exception_ptr&) {});
  });
  loop.run();
  return 0;
}

// Sends requests from kConnections coroutines; prints how many were answered.
int drive(std::uint16_t port, int seconds) {
  Loop loop(1);
  Metrics metrics;
  const auto executor = loop.get_executor();
  net::Resolver resolver(metrics);
  http::Client client(executor, resolver, {.max_idle_per_host = kConnections});
  http::Url url;
  url.scheme = "http";
  url.host = "127.0.0.1";
  url.port = port;
  std::uint64_t answered = 0;
  bool failed = false;
  const Deadline end = deadline_after(std::chrono::seconds(seconds));
  TaskGroup tasks(executor);
  for (int i = 0; i < kConnections; ++i) {
    tasks.spawn("drive", [&]() -> Task<> {
      while (Clock::now() < end && !failed) {
        const auto response =
            co_await client.send(url, {}, deadline_after(std::chrono::seconds(10)));
        failed = failed || !response || response->body != kBody;
        ++answered;
      }
      client.close_idle();
    });
  }
  loop.run();
  std::printf("%llu\n", static_cast<unsigned long long>(answered));
  return failed ? 1 : 0;
}

// --- measuring ---

struct Sample {
  double requests = 0;
  double cpu_seconds = 0;
  [[nodiscard]] double rate() const { return requests / cpu_seconds; }
};

// User and system time of all children that have ended.
double cpu_of_ended_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string url_of(int port) {
  return "http://127.0.0.1:" + std::to_string(port) + "/";
}

// Runs wrk and gives the number of its requests; stops the program when any of them failed.
double run_wrk(const std::string& wrk, int port) {
  const auto result = run_command({wrk, "-t1", "-c" + std::to_string(kConnections),
                                   "-d" + std::to_string(kSeconds) + "s", url_of(port)});
  const auto at = result.out.find(" requests in ");
  if (!result.ok() || at == std::string::npos || result.out.find("Non-2xx") != std::string::npos ||
      result.out.find("Socket errors") != std::string::npos) {
    throw std::runtime_error("wrk failed:\n" + result.out + result.err);
  }
  auto start = at;
  while (start > 0 && std::isdigit(static_cast<unsigned char>(result.out[start - 1])) != 0) --start;
  return std::stod(result.out.substr(start, at - start));
}

Sample measure_server(const std::string& wrk, pid_t pid, int port) {
  const double before = cpu_of(pid);
  Sample sample;
  sample.requests = run_wrk(wrk, port);
  sample.cpu_seconds = cpu_of(pid) - before;
  return sample;
}

Sample measure_client(const std::function<double()>& run) {
  const double before = cpu_of_ended_children();
  Sample sample;
  sample.requests = run();
  sample.cpu_seconds = cpu_of_ended_children() - before;
  return sample;
}

void print_row(const std::string& name, const std::vector<double>& ours,
               const std::vector<double>& peer, double goal, const std::string& note) {
  const double ratio = median(ours) / median(peer);
  char goal_text[32];
  std::snprintf(goal_text, sizeof(goal_text), ">= %.2f", goal);
  const Json row = {{"name", name},
                    {"unit", "requests per CPU-second"},
                    {"ours", std::round(median(ours))},
                    {"peer", std::round(median(peer))},
                    {"ratio", ratio},
                    {"goal", goal_text},
                    {"holds", ratio >= goal},
                    {"note", note}};
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

int bench(const std::string& self) {
  const auto wrk = find_program("wrk");
  const auto nginx = find_program("nginx");
  if (!wrk || !nginx) {
    std::fprintf(stderr, "http: needs wrk and nginx (apt-get install wrk nginx)\n");
    return 3;
  }
  const TempDir folder("http-bench");
  const int nginx_port = free_port();
  write_file(folder / "nginx.conf",
             "daemon off; master_process off; worker_processes 1; pid " +
                 (folder / "pid").string() + ";\nerror_log " + (folder / "error.log").string() +
                 " error;\nevents { worker_connections 1024; }\nhttp {\n  access_log off; "
                 "keepalive_requests 1000000000;\n"
                 "  server { listen 127.0.0.1:" +
                 std::to_string(nginx_port) +
                 "; location / { default_type application/json; return 200 '" + kBody +
                 "'; } }\n}\n");
  Process peer(
      {.argv = {*nginx, "-p", folder.path().string(), "-c", (folder / "nginx.conf").string()},
       .log_file = folder / "nginx.log"});
  Process ours({.argv = {self, "--serve"}, .log_file = folder / "ours.log"});
  int our_port = 0;
  require_until(
      [&] {
        std::ifstream(folder / "ours.log") >> our_port;
        return our_port != 0 && run_command({*wrk, "-t1", "-c1", "-d1s", url_of(nginx_port)}).ok();
      },
      std::chrono::seconds(10), "both servers");

  std::vector<double> our_server;
  std::vector<double> nginx_server;
  std::vector<double> our_client;
  std::vector<double> wrk_client;
  for (int round = 0; round < kRounds; ++round) {
    std::fprintf(stderr, "http: round %d of %d\n", round + 1, kRounds);
    our_server.push_back(measure_server(*wrk, ours.pid(), our_port).rate());
    nginx_server.push_back(measure_server(*wrk, peer.pid(), nginx_port).rate());
    our_client.push_back(
        measure_client([&] {
          const auto result =
              run_command({self, "--drive", std::to_string(nginx_port), std::to_string(kSeconds)});
          if (!result.ok()) throw std::runtime_error("our client failed: " + result.err);
          return std::stod(result.out);
        }).rate());
    wrk_client.push_back(measure_client([&] { return run_wrk(*wrk, nginx_port); }).rate());
  }
  print_row("HTTP server, small GET", our_server, nginx_server, 0.8,
            "peer: nginx, return 200; driven by wrk, 32 kept connections");
  print_row("HTTP client, small GET", our_client, wrk_client, 0.3,
            "peer: wrk, which sends prepared bytes; both drive the same nginx");
  return 0;
}

}  // namespace
}  // namespace gitops::test

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 2 && arguments[1] == "--serve") return gitops::test::serve();
  if (argc == 4 && arguments[1] == "--drive") {
    return gitops::test::drive(static_cast<std::uint16_t>(std::stoi(arguments[2])),
                               std::stoi(arguments[3]));
  }
  try {
    return gitops::test::bench("/proc/self/exe");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "http: %s\n", e.what());
    return 1;
  }
}
