#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// Whether the request has a valid signature or token in exactly one field. Compares in constant
// time. An empty secret never matches. GitLab's token does not cover the body.
bool is_signed(SignatureKind kind, std::string_view secret, const proxy::RequestHead& head,
               std::string_view body);

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
