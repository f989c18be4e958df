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

// Reads the files of an Application's manifests for event-reporter. Uses the runtime's own Git
// token, and sends it to the account's Git host only. Files at a commit never change, so up to 8
// MiB of them are cached. Loop thread only.
class SourceFiles {
 public:
  struct Dependencies {
    TreeReader& reader;
    RuntimeGitToken& token;
    const UserDirectory& users;
    Scheme scheme = Scheme::https_only;
  };
  // The objects in `dependencies` outlive this one.
  explicit SourceFiles(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  // Returns plain_folder_answer(), without files when the folder is not a plain one. Errors have
  // the HTTP status of the response, or are those of TreeReader::read().
  Task<Result<std::shared_ptr<const std::string>>> read(PlainFolder folder, Deadline deadline);

 private:
  Task<Result<FolderContent>> content(FolderRequest request, Deadline deadline);

  Dependencies dependencies_;
  LruCache<std::shared_ptr<const std::string>> kept_{std::size_t{8} * 1024 * 1024};
};

// Serves POST /api/source-files. Accepts the runtime's own token only, and not the prefix of
// requests from outside the cluster. `files` is null while the runtime has no folder for clones.
// Loop thread only; the arguments outlive it.
Task<> serve_source_files(http::Exchange& exchange, RequestGate& gate, SourceFiles* files);

}  // namespace gitops::app_proxy
