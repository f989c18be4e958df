#include "gitopsctl/program.hpp"

#include "gitopsctl/check.hpp"
#include "gitopsctl/version.hpp"
#include "gitopsctl/webhooks.hpp"

namespace gitops::ctl {

cli::Program gitopsctl() {
  return {.name = "gitopsctl",
          .summary = "checks and inspects a GitOps Runtime",
          .commands = {check_command(), version_command(), webhooks_command()}};
}

}  // namespace gitops::ctl
