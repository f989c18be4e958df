#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "k8s-client/cluster_secret.hpp"

// A Secret's JSON as the API server might send it. Whatever comes: a configuration that is usable,
// or an error that says why; a name that may stand in a log.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto secret =
      gitops::k8s::parse_cluster_secret({reinterpret_cast<const char*>(data), size});
  if (secret.name.size() > 128) std::abort();
  for (const char c : secret.name) {
    if (c < 0x20 || c == 0x7f) std::abort();
  }
  if (!secret.config) {
    if (secret.config.error().message.empty()) std::abort();
    return 0;
  }
  const auto& config = *secret.config;
  if (secret.server.empty() || config.server.host.empty() || config.exec) std::abort();
  if (!config.server.userinfo.empty()) std::abort();
  if (config.tls.insecure_skip_verify && !config.tls.ca_pem.empty()) std::abort();
  return 0;
}
