#include "peers/peer_oidc.hpp"

#include <stdexcept>

namespace gitops::test {

std::optional<std::string> PeerOidc::missing() {
  if (find_program(peer_program("oidc-server").string())) return std::nullopt;
  return "oidc-server is not built: run ./dev peers oidc-server";
}

PeerOidc::PeerOidc(const std::string& redirect_uri, const std::string& after_logout) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  programs_.start("oidc-server", {peer_program("oidc-server").string(), std::to_string(port_),
                                  redirect_uri, after_logout});
  programs_.await("oidc-server", [this] {
    return http_call({.url = issuer() + "/.well-known/openid-configuration"}).ok();
  });
}

void PeerOidc::set_groups(const std::string& user, const std::string& groups) const {
  post("/test/groups?user=" + user + "&groups=" + groups);
}

void PeerOidc::rotate_keys() const {
  post("/test/rotate-keys");
}

void PeerOidc::post(const std::string& path) const {
  const auto reply = http_call({.method = "POST", .url = issuer() + path});
  if (!reply.ok()) throw std::runtime_error("oidc-server: " + reply.body);
}

}  // namespace gitops::test
