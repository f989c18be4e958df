#include "app-proxy/integrations/git_integrations.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/providers/providers.hpp"
#include "common/core/text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxToken = 4'096;
constexpr std::size_t kListed = 100;                   // repositories in a page
constexpr auto kMargin = std::chrono::minutes(5);      // before the expiry of a token
constexpr auto kRenewal = std::chrono::seconds(15);    // per renewal
constexpr auto kPause = std::chrono::seconds(30);      // after a renewal without a known outcome
constexpr auto kOthersTime = std::chrono::seconds(2);  // for a replica to store a renewed token
constexpr std::size_t kMaxPaused = 1'000;
constexpr int kStores = 3;

std::string renewal_key(const std::string& name, const std::string& account_id,
                        const std::string& user_id) {
  return name + "\n" + account_id + "\n" + user_id;
}

std::unexpected<Error> throttled() {
  return fail(ErrorCode::too_many_requests, "the host throttles this token");
}

Error no_usable_token(std::string_view integration, std::string_view subcode) {
  const bool is_missing = subcode == integration_errors::kNoToken;
  return Error{.code = ErrorCode::invalid_argument,
               .message = is_missing ? "no Git token is registered with the integration \"" +
                                           std::string(integration) + "\"; register one"
                                     : "the Git token that is registered with the integration \"" +
                                           std::string(integration) +
                                           "\" is not valid any more; register a new one",
               .subcode = subcode};
}

GitAccount account_of(GitHostClient& hosts, const Integration& integration, const UserToken& token,
                      Secret opened) {
  return {.provider = make_provider(hosts, integration.root),
          .root = integration.root,
          .access = {std::move(opened), token.username},
          .login = token.login,
          .name = token.name,
          .mail = token.mail};
}

}  // namespace

GitIntegrations::GitIntegrations(IntegrationStore& store, TokenSeal& seal, GitHostClient& hosts,
                                 Options options)
    : store_(store), seal_(seal), hosts_(hosts), options_(options) {}

Task<Result<std::vector<Integration>>> GitIntegrations::list(Actor actor, Deadline deadline) {
  auto all = co_await store_.list(deadline);
  if (!all) co_return all;
  std::erase_if(*all, [&](const Integration& integration) {
    return integration.account_id != actor.account_id || !is_visible(integration, actor);
  });
  co_return all;
}

Task<Result<std::optional<Integration>>> GitIntegrations::get(Actor actor, std::string name,
                                                              Deadline deadline) {
  const auto named = integration_name(name);
  if (!named) co_return std::optional<Integration>();
  auto found = co_await store_.get(*named, actor.account_id, deadline);
  if (!found) {
    if (found.error().code == ErrorCode::not_found) co_return std::optional<Integration>();
    co_return std::unexpected(std::move(found.error()));
  }
  if (!is_visible(*found, actor)) co_return std::optional<Integration>();
  co_return std::optional<Integration>(std::move(*found));
}

Task<Result<Integration>> GitIntegrations::add(Actor actor, New wanted, Deadline deadline) {
  const auto name = integration_name(wanted.name);
  if (!name) co_return std::unexpected(name.error());
  auto root = make_api_root(wanted.provider, wanted.api_url, options_.plain_http);
  if (!root) co_return std::unexpected(std::move(root.error()));
  Integration made{.name = *name,
                   .account_id = actor.account_id,
                   .root = std::move(*root),
                   .sharing = wanted.sharing,
                   .users = {}};
  if (auto created = co_await store_.create(made, deadline); !created) {
    co_return std::unexpected(std::move(created.error()));
  }
  co_return made;
}

Task<Result<Integration>> GitIntegrations::edit(Actor actor, std::string name, std::string api_url,
                                                SharingPolicy sharing, Deadline deadline) {
  const auto named = integration_name(name);
  if (!named) co_return std::unexpected(named.error());
  co_return co_await store_.apply(
      *named, actor.account_id,
      [&](Integration& integration) -> Result<bool> {
        if (!is_visible(integration, actor)) return std::unexpected(unknown_integration(*named));
        if (auto edited = app_proxy::edit(integration, api_url, sharing, options_.plain_http);
            !edited) {
          return std::unexpected(edited.error());
        }
        return true;
      },
      deadline);
}

Task<Result<void>> GitIntegrations::remove(Actor actor, std::string name, Deadline deadline) {
  const auto named = integration_name(name);
  if (!named) co_return std::unexpected(named.error());
  co_return co_await store_.remove(*named, actor.account_id, deadline);
}

