#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/integrations/integration_secret.hpp"
#include "common/core/encoding.hpp"

// A Secret's JSON, whole or by the values of its two kinds of keys. What can be read has a name that
// fits its Secret and a usable API root, and reads the same after it was written.
namespace {

using namespace gitops;
using namespace gitops::app_proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(std::string_view object) {
  const auto read = read_integration(object);
  if (!read) {
    require(!read.error().message.empty());
    return;
  }
  require(integration_name(read->name).has_value() && !read->name.empty());
  require(!read->account_id.empty());
  require(read->root.url.userinfo.empty() && !read->root.url.host.empty());
  for (const auto& user : read->users) {
    require(!user.user_id.empty());
    require(user.state == TokenState::invalid || !user.sealed.text.empty());
  }
  const auto written = with_integration(object, *read);
  require(written.has_value());
  const auto again = read_integration(*written);
  require(again.has_value());
  require(again->root.text() == read->root.text() && again->sharing == read->sharing);
  require(again->users.size() == read->users.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check(input);
  const auto split = std::min(input.find('\n'), input.size());
  const auto config = input.substr(0, split);
  const auto user = input.substr(std::min(split + 1, input.size()));
  // user-… of the id "u": the first 32 digits of its SHA-256.
  check(R"({"metadata":{"name":"git-a-b"},"data":{"integration":")" + base64_encode(config) +
        R"(","user-0bfe935e70c321c7ca3afc75ce0d0ca2":")" + base64_encode(user) + "\"}}");
  return 0;
}
