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

// Git integrations: a host, and the tokens by which users work with it. Pure.
namespace gitops::app_proxy {

// Who sees an integration. ACCOUNT_ADMINS and ALL_USERS_IN_ACCOUNT of the schema.
enum class SharingPolicy { account_admins, all_users };

// Whether a host accepts a token, as far as it was asked. A failed check changes nothing.
enum class TokenState { valid, invalid };

// The token that a user has registered. Everything but the token itself may be shown to the user.
struct UserToken {
  std::string user_id;
  std::string username = {};  // to be sent beside the token; mostly empty
  SealedToken sealed = {};
  TokenState state = TokenState::valid;
  // The user at the host, for commits.
  std::string login = {};
  std::string name = {};
  std::string mail = {};
  // Of a login at the host: what the next token is asked for with, and when this one ends (the epoch:
  // never). Empty for a token that the user made.
  SealedToken refresh = {};
  WallTime expires = {};

  // Whether the token ends within `margin`, and another one can be asked for.
  [[nodiscard]] bool can_renew(WallTime now, std::chrono::milliseconds margin) const {
    return !refresh.text.empty() && expires != WallTime() && expires - now < margin;
  }
};

struct Integration {
  std::string name;
  std::string account_id;
  ApiRoot root;
  SharingPolicy sharing = SharingPolicy::all_users;
  std::vector<UserToken> users;  // in the order of their ids

  [[nodiscard]] const UserToken* find(std::string_view user_id) const;
  UserToken* find(std::string_view user_id);
};

// Who acts.
struct Actor {
  std::string user_id;
  std::string account_id;
  bool is_admin = false;  // of the account
};

// The name that is meant: "default" for an empty one. Names are DNS labels, because the name of a
// Secret is made of them.
Result<std::string> integration_name(std::string_view given);

bool is_visible(const Integration& integration, const Actor& actor);

// There is no such integration, or the actor must not know of it: the two are not told apart.
Error unknown_integration(std::string_view name);

// Changes the sharing, and the API root unless `api_url` is empty. A new root makes every token
// invalid and forgets it: it was registered for another host.
Result<void> edit(Integration& integration, std::string_view api_url, SharingPolicy sharing,
                  PlainHttp plain);

// Adds or replaces the user's token. At most 1,000 users, since a Secret holds 1 MiB.
Result<void> register_token(Integration& integration, UserToken token);
// False when there was none.
bool deregister(Integration& integration, std::string_view user_id);

// Whom a token belongs to: it cannot be opened as anybody else's.
TokenOwner owner_of(const Integration& integration, std::string_view user_id);

}  // namespace gitops::app_proxy
