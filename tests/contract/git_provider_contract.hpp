#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "app-proxy/providers/git_provider.hpp"
#include "common/core/async.hpp"

// The behaviour of Git hosts that app-proxy relies on: one list of cases for the double of each
// provider and for real hosts (tests/peers).
namespace gitops::test {

// A host as the cases use it. It has `repository` with the default branch "main", the branch
// "feature/x", which differs from it, the tag "v1.0", and kContractFile; `extra` more repositories
// whose names begin with "extra-"; and nothing else that the user sees.
struct GitHostPeer {
  app_proxy::GitProvider& provider;
  app_proxy::GitAccess access;                 // may do everything
  std::optional<app_proxy::GitAccess> reader;  // may not write; none: not tested
  std::string login;
  std::string organisation;  // of the user
  app_proxy::RepositoryName repository;
  std::size_t extra = 0;
  std::string owner_of_new;  // where repositories may be made
  std::string commit;        // an existing commit of `repository`
  bool refuses_second_pull_request = true;
  // Merges a pull request of `repository` by the host's own means.
  std::function<Task<>(std::int64_t id)> merge;
};

extern const char* const kContractFile;
extern const char* const kContractFileContent;

struct GitProviderCase {
  const char* name;
  std::function<Task<>(const GitHostPeer&)> run;

  // The name that gtest shows.
  friend void PrintTo(const GitProviderCase& contract_case, std::ostream* out) {
    *out << contract_case.name;
  }
};
std::vector<GitProviderCase> git_provider_cases();

}  // namespace gitops::test
