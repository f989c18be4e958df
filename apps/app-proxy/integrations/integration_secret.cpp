#include "app-proxy/integrations/integration_secret.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 2UL * 1024 * 1024;  // Secret as JSON
constexpr const char* kTypeLabel = "io.codefresh.integration-type";
constexpr const char* kNameLabel = "io.codefresh.integration-name";
constexpr const char* kConfigKey = "integration";
constexpr std::string_view kUserKey = "user-";

std::unexpected<Error> unreadable(const char* what) {
  return fail(ErrorCode::invalid_data,
              std::string("the Secret of a Git integration cannot be read: ") + what);
}

// Returns the key of a user. Ids may have characters that are not valid in a Secret's keys.
std::string key_of_user(std::string_view user_id) {
  return std::string(kUserKey) + hex_encode(bytes_of(sha256(user_id))).substr(0, 32);
}

// Returns the JSON object in a value of a Secret; null when it is not one.
Json decoded(const Json& data, const std::string& key) {
  const auto bytes = base64_decode(string_at(data, {key}));
  return bytes ? parse_json_object(*bytes) : Json();
}

std::string stored_provider(ProviderKind kind) {
  return kind == ProviderKind::gitea ? "GITEA" : std::string(wire_name(kind));
}

// Returns a token with an empty text when the entry is incomplete.
SealedToken read_sealed(const Json& entry, std::string_view key_id, std::string_view nonce_key,
                        std::string_view text_key) {
  SealedToken out{.key_id = string_at(entry, {key_id}), .nonce = {}, .text = {}};
  auto nonce = base64_decode(string_at(entry, {nonce_key}));
  auto text = base64_decode(string_at(entry, {text_key}));
  if (nonce && text && !text->empty()) {
    out.nonce = std::move(*nonce);
    out.text = std::move(*text);
  }
  return out;
}

std::optional<UserToken> read_user(const Json& entry) {
  UserToken out;
  out.user_id = string_at(entry, {"userId"});
  if (out.user_id.empty()) return std::nullopt;
  out.username = string_at(entry, {"username"});
  out.login = string_at(entry, {"login"});
  out.name = string_at(entry, {"name"});
  out.mail = string_at(entry, {"mail"});
  out.sealed = read_sealed(entry, "keyId", "nonce", "token");
  const bool is_whole = !out.sealed.text.empty();
  if (const auto expires = integer_at(entry, {"expiresAt"}); is_whole && expires && *expires > 0) {
    out.refresh = read_sealed(entry, "refreshKeyId", "refreshNonce", "refreshToken");
    out.expires = WallTime(std::chrono::milliseconds(*expires));
  }
  const bool is_valid = is_whole && string_at(entry, {"state"}) == "valid";
  out.state = is_valid ? TokenState::valid : TokenState::invalid;
  return out;
}

Json write_user(const UserToken& token) {
  Json entry{{"userId", token.user_id},
             {"username", token.username},
             {"login", token.login},
             {"name", token.name},
             {"mail", token.mail},
             {"keyId", token.sealed.key_id},
             {"nonce", base64_encode(token.sealed.nonce)},
             {"token", base64_encode(token.sealed.text)},
             {"state", token.state == TokenState::valid ? "valid" : "invalid"}};
  if (token.expires != WallTime()) {
    entry["expiresAt"] = token.expires.time_since_epoch().count();
  }
  if (!token.refresh.text.empty()) {
    entry["refreshKeyId"] = token.refresh.key_id;
    entry["refreshNonce"] = base64_encode(token.refresh.nonce);
    entry["refreshToken"] = base64_encode(token.refresh.text);
  }
  return entry;
}

