#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/store/connection.hpp"
#include "common/store/statement.hpp"
#include "control-plane/projection/object.hpp"

namespace gitops::control_plane_server {

inline constexpr std::size_t kMaxSealingKey = 64 * 1024;  // bytes of its base64
inline constexpr std::int64_t kMaxSecretsOfAccount = 1'000;

// Seals secrets of accounts with the master key: AES-256-GCM with a random nonce for each. A sealed text is bound to
// its account and name. For any thread.
class SecretStore {
 public:
  // Makes a store from a key. invalid_argument unless the key is 32 bytes, or their hexadecimal digits or base64, as a
  // file has them.
  static Result<SecretStore> make(const Secret& master_key);

  [[nodiscard]] std::string seal(std::int64_t account, std::string_view name,
                                 const Secret& plain) const;
  // Opens a sealed text. invalid_data: another master key, account or name, or a changed text.
  [[nodiscard]] Result<Secret> open(std::int64_t account, std::string_view name,
                                    std::string_view sealed) const;

 private:
  explicit SecretStore(Secret key) : key_(std::move(key)) {}
  Secret key_;
};

// Stores a sealed text under a new name, or replaces it. Blocks. invalid_argument: the account has too many secrets.
Result<void> put_secret(store::Connection& connection, std::int64_t account, std::string_view name,
                        std::string_view sealed, Micros now);
// Returns the sealed text; nothing when the account has none of that name. Blocks.
Result<std::optional<std::string>> find_secret(store::Connection& connection, std::int64_t account,
                                               std::string_view name);

// Returns the name of a sealing key. The id has the form of new_id().
std::string sealing_key_name(std::string_view id);

std::span<const store::Statement> secret_statements();

}  // namespace gitops::control_plane_server
