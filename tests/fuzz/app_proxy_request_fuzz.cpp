// What a stranger sends to app-proxy before anybody asks who it is: a path, header fields and the
// payload of a WebSocket, a line each.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/users/credential.hpp"

namespace {

using gitops::app_proxy::RequestCredential;

void check(const RequestCredential& credential) {
  const auto value = credential.sent.value.reveal();
  const bool has_one = credential.kind == RequestCredential::Kind::token ||
                       credential.kind == RequestCredential::Kind::cookie;
  // It goes to the control plane as a header field.
  if (has_one == value.empty() || !gitops::http::is_field_value(value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = [&text] {
    const auto end = std::min(text.find('\n'), text.size());
    const auto found = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return found;
  };
  const auto path = app_proxy::canonical_path(line());
  if (path.contains("//") || (path.size() > 1 && path.ends_with('/'))) std::abort();
  check(app_proxy::credential_of_payload(line()));
  http::Headers headers;
  while (!text.empty() && headers.size() < 10) {
    const auto field = line();
    const auto colon = std::min(field.find(':'), field.size());
    headers.add(std::string(field.substr(0, colon)),
                std::string(field.substr(std::min(colon + 1, field.size()))));
  }
  check(app_proxy::credential_of(headers));
  return 0;
}
