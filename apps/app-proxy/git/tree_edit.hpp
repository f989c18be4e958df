#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app-proxy/git/libgit2.hpp"
#include "app-proxy/git/tree_path.hpp"
#include "common/core/error.hpp"

// Reading trees of a clone and editing them in memory: there is no work tree. For repository alone.
namespace gitops::app_proxy::libgit2 {

// A file in a tree.
struct FileEntry {
  git_oid blob{};
  git_filemode_t mode = GIT_FILEMODE_BLOB;
};
// What a path names.
struct Found {
  enum class Kind : std::uint8_t { nothing, file, folder, link, submodule, below_file };
  Kind kind = Kind::nothing;
  FileEntry file = {};
};

Result<TreePtr> tree_of(git_repository* repository, const git_oid& commit);
// Walks the path by itself, so that nothing but folders is walked through. No root: nothing.
Result<Found> find(git_repository* repository, const git_tree* root, std::string_view path);
// Of a file; too_large over `limit` bytes.
Result<std::string> content_of(git_repository* repository, const git_oid& blob, std::size_t limit);

// Writes the tree that the changes make of `root`, the tree of `parent` (both null: of an empty
// one), and returns its id. `force`: FileChange::revision is not compared. Files that Git LFS
// stores are `unsupported`: those that are pointers, and new ones whose attributes say so; a
// pointer may be written. Other failures as of BareRepository::commit().
Result<git_oid> edit_tree(git_repository* repository, const git_commit* parent,
                          const git_tree* root, std::span<const FileChange> changes, bool force);

}  // namespace gitops::app_proxy::libgit2
