#include "control-plane/accounts/scopes.hpp"

#include <algorithm>

#include "common/core/text.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::size_t kMaxShownScope = 64;  // bytes

template <class Texts>
std::string list_of(const Texts& texts, std::string_view separator) {
  std::string list;
  for (const auto& text : texts) {
    if (!list.empty()) list += separator;
    list += text;
  }
  return list;
}

Error forbidden(std::string message) {
  return {.code = ErrorCode::forbidden, .message = std::move(message), .http_status = 403};
}

}  // namespace

std::optional<Error> scope_refusal(const Caller& caller, std::span<const std::string_view> one_of) {
  if (caller.scopes.empty() || one_of.empty()) return std::nullopt;
  const bool has_one = std::ranges::any_of(one_of, [&caller](std::string_view scope) {
    return std::ranges::find(caller.scopes, scope) != caller.scopes.end();
  });
  if (has_one) return std::nullopt;
  return forbidden("the API key lacks the scope " + list_of(one_of, " or ") + "; it has " +
                   shortened(list_of(caller.scopes, ", "), kMaxShownScope));
}

std::optional<Error> key_change_refusal(const Caller& caller) {
  if (caller.is_service_account && !caller.is_admin) {
    return forbidden("a service account cannot manage keys: an administrator of the account does");
  }
  if (caller.scopes.empty()) return std::nullopt;
  return forbidden(
      "an API key with scopes cannot manage keys, passwords and users: use a key without scopes");
}

std::string scopes_mistake(const std::vector<std::string>& scopes) {
  for (const auto& scope : scopes) {
    if (std::ranges::find(kScopes, scope) != kScopes.end()) continue;
    const std::string_view family = std::string_view(scope).substr(0, scope.find(':'));
    if (std::ranges::find(kClassicScopes, family) != kClassicScopes.end()) continue;
    return "there is no scope " + shortened(scope, kMaxShownScope) + "; there are " +
           list_of(kScopes, ", ") + ", and of pipelines, which allow nothing here, " +
           list_of(kClassicScopes, ", ");
  }
  return {};
}

}  // namespace gitops::control_plane_server
