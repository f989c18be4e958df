#include "event-reporter/argo/credential.hpp"

#include <utility>

#include <simdjson.h>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "k8s-client/config.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kFileLook = std::chrono::seconds(1);
constexpr auto kSecretPeriod = std::chrono::seconds(60);
constexpr auto kSecretRetry = std::chrono::seconds(2);
// Five failures in 300 s are what argocd-server bears.
constexpr auto kWrongPassword = std::chrono::seconds(70);
constexpr auto kReadTimeout = std::chrono::seconds(10);

}  // namespace

Credential Credential::fixed(Secret token) {
  Credential credential;
  credential.token_ = std::move(token);
  return credential;
}

Credential Credential::file(std::string path) {
  Credential credential;
  credential.path_ = std::move(path);
  return credential;
}

Credential Credential::secret(k8s::Client& client, k8s::ObjectKey key, std::string data_key) {
  Credential credential;
  credential.client_ = &client;
  credential.key_ = std::move(key);
  credential.data_key_ = std::move(data_key);
  credential.trouble_ = "Secret " + credential.key_.to_string() + " was not read yet";
  return credential;
}

Credential Credential::session(LogIn log_in) {
  Credential credential;
  credential.log_in_ = std::move(log_in);
  credential.trouble_ = "not logged in yet";
  return credential;
}

Secret Credential::current() {
  if (!path_.empty()) read_file();
  return token_;
}

void Credential::read_file() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kFileLook;
  auto fingerprint = file_fingerprint(path_);
  if (!fingerprint.empty() && fingerprint == fingerprint_) return;
  auto text = read_small_file(path_);
  if (!text) {
    trouble_ = path_ + ": " + text.error().message;  // the last token stays in use
    return;
  }
  fingerprint_ = std::move(fingerprint);
  trouble_.clear();
  token_ = Secret(std::string(trimmed(*text)));
  const Secret wiped(std::move(*text));
}

Task<bool> Credential::refused() {
  const Secret before = token_;
  if (!path_.empty()) {
    next_look_ = {};
    read_file();
  } else if (client_ != nullptr && Clock::now() >= next_forced_) {
    next_forced_ = Clock::now() + kSecretRetry;
    co_await read_secret();
  } else if (log_in_ && Clock::now() >= next_forced_) {
    co_await log_in_again();
  }
  co_return !(token_ == before);
}

Task<> Credential::read_secret() {
  auto text = co_await client_->get(k8s::resources::kSecrets, key_, deadline_after(kReadTimeout));
  if (!text) {
    trouble_ = text.error().message;
    co_return;
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto parsed = parser.parse(*text).get(root) == simdjson::SUCCESS;
  const Secret wiped(std::move(*text));
  const auto value = parsed ? JsonView(root)["data"][data_key_].text() : std::string_view{};
  auto token = base64_decode(value);
  if (value.empty() || !token) {
    trouble_ = "Secret " + key_.to_string() + " has no usable key \"" + data_key_ + "\"";
    co_return;
  }
  trouble_.clear();
  token_ = Secret(std::string(trimmed(*token)));
  const Secret also_wiped(std::move(*token));
}

Task<> Credential::log_in_again() {
  next_forced_ = deadline_after(kSecretRetry);
  auto token = co_await log_in_();
  if (token) {
    trouble_.clear();
    token_ = std::move(*token);
    co_return;
  }
  trouble_ = token.error().message;
  if (!token.error().is_transient()) next_forced_ = deadline_after(kWrongPassword);
}

void Credential::start(TaskGroup& group) {
  if (log_in_) {
    group.spawn("login", [this]() -> Task<> {
      while (token_.empty()) {
        if (const auto now = Clock::now(); now < next_forced_)
          co_await sleep_for(next_forced_ - now);
        if (token_.empty()) co_await log_in_again();
      }
    });
    return;
  }
  if (client_ == nullptr) return;
  group.spawn("token-secret", [this]() -> Task<> {
    while (true) {
      co_await read_secret();
      co_await sleep_for(trouble_.empty() ? kSecretPeriod : kSecretRetry);
    }
  });
}

}  // namespace gitops::reporter