void write_into(Json& secret, const Integration& integration) {
  auto& labels = secret["metadata"]["labels"];
  if (!labels.is_object()) labels = Json::object();
  labels[kTypeLabel] = "git";
  labels[kNameLabel] = integration.name;
  auto& data = secret["data"];
  if (!data.is_object()) data = Json::object();
  data[kConfigKey] =
      base64_encode(to_text({{"version", 1},
                             {"name", integration.name},
                             {"accountId", integration.account_id},
                             {"provider", stored_provider(integration.root.kind)},
                             {"apiUrl", integration.root.text()},
                             {"sharingPolicy", integration.sharing == SharingPolicy::account_admins
                                                   ? "ACCOUNT_ADMINS"
                                                   : "ALL_USERS_IN_ACCOUNT"}}));
  for (auto entry = data.begin(); entry != data.end();) {
    const bool is_of_user = entry.key().starts_with(kUserKey);
    // An unreadable entry is of no use and is removed, too.
    const bool is_left = is_of_user && std::ranges::none_of(integration.users, [&](const auto& u) {
                           return key_of_user(u.user_id) == entry.key();
                         });
    entry = is_left ? data.erase(entry) : std::next(entry);
  }
  for (const UserToken& token : integration.users) {
    data[key_of_user(token.user_id)] = base64_encode(to_text(write_user(token)));
  }
}

}  // namespace

std::string secret_name(std::string_view integration, std::string_view account_id) {
  return "git-" + std::string(integration) + "-" + std::string(account_id);
}

Result<Integration> read_integration(std::string_view object) {
  if (object.size() > kMaxBytes) return unreadable("too large");
  const Json secret = parse_json_object(object);
  const Json& data = value_at(secret, {"data"});
  const Json config = decoded(data, kConfigKey);
  if (!config.is_object()) return unreadable("no configuration");
  Integration out;
  out.name = string_at(config, {"name"});
  out.account_id = string_at(config, {"accountId"});
  const auto checked = integration_name(out.name);
  if (out.name.empty() || !checked || out.account_id.empty()) return unreadable("no name");
  // A copy under another name must not be taken for the original.
  if (string_at(secret, {"metadata", "name"}) != secret_name(out.name, out.account_id)) {
    return unreadable("its name is not that of the integration");
  }
  // The URL was accepted when it was stored.
  auto root = make_api_root(string_at(config, {"provider"}), string_at(config, {"apiUrl"}),
                            PlainHttp::insecure_allowed);
  if (!root) return unreadable("no API root");
  out.root = std::move(*root);
  // An unknown policy hides the integration.
  out.sharing = string_at(config, {"sharingPolicy"}) == "ALL_USERS_IN_ACCOUNT"
                    ? SharingPolicy::all_users
                    : SharingPolicy::account_admins;
  for (const auto& [key, value] : data.items()) {
    if (!key.starts_with(kUserKey)) continue;
    auto user = read_user(decoded(data, key));
    if (user && key == key_of_user(user->user_id)) out.users.push_back(std::move(*user));
  }
  std::ranges::sort(out.users, {}, &UserToken::user_id);
  return out;
}

bool has_users(std::string_view object) {
  const Json secret = parse_json_object(object);
  const Json& data = value_at(secret, {"data"});
  if (!data.is_object()) return false;
  for (auto entry = data.begin(); entry != data.end(); ++entry) {
    if (entry.key().starts_with(kUserKey)) return true;
  }
  return false;
}

std::string new_integration_secret(std::string_view ns, const Integration& integration) {
  Json secret{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"type", "Opaque"},
              {"metadata",
               {{"name", secret_name(integration.name, integration.account_id)},
                {"namespace", std::string(ns)}}}};
  write_into(secret, integration);
  return to_text(secret);
}

Result<std::string> with_integration(std::string_view object, const Integration& integration) {
  if (object.size() > kMaxBytes) return unreadable("too large");
  Json secret = parse_json_object(object);
  if (!value_at(secret, {"metadata"}).is_object()) return unreadable("no metadata");
  write_into(secret, integration);
  return to_text(secret);
}

}  // namespace gitops::app_proxy
