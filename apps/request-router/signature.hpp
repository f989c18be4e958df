#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "common/proxy/head.hpp"

namespace gitops::router {

// How a Git host authenticates its webhooks.
enum class SignatureKind {
  github,     // X-Hub-Signature-256: sha256=<hex HMAC of the body>
  gitlab,     // X-Gitlab-Token: <the token itself>
  bitbucket,  // X-Hub-Signature: sha256=<hex HMAC of the body>
};

// Webhooks of one event source must be signed with the secret in a file.
struct SignatureRule {
  std::string ns;
  std::string event_source;
  SignatureKind kind = SignatureKind::github;
  std::string secret_file;
};

// "namespace/event-source=github:/path/of/the/secret".
Result<SignatureRule> parse_signature_rule(std::string_view text);

// What the one field with the signature or the token holds: the hex digits, or the token. Nothing
// when the field is absent, repeated or malformed.
std::optional<std::string_view> signature_of(SignatureKind kind, const proxy::RequestHead& head);

// Whether this is GitLab's token, which does not cover the body. Compares in constant time. An empty
// secret never matches.
bool is_gitlab_token(std::string_view token, std::string_view secret);

// Computes the signature of a body that comes in parts.
class BodySignature {
 public:
  explicit BodySignature(std::string_view secret) : usable_(!secret.empty()), hmac_(secret) {}
  void add(std::string_view part) { hmac_.add(part); }
  // Whether this is the signature of all parts, in hex digits; asked once. Compares in constant time.
  // With an empty secret nothing is.
  bool is(std::string_view signature);

 private:
  bool usable_;
  HmacSha256 hmac_;
};

// The secret of one rule, read again when its file changes, at most once per second; line ends
// behind it are dropped. Loop thread only.
class SignatureSecret {
 public:
  explicit SignatureSecret(std::string file) : file_(std::move(file)) {}
  // Empty while the file cannot be read.
  std::string_view current(Clock::time_point now);

 private:
  std::string file_;
  std::string fingerprint_;
  Secret secret_;
  Clock::time_point next_read_{};
};

}  // namespace gitops::router
