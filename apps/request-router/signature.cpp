#include "request-router/signature.hpp"

#include "common/core/encoding.hpp"
#include "common/core/small_file.hpp"
#include "common/http/message.hpp"
#include "request-router/route.hpp"

namespace gitops::router {
namespace {

constexpr std::string_view kAlgorithm = "sha256=";

// The field when there is exactly one.
std::optional<std::string_view> only_field(const proxy::RequestHead& head, std::string_view name) {
  std::optional<std::string_view> value;
  for (const auto& field : head.fields) {
    if (!http::equal_ignoring_case(field.name, name)) continue;
    if (value) return std::nullopt;
    value = field.value;
  }
  return value;
}

std::string_view field_of(SignatureKind kind) {
  if (kind == SignatureKind::github) return "X-Hub-Signature-256";
  return kind == SignatureKind::gitlab ? "X-Gitlab-Token" : "X-Hub-Signature";
}

}  // namespace

Result<SignatureRule> parse_signature_rule(std::string_view text) {
  const auto wrong = [text] {
    return fail(ErrorCode::invalid_argument, "\"" + std::string(text) +
                                                 "\" is not namespace/event-source=KIND:FILE with "
                                                 "KIND github, gitlab or bitbucket");
  };
  const auto equals = text.find('=');
  const auto slash = text.substr(0, equals).find('/');
  if (equals == std::string_view::npos || slash == std::string_view::npos) return wrong();
  SignatureRule rule;
  rule.ns = text.substr(0, slash);
  rule.event_source = text.substr(slash + 1, equals - slash - 1);
  const auto proof = text.substr(equals + 1);
  const auto colon = proof.find(':');
  if (colon == std::string_view::npos) return wrong();
  const auto kind = proof.substr(0, colon);
  rule.secret_file = proof.substr(colon + 1);
  if (kind == "github") {
    rule.kind = SignatureKind::github;
  } else if (kind == "gitlab") {
    rule.kind = SignatureKind::gitlab;
  } else if (kind == "bitbucket") {
    rule.kind = SignatureKind::bitbucket;
  } else {
    return wrong();
  }
  if (!is_dns_label(rule.ns) || !is_dns_label(rule.event_source) || rule.secret_file.empty()) {
    return wrong();
  }
  return rule;
}

std::optional<std::string_view> signature_of(SignatureKind kind, const proxy::RequestHead& head) {
  auto proof = only_field(head, field_of(kind));
  if (!proof || kind == SignatureKind::gitlab) return proof;
  if (!proof->starts_with(kAlgorithm)) return std::nullopt;
  return proof->substr(kAlgorithm.size());
}

bool is_gitlab_token(std::string_view token, std::string_view secret) {
  return !secret.empty() && equal_in_constant_time(token, secret);
}

bool BodySignature::is(std::string_view signature) {
  return usable_ && equal_in_constant_time(signature, hex_encode(bytes_of(hmac_.finish())));
}

std::string_view SignatureSecret::current(Clock::time_point now) {
  if (now < next_read_) return secret_.reveal();
  next_read_ = now + std::chrono::seconds(1);
  const auto fingerprint = file_fingerprint(file_);
  if (!fingerprint.empty() && fingerprint == fingerprint_) return secret_.reveal();
  fingerprint_ = fingerprint;
  secret_ = {};
  if (auto text = read_small_file(file_)) {
    while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
    secret_ = Secret(std::move(*text));
  }
  return secret_.reveal();
}

}  // namespace gitops::router