Task<bool> GitIntegrations::ensure_default(std::string account_id, std::string provider,
                                           std::string api_url, Deadline deadline) {
  const std::string name = integration_name("").value();
  const auto known = co_await store_.get(name, account_id, deadline);
  if (known) co_return true;
  if (known.error().code != ErrorCode::not_found) co_return false;
  auto root = make_api_root(provider, api_url, options_.plain_http);
  if (!root) {
    log_.warning("the account's Git host is not supported; an administrator can add an integration",
                 {{"provider", provider}, {"reason", root.error().message}});
    co_return true;
  }
  const Integration made{.name = name,
                         .account_id = account_id,
                         .root = std::move(*root),
                         .sharing = SharingPolicy::all_users,
                         .users = {}};
  const auto created = co_await store_.create(made, deadline);
  if (created) log_.info("made the default Git integration", {{"api_url", made.root.text()}});
  co_return created || created.error().code == ErrorCode::conflict;
}

Task<Result<Profile>> GitIntegrations::checked(const ApiRoot& root, const GitAccess& access,
                                               TokenUse use, Deadline deadline) {
  const auto provider = make_provider(hosts_, root);
  if (options_.skip_permissions_validation) {
    auto profile = co_await provider->who_am_i(access, deadline);
    if (!profile) co_return std::unexpected(std::move(profile.error()));
    co_return std::move(profile->value);
  }
  auto check = co_await provider->check_token(access, use, deadline);
  if (!check) co_return std::unexpected(std::move(check.error()));
  if (!check->missing.empty()) {
    Error error{.code = ErrorCode::forbidden,
                .message = "the Git token lacks these rights at " + root.url.host_header() + ": " +
                           join(check->missing, ", ") + "; create a token that has them",
                .subcode = git_errors::kTokenLacksRight};
    co_return std::unexpected(std::move(error));
  }
  co_return std::move(check->profile);
}

Task<Result<Integration>> GitIntegrations::register_user(Actor actor, std::string name,
                                                         GitAccess access, Deadline deadline) {
  return register_login(std::move(actor), std::move(name), std::move(access), Renewal(), deadline);
}

Task<Result<Integration>> GitIntegrations::register_login(Actor actor, std::string name,
                                                          GitAccess access, Renewal renewal,
                                                          Deadline deadline) {
  const auto begun = wall_now();
  const auto named = integration_name(name);
  if (!named) co_return std::unexpected(named.error());
  if (access.token.empty() || access.token.reveal().size() > kMaxToken) {
    co_return fail(ErrorCode::invalid_argument, "a Git token has 1 to 4,096 characters");
  }
  const auto integration = co_await store_.get(*named, actor.account_id, deadline);
  if (!integration) co_return std::unexpected(integration.error());
  if (!is_visible(*integration, actor)) co_return std::unexpected(unknown_integration(*named));
  const auto profile = co_await checked(integration->root, access, TokenUse::user, deadline);
  if (!profile) co_return std::unexpected(profile.error());
  const auto asked = integration->root.text();
  co_return co_await store_.apply(
      *named, actor.account_id,
      [&](Integration& stored) -> Result<bool> {
        if (!is_visible(stored, actor)) return std::unexpected(unknown_integration(*named));
        if (stored.root.text() != asked) {
          return fail(ErrorCode::conflict,
                      "the Git integration was changed meanwhile; register the token again");
        }
        const auto owner = owner_of(stored, actor.user_id);
        auto sealed = seal_.seal(owner, access.token);
        if (!sealed) return std::unexpected(sealed.error());
        SealedToken refresh;
        if (!renewal.refresh_token.empty()) {
          auto kept = seal_.seal(owner, renewal.refresh_token);
          if (!kept) return std::unexpected(kept.error());
          refresh = std::move(*kept);
        }
        const bool does_end = renewal.lifetime.count() > 0;
        auto registered =
            register_token(stored, {.user_id = actor.user_id,
                                    .username = access.username,
                                    .sealed = std::move(*sealed),
                                    .state = TokenState::valid,
                                    .login = profile->login,
                                    .name = profile->name,
                                    .mail = profile->mail,
                                    .refresh = std::move(refresh),
                                    .expires = does_end ? begun + renewal.lifetime : WallTime()});
        if (!registered) return std::unexpected(registered.error());
        return true;
      },
      deadline);
}

