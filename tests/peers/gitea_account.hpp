#pragma once

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_gitea.hpp"

namespace gitops::test {

/// A real Gitea with a user "ann", whose repository "config", without a commit yet, is the account's shared
/// configuration repository.
struct GiteaAccount {
  using Json = nlohmann::json;

  GiteaAccount() {
    EXPECT_TRUE(gitea.api(ann, "POST", "/user/repos", R"({"name":"config"})").ok());
  }

  [[nodiscard]] std::string url(const std::string& repository) const {
    return gitea.url() + "/ann/" + repository + ".git";
  }
  /// Commits a new file.
  void put(const std::string& repository, const std::string& path, const std::string& text) const {
    EXPECT_TRUE(gitea
                    .api(ann, "POST", "/repos/ann/" + repository + "/contents/" + path,
                         Json{{"content", base64_encode(text)}}.dump())
                    .ok())
        << path;
  }
  /// The body of a request by which Argo CD learns of a repository; it refuses one without commits.
  [[nodiscard]] std::string for_argocd(const std::string& repository) const {
    return Json{{"repo", url(repository)},
                {"username", ann.name},
                {"password", ann.token},
                {"insecure", true}}
        .dump();
  }

  /// Tells the control plane of the repository.
  void tell(FakePlatform& platform) const {
    platform.accounts().add({.id = "acc-1",
                             .name = "acme",
                             .admins = {"u-ann"},
                             .git_provider = {},
                             .shared_config_repo = url("config")});
  }
  /// For app-proxy, whose clones are in the folder.
  [[nodiscard]] Environment environment(const TempDir& folder) const {
    return {{"REPOS_DIR", (folder / "clones").string()},
            {"GIT_USERNAME", ann.name},
            {"GIT_PASSWORD", ann.token},
            {"NODE_EXTRA_CA_CERTS", gitea.ca_file().string()}};
  }

  PeerGitea gitea;
  PeerGitea::User ann = gitea.create_user("ann");
};

}  // namespace gitops::test
