#include "app-proxy/providers/providers.hpp"

#include <utility>

#include "app-proxy/providers/bitbucket.hpp"
#include "app-proxy/providers/bitbucket_server.hpp"
#include "app-proxy/providers/gitea.hpp"
#include "app-proxy/providers/github.hpp"
#include "app-proxy/providers/gitlab.hpp"

namespace gitops::app_proxy {

std::unique_ptr<GitProvider> make_provider(GitHostClient& client, ApiRoot root) {
  switch (root.kind) {
    case ProviderKind::github:
      return std::make_unique<GitHub>(client, std::move(root));
    case ProviderKind::gitlab:
      return std::make_unique<GitLab>(client, std::move(root));
    case ProviderKind::bitbucket:
      return std::make_unique<Bitbucket>(client, std::move(root));
    case ProviderKind::bitbucket_server:
      return std::make_unique<BitbucketServer>(client, std::move(root));
    case ProviderKind::gitea:
      return std::make_unique<Gitea>(client, std::move(root));
  }
  std::unreachable();
}

}  // namespace gitops::app_proxy
