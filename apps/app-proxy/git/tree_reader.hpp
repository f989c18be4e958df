#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/git/clone_cache.hpp"
#include "app-proxy/git/repository.hpp"
#include "common/core/async.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/client.hpp"

namespace gitops::app_proxy {

// Request for the files of a folder at a commit.
struct FolderRequest {
  RepositoryUrl repository;
  std::string branch = {};  // empty or "HEAD": the default branch
  std::string commit = {};  // an id in that branch; empty: its tip
  std::string folder = {};  // empty: the root
  GitCredential credential = {};
  // Selects the paths, relative to the folder, that are read. Runs on a thread of the pool.
  std::function<bool(std::string_view path)> wanted = [](std::string_view) { return true; };
  std::size_t max_bytes = std::size_t{32} * 1024 * 1024;  // of all files that are read
};
struct FolderFile {
  std::string path;  // relative to the folder
  std::string content;
};
struct FolderContent {
  std::string commit;
  std::string branch;
  std::vector<FolderFile> files;
};

// Value of Error::subcode: the repository is there, and has no such branch. The code not_found alone
// says less: a host answers so for a repository that it does not show to the token.
inline constexpr std::string_view kNoBranch = "NoBranch";
inline bool is_missing_branch(const Error& error) {
  return error.subcode == kNoBranch;
}

// Reads from the clones that commits are made in. Every read asks the server for the branch, with
// the caller's credential. Symbolic links and submodules are left out. Loop thread; the blocking
// parts run on the pool.
class TreeReader {
 public:
  // All arguments outlive this object.
  TreeReader(WorkerPool& pool, CloneCache& clones, http::Client& client)
      : pool_(pool), clones_(clones), client_(client) {}

  // Reads the folder. Errors: not_found (the branch, see is_missing_branch(), or a commit that is
  // not in it), too_large, and those of a fetch.
  Task<Result<FolderContent>> read(FolderRequest request, Deadline deadline);
  // Checks on the server, without a clone, that it has the repository and a branch or tag `ref`
  // (empty: any). Errors: those of the request; a repository that the credential does not show is
  // not_found or forbidden.
  Task<Result<bool>> has(RepositoryUrl repository, std::string ref, GitCredential credential,
                         Deadline deadline);

 private:
  WorkerPool& pool_;
  CloneCache& clones_;
  http::Client& client_;
};

}  // namespace gitops::app_proxy