Task<Result<Integration>> GitIntegrations::deregister_user(Actor actor, std::string name,
                                                           Deadline deadline) {
  const auto named = integration_name(name);
  if (!named) co_return std::unexpected(named.error());
  std::optional<GitAccess> removed;
  auto after = co_await store_.apply(
      *named, actor.account_id,
      [&](Integration& stored) -> Result<bool> {
        if (!is_visible(stored, actor)) return std::unexpected(unknown_integration(*named));
        if (const auto* token = stored.find(actor.user_id)) {
          if (auto open = seal_.open(owner_of(stored, actor.user_id), token->sealed)) {
            removed = GitAccess{std::move(*open), token->username};
          }
        }
        return deregister(stored, actor.user_id);
      },
      deadline);
  if (after && removed) hosts_.forget(after->root, *removed);
  co_return after;
}

Task<Result<GitAccount>> GitIntegrations::open(Actor actor, std::string name, Deadline deadline) {
  const auto named = integration_name(name);
  if (!named) co_return std::unexpected(named.error());
  if (const auto read = co_await store_.recent(*named, actor.account_id, deadline)) {
    const Integration& integration = **read;
    const auto* token = is_visible(integration, actor) ? integration.find(actor.user_id) : nullptr;
    if (token != nullptr && !token->sealed.text.empty() && !token->can_renew(wall_now(), kMargin)) {
      if (auto opened = seal_.open(owner_of(integration, actor.user_id), token->sealed)) {
        co_return account_of(hosts_, integration, *token, std::move(*opened));
      }
    }
  }
  // A refusal must not come from cached data.
  auto integration = co_await store_.get(*named, actor.account_id, deadline);
  if (!integration) co_return std::unexpected(integration.error());
  if (!is_visible(*integration, actor)) co_return std::unexpected(unknown_integration(*named));
  integration = co_await renewed(std::move(*integration), actor.user_id, deadline);
  if (!integration) co_return std::unexpected(integration.error());
  if (!is_visible(*integration, actor)) co_return std::unexpected(unknown_integration(*named));
  const auto* token = integration->find(actor.user_id);
  if (token == nullptr) {
    co_return std::unexpected(no_usable_token(*named, integration_errors::kNoToken));
  }
  if (token->sealed.text.empty()) {
    co_return std::unexpected(no_usable_token(*named, integration_errors::kInvalidToken));
  }
  auto opened = seal_.open(owner_of(*integration, actor.user_id), token->sealed);
  if (!opened) {
    if (seal_.has_key()) {
      co_await mark(*integration, actor.user_id, TokenState::invalid, token->sealed, Again(),
                    deadline);
    }
    co_return std::unexpected(no_usable_token(*named, integration_errors::kInvalidToken));
  }
  // A token that is marked invalid is tried, too: the host decides.
  co_return account_of(hosts_, *integration, *token, std::move(*opened));
}

Task<Result<ApiRoot>> GitIntegrations::allowed_root(Actor actor, std::string_view provider,
                                                    std::string_view api_url, Deadline deadline) {
  auto root = make_api_root(provider, api_url, options_.plain_http);
  if (!root || actor.is_admin) co_return root;
  const auto known = co_await list(actor, deadline);
  if (!known) co_return std::unexpected(known.error());
  const auto is_same = [&](const Integration& integration) {
    return integration.root.text() == root->text() && integration.root.kind == root->kind;
  };
  if (std::ranges::none_of(*known, is_same)) {
    co_return fail(ErrorCode::invalid_argument,
                   "no Git integration is for this host; only an administrator of the account may "
                   "name another one");
  }
  co_return root;
}

Task<Result<GitAccount>> GitIntegrations::open_unstored(Actor actor, std::string provider,
                                                        std::string api_url, GitAccess access,
                                                        Deadline deadline) {
  auto root = co_await allowed_root(std::move(actor), provider, api_url, deadline);
  if (!root) co_return std::unexpected(std::move(root.error()));
  co_return GitAccount{.provider = make_provider(hosts_, *root),
                       .root = *root,
                       .access = std::move(access),
                       .login = {},
                       .name = {},
                       .mail = {}};
}

Task<Result<Profile>> GitIntegrations::validate(Actor actor, std::string provider,
                                                std::string api_url, GitAccess access, TokenUse use,
                                                Deadline deadline) {
  const auto root = co_await allowed_root(std::move(actor), provider, api_url, deadline);
  if (!root) co_return std::unexpected(root.error());
  co_return co_await checked(*root, access, use, deadline);
}

