#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/manifest_edit.hpp"
#include "app-proxy/git/tree_path.hpp"

// A promotion: values or whole files of one application's folder become those of another one. Pure.
namespace gitops::app_proxy {

// Which files of the source, by a glob, and which values in them, by JSON paths; without any, the
// whole files.
struct PromotionRule {
  std::string glob;
  std::vector<std::string> json_paths;
};

// A file of the source; its path is relative to the application's folder.
struct PromotedFile {
  std::string path;
  std::string content;
};

// "$.image.tag", "$.images[0]['new-tag']": keys and indices; "$" is the whole file. invalid_argument
// for filters, wildcards, slices and recursive descent.
Result<ManifestPath> parse_json_path(std::string_view text);

// '*' and '?' stand for characters of one name, "**" for any, "**/" for any folders, also none, and
// "{a,b}" for one of several.
bool matches_glob(std::string_view glob, std::string_view path);

// Whether a rule is about a file; without rules, all are.
bool is_promoted(const std::vector<PromotionRule>& rules, std::string_view path);

// The changes that promote these files to the folder `destination` (empty: the root). Of a file
// with JSON paths, the values are set in the destination's file, whose other data and comments
// stay: scalars, maps and lists, empty ones too, and what is missing above them is made. A value
// that the source lacks is left out, and a file that the destination lacks is an error when the
// changes are applied. invalid_argument: a JSON path, or a source file that cannot be read.
Result<std::vector<FileChange>> promotion_changes(const std::vector<PromotionRule>& rules,
                                                  const std::vector<PromotedFile>& source,
                                                  std::string_view destination);

}  // namespace gitops::app_proxy
