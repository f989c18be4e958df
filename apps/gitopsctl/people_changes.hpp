#pragma once

#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

// `gitopsctl user|team|token|service-account add|create|remove|…`: changes of who may log in.
std::vector<cli::Command> people_change_commands();

// Returns the id of the account in which the caller acts.
Task<Result<std::string>> account_id(Server& server);

// Finds an object by its name or id in a list that a REST route returns; `kind` is "team". Errors as one_of().
Task<Result<Json>> find_by_name(Server& server, std::string path, std::string kind,
                                std::string name);

}  // namespace gitops::ctl
