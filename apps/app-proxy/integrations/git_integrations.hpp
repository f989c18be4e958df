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

// Account of a user at a host: the provider, the user's own token, and the identity for commits.
struct GitAccount {
  std::shared_ptr<GitProvider> provider;
  ApiRoot root;
  GitAccess access;
  std::string login;
  std::string name;
  std::string mail;
};

// User operations on Git integrations. Errors have a subcode of integration_errors or git_errors.
// This class hides integrations from users who are not administrators; the resolvers' table
// restricts who may add, edit and remove. Loop thread only; its dependencies outlive it.
class GitIntegrations {
 public:
  struct Options {
    bool skip_permissions_validation = false;  // SKIP_PERMISSIONS_VALIDATION
    PlainHttp plain_http = PlainHttp::refused;
  };
  GitIntegrations(IntegrationStore& store, TokenSeal& seal, GitHostClient& hosts, Options options);

  // Returns the integrations that the actor may see.
  Task<Result<std::vector<Integration>>> list(Actor actor, Deadline deadline);
  // Returns an integration that the actor may see; nullopt when there is none. Here and below an
  // empty name means "default".
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
  // Creates the integration "default" for the account's own host, for all users, unless there is
  // one. Returns false when the check or the creation failed.
  Task<bool> ensure_default(std::string account_id, std::string provider, std::string api_url,
                            Deadline deadline);
  // Registers a token after a check by the host.
  Task<Result<Integration>> register_user(Actor actor, std::string name, GitAccess access,
                                          Deadline deadline);
  // Registers the token of a login at the host, with the data for its renewal.
  struct Renewal {
    Secret refresh_token = {};         // empty: none
    std::chrono::seconds lifetime{0};  // of the token; 0: it does not expire
  };
  Task<Result<Integration>> register_login(Actor actor, std::string name, GitAccess access,
                                           Renewal renewal, Deadline deadline);
  // Turns on renewal: a token of a login with less than five minutes left is renewed before use,
  // once for all concurrent callers, and stored before any of them gets it. A refusal by the host
  // makes the token invalid; a host that does not respond changes nothing. `tasks` runs the
  // requests. They are completed even when it is cancelled, because a host may issue the next token
  // only once.
  void renew_with(OauthClient& oauth, TaskGroup& tasks) {
    oauth_ = &oauth;
    renewals_ = &tasks;
  }
  // Removes the user's token. Has no effect without a token.
  Task<Result<Integration>> deregister_user(Actor actor, std::string name, Deadline deadline);

  // Returns the actor's own account at the host of an integration.
  Task<Result<GitAccount>> open(Actor actor, std::string name, Deadline deadline);
  // Checks that a host accepts a token and permits what `use` needs; an error names missing
  // permissions. Here and below, only administrators may name hosts without an integration that
  // they see. Otherwise any user could make the runtime send requests to any host.
  Task<Result<Profile>> validate(Actor actor, std::string provider, std::string api_url,
                                 GitAccess access, TokenUse use, Deadline deadline);
  // Returns an account with credentials that are not stored.
  Task<Result<GitAccount>> open_unstored(Actor actor, std::string provider, std::string api_url,
                                         GitAccess access, Deadline deadline);

  // A change of a user's token between valid and invalid.
  struct Transition {
    std::string integration;
    std::string account_id;
    std::string user_id;
    TokenState state = TokenState::valid;
  };
  void on_transition(std::function<void(const Transition&)> on_transition) {
    on_transition_ = std::move(on_transition);
  }

  // Asks the host whether it accepts one stored token, as background work. Stores and reports only
  // a transition; a failed check changes nothing. A token that was sealed with an older key is
  // sealed again.
  Task<> check(Integration integration, std::string user_id, Deadline deadline);
  // Returns the permissions of one stored token for a repository, as background work. A token that
  // the host refuses or that cannot be opened has none; every other failure, and a response that is
  // not fresh, is an error.
  Task<Result<Permissions>> permissions(Integration integration, std::string user_id,
                                        RepositoryName name, Deadline deadline);
  // Permissions from a page (counted from 1) of the token's own list of repositories. Contains the
  // repositories whose permissions the host reports in lists.
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
  // Parts of a token to be written again with its state. A refresh token with an empty text is
  // removed.
  struct Again {
    std::optional<SealedToken> sealed = {};
    std::optional<SealedToken> refresh = {};
  };
  // A grant that could not be stored. The host takes its refresh token only, no longer the stored
  // one.
  struct Unstored {
    Secret used;  // the stored refresh token
    oauth::Grant grant;
    WallTime asked;
  };
  // Returns a stored token for background work.
  Task<Result<GitAccess>> background_access(Integration integration, std::string user_id,
                                            Deadline deadline);
  // Renews the user's token if needed and returns the integration afterwards. Returns it unchanged
  // when a renewal is not needed, or fails while the token is still valid.
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
  // Logs and reports a change of a token's state.
  void note_transition(const Integration& integration, const std::string& user_id,
                       TokenState state);
  // Writes the state of a token, unless the token was replaced since. One of several concurrent
  // callers reports it.
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
  std::map<std::string, Unstored> unstored_;                // by user and integration
};

}  // namespace gitops::app_proxy
