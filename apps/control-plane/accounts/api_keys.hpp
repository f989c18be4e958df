#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

// API keys of users and tokens of runtimes: "<id>.<secret>", 24 hexadecimal digits and 43 characters of base64url (256
// random bits). The database has the id and the SHA-256 of the secret; a slow hash would only protect secrets that can
// be guessed. Errors and threads as in account_store.hpp.
namespace gitops::control_plane_server {

inline constexpr Micros kKeyUsedPeriod = 10LL * 60 * 1'000'000;  // between writes of used_at
inline constexpr std::size_t kMaxKeysOfUser = 500;               // of a user in one account

// A key as it is stored. It belongs to a user, a service account or a runtime.
struct ApiKey {
  std::string id;
  std::int64_t account = 0;
  std::string user_id;  // of a user or a service account
  std::string runtime;
  std::string name;
  std::string hash;    // of the secret, 32 bytes
  std::string prefix;  // the first characters of the secret
  std::vector<std::string> scopes;
  Micros created_at = 0;
  Micros expires_at = 0;  // 0: never
  Micros used_at = 0;     // late by up to kKeyUsedPeriod
  bool is_of_service_account = false;
};

// A new key. Its text is shown once and not stored.
struct IssuedKey {
  Secret text;
  ApiKey key;
  std::vector<std::string> revoked;  // ids of the keys that it replaces
};

// The two parts of a key's text.
struct ParsedKey {
  std::string id;
  Secret secret;
};
std::optional<ParsedKey> parse_api_key(std::string_view text);
// Makes a key from 32 random bytes: its text, and the row to store.
IssuedKey make_key(std::string id, std::string_view random);
// Returns whether the secret belongs to this key and the key is valid now. An unknown key (null) takes as long as a
// wrong secret.
bool is_valid_key(const ApiKey* key, const Secret& secret, Micros now);

struct KeyRequest {
  std::string name;
  std::vector<std::string> scopes = {};
  Micros expires_at = 0;
};
// Issues a key of a user or of a service account. invalid_argument: a malformed name, too many scopes or too many keys.
Result<IssuedKey> create_user_key(store::Connection& connection, std::int64_t account,
                                  std::string_view user_id, const KeyRequest& request, Micros now);
// Issues the token of a runtime and revokes its older ones.
Result<IssuedKey> create_runtime_token(store::Connection& connection, std::int64_t account,
                                       std::string_view runtime, Micros now);

// Returns the stored key of that id in any account. The authenticator calls it before the account is known.
Result<std::optional<ApiKey>> find_key(store::Connection& connection, std::string_view id);
Result<ApiKey> key_of_account(store::Connection& connection, std::int64_t account,
                              std::string_view id);
// Returns keys in the order of their creation. An empty user selects all users' keys and runtimes' tokens of the
// account.
Result<std::vector<ApiKey>> list_keys(store::Connection& connection, std::int64_t account,
                                      std::string_view user_id);
Result<void> update_key(store::Connection& connection, std::int64_t account, std::string_view id,
                        std::string_view name, const std::vector<std::string>& scopes);
Result<void> revoke_key(store::Connection& connection, std::int64_t account, std::string_view id);
// These functions revoke keys and return their ids, for Authenticator::forget().
Result<std::vector<std::string>> revoke_keys_of_user(store::Connection& connection,
                                                     std::int64_t account,
                                                     std::string_view user_id);
Result<std::vector<std::string>> revoke_runtime_tokens(store::Connection& connection,
                                                       std::int64_t account,
                                                       std::string_view runtime);
Result<void> set_key_used(store::Connection& connection, std::int64_t account, std::string_view id,
                          Micros now);

std::span<const store::Statement> key_statements();

}  // namespace gitops::control_plane_server
