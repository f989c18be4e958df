#include "app-proxy/integrations/integration.hpp"

#include <algorithm>
#include <utility>

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxUsers = 1'000;
constexpr std::size_t kMaxName = 63;  // of a label's value

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > kMaxName || text.front() == '-' || text.back() == '-') {
    return false;
  }
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

const UserToken* Integration::find(std::string_view user_id) const {
  const auto found = std::ranges::find(users, user_id, &UserToken::user_id);
  return found == users.end() ? nullptr : &*found;
}

UserToken* Integration::find(std::string_view user_id) {
  const auto found = std::ranges::find(users, user_id, &UserToken::user_id);
  return found == users.end() ? nullptr : &*found;
}

Result<std::string> integration_name(std::string_view given) {
  if (given.empty()) return std::string("default");
  if (!is_dns_label(given)) {
    return fail(ErrorCode::invalid_argument,
                "the name of a Git integration has at most 63 lower-case letters, digits and '-'");
  }
  return std::string(given);
}

bool is_visible(const Integration& integration, const Actor& actor) {
  return actor.is_admin || integration.sharing == SharingPolicy::all_users;
}

Error unknown_integration(std::string_view name) {
  return Error{.code = ErrorCode::not_found,
               .message = "there is no Git integration \"" + std::string(name) +
                          "\"; ask an administrator of the account to add it",
               .subcode = integration_errors::kUnknown};
}

Result<void> edit(Integration& integration, std::string_view api_url, SharingPolicy sharing,
                  PlainHttp plain) {
  if (!api_url.empty()) {
    const auto provider = integration.root.kind == ProviderKind::gitea
                              ? std::string_view("gitea")
                              : wire_name(integration.root.kind);
    auto root = make_api_root(provider, api_url, plain);
    if (!root) return std::unexpected(std::move(root.error()));
    if (root->text() != integration.root.text()) {
      for (UserToken& token : integration.users) {
        token.state = TokenState::invalid;
        token.sealed = {};
        token.refresh = {};
        token.expires = {};
      }
      integration.root = std::move(*root);
    }
  }
  integration.sharing = sharing;
  return {};
}

Result<void> register_token(Integration& integration, UserToken token) {
  if (auto* known = integration.find(token.user_id)) {
    *known = std::move(token);
    return {};
  }
  if (integration.users.size() >= kMaxUsers) {
    return std::unexpected(Error{.code = ErrorCode::too_large,
                                 .message = "1,000 users are registered with this Git integration; "
                                            "ask an administrator to add another one",
                                 .subcode = integration_errors::kTooMany});
  }
  const auto at =
      std::ranges::lower_bound(integration.users, token.user_id, {}, &UserToken::user_id);
  integration.users.insert(at, std::move(token));
  return {};
}

bool deregister(Integration& integration, std::string_view user_id) {
  return std::erase_if(integration.users,
                       [&](const UserToken& token) { return token.user_id == user_id; }) > 0;
}

TokenOwner owner_of(const Integration& integration, std::string_view user_id) {
  return {.user_id = std::string(user_id),
          .integration = integration.name,
          .account_id = integration.account_id,
          .api_root = integration.root.text()};
}

}  // namespace gitops::app_proxy
