// What the tunnel-client makes of the bytes of a connection. It must not depend on how they are
// split, what is not HTTP/1 stays in use, and requests never become fewer.
//
// Input: pieces, each with a byte before it: its highest bit is the direction, the others its size
// less one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tunnel-client/http_activity_tracker.hpp"

namespace {

using gitops::tunnel_client::HttpActivityTracker;

void require(bool holds) {
  if (!holds) std::abort();
}

void pass_on(HttpActivityTracker& watch, bool from_user, std::string_view bytes) {
  if (from_user) {
    watch.from_user(bytes);
  } else {
    watch.from_upstream(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  HttpActivityTracker whole;
  HttpActivityTracker split;
  std::uint64_t requests = 0;
  while (!input.empty()) {
    const auto head = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    const auto bytes = input.substr(0, (head & 0x7fU) + 1U);
    input.remove_prefix(bytes.size());
    const bool from_user = (head & 0x80U) == 0;
    pass_on(whole, from_user, bytes);
    for (const char& byte : bytes) pass_on(split, from_user, std::string_view(&byte, 1));
    require(whole.is_idle() == split.is_idle());
    require(whole.requests() == split.requests());
    require(whole.requests() >= requests);
    requests = whole.requests();
    if (whole.is_idle()) require(requests > 0);
  }
  return 0;
}