Task<> GitIntegrations::check(Integration integration, std::string user_id, Deadline deadline) {
  auto current = co_await renewed(std::move(integration), user_id, deadline);
  if (!current) co_return;  // it is marked, or the state is unknown
  integration = std::move(*current);
  const auto* token = integration.find(user_id);
  if (token == nullptr || token->sealed.text.empty() || !seal_.has_key()) co_return;
  const auto owner = owner_of(integration, user_id);
  auto opened = seal_.open(owner, token->sealed);
  if (!opened) {
    co_await mark(integration, user_id, TokenState::invalid, token->sealed, Again(), deadline);
    co_return;
  }
  const GitAccess access{*opened, token->username, Urgency::background};
  const auto provider = make_provider(hosts_, integration.root);
  const auto profile = co_await provider->who_am_i(access, deadline);
  if (!profile && profile.error().subcode != git_errors::kTokenRejected) co_return;  // unknown
  if (profile && profile->is_last_known) co_return;
  Again again;
  if (!seal_.is_current(token->sealed)) {
    if (auto sealed = seal_.seal(owner, *opened)) again.sealed = std::move(*sealed);
  }
  if (!token->refresh.text.empty() && !seal_.is_current(token->refresh)) {
    if (const auto refresh = seal_.open(owner, token->refresh)) {
      if (auto sealed = seal_.seal(owner, *refresh)) again.refresh = std::move(*sealed);
    }
  }
  co_await mark(integration, user_id, profile ? TokenState::valid : TokenState::invalid,
                token->sealed, std::move(again), deadline);
}

Task<Result<GitAccess>> GitIntegrations::background_access(Integration integration,
                                                           std::string user_id, Deadline deadline) {
  const auto current = co_await renewed(std::move(integration), user_id, deadline);
  if (!current) co_return std::unexpected(current.error());
  const auto* token = current->find(user_id);
  if (token == nullptr || token->sealed.text.empty()) {
    co_return std::unexpected(no_usable_token(current->name, integration_errors::kNoToken));
  }
  auto opened = seal_.open(owner_of(*current, user_id), token->sealed);
  if (!opened && seal_.has_key()) {
    co_return std::unexpected(no_usable_token(current->name, integration_errors::kInvalidToken));
  }
  if (!opened) co_return std::unexpected(opened.error());
  co_return GitAccess{std::move(*opened), token->username, Urgency::background};
}

// A renewal that all concurrent callers share.
struct GitIntegrations::Flight {
  explicit Flight(const Executor& executor) : landed(executor) {}
  Event landed;
  bool has_landed = false;
  Result<Integration> result = fail(ErrorCode::internal, "a renewal of a Git token broke off");
};

Task<Result<Integration>> GitIntegrations::renewed(Integration integration, std::string user_id,
                                                   Deadline deadline) {
  const auto* token = integration.find(user_id);
  if (oauth_ == nullptr || token == nullptr || token->sealed.text.empty() ||
      !token->can_renew(wall_now(), kMargin)) {
    co_return integration;
  }
  const bool is_over = token->expires <= wall_now();
  const std::string key = renewal_key(integration.name, integration.account_id, user_id);
  Error error{.code = ErrorCode::unavailable,
              .message =
                  "the Git token of the login has ended, and the next one could not be "
                  "had a moment ago; try again in half a minute",
              .subcode = git_errors::kUnreachable};
  const auto paused = paused_.find(key);
  if (paused == paused_.end() || paused->second <= Clock::now()) {
    auto found = flights_.find(key);
    if (found == flights_.end()) {
      const auto executor = co_await asio::this_coro::executor;
      found = flights_.emplace(key, std::make_shared<Flight>(executor)).first;
      renewals_->spawn(
          "renewal of a Git token",
          [this, key, flight = found->second, name = integration.name,
           account_id = integration.account_id, user_id]() -> Task<> {
            // Cancellation is disabled, since the host's new token must not be lost.
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            struct Landing {
              GitIntegrations& integrations;
              const std::string& key;
              Flight& flight;
              ~Landing() {
                integrations.flights_.erase(key);
                flight.has_landed = true;
                flight.landed.notify_all();
              }
            };
            const Landing landing{*this, key, *flight};
            flight->result = co_await renew(name, account_id, user_id, deadline_after(kRenewal));
            note_renewal(key, name, user_id, flight->result);
          });
    }
    const auto flight = found->second;
    bool is_late = false;
    while (!flight->has_landed && !is_late) is_late = !co_await flight->landed.wait(deadline);
    if (!is_late && flight->result) co_return *flight->result;
    if (!is_late) error = flight->result.error();
    if (error.subcode == integration_errors::kInvalidToken) {
      co_return std::unexpected(std::move(error));
    }
  }
  if (!is_over) co_return integration;
  // An error of the API server keeps its own reason.
  if (error.subcode.empty() && error.reason.empty()) error.subcode = git_errors::kUnreachable;
  co_return std::unexpected(std::move(error));
}

