#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/error.hpp"

namespace gitops::test {

// The place of an application's manifests.
struct GitSource {
  std::string url;  // http(s) or a local path
  std::string username = {};
  std::string password = {};
  std::string revision = "HEAD";  // a branch, a commit, or HEAD
  std::string path = ".";         // the folder with the YAML and JSON files
};

struct GitCommit {
  std::string revision;
  nlohmann::json metadata;  // author, date, message: as Argo CD's RevisionMetadata
  std::vector<nlohmann::json> manifests;
};

// Reads the commit with the real git through a bare repository in the folder `mirror`, which it
// creates when missing. Blocks.
Result<GitCommit> read_git_commit(const std::filesystem::path& mirror, const GitSource& source);

}  // namespace gitops::test
