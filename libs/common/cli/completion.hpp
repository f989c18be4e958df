#pragma once

#include <string>

namespace gitops::cli {

struct Program;

// Scripts that complete commands, flags, and the values of flags that take a fixed choice or a
// file. They are generated from the program's table: a new version of the program needs new ones.
std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);

}  // namespace gitops::cli
