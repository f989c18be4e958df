#pragma once

#include <string>
#include <string_view>

namespace gitops::test {

// Returns the path of one of our daemons: beside this program, as an unpacked release has them, or
// in the folder bin of the build that this program is in. Throws when it is in neither.
std::string daemon_program(std::string_view name);

}  // namespace gitops::test
