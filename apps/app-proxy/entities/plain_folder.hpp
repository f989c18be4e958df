#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// Manifests of an Application whose source is a plain folder (no Helm chart, no kustomization, no
// plugin), read in the same way as by Argo CD (repo-server, source type Directory). Pure.
namespace gitops::app_proxy {

// A folder at a commit, from the body of POST /api/source-files.
struct PlainFolder {
  std::string repository;  // clone URL
  std::string commit;      // full id
  std::string branch;      // contains the commit; empty: the default branch
  std::string folder;      // without leading and trailing slashes; empty: the root
  bool is_recursive = false;
  std::string include;  // patterns of Argo CD; empty: all
  std::string exclude;
  bool operator==(const PlainFolder&) const = default;
};
// Parses `{"repoURL","revision","targetRevision","path","recurse","include","exclude"}`.
// `invalid_argument` when it is malformed, or when the path leads out of the repository.
Result<PlainFolder> read_plain_folder(std::string_view body);

// Checks whether a path in the folder makes it a Helm chart or a kustomization.
bool is_other_source(std::string_view path);
// Checks whether Argo CD reads the file as a manifest. `path` is relative to the folder.
bool is_manifest_file(const PlainFolder& folder, std::string_view path);
// Matches a path. "*" and "?" match any characters, also '/'; "{a,b}" matches one of several. Other
// special characters are not supported: a pattern with one matches nothing.
bool matches_pattern(std::string_view pattern, std::string_view path);

// Name of an object in a file. The namespace may be empty; then it is the Application's
// destination.
struct ManifestName {
  std::string group;
  std::string kind;
  std::string ns;
  std::string name;
  bool operator==(const ManifestName&) const = default;
};
// Returns the objects of a file, one for each document. Lists are left out. `invalid_data` when it
// is not YAML.
Result<std::vector<ManifestName>> names_in(std::string_view text);

// A file of the folder for the response. The text is left out when it is not UTF-8, is larger than
// 512 KiB, or holds a Secret.
struct PlainFile {
  std::string path;  // from the root of the repository
  std::string text;
};
// Returns `{"files":[{"path","text"?,"objects":[{"group","kind","namespace","name"}]}]}`. Files
// without objects, and files that are not YAML, are left out.
std::string plain_folder_answer(const std::vector<PlainFile>& files);

}  // namespace gitops::app_proxy
