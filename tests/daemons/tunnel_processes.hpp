#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/status_page.hpp"
#include "support/test_certs.hpp"
#include "test_http/raw_http.hpp"

// Both ends of our tunnel as child processes. Main thread.
namespace gitops::test {

// The runtime of these processes, its token, and the host that the server offers for it.
inline constexpr const char* kRuntimePrefix = "acc-rt";
inline constexpr const char* kRuntimeToken = "runtime-token";
inline constexpr const char* kRuntimeHost = "acc-rt.example.test";

// The real tunnel-server on 127.0.0.1, with TLS for clients and users. It knows one runtime, or asks
// a plugin when the flags name one. Its ports stay when it is started again.
class OwnTunnelServer {
 public:
  // `authority` issues its certificate, for localhost and *.example.test.
  explicit OwnTunnelServer(CertificateAuthority& authority, std::vector<std::string> flags = {});

  // Returns when the program listens; throws otherwise. The constructor calls it.
  void start();
  [[nodiscard]] HttpReply admin(const std::string& path) const;
  [[nodiscard]] StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  // Whether a client serves the host.
  [[nodiscard]] bool serves(const std::string& host = kRuntimeHost) const;
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  [[nodiscard]] const std::filesystem::path& log_file() const { return process_->log_file(); }
  Process& process() { return *process_; }

  const std::uint16_t tunnel_port = static_cast<std::uint16_t>(free_port());
  const std::uint16_t port = static_cast<std::uint16_t>(free_port());

 private:
  TempDir folder_;
  int admin_port_ = free_port();
  std::vector<std::string> command_;
  std::optional<Process> process_;
};

// The real tunnel-server on 127.0.0.1 for clients of all stacks, with and without TLS, who know the
// token "s3cret"; users come in clear. Its ports stay when it is started again.
class OpenTunnelServer {
 public:
  explicit OpenTunnelServer(std::vector<std::string> flags = {});

  // Returns when the program listens; throws otherwise. The constructor calls it.
  void start();
  [[nodiscard]] HttpReply admin(const std::string& path) const;
  [[nodiscard]] StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  // A request of a user.
  [[nodiscard]] RawResponse call(const std::string& method, const std::string& target,
                                 const std::string& body = {},
                                 const std::string& host = kRuntimeHost) const;
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  Process& process() { return *process_; }
  // Of its certificate, which is for localhost.
  [[nodiscard]] const std::filesystem::path& ca_file() const { return authority_.ca_file(); }

  const int tunnel_port = free_port();
  const int port = free_port();
  const int admin_port = free_port();

 private:
  CertificateAuthority authority_;
  TempDir folder_;
  std::vector<std::string> command_;
  std::optional<Process> process_;
};

// A runtime as its tunnel-client knows it.
struct TunnelRuntime {
  std::string prefix = kRuntimePrefix;
  std::string token = kRuntimeToken;
};

// The real tunnel-client of a runtime, over wss.
class OwnTunnelClient {
 public:
  // `servers`: ports of tunnel servers on localhost whose certificates `ca_file` verifies. Returns
  // when the program has started, which is before it serves; throws otherwise.
  OwnTunnelClient(const std::vector<std::uint16_t>& servers, const std::filesystem::path& ca_file,
                  std::uint16_t upstream_port, const std::vector<std::string>& flags = {},
                  const TunnelRuntime& runtime = {});

  [[nodiscard]] HttpReply admin(const std::string& path, const std::string& method = "GET") const;
  [[nodiscard]] StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  // Whether users reach the runtime, as the client sees it.
  [[nodiscard]] bool is_ready() const { return admin("/readyz").ok(); }
  // The sum of a metric over its labels, as gitops_tunnel_client_sessions_total.
  [[nodiscard]] std::int64_t sum(const std::string& metric) const;
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  [[nodiscard]] const std::filesystem::path& log_file() const { return process_.log_file(); }
  Process& process() { return process_; }

 private:
  TempDir folder_;
  Process process_;
  int admin_port_ = 0;
};

}  // namespace gitops::test
