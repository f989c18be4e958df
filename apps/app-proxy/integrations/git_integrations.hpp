#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app-proxy/integrations/integration.hpp"
#include "app-proxy/integrations/integration_store.hpp"
#include "app-proxy/integrations/oauth_client.hpp"
#include "app-proxy/providers/git_host_client.hpp"
#include "app-proxy/providers/git_provider.hpp"
#include "common/core/task_group.hpp"

namespace gitops::app_proxy {

// What a user needs to work with a host: the provider, the user's own token, and the identity for
// commits.
struct GitAccount {
  std::shared_ptr<GitProvider> provider;
  ApiRoot root;
  GitAccess access;
  std::string login;
  std::string name;
  std::string mail;
};

// What users do with Git integrations. Errors have a subcode of integration_errors
// or git_errors. Whether the actor is an administrator is decided here for what is hidden; who may add,
// edit and remove is the resolvers' table's decision. Loop thread only; its dependencies outlive it.
class GitIntegrations {
 public:
  struct Options {
    bool skip_permissions_validation = false;  // SKIP_PERMISSIONS_VALIDATION
    PlainHttp plain_http = PlainHttp::refused;
  };
  GitIntegrations(IntegrationStore& store, TokenSeal& seal, GitHostClient& hosts, Options options);

  // Those that the actor may see.
  Task<Result<std::vector<Integration>>> list(Actor actor, Deadline deadline);
  // An empty name means "default", here and below. Nothing when there is none that the actor sees.
  Task<Result<std::optional<Integration>>> get(Actor actor, std::string name, Deadline deadline);
  struct New {
    std::string name;
    std::string provider;
    std::string api_url;
    SharingPolicy sharing = SharingPolicy::all_users;
  };
  Task<Result<Integration>> add(Actor actor, New wanted, Deadline deadline);
  Task<Result<Integration>> edit(Actor actor, std::string name, std::string api_url,
                                 SharingPolicy sharing, Deadline deadline);
  Task<Result<void>> remove(Actor actor, std::string name, Deadline deadline);
  // Makes the integration "default" for the account's own host, for all users, unless there is one.
  // False when it could not be found out or made now.
  Task<bool> ensure_default(std::string account_id, std::string provider, std::string api_url,
                            Deadline deadline);
  // Checks the token with the host before it is stored.
  Task<Result<Integration>> register_user(Actor actor, std::string name, GitAccess access,
                                          Deadline deadline);
  // The same for the token of a login at the host, and what comes with it.
  struct Renewal {
    Secret refresh_token = {};         // empty: there is none
    std::chrono::seconds lifetime{0};  // of the token; 0: it does not end
  };
  Task<Result<Integration>> register_login(Actor actor, std::string name, GitAccess access,
                                           Renewal renewal, Deadline deadline);
  // From now on a token of a login that has less than five minutes left is renewed before it is used:
  // once for all who wait for it, and stored before anybody gets it. A host that refuses makes it
  // invalid; one that does not answer changes nothing. `tasks` has the requests, which are finished
  // even when it is cancelled, because a host may give the next token only once.
  void renew_with(OauthClient& oauth, TaskGroup& tasks) {
    oauth_ = &oauth;
    renewals_ = &tasks;
  }
  // Without a token nothing happens.
  Task<Result<Integration>> deregister_user(Actor actor, std::string name, Deadline deadline);

  // The actor's own account at the host of an integration.
  Task<Result<GitAccount>> open(Actor actor, std::string name, Deadline deadline);
  // Whether a host accepts a token and lets it do what `use` needs; an error says what is missing.
  // Here and below, only administrators may name hosts that no integration that they see is for: the
  // runtime would ask anything on behalf of anybody.
  Task<Result<Profile>> validate(Actor actor, std::string provider, std::string api_url,
                                 GitAccess access, TokenUse use, Deadline deadline);
  // An account with credentials that are not stored.
  Task<Result<GitAccount>> open_unstored(Actor actor, std::string provider, std::string api_url,
                                         GitAccess access, Deadline deadline);

  // One user's token was found to be valid or invalid, which was not known before.
  struct Transition {
    std::string integration;
    std::string account_id;
    std::string user_id;
    TokenState state = TokenState::valid;
  };
  void on_transition(std::function<void(const Transition&)> on_transition) {
    on_transition_ = std::move(on_transition);
  }

  // Asks the host whether it accepts one stored token, as background work. Writes, and tells, only a
  // transition; what cannot be found out changes nothing. A token sealed with an older key is sealed
  // again.
  Task<> check(Integration integration, std::string user_id, Deadline deadline);
  // What one stored token may do with a repository, as background work. A token that the host refuses
  // may do nothing; every other failure, and an answer that is not fresh, is an error.
  Task<Result<Permissions>> permissions(Integration integration, std::string user_id,
                                        RepositoryName name, Deadline deadline);
  // The same for a page (from 1) of the token's own list of repositories: those whose permissions the
  // host tells in lists.
  struct ListedPermissions {
    std::vector<std::pair<std::string, Permissions>> by_name =
        {};  // "owner/name" as the host writes it
    bool has_next = false;
  };
  Task<Result<ListedPermissions>> listed_permissions(Integration integration, std::string user_id,
                                                     std::size_t page, Deadline deadline);
  [[nodiscard]] IntegrationStore& store() { return store_; }

 private:
  struct Flight;
  // What of a token is written again beside its state. A refresh token without a text is dropped.
  struct Again {
    std::optional<SealedToken> sealed = {};
    std::optional<SealedToken> refresh = {};
  };
  // A stored token for background work.
  Task<Result<GitAccess>> background_access(Integration integration, std::string user_id,
                                            Deadline deadline);
  // The integration as it is when the user's token needs not be renewed, or cannot be while it still
  // counts; otherwise as it is after that.
  Task<Result<Integration>> renewed(Integration integration, std::string user_id,
                                    Deadline deadline);
  Task<Result<Integration>> renew(std::string name, std::string account_id, std::string user_id,
                                  Deadline deadline);
  void note_renewal(const std::string& key, const std::string& name, const std::string& user_id,
                    const Result<Integration>& result);
  Task<Result<Integration>> keep(Integration integration, std::string user_id, oauth::Grant grant,
                                 WallTime asked);
  Task<Result<ApiRoot>> allowed_root(Actor actor, std::string_view provider,
                                     std::string_view api_url, Deadline deadline);
  Task<Result<Profile>> checked(const ApiRoot& root, const GitAccess& access, TokenUse use,
                                Deadline deadline);
  // Writes the state of a token, unless it was replaced since; one caller of many tells it.
  Task<> mark(const Integration& integration, const std::string& user_id, TokenState state,
              SealedToken seen, Again again, Deadline deadline);

  Log log_{"git-integrations"};
  IntegrationStore& store_;
  TokenSeal& seal_;
  GitHostClient& hosts_;
  Options options_;
  std::function<void(const Transition&)> on_transition_;
  OauthClient* oauth_ = nullptr;
  TaskGroup* renewals_ = nullptr;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // by user and integration
  std::map<std::string, Clock::time_point> paused_;         // after a renewal without an outcome
};

}  // namespace gitops::app_proxy
