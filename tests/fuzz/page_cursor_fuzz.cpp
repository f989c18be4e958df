#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/core/encoding.hpp"
#include "control-plane/views/page.hpp"

// A cursor of a page, as a client may send it, and the text that it encodes. A cursor that is taken is the one that its
// key has.
namespace {

using namespace gitops;
using namespace gitops::control_plane_server;

void check(const std::string& cursor) {
  for (const std::size_t numbers : {0U, 1U, 2U}) {
    const auto window = page_window({.after = cursor}, numbers);
    const auto backward = page_window({.before = cursor, .last = 1}, numbers);
    if (window.has_value() != backward.has_value()) std::abort();
    if (!window || !window->from) continue;
    const auto& key = *window->from;
    if (key.numbers.size() != numbers || !is_utf8(key.text)) std::abort();
    const auto again = page_window({.after = cursor_of(key)}, numbers);
    if (!again || again->from != key) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  check(base64url_encode(text));
  return 0;
}
