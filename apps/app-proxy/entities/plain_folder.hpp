#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// The manifests of an Application whose source is a plain folder, that is no Helm chart, no kustomization
// and no plugin, in the way Argo CD reads it (repo-server, source type Directory). Pure.
namespace gitops::app_proxy {

// A folder at a commit, as the body of POST /api/source-files names it.
struct PlainFolder {
  std::string repository;  // clone URL
  std::string commit;      // full id
  std::string branch;      // that holds it; empty: the default branch
  std::string folder;      // without slashes around it; empty: the root
  bool is_recursive = false;
  std::string include;  // patterns of Argo CD; empty: all
  std::string exclude;
  bool operator==(const PlainFolder&) const = default;
};
// `{"repoURL","revision","targetRevision","path","recurse","include","exclude"}`. invalid_argument when it
// is something else, or leads out of the repository.
Result<PlainFolder> read_plain_folder(std::string_view body);

// Whether a path in the folder makes it a Helm chart or a kustomization.
bool is_other_source(std::string_view path);
// Whether Argo CD reads the file as manifests. `path` is relative to the folder.
bool is_manifest_file(const PlainFolder& folder, std::string_view path);
// "*" and "?" stand for any characters, also '/'; "{a,b}" for one of several; nothing else is special
// here, and a pattern with more matches nothing.
bool matches_pattern(std::string_view pattern, std::string_view path);

// An object as a file names it; the namespace may be left to the Application's destination.
struct ManifestName {
  std::string group;
  std::string kind;
  std::string ns;
  std::string name;
  bool operator==(const ManifestName&) const = default;
};
// The objects of a file, one for each document. Lists are left out. invalid_data when it is not YAML.
Result<std::vector<ManifestName>> names_in(std::string_view text);

// A file of the folder for the answer. The text is left out where it is not UTF-8, over 512 KiB, or holds a
// Secret.
struct PlainFile {
  std::string path;  // from the root of the repository
  std::string text;
};
// `{"files":[{"path","text"?,"objects":[{"group","kind","namespace","name"}]}]}`. Files without objects, and
// those that are not YAML, are left out.
std::string plain_folder_answer(const std::vector<PlainFile>& files);

}  // namespace gitops::app_proxy
