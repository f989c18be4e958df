#include "request-router/signature.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/small_file.hpp"
#include "common/http/message.hpp"
#include "request-router/route.hpp"

namespace gitops::router {
namespace {

constexpr std::string_view kAlgorithm = "sha256=";
constexpr std::string_view kStandardKey = "whsec_";
constexpr std::string_view kStandardVersion = "v1,";
constexpr std::chrono::minutes kTolerance{5};
constexpr std::size_t kMaxSecrets = 4;
constexpr std::size_t kMaxSignatures = 8;  // of one webhook

struct NamedKind {
  std::string_view name;
  SignatureKind kind;
};
constexpr std::array kKinds{NamedKind{"github", SignatureKind::github},
                            NamedKind{"gitlab", SignatureKind::gitlab},
                            NamedKind{"bitbucket", SignatureKind::bitbucket},
                            NamedKind{"standard-webhooks", SignatureKind::standard_webhooks}};

// Returns the field if there is exactly one.
std::optional<std::string_view> only_field(const http::RequestHead& head, std::string_view name) {
  std::optional<std::string_view> value;
  for (const auto& field : head.fields) {
    if (!http::equal_ignoring_case(field.name, name)) continue;
    if (value) return std::nullopt;
    value = field.value;
  }
  return value;
}

bool is_standard_key(const Secret& secret) {
  return secret.reveal().starts_with(kStandardKey);
}

// Returns the bytes of a key of Standard Webhooks; empty if it is malformed. The prefix is
// optional.
Secret standard_key(const Secret& secret) {
  auto text = secret.reveal();
  if (is_standard_key(secret)) text.remove_prefix(kStandardKey.size());
  auto key = base64_decode(text);
  return key ? Secret(std::move(*key)) : Secret();
}

// Returns whether a webhook was sent recently. `timestamp`: seconds since 1970.
bool is_recent(std::string_view timestamp, WallTime now) {
  std::int64_t seconds = 0;
  const auto [end, error] =
      std::from_chars(timestamp.data(), timestamp.data() + timestamp.size(), seconds);
  if (error != std::errc{} || end != timestamp.data() + timestamp.size()) return false;
  const auto current = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const auto tolerance = std::chrono::seconds(kTolerance).count();
  return seconds >= current - tolerance && seconds <= current + tolerance;
}

// Returns the signatures of version 1 in a space-separated list.
std::vector<std::string_view> standard_signatures(std::string_view list) {
  std::vector<std::string_view> signatures;
  while (!list.empty() && signatures.size() < kMaxSignatures) {
    const auto item = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    if (!item.starts_with(kStandardVersion)) continue;
    signatures.push_back(item.substr(kStandardVersion.size()));
  }
  return signatures;
}

}  // namespace

Result<SignatureRule> parse_signature_rule(std::string_view text) {
  const auto wrong = [text] {
    return fail(ErrorCode::invalid_argument,
                "\"" + std::string(text) +
                    "\" is not namespace/event-source=KIND:FILE with KIND github, gitlab, "
                    "bitbucket or standard-webhooks");
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
  const auto kind = std::ranges::find(kKinds, proof.substr(0, colon), &NamedKind::name);
  if (kind == kKinds.end()) return wrong();
  rule.kind = kind->kind;
  rule.secret_file = proof.substr(colon + 1);
  if (!is_dns_label(rule.ns) || !is_dns_label(rule.event_source) || rule.secret_file.empty()) {
    return wrong();
  }
  return rule;
}

std::span<const Secret> SignatureSecrets::current(Clock::time_point now) {
  if (now < next_read_) return secrets_;
  next_read_ = now + std::chrono::seconds(1);
  const auto fingerprint = file_fingerprint(file_);
  if (!fingerprint.empty() && fingerprint == fingerprint_) return secrets_;
  auto read = read_small_file(file_);
  if (!read) {
    // Reads again later. A failure, for example for want of descriptors, does not mean that there
    // is no secret.
    if (read.error().code == ErrorCode::not_found) secrets_.clear();
    fingerprint_.clear();
    return secrets_;
  }
  const Secret text(std::move(*read));  // wiped at the end
  std::vector<Secret> found;
  auto rest = text.reveal();
  while (!rest.empty() && found.size() < kMaxSecrets) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) found.emplace_back(std::string(line));
  }
  const bool stays_empty = empty_.stays_empty(found.empty(), fingerprint);
  if (found.empty() && !secrets_.empty() && !stays_empty) {
    fingerprint_.clear();
    return secrets_;
  }
  fingerprint_ = fingerprint;
  secrets_ = std::move(found);
  return secrets_;
}

