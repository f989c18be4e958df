#include "gitopsctl/hints.hpp"

namespace gitops::ctl {

namespace {

constexpr Hint kHints[] = {
    {"kubernetes", "kubeconfig", "kubeconfig"},
    {"kubernetes", "API server", "api-server"},
    {"kubernetes", "credentials", "credentials"},
    {"rights", "", "rights"},
    {"argocd", "argocd-server", "argocd-server"},
    {"argocd", "token", "token-of-argo-cd"},
    {"argocd", "clusters", "clusters-of-argo-cd"},
    {"control_plane", "control plane", "control-plane"},
    {"control_plane", "token", "token-of-the-control-plane"},
    {"clocks", "", "clocks"},
    {"dns", "", "names"},
    {"proxies", "", "proxies"},
    {"certificates", "", "certificates"},
};

}  // namespace

std::span<const Hint> all_hints() {
  return kHints;
}

std::string help_for(std::string_view group, std::string_view name) {
  for (const Hint& hint : kHints) {
    if (hint.group == group && (hint.name.empty() || hint.name == name)) {
      return "gitopsctl-checks.md#" + std::string(hint.anchor);
    }
  }
  return {};
}

}  // namespace gitops::ctl
