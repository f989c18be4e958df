#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "peers/peer_programs.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

/// The real server of frp, and nginx before it, which ends TLS as the ingress of a hosted server
/// does. Both have a certificate for localhost. Hosts below example.test are virtual. The
/// constructor returns when both listen.
class PeerFrps {
 public:
  enum class Version : std::uint8_t { v0_44, v0_70 };

  struct Options {
    std::string token = {};
    bool tcp_mux = true;
    bool signs_all = false;     // the additional scopes HeartBeats and NewWorkConns
    int heartbeat_timeout = 0;  // seconds; 0: the default
  };
  explicit PeerFrps(Version version, std::string token = {})
      : PeerFrps(version, Options{.token = std::move(token)}) {}
  PeerFrps(Version version, const Options& options);

  /// One line that names the missing programs; nullopt when none is missing.
  static std::optional<std::string> missing();

  /// Where clients connect: directly (TCP, WebSocket, TLS or not), or through nginx (wss).
  int port() const { return port_; }
  int wss_port() const { return wss_port_; }
  /// Where users connect.
  int vhost_port() const { return vhost_port_; }
  const std::filesystem::path& ca_file() const { return authority_.ca_file(); }

  /// Kills the server.
  void kill();
  /// Stops the server from doing anything, and lets it go on; its connections stay.
  void freeze();
  void thaw();
  /// Kills the server, if it runs, and starts another one.
  void restart();
  std::string log() const { return programs_.log("frps"); }

 private:
  std::string ini(const Options& options) const;
  std::string toml(const Options& options) const;
  std::string nginx_config() const;
  void await_server();

  CertificateAuthority authority_;
  Certificate certificate_;
  int port_ = free_port();
  int vhost_port_ = free_port();
  int wss_port_ = free_port();
  PeerPrograms programs_{"gitops-frps"};
};

}  // namespace gitops::test
