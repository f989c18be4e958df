#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "app-proxy/git/tree_path.hpp"

namespace gitops::app_proxy {

// The files of a branch, by their paths.
using BranchFiles = std::map<std::string, std::string>;

// Changes the files in place, as a commit would. When a change fails, those before it stay.
inline Result<void> apply_changes(BranchFiles& files, const std::vector<FileChange>& changes) {
  EXPECT_TRUE(check_changes(changes)) << check_changes(changes).error().message;
  for (const auto& change : changes) {
    if (change.kind == FileChange::Kind::remove_folder) {
      std::erase_if(files, [&](const auto& file) {
        return file.first == change.path || file.first.starts_with(change.path + "/");
      });
      continue;
    }
    const auto found = files.find(change.path);
    auto made = change.edit(found == files.end() ? std::optional<std::string_view>()
                                                 : std::optional<std::string_view>(found->second));
    if (!made) return std::unexpected(std::move(made.error()));
    if (change.kind == FileChange::Kind::look) continue;
    if (change.kind == FileChange::Kind::edit_or_remove && made->empty()) {
      files.erase(change.path);
    } else {
      files[change.path] = std::move(*made);
    }
  }
  return {};
}

}  // namespace gitops::app_proxy
