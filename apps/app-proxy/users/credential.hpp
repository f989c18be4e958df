#pragma once

#include <optional>
#include <string>

#include "common/control_plane/graphql.hpp"
#include "common/core/crypto.hpp"
#include "common/http/message.hpp"

namespace gitops::app_proxy {

using control_plane::SentCredential;

// What a request brought to say who asks.
struct RequestCredential {
  enum class Kind {
    none,
    malformed,  // no control plane would know it: an empty token, two of them, control characters
    token,      // Authorization, without or with "Bearer"; or x-access-token
    cookie,  // only Cookie: what a browser adds by itself, also to requests of other sites' pages
  };
  Kind kind = Kind::none;
  SentCredential sent = {};
};

// Reads it from a request's header fields. Authorization counts before x-access-token, and both before
// Cookie. At most 8 KiB; a longer one is malformed.
RequestCredential credential_of(const http::Headers& headers);

// The same for the payload of a WebSocket's connection_init, which clients fill with the fields that
// they would have sent: {"Authorization":"…"} in any case, or within "headers". JSON text.
RequestCredential credential_of_payload(std::string_view payload);

// By what a credential is known in memory: a keyed hash, with a key of its own in each process.
class CredentialHash {
 public:
  CredentialHash();
  [[nodiscard]] Sha256Sum of(const SentCredential& credential) const;

 private:
  Secret key_;
};

}  // namespace gitops::app_proxy
