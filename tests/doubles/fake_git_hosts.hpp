#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app-proxy/providers/api_root.hpp"
#include "doubles/double_server.hpp"

namespace gitops::test {

// A Git host in memory with the REST interface of one provider, as far as app-proxy uses it. The forms
// of requests and answers follow the providers' public API documentation. Serves below the provider's
// usual API root; has one user with one organisation. Faults: those of DoubleServer.
class FakeGitHost : public DoubleServer {
 public:
  using Json = nlohmann::json;

  FakeGitHost(const Executor& executor, app_proxy::ProviderKind kind);

  static constexpr const char* kToken = "canary-git-token";    // may do everything
  static constexpr const char* kReader = "canary-git-reader";  // may only read
  static constexpr const char* kLogin = "dana";
  static constexpr const char* kOrganisation = "acme";
  // The key or path of the organisation: Bitbucket Server writes keys in capitals.
  [[nodiscard]] std::string organisation() const;
  [[nodiscard]] app_proxy::ApiRoot api_root() const;

  struct PullRequest {
    std::string title, description, head, base;
    std::string state = "open";  // open, merged, closed
  };
  struct Hook {
    std::int64_t id = 0;
    std::string url;
    std::string secret;
  };
  struct Repository {
    std::int64_t id = 0;
    std::string owner, name;
    bool is_private = true;
    bool is_read_only = false;  // for every user; GitHub and Gitea
    std::string default_branch = "main";
    std::string clone_url = {};  // empty: at git.example.test; GitHub and Gitea
    std::set<std::string> branches, tags;
    std::map<std::string, std::string> files;           // the same on every branch
    std::vector<PullRequest> pull_requests;             // numbered from 1
    std::map<std::string, std::vector<Json>> statuses;  // of commits, as they were sent
    std::vector<Hook> hooks;
  };
  Repository& add_repository(const std::string& owner, const std::string& name);
  // Null when there is none.
  Repository* find(std::string_view owner, std::string_view name);
  void merge(const std::string& owner, const std::string& name, std::size_t number);
  // Every token is refused from now on, or no longer.
  void refuse_tokens(bool refuse) { refuses_tokens_ = refuse; }
  void hide_mail() { mail_.reset(); }
  // A user besides the one, who may do everything. GitHub and Gitea.
  struct User {
    std::int64_t id = 0;
    std::string login;
    std::string name;
  };
  void add_user(std::string token, User user) { users_[std::move(token)] = std::move(user); }
  // Logins by OAuth: the application that is registered. Not for Bitbucket Cloud.
  struct Oauth {
    std::string client_id = "client-1";
    std::string client_secret = "canary-client-secret";
    std::chrono::seconds lifetime{
        0};  // of tokens; 0: they do not end, and there is nothing to renew
  };
  void set_oauth(Oauth oauth) { oauth_ = std::move(oauth); }
  // What happens when a browser was sent to `address` and its user agrees, or when there is an
  // error: the address that the browser is sent back to.
  std::string authorize(std::string_view address, const std::string& error = {});
  // No refresh token is good any more.
  void forget_logins() { refreshes_.clear(); }
  // The most items of a page, whatever is asked for.
  void limit_pages(std::size_t items) { page_limit_ = items; }

  // The commit that every branch points to, and the one that a merge makes.
  static constexpr const char* kCommit = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  static constexpr const char* kMergeCommit = "9fceb02d0ae598e95dc970b74767f19372d61af8";

 protected:
  Task<> handle(http::Exchange& exchange) override;
  [[nodiscard]] http::Response failure(int status) const override;

 private:
  struct ParsedRequest {
    std::string method;
    std::vector<std::string> path;  // below the API root
    Query query;
    Json body;
    std::string token;
    bool may_write = false;
    [[nodiscard]] bool is(std::string_view m, std::size_t segments) const {
      return method == m && path.size() == segments;
    }
  };
  http::Response answer(const ParsedRequest& asked);
  [[nodiscard]] bool is_oauth(std::string_view method, std::string_view path) const;
  http::Response answer_oauth(std::string_view form);
  // One for each provider; in files of their own.
  http::Response answer_github(const ParsedRequest& asked);  // and Gitea
  http::Response answer_gitlab(const ParsedRequest& asked);
  http::Response answer_bitbucket(const ParsedRequest& asked);
  http::Response answer_bitbucket_server(const ParsedRequest& asked);

  [[nodiscard]] Json github_repository(const Repository& repository, bool may_write) const;
  [[nodiscard]] Json gitlab_project(const Repository& repository, bool may_write) const;
  [[nodiscard]] Json bitbucket_repository(const Repository& repository) const;
  [[nodiscard]] Json bitbucket_server_repository(const Repository& repository) const;

  [[nodiscard]] http::Response json(int status, const Json& body) const;
  // A slice of `items` by page numbers, with a Link field.
  [[nodiscard]] http::Response numbered_page(const ParsedRequest& asked, const Json& items,
                                             std::string_view size_name, std::size_t most) const;
  [[nodiscard]] http::Response bitbucket_page(const ParsedRequest& asked, const Json& items) const;
  [[nodiscard]] http::Response bitbucket_server_page(const ParsedRequest& asked,
                                                     const Json& items) const;
  std::vector<Repository*> all(std::string_view part_of_name = {});

  app_proxy::ProviderKind kind_;
  std::string root_path_;
  std::vector<std::unique_ptr<Repository>> repositories_;
  std::map<std::string, User> users_ = {{kToken, {7, kLogin, "Dana Example"}}};  // by token
  std::optional<std::string> mail_ = "dana@example.test";
  std::int64_t last_id_ = 100;
  std::size_t page_limit_ = 1'000;
  bool refuses_tokens_ = false;
  std::optional<Oauth> oauth_;
  std::map<std::string, std::pair<std::string, std::string>> codes_;  // redirect_uri, challenge
  std::map<std::string, std::string> refreshes_;  // refresh token -> access token
};

// The id that Git gives a file with this content.
std::string git_blob_id(std::string_view content);

}  // namespace gitops::test
