#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/crypto.hpp"
#include "common/core/error.hpp"
#include "common/core/secret.hpp"
#include "common/core/time.hpp"
#include "common/proxy/head.hpp"

namespace gitops::router {

// How a sender authenticates its webhooks.
enum class SignatureKind {
  github,             // X-Hub-Signature-256: sha256=<hex HMAC of the body>
  gitlab,             // X-Gitlab-Token: <the token itself>, or standard_webhooks
  bitbucket,          // X-Hub-Signature: sha256=<hex HMAC of the body>
  standard_webhooks,  // www.standardwebhooks.com: webhook-signature: v1,<base64 HMAC of all>
};

// Webhooks of one event source must be signed with a secret in a file.
struct SignatureRule {
  std::string ns;
  std::string event_source;
  SignatureKind kind = SignatureKind::github;
  std::string secret_file;
};

// "namespace/event-source=github:/path/of/the/secret".
Result<SignatureRule> parse_signature_rule(std::string_view text);

// The secrets of one rule, one on each line of its file, so that the next one is known before the
// sender changes over; at most 4, empty lines do not count. Read again when the file changes, at
// most once per second. Loop thread only.
class SignatureSecrets {
 public:
  explicit SignatureSecrets(std::string file) : file_(std::move(file)) {}
  // None while the file cannot be read. Valid until the next call.
  std::span<const Secret> current(Clock::time_point now);

 private:
  std::string file_;
  std::string fingerprint_;
  std::vector<Secret> secrets_;
  Clock::time_point next_read_{};
};

// Whether this is how the host tests a webhook, without signing it although there is a secret:
// Bitbucket Data Center's "diagnostics:ping". Nothing in it is to be believed.
bool is_unsigned_ping(SignatureKind kind, const proxy::RequestHead& head);

// The check of one webhook, whose body comes in parts. Compares in constant time.
//
// A secret that begins with "whsec_" is a key of Standard Webhooks. Such a signature covers the id
// and the time of sending, too, which must be within 5 minutes of `now`. With the kind gitlab, any
// other secret is a token, which does not cover the body.
class SignatureCheck {
 public:
  // Nothing when the head, which must outlive the check, already shows that no secret was used: the
  // field with the signature is missing, repeated or malformed, the time is wrong, there is no
  // secret for it, or the token is another one.
  static std::optional<SignatureCheck> begin(SignatureKind kind, const proxy::RequestHead& head,
                                             std::span<const Secret> secrets, WallTime now);
  void add(std::string_view part);
  // Whether one of the secrets was used for all parts; asked once.
  [[nodiscard]] bool passes();

 private:
  SignatureCheck() = default;
  void expect_body_hmac(std::string_view claimed, std::span<const Secret> secrets);
  void expect_standard(const proxy::RequestHead& head, std::span<const Secret> secrets,
                       SignatureKind kind, WallTime now);

  bool is_token_right_ = false;
  bool is_base64_ = false;  // else hex digits
  std::vector<std::string_view> claimed_;
  std::vector<HmacSha256> hmacs_;  // one for each secret that may have been used
};

}  // namespace gitops::router
