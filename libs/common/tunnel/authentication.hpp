#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

// frp's authentication by a shared token (method "token"). A key proves knowledge of the token and
// can be replayed for ever, so it must only travel inside TLS.
namespace gitops::tunnel {

// Returns the privilege_key of Login, and of Ping and NewWorkConn when both sides require it there:
// the MD5 sum of the token followed by the decimal timestamp, in lower-case hex. The token may be
// empty.
[[nodiscard]] Secret privilege_key(const Secret& token, std::int64_t timestamp);

// Returns whether `key` is the privilege key for this token and timestamp. Compares in constant
// time. The caller checks the age of the timestamp; no version of frp does.
[[nodiscard]] bool is_privilege_key(const Secret& key, const Secret& token, std::int64_t timestamp);

// Messages that carry a privilege key besides Login (frp's auth.additionalScopes). Client and server
// must agree on them.
struct AuthScopes {
  bool heart_beats = false;
  bool new_work_conns = false;

  bool operator==(const AuthScopes&) const = default;
};
// Parses frp's names "HeartBeats" and "NewWorkConns".
Result<AuthScopes> parse_auth_scopes(const std::vector<std::string>& names);

}  // namespace gitops::tunnel
