#include "control-plane/runtimes/secrets.hpp"

#include <array>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Param;
using store::Statement;

constexpr Statement kPutSecret{
    .name = "secrets.put",
    .sql =
        "INSERT INTO secret (account, name, sealed, created_at) VALUES ($1, $2, $3, $4) "
        "ON CONFLICT (account, name) DO UPDATE SET sealed = excluded.sealed"};
constexpr Statement kSecret{.name = "secrets.one",
                            .sql = "SELECT sealed FROM secret WHERE account = $1 AND name = $2"};
constexpr Statement kCountSecrets{.name = "secrets.count",
                                  .sql = "SELECT COUNT(*) FROM secret WHERE account = $1"};

constexpr std::array kSecretStatements{kPutSecret, kSecret, kCountSecrets};

std::string associated_text(std::int64_t account, std::string_view name) {
  return std::to_string(account) + "/" + std::string(name);
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() != 2 * kSealKeySize) return {};
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

Result<SecretStore> SecretStore::make(const Secret& master_key) {
  if (auto bytes = from_hex(master_key.reveal())) return SecretStore(Secret(std::move(*bytes)));
  if (master_key.reveal().size() == kSealKeySize) return SecretStore(master_key);
  auto bytes = base64_decode(master_key.reveal());
  if (bytes && bytes->size() == kSealKeySize) return SecretStore(Secret(std::move(*bytes)));
  return fail(ErrorCode::invalid_argument,
              "the master key is neither 32 bytes nor their hexadecimal digits or base64");
}

std::string SecretStore::seal(std::int64_t account, std::string_view name,
                              const Secret& plain) const {
  auto nonce = random_bytes(kSealNonceSize);
  auto sealed = gitops::seal(key_, nonce, plain.reveal(), associated_text(account, name));
  return nonce + sealed;
}

Result<Secret> SecretStore::open(std::int64_t account, std::string_view name,
                                 std::string_view sealed) const {
  if (sealed.size() < kSealNonceSize + kSealTagSize) {
    return fail(ErrorCode::invalid_data, "the sealed text is too short");
  }
  auto plain = unseal(key_, sealed.substr(0, kSealNonceSize), sealed.substr(kSealNonceSize),
                      associated_text(account, name));
  if (!plain) return std::unexpected(std::move(plain.error()));
  return Secret(std::move(*plain));
}

Result<void> put_secret(Connection& connection, std::int64_t account, std::string_view name,
                        std::string_view sealed, Micros now) {
  const auto count = connection.run(kCountSecrets, {account});
  if (!count) return std::unexpected(count.error());
  if (count->number(0, 0) >= kMaxSecretsOfAccount) {
    return fail(ErrorCode::invalid_argument, "the account has too many sealing keys");
  }
  return connection.execute(kPutSecret, {account, name, Param::bytes(sealed), now});
}

Result<std::optional<std::string>> find_secret(Connection& connection, std::int64_t account,
                                               std::string_view name) {
  const auto rows = connection.run(kSecret, {account, name});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::optional<std::string>();
  return std::optional(rows->string(0, 0));
}

std::string sealing_key_name(std::string_view id) {
  return "sealing-key/" + std::string(id);
}

std::span<const Statement> secret_statements() {
  return kSecretStatements;
}

}  // namespace gitops::control_plane_server
