#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "peers/peer_frps.hpp"
#include "support/process.hpp"
#include "support/status_page.hpp"
#include "test_http/raw_http.hpp"

// What tests of the tunnel-client with a real server of frp have in common.
namespace gitops::test {

// The host that the server offers for the client, unless a test asks for another one.
inline constexpr const char* kTunnelHost = "acc-rt.example.test";

struct TunnelStack {
  const char* name;
  const char* protocol;
  bool tls;
};
inline constexpr TunnelStack kWss{"Wss", "wss", true};

struct TunnelOptions {
  TunnelStack stack = kWss;
  Environment env = {};
  std::vector<std::string> flags = {};
  std::string ca_file = {};  // instead of the server's
  // Of the stop, when idle connections or slow requests exist.
  std::string drain = "2s";
};

// Where a client connects, and what verifies the server.
struct TunnelAddress {
  int port = 0;  // on localhost
  std::filesystem::path ca_file = {};
};

// The tunnel-client as a child process.
class TunnelClientProcess {
 public:
  TunnelClientProcess(const PeerFrps& server, int upstream_port, TunnelOptions options = {});
  TunnelClientProcess(const TunnelAddress& address, int upstream_port, TunnelOptions options = {});

  HttpReply admin(const std::string& path, const std::string& method = "GET") const;
  bool is_ready() const { return admin("/readyz").ok(); }
  // Throws with the log when the tunnel does not come.
  void await_ready();
  StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  // Sessions that were made.
  int sessions() const;
  std::string log() const { return read_file(folder_ / "log"); }
  Process& process() { return process_; }

 private:
  TempDir folder_;
  Process process_;
  int admin_port_ = 0;
};

// A request of a user.
RawResponse tunnel_call(const PeerFrps& server, const std::string& method,
                        const std::string& target, const std::string& body = {},
                        const std::string& host = kTunnelHost);

// Answers with the request's body, or with "hello".
bool tunnel_echo(const RecordedRequest& request, RawSocket& socket);

}  // namespace gitops::test
