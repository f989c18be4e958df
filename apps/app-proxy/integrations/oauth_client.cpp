#include "app-proxy/integrations/oauth_client.hpp"

#include <optional>
#include <utility>

#include "common/core/json_text.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxAnswer = 64UL * 1024;

Error no_app(const ApiRoot& root, const std::string& ns) {
  return {.code = ErrorCode::not_found,
          .message = "no OAuth application is known for " + root.web_host() +
                     ": an administrator registers one there and creates a Secret in namespace " +
                     ns + " with the label " + oauth::kAppSelector +
                     " and the keys url (of the host's pages), clientId and clientSecret"};
}

}  // namespace

OauthClient::OauthClient(k8s::Client& cluster, http::Client& http, Options options)
    : cluster_(cluster), http_(http), options_(std::move(options)) {}

Result<http::Url> OauthClient::redirect_uri(ProviderKind kind) const {
  auto url = http::parse_url(options_.public_url);
  if (!url || (url->scheme != "https" && url->scheme != "http") || !url->userinfo.empty() ||
      !url->query.empty()) {
    return fail(ErrorCode::unavailable,
                "the runtime does not know the address by which browsers reach it: set "
                "INGRESS_HOST to its URL, in the chart global.runtime.ingressUrl or the ingress");
  }
  while (url->path.ends_with('/')) url->path.pop_back();
  url->path += "/app-proxy/api/git-auth/" + std::string(oauth::word_of(kind)) + "/callback";
  return url;
}

Task<Result<oauth::OauthApp>> OauthClient::app_for(ApiRoot root, Deadline deadline) {
  std::optional<oauth::OauthApp> found;
  const auto take = [&](std::string_view item) {
    auto app = oauth::read_app(item, options_.plain_http);
    if (!app) {
      if (unreadable_.check(app.error().message, Clock::now()).pass) {
        log_.warning("an OAuth application was left out", {{"reason", app.error().message}});
      }
    } else if (!found && oauth::is_for(*app, root)) {
      found = std::move(*app);
    }
  };
  const auto listed = co_await cluster_.list_pages(
      k8s::resources::kSecrets, options_.own_namespace,
      {.label_selector = oauth::kAppSelector, .limit = 100}, deadline, [&](std::string_view page) {
        for_each_item(member_text(page, "items"), take);
        return Result<void>();
      });
  if (!listed) co_return fail("the OAuth applications", listed.error());
  if (!found) co_return std::unexpected(no_app(root, options_.own_namespace));
  co_return std::move(*found);
}

Task<Result<oauth::Grant>> OauthClient::exchange(ProviderKind kind, oauth::OauthApp app,
                                                 std::string code, std::string verifier,
                                                 Deadline deadline) {
  const auto back = redirect_uri(kind);
  if (!back) co_return std::unexpected(back.error());
  auto request = oauth::code_request(kind, app, code, back->to_string(), verifier);
  co_return co_await ask(kind, std::move(app), std::move(request), deadline);
}

Task<Result<oauth::Grant>> OauthClient::refresh(ApiRoot root, Secret refresh_token,
                                                Deadline deadline) {
  auto app = co_await app_for(root, deadline);
  if (!app) co_return std::unexpected(std::move(app.error()));
  const auto back = redirect_uri(root.kind);
  auto request = oauth::refresh_request(root.kind, *app, refresh_token,
                                        back ? back->to_string() : std::string());
  co_return co_await ask(root.kind, std::move(*app), std::move(request), deadline);
}

Task<Result<oauth::Grant>> OauthClient::ask(ProviderKind kind, oauth::OauthApp app,
                                            http::Request request, Deadline deadline) {
  auto response = co_await http_.send(app.url, std::move(request), deadline, kMaxAnswer);
  if (response) co_return oauth::read_grant(kind, *response);
  auto& error = response.error();
  if (error.code == ErrorCode::too_large) {
    co_return fail(ErrorCode::protocol,
                   "the Git host's answer to the login is too large; check url of the OAuth "
                   "application");
  }
  error.message =
      "the Git host " + app.url.host_header() + " did not answer the login (" + error.message + ")";
  co_return std::unexpected(std::move(error));
}

}  // namespace gitops::app_proxy
