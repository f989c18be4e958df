#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/small_file.hpp"
#include "common/core/time.hpp"
#include "common/http/head.hpp"

namespace gitops::router {

// Authentication of webhooks by their sender.
enum class SignatureKind {
  github,             // X-Hub-Signature-256: sha256=<hex HMAC of the body>
  gitlab,             // X-Gitlab-Token: <the token itself>, or standard_webhooks
  bitbucket,          // X-Hub-Signature: sha256=<hex HMAC of the body>
  standard_webhooks,  // www.standardwebhooks.com: webhook-signature: v1,<base64 HMAC of all>
};

// Rule that requires signed webhooks for one event source, with the secret in a file.
struct SignatureRule {
  std::string ns;
  std::string event_source;
  SignatureKind kind = SignatureKind::github;
  std::string secret_file;

  bool operator==(const SignatureRule&) const = default;
};

// Parses "namespace/event-source=github:/path/of/the/secret".
Result<SignatureRule> parse_signature_rule(std::string_view text);

// Secrets of one rule, one on each line of its file, so that the next secret is valid before the
// sender switches to it. At most 4; empty lines are ignored. Reloads the file when it changes, at
// most once per second. Loop thread only.
class SignatureSecrets {
 public:
  explicit SignatureSecrets(std::string file) : file_(std::move(file)) {}
  // The secrets; none while there is no file. They stay in use while the file cannot be read. Valid
  // until the next call.
  std::span<const Secret> current(Clock::time_point now);
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::string fingerprint_;
  std::vector<Secret> secrets_;
  EmptyFileWatch empty_;
  Clock::time_point next_read_{};
};

// Returns whether this is a test of the webhook by the Git host, which it does not sign even with a
// secret: Bitbucket Data Center's "diagnostics:ping". Its content is not trusted.
bool is_unsigned_ping(SignatureKind kind, const http::RequestHead& head);

// Verifies the signature of one webhook, whose body arrives in parts. Compares in constant time.
//
// A secret that begins with "whsec_" is a key of Standard Webhooks. Such a signature also covers
// the id and the time of sending, which must be within 5 minutes of `now`. With the kind gitlab,
// any other secret is a token, which does not cover the body.
class SignatureCheck {
 public:
  // Begins a check. Returns nothing if the head already fails it: the field with the signature is
  // missing, repeated or malformed, the time is wrong, no secret applies, or the token is wrong.
  // `head` must outlive the check.
  static std::optional<SignatureCheck> begin(SignatureKind kind, const http::RequestHead& head,
                                             std::span<const Secret> secrets, WallTime now);
  void add(std::string_view part);
  // Returns whether one of the secrets signed all parts. Call it once.
  [[nodiscard]] bool passes();

 private:
  SignatureCheck() = default;
  void expect_body_hmac(std::string_view claimed, std::span<const Secret> secrets);
  void expect_standard(const http::RequestHead& head, std::span<const Secret> secrets,
                       SignatureKind kind, WallTime now);

  bool is_token_right_ = false;
  bool is_base64_ = false;  // hex digits otherwise
  std::vector<std::string_view> claimed_;
  std::vector<HmacSha256> hmacs_;  // one for each secret that may apply
};

}  // namespace gitops::router
