// The small text readers and writers of core: each pair must round-trip.

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/time.hpp"

namespace {

void require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  require(base64_decode(base64_encode(text)).value() == text);
  if (const auto bytes = base64_decode(text)) {
    require(base64_decode(base64_encode(*bytes)).value() == *bytes);
  }
  require(percent_decode(percent_encode(text)).value() == text);
  (void)percent_decode(text);

  for (const JsonEscape escape : {JsonEscape::like_go, JsonEscape::minimal}) {
    std::string json;
    append_json_string(json, text, escape);
    const auto parsed = nlohmann::json::parse(json, nullptr, false);
    require(parsed.is_string());
    std::string again;
    append_json_string(again, parsed.get_ref<const std::string&>(), escape);
    require(nlohmann::json::parse(again) == parsed);
  }

  if (const auto time = parse_rfc3339(text)) {
    // An offset may lead out of the years that four digits can write.
    const std::string written = format_rfc3339_millis(*time);
    if (written.size() == 24) require(parse_rfc3339(written).value() == *time);
  }
  if (const auto duration = parse_duration(text)) {
    require(parse_duration(format_duration(*duration)).value() == *duration);
  }
  const auto wait = parse_retry_after(text, WallTime(std::chrono::milliseconds(784111777000)));
  require(wait >= std::chrono::milliseconds(0) && wait <= std::chrono::minutes(5));
  return 0;
}
