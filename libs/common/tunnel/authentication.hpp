#pragma once

#include <cstdint>

#include "common/core/secret.hpp"

// frp's authentication by a shared token (method "token"). It proves knowledge of the token and no
// more: who sees a key can send it again for ever, so it must only travel inside of TLS.
namespace gitops::tunnel {

// The privilege_key of Login, and of Ping and NewWorkConn when both sides ask for it there: the MD5
// sum of the token followed by the decimal timestamp, in lower-case hex. The token may be empty.
[[nodiscard]] Secret privilege_key(const Secret& token, std::int64_t timestamp);

// True when `key` is the privilege key for this token and timestamp. Takes as long wherever they
// differ. The age of the timestamp is the caller's to check; no version of frp does.
[[nodiscard]] bool is_privilege_key(const Secret& key, const Secret& token, std::int64_t timestamp);

}  // namespace gitops::tunnel
