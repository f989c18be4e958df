#pragma once

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/net/connector.hpp"
#include "support/preload.hpp"
#include "support/status_page.hpp"
#include "support/tcp_relay.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"
#include "tunnel-client/link_keeper.hpp"

// The programs tunnel-server and tunnel-client, which a test kills and starts again.
namespace gitops::test {

inline constexpr const char* kHost = "acc-rt.example.test";

// The environment of programs: without the machine's proxies; with a clock that the test can move when
// there is a file for it.
inline Environment environment(const std::filesystem::path& clock = {}) {
  Environment env{{"HTTP_PROXY", std::nullopt},
                  {"http_proxy", std::nullopt},
                  {"HTTPS_PROXY", std::nullopt},
                  {"https_proxy", std::nullopt},
                  {"TUNNEL_SERVER_TOKEN", "s3cret"}};
  if (!clock.empty()) {
    env["LD_PRELOAD"] = preload(GITOPS_OWN_MACHINE);
    env["GITOPS_TEST_CLOCK_FILE"] = clock.string();
  }
  return env;
}

inline void set_clock(const std::filesystem::path& file, std::chrono::seconds ahead) {
  const std::int64_t count = ahead.count();
  // Programs have the file mapped, so it must not become shorter.
  if (!std::filesystem::exists(file)) write_file(file, std::string(sizeof(count), '\0'));
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.write(reinterpret_cast<const char*>(&count), sizeof(count));
}

struct ServerProgramOptions {
  std::filesystem::path clock = {};
  std::string log_file = {};
  std::vector<std::string> flags = {};
};

class ServerProgram {
 public:
  explicit ServerProgram(ServerProgramOptions options = {}) : options_(std::move(options)) {
    start();
  }
  void start() {
    std::vector<std::string> argv{std::string(GITOPS_BIN_DIR) + "/tunnel-server",
                                  "--subdomain-host=example.test",
                                  "--tunnel.listen-address=127.0.0.1",
                                  "--tunnel.port=" + std::to_string(tunnel_port),
                                  "--listen-address=127.0.0.1",
                                  "--port=" + std::to_string(port),
                                  "--admin-address=127.0.0.1",
                                  "--admin-port=" + std::to_string(admin_port_)};
    argv.insert(argv.end(), options_.flags.begin(), options_.flags.end());
    process_.emplace(ProcessOptions{.argv = std::move(argv),
                                    .env = environment(options_.clock),
                                    .log_file = options_.log_file.empty()
                                                    ? folder_ / "log"
                                                    : std::filesystem::path(options_.log_file)});
    require_until([this] { return admin("/readyz").ok(); }, std::chrono::seconds(20),
                  "the tunnel-server");
  }
  HttpReply admin(const std::string& path) const {
    return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
  }
  StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  RawResponse get(const std::string& host = kHost) const {
    return raw_call(port, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  }
  std::string log() const { return read_file(folder_ / "log"); }
  // Resident memory, in bytes.
  std::size_t memory() const {
    const auto text = read_file("/proc/" + std::to_string(process_->pid()) + "/statm");
    return std::stoul(text.substr(text.find(' '))) * 4096;
  }
  Process& process() { return *process_; }

  const std::uint16_t tunnel_port = static_cast<std::uint16_t>(free_port());
  const std::uint16_t port = static_cast<std::uint16_t>(free_port());

 private:
  ServerProgramOptions options_;
  TempDir folder_;
  int admin_port_ = free_port();
  std::optional<Process> process_;
};

struct ClientProgramOptions {
  std::filesystem::path clock = {};
  std::string log_file = {};
  std::vector<std::string> flags = {"--tunnel-server.protocol=tcp", "--tunnel-server.tls=false"};
};

class ClientProgram {
 public:
  ClientProgram(std::uint16_t server, int upstream, const ClientProgramOptions& options = {})
      : process_({.argv = command(server, upstream, options),
                  .env = environment(options.clock),
                  .log_file = options.log_file.empty() ? folder_ / "log"
                                                       : std::filesystem::path(options.log_file)}) {
  }
  HttpReply admin(const std::string& path, const std::string& method = "GET") const {
    return http_call(
        {.method = method, .url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
  }
  StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  bool is_ready() const { return admin("/readyz").ok(); }
  std::string log() const { return read_file(folder_ / "log"); }

 private:
  std::vector<std::string> command(std::uint16_t server, int upstream,
                                   const ClientProgramOptions& options) const {
    std::vector<std::string> argv{std::string(GITOPS_BIN_DIR) + "/tunnel-client",
                                  "--tunnel-server.host=localhost:" + std::to_string(server),
                                  "--tunnel.subdomain-prefix=acc-rt",
                                  "--tunnel.forward-to.host=127.0.0.1",
                                  "--tunnel.forward-to.port=" + std::to_string(upstream),
                                  "--admin-address=127.0.0.1",
                                  "--admin-port=" + std::to_string(admin_port_)};
    argv.insert(argv.end(), options.flags.begin(), options.flags.end());
    return argv;
  }

  TempDir folder_;
  int admin_port_ = free_port();
  Process process_;
};

struct TunnelFaults : testing::Test {
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }
};

// Whether a client serves a host.
inline bool serves_somebody(const ServerProgram& server) {
  return server.status().count_if([](const nlohmann::json& entry) {
    return entry["state"] == "ok" && entry.contains("values") && entry["values"].contains("hosts");
  }) > 0;
}

// One end of the tunnel is killed and started again, over and over: from the kill to the first answer.
// GITOPS_LONG: 100 times.
class Kills {
 public:
  explicit Kills(const char* what) : what_(what) {}
  static int rounds() { return std::getenv("GITOPS_LONG") != nullptr ? 100 : 12; }

  void time(const std::function<void()>& kill_and_start, const std::function<bool()>& serves) {
    const auto begin = std::chrono::steady_clock::now();
    kill_and_start();
    require_until(serves, std::chrono::seconds(30), what_, std::chrono::milliseconds(10));
    times_.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  // One of a hundred may take longer.
  std::chrono::milliseconds p99() {
    std::ranges::sort(times_);
    const auto p99 = times_[times_.size() - 1 - times_.size() / 100];
    std::printf("%s killed to serving again: p50 %d ms, p99 %d ms, at most %d ms, of %zu\n", what_,
                static_cast<int>(times_[times_.size() / 2].count()), static_cast<int>(p99.count()),
                static_cast<int>(times_.back().count()), times_.size());
    return p99;
  }

 private:
  const char* what_;
  std::vector<std::chrono::milliseconds> times_;
};

struct OwnTunnel {
  OwnTunnel()
      : certificate(authority.issue(
            {.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}})),
        server({.flags = {"--tunnel.tls-certificate-file=" + certificate.cert_file.string(),
                          "--tunnel.tls-key-file=" + certificate.key_file.string(),
                          "--tunnel.require-tls"}}) {
    start_client();
    require_until([this] { return serves(); }, std::chrono::seconds(30), "the tunnel");
  }
  // In the place of the one before, which is killed.
  void start_client() {
    client.emplace(
        server.tunnel_port, upstream.port(),
        ClientProgramOptions{.flags = {"--tunnel-server.protocol=wss",
                                       "--tunnel-server.ca-file=" + authority.ca_file().string()}});
  }
  [[nodiscard]] bool serves() const { return server.get().status == 200; }

  CertificateAuthority authority;
  Certificate certificate;
  ServerProgram server;
  RecordingUpstream upstream{"router"};
  std::optional<ClientProgram> client;
};

}  // namespace gitops::test
