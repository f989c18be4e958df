#include "event-reporter/argo/argocd_token.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/text.hpp"

namespace gitops::reporter {
namespace {

constexpr auto kSecretPeriod = std::chrono::seconds(60);
constexpr auto kWrongPassword = std::chrono::seconds(310);
constexpr auto kReadTimeout = std::chrono::seconds(10);

Task<Result<Secret>> read_secret(k8s::Client& client, k8s::ObjectKey key, std::string data_key) {
  auto text = co_await client.get(k8s::resources::kSecrets, key, deadline_after(kReadTimeout));
  if (!text) co_return std::unexpected(text.error());
  JsonParser parser;
  const auto root = parser.parse(*text, "Secret");
  const Secret wiped(std::move(*text));
  const auto value = root ? (*root)["data"][data_key].text() : std::string_view{};
  auto bytes = base64_decode(value);
  if (value.empty() || !bytes) {
    co_return fail(ErrorCode::invalid_data,
                   "Secret " + key.to_string() + " has no usable key \"" + data_key + "\"");
  }
  Secret token{std::string(trimmed(*bytes))};
  const Secret also_wiped(std::move(*bytes));
  co_return Result<Secret>(std::move(token));
}

}  // namespace

Credential secret_credential(k8s::Client& client, k8s::ObjectKey key, std::string data_key) {
  auto not_yet = "Secret " + key.to_string() + " was not read yet";
  return Credential::fetched(
      [&client, key = std::move(key), data_key = std::move(data_key)] {
        return read_secret(client, key, data_key);
      },
      {.task = "token-secret", .not_yet = std::move(not_yet), .period = kSecretPeriod});
}

Credential session_credential(Credential::Fetch log_in, std::uint32_t replicas) {
  return Credential::fetched(std::move(log_in),
                             {.task = "login",
                              .not_yet = "not logged in yet",
                              .retry_lasting = kWrongPassword * std::max(replicas, 1U)});
}

}  // namespace gitops::reporter
