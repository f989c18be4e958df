#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "control-plane/views/image_name.hpp"

// The name of an image, as a Pod or an image report has it. Its parts together are the name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::control_plane_server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = image_name(text);
  const auto parts =
      name.registry.size() + name.repository.size() + name.tag.size() + name.digest.size();
  if (parts > text.size() || parts + 3 < text.size()) std::abort();
  if (!text.starts_with(name.full_repository())) std::abort();
  if (registry_type(name.registry).empty()) std::abort();
  static_cast<void>(name.short_name());
  return 0;
}
