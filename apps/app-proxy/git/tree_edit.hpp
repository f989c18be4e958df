#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app-proxy/git/libgit2.hpp"
#include "app-proxy/git/tree_path.hpp"
#include "common/core/error.hpp"

// Reads trees of a clone and edits them in memory, without a work tree. For repository only.
namespace gitops::app_proxy::libgit2 {

// A file in a tree.
struct FileEntry {
  git_oid blob{};
  git_filemode_t mode = GIT_FILEMODE_BLOB;
};
// The object at a path.
struct Found {
  enum class Kind : std::uint8_t { nothing, file, folder, link, submodule, below_file };
  Kind kind = Kind::nothing;
  FileEntry file = {};
};

Result<TreePtr> tree_of(git_repository* repository, const git_oid& commit);
// Finds the object at a path, and walks through folders only. Returns an empty result without a
// root.
Result<Found> find(git_repository* repository, const git_tree* root, std::string_view path);
// Returns the content of a file; `too_large` over `limit` bytes.
Result<std::string> content_of(git_repository* repository, const git_oid& blob, std::size_t limit);

// Applies the changes to `root`, the tree of `parent` (both null: an empty tree), writes the new
// tree and returns its id. `force` skips the check of FileChange::revision. Files in Git LFS are
// `unsupported`: pointers, and new files whose attributes require LFS; a pointer may be written.
// Other errors as of BareRepository::commit().
Result<git_oid> edit_tree(git_repository* repository, const git_commit* parent,
                          const git_tree* root, std::span<const FileChange> changes, bool force);

}  // namespace gitops::app_proxy::libgit2
