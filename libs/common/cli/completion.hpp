#pragma once

#include <string>

namespace gitops::cli {

struct Program;

// Scripts that complete the commands, their flags and the values of flags with fixed choices or
// files; made from the program's table, so they are to be printed again by a new version.
std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);

}  // namespace gitops::cli
