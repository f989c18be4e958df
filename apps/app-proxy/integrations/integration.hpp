#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app-proxy/errors/client_codes.hpp"
#include "app-proxy/integrations/token_seal.hpp"
#include "app-proxy/providers/api_root.hpp"
#include "common/core/error.hpp"
#include "common/core/time.hpp"

// Git integrations: a host, and its users' tokens. Pure.
namespace gitops::app_proxy {

// Users who see an integration: ACCOUNT_ADMINS and ALL_USERS_IN_ACCOUNT of the schema.
enum class SharingPolicy { account_admins, all_users };

// Result of the last check of a token by its host. A failed check changes nothing.
enum class TokenState { valid, invalid };

// A token that a user has registered. All fields except the token may be shown to the user.
struct UserToken {
  std::string user_id;
  std::string username = {};  // sent beside the token; mostly empty
  SealedToken sealed = {};
  TokenState state = TokenState::valid;
  // Identity of the user at the host, for commits.
  std::string login = {};
  std::string name = {};
  std::string mail = {};
  // Refresh token and expiry (the epoch: never) of a token from a login at the host. Empty for a
  // token that the user created.
  SealedToken refresh = {};
  WallTime expires = {};

  // True when the token expires within `margin` and has a refresh token.
  [[nodiscard]] bool can_renew(WallTime now, std::chrono::milliseconds margin) const {
    return !refresh.text.empty() && expires != WallTime() && expires - now < margin;
  }
};

struct Integration {
  std::string name;
  std::string account_id;
  ApiRoot root;
  SharingPolicy sharing = SharingPolicy::all_users;
  std::vector<UserToken> users;  // sorted by id

  [[nodiscard]] const UserToken* find(std::string_view user_id) const;
  UserToken* find(std::string_view user_id);
};

// User who requests an operation.
struct Actor {
  std::string user_id;
  std::string account_id;
  bool is_admin = false;  // of the account
};

// Returns the name of an integration: "default" for an empty one. Names are DNS labels, because
// they become a part of a Secret's name.
Result<std::string> integration_name(std::string_view given);

bool is_visible(const Integration& integration, const Actor& actor);

// Error when an integration does not exist or is hidden from the actor. Clients cannot tell which.
Error unknown_integration(std::string_view name);

// Changes the sharing, and the API root unless `api_url` is empty. A new root marks every token as
// invalid and erases it, since it was registered for another host.
Result<void> edit(Integration& integration, std::string_view api_url, SharingPolicy sharing,
                  PlainHttp plain);

// Adds or replaces the user's token. At most 1,000 users, since a Secret holds at most 1 MiB.
Result<void> register_token(Integration& integration, UserToken token);
// Removes the user's token. Returns false when there was none.
bool deregister(Integration& integration, std::string_view user_id);

// Owner of a token. A sealed token opens only for its owner.
TokenOwner owner_of(const Integration& integration, std::string_view user_id);

}  // namespace gitops::app_proxy
