#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gitops::cli {

struct Program;

// Returns the manual pages of a program, generated from its table: one of the program, which lists the commands, and
// one of each command. First the name of the file ("gitopsctl-app-list.1"), then the text in the macros of man(7).
std::vector<std::pair<std::string, std::string>> man_pages(const Program& program);

}  // namespace gitops::cli
