#include "control-plane/sso/provider.hpp"

#include <algorithm>
#include <utility>

#include "common/core/text.hpp"
#include "control-plane/sso/login_store.hpp"

namespace gitops::control_plane_server::sso {
namespace {

constexpr std::size_t kMaxResponse = 512UL * 1024;
constexpr std::chrono::seconds kReadLimit{10};  // for one request

std::string_view subcode_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::timeout:
    case ErrorCode::unavailable:
    case ErrorCode::tls:
    case ErrorCode::too_many_requests:
      return kProviderDown;
    default:
      return kProviderWrong;
  }
}

}  // namespace

Provider::Provider(const Executor& executor, net::Resolver& names, Options options)
    : options_(std::move(options)),
      client_(executor, names,
              {.tls = {.ca_file = options_.settings.ca_file}, .proxy = options_.proxy}),
      secret_(options_.settings.client_secret_file.empty()
                  ? Credential::fixed(options_.settings.client_secret)
                  : Credential::file(options_.settings.client_secret_file)),
      document_(executor),
      keys_(executor) {}

StatusEntry Provider::status() const {
  StatusEntry entry{.name = "identity provider " + options_.settings.name,
                    .message = options_.settings.issuer};
  for (const auto* error : {&document_.error(), &keys_.error()}) {
    if (!*error) continue;
    entry.state = StatusState::degraded;
    entry.message = (*error)->message;
  }
  return entry;
}

std::unexpected<Error> Provider::refused(std::string_view subcode, Error error) {
  if (const auto verdict =
          repeated_.check(std::string(subcode) + " " + error.message, Clock::now());
      verdict.pass) {
    log_.warning("a login at an identity provider did not succeed",
                 {{"provider", options_.settings.name},
                  {"result", subcode},
                  {"error", error.message},
                  {"suppressed", verdict.suppressed}});
  }
  error.subcode = subcode;
  return std::unexpected(std::move(error));
}

Task<Result<http::Response>> Provider::get(http::Url url, Deadline deadline) {
  http::Request request{.target = url.path.empty() ? std::string("/") : url.path,
                        .headers = {{"Accept", "application/json"}}};
  if (!url.query.empty()) request.target += "?" + url.query;
  co_return co_await client_.send(url, std::move(request),
                                  std::min(deadline, deadline_after(kReadLimit)), kMaxResponse);
}

Task<Result<Discovery>> Provider::read_document(Deadline deadline) {
  const auto url = discovery_url(options_.settings.issuer);
  if (!url) co_return std::unexpected(url.error());
  auto response = co_await get(*url, deadline);
  if (!response) co_return std::unexpected(std::move(response.error()));
  if (response->status >= 500 || response->status == 429) {
    co_return fail(ErrorCode::unavailable, "the provider's discovery document has status " +
                                               std::to_string(response->status));
  }
  co_return read_discovery(*response, options_.settings.issuer);
}

Task<Result<JwkSet>> Provider::read_keys(http::Url url, Deadline deadline) {
  auto response = co_await get(std::move(url), deadline);
  if (!response) co_return std::unexpected(std::move(response.error()));
  if (response->status != 200) {
    co_return fail(response->status >= 500 ? ErrorCode::unavailable : ErrorCode::protocol,
                   "the provider's key set has status " + std::to_string(response->status));
  }
  co_return JwkSet::parse(response->body);
}

Task<Result<CachedDocument<Discovery>::Pointer>> Provider::document(Deadline deadline) {
  co_return co_await document_.get(CachedDocument<Discovery>::Need::any, deadline,
                                   [this, deadline] { return read_document(deadline); });
}

Task<Result<CachedDocument<JwkSet>::Pointer>> Provider::keys(const Discovery& discovery,
                                                             CachedDocument<JwkSet>::Need need,
                                                             Deadline deadline) {
  co_return co_await keys_.get(need, deadline, [this, url = discovery.jwks_uri, deadline] {
    return read_keys(url, deadline);
  });
}

Task<Result<std::string>> Provider::authorization_address(Secret browser, std::string state,
                                                          Deadline deadline) {
  const auto found = co_await document(deadline);
  if (!found) co_return refused(subcode_of(found.error()), found.error());
  co_return authorization_url(**found, {.client_id = options_.settings.client_id,
                                        .redirect_uri = options_.redirect_uri,
                                        .scopes = join(options_.settings.scopes, " "),
                                        .state = state,
                                        .secrets = login_secrets(browser, state)});
}

Task<Result<Secret>> Provider::exchange(const Discovery& discovery, std::string code,
                                        std::string verifier, Deadline deadline) {
  const Client client{.id = options_.settings.client_id, .secret = secret_.current()};
  auto request = token_request(discovery, client, code, options_.redirect_uri, verifier);
  auto response =
      co_await client_.send(discovery.token_endpoint, std::move(request),
                            std::min(deadline, deadline_after(kReadLimit)), kMaxResponse);
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return read_token_response(*response);
}

Task<Result<Claims>> Provider::check(const Discovery& discovery, const Secret& token,
                                     std::string nonce, Deadline deadline) {
  const auto parsed = parse_id_token(token.reveal());
  if (!parsed) co_return refused(kTokenRefused, parsed.error());
  using Need = CachedDocument<JwkSet>::Need;
  auto found = co_await keys(discovery, Need::any, deadline);
  if (!found) co_return refused(subcode_of(found.error()), found.error());
  const auto* key = (*found)->find(parsed->key_id, parsed->scheme);
  if (key == nullptr || !key->verifies(parsed->scheme, parsed->signed_text, parsed->signature)) {
    // The provider may have begun to sign with a new key, which need not have a new name.
    found = co_await keys(discovery, Need::newer, deadline);
    if (!found) co_return refused(subcode_of(found.error()), found.error());
    key = (*found)->find(parsed->key_id, parsed->scheme);
  }
  if (key == nullptr && keys_.error()) {
    co_return refused(subcode_of(*keys_.error()), *keys_.error());
  }
  if (key == nullptr) {
    co_return refused(kTokenRefused,
                      {.code = ErrorCode::unauthenticated,
                       .message = "the ID token is signed with a key that is not published"});
  }
  auto claims = check_id_token(*parsed, *key,
                               {.issuer = options_.settings.issuer,
                                .client_id = options_.settings.client_id,
                                .nonce = std::move(nonce),
                                .groups_claim = options_.settings.groups_claim},
                               wall_now());
  if (!claims) co_return refused(kTokenRefused, claims.error());
  co_return claims;
}

Task<Result<Claims>> Provider::redeem(Callback callback, LoginSecrets secrets, Deadline deadline) {
  const auto found = co_await document(deadline);
  if (!found) co_return refused(subcode_of(found.error()), found.error());
  const Discovery& discovery = **found;
  if (const auto sender = check_sender(callback, discovery); !sender) {
    co_return refused(kProviderWrong, sender.error());
  }
  if (callback.is_refusal) {
    co_return refused(kLoginDenied,
                      {.code = ErrorCode::forbidden, .message = "the provider refused the login"});
  }
  const auto token =
      co_await exchange(discovery, std::move(callback.code), std::move(secrets.verifier), deadline);
  if (!token) co_return refused(subcode_of(token.error()), token.error());
  co_return co_await check(discovery, *token, std::move(secrets.nonce), deadline);
}

Task<std::string> Provider::end_session_address(std::string return_to, Deadline deadline) {
  const auto found = co_await document(deadline);
  if (!found) co_return std::string();
  co_return end_session_url(**found, options_.settings.client_id, return_to);
}

}  // namespace gitops::control_plane_server::sso
