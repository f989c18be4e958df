#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app-proxy/entities/config_repository.hpp"
#include "app-proxy/entities/git_source.hpp"
#include "branch_files.hpp"

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
  BranchFiles files;

  // The error's subcode; empty when all went well.
  std::string apply(const std::vector<FileChange>& changes) {
    const auto applied = apply_changes(files, changes);
    return std::string(applied ? std::string_view() : applied.error().subcode);
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, content] : files) found.push_back(name);
    return found;
  }
};

}  // namespace gitops::app_proxy
