#include "control-plane/accounts/api_keys.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/json_value.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/tokens.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Rows;
using store::Statement;
using Json = nlohmann::json;

constexpr std::size_t kPrefixCharacters = 6;
constexpr std::size_t kMaxScopes = 100;

constexpr std::string_view kKeySelect =
    "SELECT id, account, user_id, runtime, name, hash, prefix, scopes, created_at, expires_at, "
    "used_at, (SELECT count(*) FROM service_account s WHERE s.account = api_key.account AND "
    "s.id = api_key.user_id) FROM api_key";
constexpr std::string_view kKeyWithId = " WHERE id = $1";
constexpr std::string_view kKeyOfAccount = " WHERE account = $1";
constexpr std::string_view kAndKeyId = " AND id = $2";
constexpr std::string_view kAndKeyUser = " AND user_id = $2";
constexpr std::string_view kKeysInOrder = " ORDER BY created_at, id";

constexpr Statement kAddKey{
    .name = "accounts.add_key",
    .sql =
        "INSERT INTO api_key (id, account, user_id, runtime, name, hash, prefix, scopes, "
        "created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"};
constexpr Statement kFindKey{.name = "accounts.find_key",
                             .sql = store::joined<kKeySelect, kKeyWithId>};
constexpr Statement kKey{.name = "accounts.key",
                         .sql = store::joined<kKeySelect, kKeyOfAccount, kAndKeyId>};
constexpr Statement kKeysOfUser{
    .name = "accounts.keys_of_user",
    .sql = store::joined<kKeySelect, kKeyOfAccount, kAndKeyUser, kKeysInOrder>};
constexpr Statement kKeysOfAccount{.name = "accounts.keys",
                                   .sql = store::joined<kKeySelect, kKeyOfAccount, kKeysInOrder>};
constexpr Statement kUpdateKey{
    .name = "accounts.update_key",
    .sql = "UPDATE api_key SET name = $3, scopes = $4 WHERE account = $1 AND id = $2"};
constexpr Statement kRevokeKey{.name = "accounts.revoke_key",
                               .sql = "DELETE FROM api_key WHERE account = $1 AND id = $2"};
constexpr Statement kRevokeKeysOfUser{
    .name = "accounts.revoke_keys_of_user",
    .sql = "DELETE FROM api_key WHERE account = $1 AND user_id = $2 RETURNING id"};
constexpr Statement kRevokeRuntimeTokens{
    .name = "accounts.revoke_runtime_tokens",
    .sql =
        "DELETE FROM api_key WHERE account = $1 AND user_id = '' AND runtime = $2 "
        "RETURNING id"};
constexpr Statement kSetKeyUsed{.name = "accounts.set_key_used",
                                .sql =
                                    "UPDATE api_key SET used_at = $3 WHERE account = $1 "
                                    "AND id = $2 AND used_at < $3"};

constexpr std::array kKeyStatements{kAddKey,     kFindKey,          kKey,
                                    kKeysOfUser, kKeysOfAccount,    kUpdateKey,
                                    kRevokeKey,  kRevokeKeysOfUser, kRevokeRuntimeTokens,
                                    kSetKeyUsed};

std::string hash_of(const Secret& secret) {
  return std::string(bytes_of(sha256(secret.reveal())));
}

ApiKey key_at(const Rows& rows, std::size_t row) {
  ApiKey key{.id = rows.string(row, 0),
             .account = rows.number(row, 1),
             .user_id = rows.string(row, 2),
             .runtime = rows.string(row, 3),
             .name = rows.string(row, 4),
             .hash = rows.string(row, 5),
             .prefix = rows.string(row, 6),
             .scopes = {},
             .created_at = rows.number(row, 8),
             .expires_at = rows.number(row, 9),
             .used_at = rows.number(row, 10),
             .is_of_service_account = rows.number(row, 11) != 0};
  const auto scopes = Json::parse(rows.text(row, 7), nullptr, false);
  if (!scopes.is_array()) return key;
  for (const Json& scope : scopes) {
    if (scope.is_string()) key.scopes.push_back(scope.get<std::string>());
  }
  return key;
}

std::string request_mistake(std::string_view name, const std::vector<std::string>& scopes) {
  if (auto mistake = name_mistake(name); !mistake.empty()) return mistake;
  if (scopes.size() > kMaxScopes) return "a key has at most 100 scopes";
  const bool are_valid =
      std::ranges::all_of(scopes, [](const auto& scope) { return name_mistake(scope).empty(); });
  return are_valid ? std::string()
                   : "a scope has 1 to 128 bytes of UTF-8, without control characters";
}

Result<void> store_key(Connection& connection, const ApiKey& key) {
  const auto scopes = to_text(Json(key.scopes));
  return connection.execute(
      kAddKey, {key.id, key.account, key.user_id, key.runtime, key.name, Param::bytes(key.hash),
                key.prefix, scopes, key.created_at, key.expires_at});
}

Result<std::vector<std::string>> revoked_ids(const Result<Rows>& rows) {
  if (!rows) return std::unexpected(rows.error());
  std::vector<std::string> ids;
  for (std::size_t row = 0; row < rows->size(); ++row) ids.push_back(rows->string(row, 0));
  return ids;
}

Result<void> changed_key(const Result<Rows>& rows, std::string_view id) {
  if (!rows) return std::unexpected(rows.error());
  if (rows->changed() == 0) return fail(ErrorCode::not_found, "there is no key " + std::string(id));
  return {};
}

}  // namespace