bool is_unsigned_ping(SignatureKind kind, const http::RequestHead& head) {
  return kind == SignatureKind::bitbucket && !head.find("X-Hub-Signature") &&
         only_field(head, "X-Event-Key") == "diagnostics:ping";
}

std::optional<SignatureCheck> SignatureCheck::begin(SignatureKind kind,
                                                    const http::RequestHead& head,
                                                    std::span<const Secret> secrets, WallTime now) {
  SignatureCheck check;
  if (kind == SignatureKind::github || kind == SignatureKind::bitbucket) {
    const bool is_github = kind == SignatureKind::github;
    const auto field = only_field(head, is_github ? "X-Hub-Signature-256" : "X-Hub-Signature");
    if (!field || !field->starts_with(kAlgorithm)) return std::nullopt;
    check.expect_body_hmac(field->substr(kAlgorithm.size()), secrets);
  } else {
    if (kind == SignatureKind::gitlab) {
      const auto token = only_field(head, "X-Gitlab-Token").value_or("");
      for (const Secret& secret : secrets) {
        if (is_standard_key(secret)) continue;
        check.is_token_right_ |= equal_in_constant_time(token, secret.reveal());
      }
    }
    check.expect_standard(head, secrets, kind, now);
  }
  if (!check.is_token_right_ && check.hmacs_.empty()) return std::nullopt;
  return check;
}

void SignatureCheck::expect_body_hmac(std::string_view claimed, std::span<const Secret> secrets) {
  claimed_.push_back(claimed);
  for (const Secret& secret : secrets) hmacs_.emplace_back(secret.reveal());
}

// Prepares the comparison. Expects no signature if the head has none that could be valid.
void SignatureCheck::expect_standard(const http::RequestHead& head, std::span<const Secret> secrets,
                                     SignatureKind kind, WallTime now) {
  const auto id = only_field(head, "webhook-id");
  const auto timestamp = only_field(head, "webhook-timestamp");
  const auto list = only_field(head, "webhook-signature");
  if (!id || id->empty() || !timestamp || !is_recent(*timestamp, now) || !list) return;
  claimed_ = standard_signatures(*list);
  if (claimed_.empty()) return;
  is_base64_ = true;
  for (const Secret& secret : secrets) {
    if (kind == SignatureKind::gitlab && !is_standard_key(secret)) continue;
    const Secret key = standard_key(secret);
    if (key.empty()) continue;
    auto& hmac = hmacs_.emplace_back(key.reveal());
    for (const auto part : {*id, std::string_view("."), *timestamp, std::string_view(".")}) {
      hmac.add(part);
    }
  }
}

void SignatureCheck::add(std::string_view part) {
  for (auto& hmac : hmacs_) hmac.add(part);
}

bool SignatureCheck::passes() {
  bool right = is_token_right_;
  for (auto& hmac : hmacs_) {
    const auto sum = hmac.finish();
    const auto text = is_base64_ ? base64_encode(bytes_of(sum)) : hex_encode(bytes_of(sum));
    for (const auto claimed : claimed_) right |= equal_in_constant_time(claimed, text);
  }
  return right;
}

}  // namespace gitops::router
