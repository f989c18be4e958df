#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"

// Rules for changes of files in a branch. Pure.
namespace gitops::app_proxy {

// A change of one file or folder.
struct FileChange {
  enum class Kind {
    write,           // `content` becomes the whole file; an existing file keeps its mode
    edit,            // `edit` makes the new content
    edit_or_remove,  // `edit` makes the new content; an empty one removes the file
    look,            // no change; `edit` may refuse, and its result is not used
    remove,          // the file must exist
    remove_folder,   // the file or folder with its contents; no effect when there is none
  };
  // Returns the new content from the present one; nullopt when there is no such file. Called again
  // when somebody else pushed first. Runs on a thread of the pool.
  using Edit = std::function<Result<std::string>(std::optional<std::string_view> content)>;

  std::string path;
  Kind kind = Kind::write;
  std::string content = {};
  Edit edit = {};
  // The revision that the user saw: the id of the file's blob, or of a commit. Empty: any.
  std::string revision = {};
};

// Checks a path inside of a repository: relative, valid UTF-8, '/' between its names. Refuses paths
// that a clone on some file system would write elsewhere: empty names, ".", "..", names of dots and
// spaces only, control characters, backslashes, ".git" in every form that Windows or macOS takes
// for it (case, trailing dots and spaces, "git~1", "::$DATA" streams, code points that HFS+
// ignores), and ".gitmodules" alike, since submodules are not edited here. CVE-2014-9390,
// CVE-2019-1352, CVE-2019-1353, CVE-2021-21300.
Result<void> check_tree_path(std::string_view path);

// Checks all paths, and that no two changes concern the same file or a file and a folder above it.
// Revisions must be object ids. At most `max_changes` changes and `max_bytes` of content.
Result<void> check_changes(std::span<const FileChange> changes, std::size_t max_changes = 1'000,
                           std::size_t max_bytes = 32 * 1024 * 1024);

}  // namespace gitops::app_proxy
