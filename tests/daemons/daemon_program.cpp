#include "daemons/daemon_program.hpp"

#include <filesystem>
#include <stdexcept>

namespace gitops::test {

namespace fs = std::filesystem;

std::string daemon_program(std::string_view name) {
  const auto own = fs::read_symlink("/proc/self/exe").parent_path();
  if (const auto beside = own / name; fs::is_regular_file(beside)) return beside.string();
  for (auto folder = own; folder.has_relative_path(); folder = folder.parent_path()) {
    const auto built = folder / "bin" / name;
    if (fs::is_regular_file(built)) return built.string();
  }
  throw std::runtime_error(std::string(name) + " is neither beside this program nor built");
}

}  // namespace gitops::test
