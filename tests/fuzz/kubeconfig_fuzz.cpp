#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "k8s-client/config.hpp"

// One or two kubeconfigs, separated by a NUL, with programs allowed and refused. Whatever comes: a
// configuration that is usable, or an error that says why.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(text.find('\0'), text.size());
  std::vector<gitops::k8s::KubeconfigText> texts{{"/etc/one", text.substr(0, cut)}};
  if (cut < text.size()) texts.push_back({"two", text.substr(cut + 1)});
  for (const auto policy : {gitops::k8s::ExecPolicy::refuse, gitops::k8s::ExecPolicy::allow}) {
    const auto config = gitops::k8s::kubeconfig_from_text(texts, "", policy);
    if (!config) {
      if (config.error().message.empty()) std::abort();
      continue;
    }
    if (config->server.host.empty()) std::abort();
    if (config->exec && policy == gitops::k8s::ExecPolicy::refuse) std::abort();
    if (config->tls.insecure_skip_verify && !config->tls.ca_pem.empty()) std::abort();
  }
  return 0;
}
