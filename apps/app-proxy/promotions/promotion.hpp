#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/manifest_edit.hpp"
#include "app-proxy/git/tree_path.hpp"

// A promotion: copies values or whole files from one application's folder to another one's. Pure.
namespace gitops::app_proxy {

// Selects files of the source by a glob, and values in them by JSON paths. Without paths, whole
// files.
struct PromotionRule {
  std::string glob;
  std::vector<std::string> json_paths;
};

// A file of the source; its path is relative to the application's folder.
struct PromotedFile {
  std::string path;
  std::string content;
};

// Parses "$.image.tag", "$.images[0]['new-tag']": keys and indices; "$" is the whole file.
// `invalid_argument` for filters, wildcards, slices and recursive descent.
Result<ManifestPath> parse_json_path(std::string_view text);

// Matches a path. '*' and '?' match characters of one name, "**" any, "**/" any number of folders,
// and "{a,b}" one of several. Nothing matches a glob of more than 1,024 bytes or 100 alternatives.
bool matches_glob(std::string_view glob, std::string_view path);

// Checks whether a rule selects a file; without rules, all files are selected.
bool is_promoted(const std::vector<PromotionRule>& rules, std::string_view path);

// Changes that promote these files to the folder `destination` (empty: the root). For a file with
// JSON paths, the values (scalars, maps and lists, empty ones too) are set in the destination's
// file; its other data and comments are kept, and missing parents are created. A value that the
// source lacks is left out. A file that the destination lacks is an error when the changes are
// applied. `invalid_argument` for a glob beyond the limits, for a JSON path, or for a source file
// that cannot be parsed.
Result<std::vector<FileChange>> promotion_changes(const std::vector<PromotionRule>& rules,
                                                  const std::vector<PromotedFile>& source,
                                                  std::string_view destination);

}  // namespace gitops::app_proxy
