#pragma once

#include <optional>
#include <string>

#include "peers/peer_programs.hpp"

namespace gitops::test {

/// The OpenID provider of tests/peers/oidc-server. Its client is "control-plane" with the secret "the secret", and its
/// users are kim and lee with the password "verysecure". The constructor returns when it serves.
class PeerOidc {
 public:
  PeerOidc(const std::string& redirect_uri, const std::string& after_logout);

  /// One line that names the missing program; nullopt when it is there.
  static std::optional<std::string> missing();

  std::string issuer() const { return "http://localhost:" + std::to_string(port_); }
  /// Sets the groups of a user, separated by commas.
  void set_groups(const std::string& user, const std::string& groups) const;
  /// Replaces the key that signs.
  void rotate_keys() const;
  void kill() { programs_.at("oidc-server").kill(); }
  std::string log() const { return programs_.log("oidc-server"); }

 private:
  void post(const std::string& path) const;

  int port_ = free_port();
  PeerPrograms programs_{"gitops-oidc"};
};

}  // namespace gitops::test
