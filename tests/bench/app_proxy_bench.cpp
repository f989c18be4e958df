// app-proxy beside the reference server of GraphQL over HTTP (npm graphql-http on Node.js) with the same
// field: the CPU that each uses per request; and what app-proxy takes when nobody asks anything. Each
// runs on one CPU, wrk on another; they work by turns in one run. Ratios hold within one run only.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/median.hpp"
#include "bench/proc.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using bench::cpu_of;
using bench::median;
namespace fs = std::filesystem;

constexpr int kRounds = 7;
constexpr int kSeconds = 2;
constexpr double kMaxRatio = 0.1;
constexpr double kMaxIdle = 14.0;   // MB
constexpr double kMaxStart = 50.0;  // ms

// What the public Go SDK sends.
constexpr const char* kBody =
    R"({"query":"\nquery VersionInfo {\n\tversionInfo {\n\t\tversion\n\t\tplatformHost\n\t\tplatformVersion\n\t}\n}","variables":{}})";

fs::path modules() {
  const char* folder = std::getenv("GITOPS_PEERS_DIR");
  const char* home = std::getenv("HOME");
  const fs::path peers =
      folder != nullptr && *folder != '\0'
          ? fs::path(folder)
          : fs::path(home == nullptr ? "/" : home) / ".cache/gitops-runtime/peers";
  return peers / "share/graphql-http";
}

std::size_t number_behind(const std::string& text, std::string_view key) {
  const auto at = text.find(key);
  return at == std::string::npos
             ? 0
             : static_cast<std::size_t>(std::atoll(text.c_str() + at + key.size()));
}

struct Server {
  Process process;
  int port = 0;
};

Process started(std::vector<std::string> argv, Environment environment, const fs::path& log) {
  argv.insert(argv.begin(), {"taskset", "-c", "0"});
  return Process({.argv = std::move(argv), .env = std::move(environment), .log_file = log});
}

// The port that the log tells behind `key`.
int port_of(const fs::path& log, const std::string& key) {
  require_until([&] { return number_behind(read_file(log), key) > 0; }, std::chrono::seconds(20),
                "a server to start");
  return static_cast<int>(number_behind(read_file(log), key));
}

// CPU per request in µs, of one slice.
double slice(Server& server, const std::string& path, const fs::path& script) {
  const auto before = cpu_of(server.process.pid());
  const auto out = run_or_throw({"taskset", "-c", "1", "wrk", "-t1", "-c32",
                                 "-d" + std::to_string(kSeconds) + "s", "-s", script.string(),
                                 "http://127.0.0.1:" + std::to_string(server.port) + path});
  const auto used = cpu_of(server.process.pid()) - before;
  if (out.contains("Non-2xx") || out.contains("Socket errors")) {
    throw std::runtime_error("not every request was answered:\n" + out);
  }
  const auto end = out.find(" requests in ");
  const auto begin = out.rfind('\n', end) + 1;
  return used * 1e6 / std::stod(out.substr(begin, end - begin));
}

void print(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

void run() {
  const TempDir folder;
  const auto script = folder / "post.lua";
  write_file(script, std::string("wrk.method = 'POST'\nwrk.headers['Content-Type'] = "
                                 "'application/json'\nwrk.body = [==[") +
                         kBody + "]==]\n");
  Server ours{.process = started({std::string(GITOPS_BIN_DIR) + "/app-proxy"},
                                 {{"PORT", "0"},
                                  {"ADMIN_PORT", "0"},
                                  {"LISTEN_ADDRESS", "127.0.0.1"},
                                  {"METRICS_LISTEN_ADDRESS", "127.0.0.1"},
                                  {"CF_HOST", "http://127.0.0.1:9"},
                                  {"RUNTIME_TOKEN", "token"}},
                                 folder / "ours")};
  ours.port = port_of(folder / "ours", R"("message":"serving","port":)");
  port_of(folder / "ours", R"("start_ms":)");
  const auto start =
      static_cast<double>(number_behind(read_file(folder / "ours"), R"("start_ms":)"));
  // One request has been answered.
  (void)http_call(
      {.method = "POST",
       .url = "http://127.0.0.1:" + std::to_string(ours.port) + "/app-proxy/api/graphql",
       .headers = {"Content-Type: application/json"},
       .body = kBody});
  const auto idle = bench::memory_of(ours.process.pid(), "VmRSS:");
  print({{"name", "app-proxy-idle"},
         {"unit", "MB"},
         {"ours", idle},
         {"goal", "<= 14"},
         {"holds", idle <= kMaxIdle}});
  print({{"name", "app-proxy-start"},
         {"unit", "ms"},
         {"ours", start},
         {"goal", "<= 50"},
         {"holds", start <= kMaxStart}});

  std::optional<Server> peer;
  std::string lacking;
  if (!fs::is_directory(modules() / "node_modules/graphql-http")) {
    lacking = "not run: ./dev peers graphql-http";
  } else if (!find_program("node")) {
    lacking = "not run: node is missing";
  } else {
    peer.emplace(
        Server{.process = started(
                   {"node", GITOPS_SOURCE_DIR "/tests/peers/graphql-http/server.mjs"},
                   {{"GRAPHQL_HTTP_MODULES", modules().string()}, {"NODE_ENV", "production"}},
                   folder / "peer")});
    peer->port = port_of(folder / "peer", "port ");
  }
  std::vector<double> own;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    own.push_back(slice(ours, "/app-proxy/api/graphql", script));
    if (!peer) continue;
    theirs.push_back(slice(*peer, "/", script));
    if (round == 0) theirs.pop_back(), own.pop_back();  // its compiler warms up
    if (round > 0) ratios.push_back(own.back() / theirs.back());
  }
  Json row{{"name", "app-proxy-graphql-version"},
           {"unit", "µs CPU per request"},
           {"ours", median(own)},
           {"goal", "<= 0.1"}};
  if (peer) {
    row["peer"] = median(theirs);
    row["ratio"] = median(ratios);
    row["holds"] = median(ratios) <= kMaxRatio;
    row["note"] = "peer: npm graphql-http on Node.js, the same field; 32 connections";
  } else {
    row["note"] = lacking;
  }
  print(row);
}

}  // namespace
}  // namespace gitops::test

int main() {
  try {
    gitops::test::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
