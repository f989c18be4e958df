#pragma once

#include <string>

namespace gitops::cli {

struct Program;

// Scripts that complete commands, flags, and the values of flags that take a fixed choice or a
// file, and by Program::names the names that a server has. They are generated from the program's
// table: a new version of the program needs new ones.
//
// Names of a server are never evaluated by the shell, and those with characters that are special to
// it are not offered. Without a slash, the last part of a name with slashes is offered.
std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);
std::string fish_completion(const Program& program);

}  // namespace gitops::cli
