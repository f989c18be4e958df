#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/cli/command.hpp"
#include "gitopsctl/sheet.hpp"

namespace gitops::ctl {

// `gitopsctl runtime list|status|add|remove`.
std::vector<cli::Command> runtime_commands();

// Returns the address of the control plane for pods. One at this machine has come through a port-forward, which pods do
// not see: then it is that of the Service of the chart gitops-control-plane, as docs/get-started/quickstart.md installs it.
std::string address_for_pods(const std::string& url);
// Returns the command that adds a runtime; docs/get-started/quickstart.md explains it, and the console shows the same one.
std::string install_command(std::string_view address, std::string_view name);
// The command that makes the Secret with a user's token, by which the runtime registers itself.
inline constexpr const char* kTokenCommand =
    "kubectl -n argocd create secret generic gitops-user-token --from-file=token=user-token";

}  // namespace gitops::ctl
