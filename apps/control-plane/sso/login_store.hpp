#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/sso/authorization.hpp"
#include "control-plane/sso/id_token.hpp"
#include "control-plane/sso/provider_settings.hpp"

// Logins at identity providers in the database. Every function blocks and is called within one transaction
// (Database::write).
namespace gitops::control_plane_server::sso {

// Codes of a login that did not succeed, which the sign-in page translates; docs/guides/single-sign-on.md explains them. They
// are the subcodes of errors.
inline constexpr std::string_view kLoginExpired =
    "sso-expired";                                              // old, used, or of another browser
inline constexpr std::string_view kLoginDenied = "sso-denied";  // by the provider
inline constexpr std::string_view kProviderDown = "sso-unavailable";  // it does not respond
inline constexpr std::string_view kProviderWrong = "sso-provider";  // its responses are not usable
inline constexpr std::string_view kTokenRefused = "sso-token";
inline constexpr std::string_view kUnknownUser = "sso-unknown-user";
inline constexpr std::string_view kUserDisabled = "sso-disabled";
inline constexpr std::string_view kGroupsUnknown =
    "sso-groups";  // there are too many for the token
inline constexpr std::string_view kTooManyLogins = "sso-busy";
inline constexpr std::string_view kLoginFailed = "sso-failed";  // our own failure

// Stores a login that begins, and forgets the expired ones. too_many_requests: 10,000 are waiting.
Result<void> add_pending_login(store::Connection& connection, std::string_view state,
                               const PendingLogin& login, Micros now);
// Removes a login and returns the path to which it returns. Nothing when there is none of this state that began at this
// provider and in this browser, or when it has expired. Otherwise it stays: nobody else can use it up.
Result<std::optional<std::string>> take_pending_login(store::Connection& connection,
                                                      std::string_view state,
                                                      std::string_view provider,
                                                      const Secret& browser, Micros now);

struct SignIn {
  std::string user_id;
  std::string user_name;
  std::int64_t account = 0;  // number
  bool is_new_user = false;
  bool is_newly_joined = false;
  std::size_t teams_joined = 0;
  std::size_t teams_left = 0;
  Secret session;  // token

  [[nodiscard]] bool changes_user() const {
    return is_newly_joined || teams_joined + teams_left > 0;
  }
};
// Logs the user of checked claims in: finds, joins or creates it, updates its teams and begins a session. The subcode of
// an error is one of those above when the login is refused.
Result<SignIn> sign_in(store::Connection& connection, const ProviderSettings& provider,
                       const Claims& claims, Micros now);

std::span<const store::Statement> login_store_statements();

}  // namespace gitops::control_plane_server::sso
