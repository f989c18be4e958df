#pragma once

#include <string>

#include "app-proxy/entities/runtime_git_token.hpp"
#include "app-proxy/images/report_credentials.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/users/caller.hpp"
#include "app-proxy/users/directory.hpp"

namespace gitops::app_proxy {

// Git hosts from which the tasks of image reports read commits. Loop thread; its dependencies
// outlive it.
class ReportGitHosts {
 public:
  struct Dependencies {
    GitIntegrations& integrations;
    RuntimeGitToken& own_token;
    const UserDirectory& users;
    PlainHttp plain_http = PlainHttp::refused;
  };
  explicit ReportGitHosts(const Dependencies& dependencies) : dependencies_(dependencies) {}

  // Returns the host of an integration, with the user's own token. With an empty name,
  // administrators without a token there get the account's host with the runtime's token, which can
  // read everything that the runtime reads.
  Task<Result<GitHostAccess>> access(const User& user, std::string integration, Deadline deadline);

 private:
  Dependencies dependencies_;
};

}  // namespace gitops::app_proxy
