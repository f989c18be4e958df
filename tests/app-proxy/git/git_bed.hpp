#pragma once

#include <memory>
#include <string>

#include "app-proxy/git/committer.hpp"
#include "support/git_server.hpp"

namespace gitops::test {

// A committer with its clones in a temporary folder. Call stop() before the destructor.
struct GitBed {
  struct Options {
    std::string ca_file = {};
    app_proxy::CloneCache::Options clones = {};  // its folder is ours unless it is set
    app_proxy::Committer::Options committer = {};
  };
  GitBed(const Executor& executor, Options options);

  // A change of one file, by the server's user.
  app_proxy::CommitRequest request(const std::string& url, const std::string& path,
                                   const std::string& content,
                                   const std::string& author = "Ann") const;
  Task<> stop();

  TempDir folder{"gitops-clones"};
  Metrics metrics;
  WorkerPool pool;
  WorkerPool cloning;
  net::Resolver resolver;
  http::Client client;
  app_proxy::CloneCache clones;
  app_proxy::Committer committer;
  app_proxy::GitCredential credential;
};

}  // namespace gitops::test
