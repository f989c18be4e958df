#pragma once

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "gitopsctl/config.hpp"
#include "gitopsctl/report.hpp"

namespace gitops::ctl {

// `gitopsctl check`: checks that Kubernetes, Argo CD and the control plane are reachable and accept
// the user's credentials, and that the user has the permissions that the daemons of a runtime need.
cli::Command check_command();

// The peers that are checked, and the permissions.
struct CheckSettings {
  KubernetesSettings kubernetes;
  ArgoCdSettings argocd;
  ControlPlaneSettings control_plane;
  Installation installation;
  void add_to(ConfigReader& reader);
};
// Makes all checks, side by side. An interrupted run throws.
Task<Report> run_checks(const CheckSettings& settings, const cli::Environment& environment,
                        const cli::LoopContext& context);

}  // namespace gitops::ctl
