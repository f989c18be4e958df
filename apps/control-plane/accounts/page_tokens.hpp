#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// Page tokens: with one, a page of the console asks the app-proxy of one runtime as the user of its session. The runtime
// sees the token, so that it is worth little: it lives for minutes, it ends with the session, this server takes it for the
// query `me` alone, and `me` names the runtime, so that the app-proxies of others refuse it. Errors and threads as in
// account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr Micros kPageTokenLife = 5LL * 60 * 1'000'000;

struct PageToken {
  std::int64_t account = 0;
  std::string session;  // hash of the session
  std::string runtime;
  Micros expires_at = 0;
};

// Returns whether the text has the form of a page token: "page_" and 43 characters of base64url.
bool is_page_token_text(std::string_view text);

// Issues a token of a session for a runtime of the account and returns its text, which is not stored. not_found: the
// account has no runtime of that name.
Result<Secret> create_page_token(store::Connection& connection, std::int64_t account,
                                 std::string_view session, std::string_view runtime, Micros now);
// Returns the stored token, expired or not, while its runtime exists. The authenticator calls it before the account is
// known.
Result<std::optional<PageToken>> find_page_token(store::Connection& connection,
                                                 const Secret& token);

std::span<const store::Statement> page_token_statements();

}  // namespace gitops::control_plane_server
