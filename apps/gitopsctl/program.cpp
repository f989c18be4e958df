#include "gitopsctl/program.hpp"

#include "gitopsctl/check.hpp"
#include "gitopsctl/version.hpp"

namespace gitops::ctl {

cli::Program gitopsctl() {
  return {.name = "gitopsctl",
          .summary = "checks and inspects a GitOps Runtime",
          .commands = {check_command(), version_command()}};
}

}  // namespace gitops::ctl