void GitIntegrations::note_renewal(const std::string& key, const std::string& name,
                                   const std::string& user_id, const Result<Integration>& result) {
  paused_.erase(key);
  // A refusal is logged with the change of the token's state.
  if (result || result.error().subcode == integration_errors::kInvalidToken) return;
  if (paused_.size() >= kMaxPaused) {
    std::erase_if(paused_, [](const auto& entry) { return entry.second <= Clock::now(); });
  }
  if (paused_.size() < kMaxPaused) paused_.emplace(key, Clock::now() + kPause);
  log_.warning("the Git token of a login could not be renewed now",
               {{"integration", name}, {"user_id", user_id}, {"reason", result.error().message}});
}

Task<Result<Integration>> GitIntegrations::renew(std::string name, std::string account_id,
                                                 std::string user_id, Deadline deadline) {
  auto integration = co_await store_.get(name, account_id, deadline);
  if (!integration) co_return integration;
  const auto* token = integration->find(user_id);
  // Another replica or the user has replaced the token.
  if (token == nullptr || !token->can_renew(wall_now(), kMargin)) co_return integration;
  const auto seen = *token;
  if (!seal_.has_key()) co_return fail(ErrorCode::unavailable, "the runtime is not registered yet");
  const auto refresh = seal_.open(owner_of(*integration, user_id), seen.refresh);
  if (auto earlier = unstored_.extract(renewal_key(name, account_id, user_id));
      !earlier.empty() && refresh && earlier.mapped().used == *refresh) {
    auto& given = earlier.mapped();
    co_return co_await keep(std::move(*integration), user_id, std::move(given.grant), given.asked);
  }
  const auto asked = wall_now();
  Result<oauth::Grant> grant = std::unexpected(
      Error{.code = ErrorCode::forbidden, .subcode = integration_errors::kNotGranted});
  if (refresh) grant = co_await oauth_->refresh(integration->root, *refresh, deadline);
  if (grant) co_return co_await keep(std::move(*integration), user_id, std::move(*grant), asked);
  if (grant.error().subcode != integration_errors::kNotGranted) {
    co_return std::unexpected(grant.error());
  }
  // Another replica may have renewed it and may be storing it.
  co_await sleep_for(kOthersTime);
  integration = co_await store_.get(name, account_id, deadline);
  if (!integration) co_return integration;
  const auto* now = integration->find(user_id);
  if (now == nullptr || now->sealed != seen.sealed) co_return integration;
  Again again;
  again.refresh = SealedToken();
  co_await mark(*integration, user_id, TokenState::invalid, seen.sealed, std::move(again),
                deadline);
  co_return std::unexpected(no_usable_token(name, integration_errors::kInvalidToken));
}

