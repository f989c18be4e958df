#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/git_source.hpp"

namespace gitops::app_proxy {

inline ConfigRepository repository(
    std::string specifier = "https://git.example.test/acme/config.git") {
  return {
      .at = parse_specifier(specifier).value(), .runtime = "prod", .runtime_namespace = "gitops"};
}

inline GitSource source(std::string name = "shop") {
  return {.name = std::move(name),
          .source = parse_specifier("https://git.example.test/acme/shop.git/apps?ref=main").value(),
          .server = "https://kubernetes.default.svc"};
}

// The files of a branch, changed as a commit would.
struct Files {
  std::map<std::string, std::string> files;

  // The error's reason; empty when all went well.
  std::string apply(const std::vector<FileChange>& changes) {
    EXPECT_TRUE(check_changes(changes)) << check_changes(changes).error().message;
    for (const auto& change : changes) {
      if (change.kind == FileChange::Kind::remove_folder) {
        std::erase_if(files, [&](const auto& file) {
          return file.first == change.path || file.first.starts_with(change.path + "/");
        });
        continue;
      }
      const auto found = files.find(change.path);
      auto made =
          change.edit(found == files.end() ? std::optional<std::string_view>()
                                           : std::optional<std::string_view>(found->second));
      if (!made) return made.error().reason;
      if (change.kind == FileChange::Kind::look) continue;
      files[change.path] = *made;
    }
    return {};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, content] : files) found.push_back(name);
    return found;
  }
};

}  // namespace gitops::app_proxy
