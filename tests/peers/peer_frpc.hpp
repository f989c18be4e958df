#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "peers/peer_programs.hpp"

namespace gitops::test {

/// The real client of frp, with one proxy of type http.
class PeerFrpc {
 public:
  enum class Version : std::uint8_t { v0_44, v0_70 };
  enum class Tls : std::uint8_t {
    none,
    plain,
    marked,  // behind frp's own first byte, 0x17
  };
  struct Options {
    Version version = Version::v0_70;
    std::string protocol = "tcp";  // websocket; wss (0.70 only, with Tls::plain)
    Tls tls = Tls::none;
    int server_port = 0;  // on localhost
    std::filesystem::path ca_file = {};
    std::string token = {};
    std::string authorization = {};  // metadata of the proxy
    std::string proxy = "acc-rt";    // its name and its subdomain
    std::string subdomain = {};      // where it differs
    int pool = 1;
    int local_port = 0;
    bool tcp_mux = true;
    bool signs_all = false;      // the additional scopes HeartBeats and NewWorkConns
    int heartbeat = 0;           // seconds between Pings; 0: the version's own
    int heartbeat_timeout = 90;  // seconds without a Pong; with `heartbeat` only
    bool use_encryption = false;
    bool use_compression = false;
    bool wire_v2 = false;  // 0.70 only
  };

  explicit PeerFrpc(const Options& options);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  void kill() { programs_.at("frpc").kill(); }
  void stop() { programs_.at("frpc").stop(); }
  void restart() { programs_.restart("frpc"); }
  bool running() { return programs_.at("frpc").running(); }
  std::string log() const { return programs_.log("frpc"); }

 private:
  PeerPrograms programs_{"gitops-frpc"};
};

}  // namespace gitops::test
