#pragma once

#include <optional>
#include <string>

#include "common/control_plane/graphql.hpp"
#include "common/core/crypto.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

using control_plane::SentCredential;

// Credential of a request.
struct RequestCredential {
  enum class Kind {
    none,
    malformed,  // never valid: an empty token, two of them, control characters
    token,      // Authorization, without or with "Bearer"; or x-access-token
    cookie,  // only Cookie, which a browser adds by itself, also to requests of other sites' pages
  };
  Kind kind = Kind::none;
  SentCredential sent = {};
};

// Reads the credential from a request's header fields. Authorization has precedence over
// x-access-token, and both over Cookie. At most 8 KiB; a longer one is malformed.
RequestCredential credential_of(const http::Headers& headers);

// Reads the credential from the payload of a WebSocket's connection_init. Clients put header fields
// there: {"Authorization":"…"} in any case, or within "headers". JSON text.
RequestCredential credential_of_payload(std::string_view payload);

// Identifies a credential in memory by a keyed hash, with a new key in each process.
class CredentialHash {
 public:
  CredentialHash();
  [[nodiscard]] Sha256Sum of(const SentCredential& credential) const;

 private:
  Secret key_;
};

}  // namespace gitops::app_proxy
