#pragma once

#include <memory>
#include <string>

#include "app-proxy/entities/plain_folder.hpp"
#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/git/tree_reader.hpp"
#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/users/directory.hpp"
#include "common/core/lru_cache.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// The files that the manifests of an Application come from, for event-reporter. Reads with the runtime's
// own Git token, which goes to the account's Git host alone. What was read at a commit never changes, so
// it is kept, within 8 MiB. Loop thread only.
class SourceFiles {
 public:
  struct Dependencies {
    TreeReader& reader;
    RuntimeGitToken& token;
    const UserDirectory& users;
    Scheme scheme = Scheme::https_only;
  };
  // What `parts` names outlives this object.
  explicit SourceFiles(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  // plain_folder_answer(); without files when the folder is no plain one. Errors have the HTTP status of
  // the answer, or are those of TreeReader::read().
  Task<Result<std::shared_ptr<const std::string>>> read(PlainFolder folder, Deadline deadline);

 private:
  Task<Result<FolderContent>> content(FolderRequest request, Deadline deadline);

  Dependencies dependencies_;
  LruCache<std::shared_ptr<const std::string>> kept_{std::size_t{8} * 1024 * 1024};
};

// POST /api/source-files: for the runtime's own token alone, and not through the prefix by which requests
// from outside the cluster come. `files` is null while the runtime has no folder for clones. Loop thread
// only; the arguments outlive it.
Task<> serve_source_files(http::Exchange& exchange, RequestGate& gate, SourceFiles* files);

}  // namespace gitops::app_proxy
