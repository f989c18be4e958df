#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/integrations/oauth.hpp"

// What a Git host might answer to a login, read as a Secret and as a state, too. A token that comes out
// can be sent; no text is a state that the runtime has not sealed.
namespace {

using namespace gitops;
using namespace gitops::app_proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_grant(ProviderKind kind, int status, std::string_view body) {
  const auto grant = oauth::read_grant(kind, {.status = status,
                                              .headers = {{"Content-Type", "application/json"}},
                                              .body = std::string(body)});
  if (!grant) {
    require(!grant.error().message.empty());
    return;
  }
  require(status == 200);
  const auto token = grant->access_token.reveal();
  require(!token.empty() && token.size() <= 4'096 && http::is_field_value(token));
  require(http::is_field_value(grant->refresh_token.reveal()));
  require(grant->lifetime.count() >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const auto kind : {ProviderKind::github, ProviderKind::gitea}) {
    for (const int status : {200, 302, 400, 503}) check_grant(kind, status, input);
  }
  if (const auto app = oauth::read_app(input, PlainHttp::refused)) {
    require(app->url.scheme == "https" && app->url.userinfo.empty() && app->url.query.empty());
    require(!app->client_id.empty() && !app->client_secret.empty());
    require(http::parse_url(oauth::authorize_url(ProviderKind::gitlab, *app, "https://r.test/cb",
                                                 "state", "verifier"))
                .has_value());
  }
  TokenSeal seal;
  seal.use(Secret("runtime-token"), Secret("iv"));
  require(!oauth::open_login(seal, input, WallTime()));
  return 0;
}