std::optional<ParsedKey> parse_api_key(std::string_view text) {
  if (text.size() != kIdCharacters + 1 + kTokenCharacters || text[kIdCharacters] != '.') return {};
  const auto id = text.substr(0, kIdCharacters);
  const auto secret = text.substr(kIdCharacters + 1);
  if (!is_id(id) || !is_token_text(secret)) return {};
  return ParsedKey{.id = std::string(id), .secret = Secret(std::string(secret))};
}

IssuedKey make_key(std::string id, std::string_view random) {
  const Secret secret = token_text(random);
  IssuedKey issued;
  issued.key.hash = hash_of(secret);
  issued.key.prefix = secret.reveal().substr(0, kPrefixCharacters);
  issued.text = Secret(id + "." + std::string(secret.reveal()));
  issued.key.id = std::move(id);
  return issued;
}

bool is_valid_key(const ApiKey* key, const Secret& secret, Micros now) {
  static const std::string kNoHash(Sha256Sum{}.size(), '\0');
  const bool is_same =
      equal_in_constant_time(hash_of(secret), key == nullptr ? kNoHash : key->hash);
  return key != nullptr && is_same && (key->expires_at == 0 || now < key->expires_at);
}

Result<IssuedKey> create_user_key(Connection& connection, std::int64_t account,
                                  std::string_view user_id, const KeyRequest& request, Micros now) {
  if (auto mistake = request_mistake(request.name, request.scopes); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto existing = list_keys(connection, account, user_id);
  if (!existing) return std::unexpected(existing.error());
  if (existing->size() >= kMaxKeysOfUser) {
    return fail(ErrorCode::invalid_argument,
                "the user has 500 keys in this account: revoke some of them first");
  }
  auto issued = make_key(new_id(), random_bytes(kTokenBytes));
  issued.key.account = account;
  issued.key.user_id = user_id;
  issued.key.name = request.name;
  issued.key.scopes = request.scopes;
  issued.key.created_at = now;
  issued.key.expires_at = request.expires_at;
  if (auto stored = store_key(connection, issued.key); !stored) {
    return std::unexpected(std::move(stored.error()));
  }
  return issued;
}

Result<IssuedKey> create_runtime_token(Connection& connection, std::int64_t account,
                                       std::string_view runtime, Micros now) {
  auto revoked = revoke_runtime_tokens(connection, account, runtime);
  if (!revoked) return std::unexpected(std::move(revoked.error()));
  auto issued = make_key(new_id(), random_bytes(kTokenBytes));
  issued.key.account = account;
  issued.key.runtime = runtime;
  issued.key.name = "runtime " + std::string(runtime);
  issued.key.created_at = now;
  issued.revoked = std::move(*revoked);
  for (const auto& id : issued.revoked) {
    if (auto added = add_revocation(
            connection, {.account = account, .subject = id, .runtime = issued.key.runtime}, now);
        !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  if (auto stored = store_key(connection, issued.key); !stored) {
    return std::unexpected(std::move(stored.error()));
  }
  return issued;
}

Result<std::optional<ApiKey>> find_key(Connection& connection, std::string_view id) {
  const auto rows = connection.run(kFindKey, {id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<ApiKey>();
  return std::optional(key_at(*rows, 0));
}

Result<ApiKey> key_of_account(Connection& connection, std::int64_t account, std::string_view id) {
  const auto rows = connection.run(kKey, {account, id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return fail(ErrorCode::not_found, "there is no key " + std::string(id));
  return key_at(*rows, 0);
}

Result<std::vector<ApiKey>> list_keys(Connection& connection, std::int64_t account,
                                      std::string_view user_id) {
  const auto rows = user_id.empty() ? connection.run(kKeysOfAccount, {account})
                                    : connection.run(kKeysOfUser, {account, user_id});
  if (!rows) return std::unexpected(rows.error());
  std::vector<ApiKey> keys;
  for (std::size_t row = 0; row < rows->size(); ++row) keys.push_back(key_at(*rows, row));
  return keys;
}

Result<void> update_key(Connection& connection, std::int64_t account, std::string_view id,
                        std::string_view name, const std::vector<std::string>& scopes) {
  if (auto mistake = request_mistake(name, scopes); !mistake.empty()) {
    return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto text = to_text(Json(scopes));
  return changed_key(connection.run(kUpdateKey, {account, id, name, text}), id);
}

Result<void> revoke_key(Connection& connection, std::int64_t account, std::string_view id) {
  return changed_key(connection.run(kRevokeKey, {account, id}), id);
}

Result<std::vector<std::string>> revoke_keys_of_user(Connection& connection, std::int64_t account,
                                                     std::string_view user_id) {
  if (user_id.empty()) return std::vector<std::string>();  // tokens of runtimes have no user
  return revoked_ids(connection.run(kRevokeKeysOfUser, {account, user_id}));
}

Result<std::vector<std::string>> revoke_runtime_tokens(Connection& connection, std::int64_t account,
                                                       std::string_view runtime) {
  if (runtime.empty()) return std::vector<std::string>();  // keys of users have no runtime
  return revoked_ids(connection.run(kRevokeRuntimeTokens, {account, runtime}));
}

Result<void> set_key_used(Connection& connection, std::int64_t account, std::string_view id,
                          Micros now) {
  return connection.execute(kSetKeyUsed, {account, id, now});
}

std::span<const Statement> key_statements() {
  return kKeyStatements;
}

}  // namespace gitops::control_plane_server
