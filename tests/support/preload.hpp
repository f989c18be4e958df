#pragma once

#include <filesystem>
#include <string>

#include "support/process.hpp"

namespace gitops::test {

// A value for LD_PRELOAD that loads this library. The loader takes a space in it for the end of a path,
// so the library gets a link in a folder of this process.
inline std::string preload(const std::filesystem::path& library) {
  static const TempDir folder;
  const auto link = folder / library.filename().string();
  if (!std::filesystem::is_symlink(link)) std::filesystem::create_symlink(library, link);
  return link.string();
}

}  // namespace gitops::test
