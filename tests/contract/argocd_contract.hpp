#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/http/url.hpp"
#include "support/git_server.hpp"

// The behaviour of argocd-server, and of the Applications that its controller writes, that this
// project relies on: one list of cases for FakeArgoCd and for the real Argo CD (tests/peers).
namespace gitops::test {

// An Argo CD as the cases use it, with one Application: synced and healthy, in project default,
// from a repository with argocd_contract_files() in one commit.
struct ArgoCdPeer {
  http::Url url;
  std::string token;
  std::string username;  // for a login
  std::string password;
  std::string app;
  std::string ns;           // of the Application
  std::string destination;  // namespace of its resources
  std::string revision;     // of the commit
  // The Application as stored by the API server now. May block the loop.
  std::function<nlohmann::json()> read_app;
  // Commits these changes and waits until Argo CD has compared them, without syncing.
  std::function<Task<>(FileChanges changes, std::string message)> change;
};

FileChanges argocd_contract_files();
extern const char* const kArgoCdContractMessage;
extern const CommitAuthor kArgoCdContractAuthor;

// One case. Cases that change the repository need an Application of their own.
struct ArgoCdCase {
  const char* name;
  bool changes;
  std::function<Task<>(const ArgoCdPeer&)> run;

  // The name that gtest shows.
  friend void PrintTo(const ArgoCdCase& contract_case, std::ostream* out) {
    *out << contract_case.name;
  }
};
std::vector<ArgoCdCase> argocd_cases();

}  // namespace gitops::test