Task<Result<Integration>> GitIntegrations::keep(Integration integration, std::string user_id,
                                                oauth::Grant grant, WallTime asked) {
  const auto owner = owner_of(integration, user_id);
  const auto seen = *integration.find(user_id);
  const auto sealed = seal_.seal(owner, grant.access_token);
  if (!sealed) co_return std::unexpected(sealed.error());
  Result<SealedToken> refresh = seen.refresh;
  if (!grant.refresh_token.empty()) refresh = seal_.seal(owner, grant.refresh_token);
  if (!refresh) co_return std::unexpected(refresh.error());
  // Returns whether the token is of the login that was renewed. A check may have sealed it again.
  const auto used = seal_.open(owner, seen.refresh);
  const auto is_of_login = [&](const UserToken& token) {
    if (token.sealed == seen.sealed) return true;
    const auto left = seal_.open(owner, token.refresh);
    return used && left && *left == *used;
  };
  const auto deadline = deadline_after(kRenewal);
  bool is_valid_again = false;
  for (int attempt = 1;; ++attempt) {
    auto stored = co_await store_.apply(
        integration.name, integration.account_id,
        [&](Integration& there) -> Result<bool> {
          auto* token = there.find(user_id);
          is_valid_again = false;
          // The user has registered another token, or removed it.
          if (token == nullptr || !is_of_login(*token)) return false;
          // The host may have refused the token before, as while it had blocked the user.
          is_valid_again = token->state != TokenState::valid;
          token->state = TokenState::valid;
          token->sealed = *sealed;
          token->refresh = *refresh;
          token->expires = grant.lifetime.count() > 0 ? asked + grant.lifetime : WallTime();
          return true;
        },
        deadline);
    if (!stored && attempt == kStores && used && unstored_.size() < kMaxPaused) {
      // The next attempt begins here: the user would have to log in again without it.
      unstored_.insert_or_assign(
          renewal_key(integration.name, integration.account_id, user_id),
          Unstored{.used = *used, .grant = std::move(grant), .asked = asked});
    }
    if (stored && is_valid_again) note_transition(*stored, user_id, TokenState::valid);
    if (stored || attempt == kStores) co_return stored;
    co_await sleep_for(std::chrono::seconds(1));
  }
}

Task<Result<Permissions>> GitIntegrations::permissions(Integration integration, std::string user_id,
                                                       RepositoryName name, Deadline deadline) {
  const auto access = co_await background_access(integration, user_id, deadline);
  if (!access) {
    const auto subcode = access.error().subcode;
    const bool is_unusable =
        subcode == integration_errors::kNoToken || subcode == integration_errors::kInvalidToken;
    if (is_unusable) co_return Permissions{};
    co_return std::unexpected(access.error());
  }
  const auto provider = make_provider(hosts_, integration.root);
  const auto told = co_await provider->permissions(*access, name, deadline);
  if (!told) {
    if (told.error().subcode == git_errors::kTokenRejected) co_return Permissions{};
    co_return std::unexpected(told.error());
  }
  if (told->is_last_known) co_return throttled();
  co_return told->value;
}

Task<Result<GitIntegrations::ListedPermissions>> GitIntegrations::listed_permissions(
    Integration integration, std::string user_id, std::size_t page, Deadline deadline) {
  const auto access = co_await background_access(integration, user_id, deadline);
  if (!access) co_return std::unexpected(access.error());
  const auto provider = make_provider(hosts_, integration.root);
  const auto told = co_await provider->repositories(
      *access, {.search = {}, .page = page, .limit = kListed}, deadline);
  if (!told) co_return std::unexpected(told.error());
  if (told->is_last_known) co_return throttled();
  ListedPermissions out{.has_next = told->value.has_next};
  for (const auto& repository : told->value.repositories) {
    if (repository->permissions) {
      out.by_name.emplace_back(repository->full_name, *repository->permissions);
    }
  }
  co_return out;
}

Task<> GitIntegrations::mark(const Integration& integration, const std::string& user_id,
                             TokenState state, SealedToken seen, Again again, Deadline deadline) {
  const auto* known = integration.find(user_id);
  if (known->state == state && !again.sealed && !again.refresh) co_return;
  bool is_transition = false;
  const auto written = co_await store_.apply(
      integration.name, integration.account_id,
      [&](Integration& stored) -> Result<bool> {
        is_transition = false;
        auto* token = stored.find(user_id);
        // The result is about the old token, which was replaced or removed.
        if (token == nullptr || token->sealed != seen) return false;
        is_transition = token->state != state;
        token->state = state;
        if (again.sealed) token->sealed = *again.sealed;
        if (again.refresh) token->refresh = *again.refresh;
        return is_transition || again.sealed || again.refresh;
      },
      deadline);
  if (!written) {
    log_.warning("the state of a Git token could not be stored",
                 {{"integration", integration.name}, {"reason", written.error().message}});
    co_return;
  }
  if (is_transition) note_transition(integration, user_id, state);
}

void GitIntegrations::note_transition(const Integration& integration, const std::string& user_id,
                                      TokenState state) {
  log_.info(state == TokenState::valid
                ? "a Git token is valid again"
                : "a Git token is not valid any more; its user must register "
                  "a new one",
            {{"integration", integration.name}, {"user_id", user_id}});
  if (on_transition_) on_transition_({integration.name, integration.account_id, user_id, state});
}

}  // namespace gitops::app_proxy
