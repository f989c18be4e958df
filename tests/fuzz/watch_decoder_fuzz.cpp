// Any bytes as a watch, however they are split, and as a list and an object.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/watch.hpp"

namespace {

using namespace gitops;
using namespace gitops::k8s;

constexpr ObjectLimits kLimits{.max_bytes = 512, .max_depth = 8};

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads everything that a record provides.
std::string show(const Record& record, std::size_t fields) {
  std::string text = record.key().to_string() + " " + std::string(record.uid()) + " " +
                     std::string(record.resource_version());
  for (std::size_t i = 0; i < fields; ++i) {
    text += " ";
    text += record.field(i).value_or("-");
  }
  return text;
}

std::string show(const WatchEvent& event, std::size_t fields) {
  std::string text(to_string(event.type));
  text += " " + event.resource_version + " " + event.error.message + " " +
          event.quarantined.reason + " " + event.quarantined.key.to_string() + " " +
          std::to_string(event.quarantined.bytes) +
          (event.quarantined_deletion ? " deletion " : " ") + std::string(event.text) + " ";
  return text + show(event.record, fields);
}

// Kept from input to input, as an informer keeps its decoder from watch to watch.
ObjectDecoder& decoder() {
  static ObjectDecoder decoder(
      FieldSet({"metadata.annotations", "spec", "spec.a", "status.sync.status"}),
      [](std::string_view, std::string_view name) { return name != "no"; }, kLimits);
  return decoder;
}

class Watch {
 public:
  void feed(std::string_view bytes) {
    decoder_.feed(bytes, [this](WatchEvent&& event) {
      shown.push_back(show(event, decoder().fields().size()));
    });
  }
  [[nodiscard]] bool at_line_end() const { return decoder_.at_line_end(); }
  std::vector<std::string> shown;

 private:
  WatchDecoder decoder_{decoder()};
};

void check_splits(std::string_view bytes) {
  Watch whole;
  whole.feed(bytes);
  Watch split;
  std::minstd_rand random(static_cast<unsigned>(bytes.size()));
  for (auto rest = bytes; !rest.empty();) {
    const auto size = std::min<std::size_t>(1 + random() % 40, rest.size());
    // A copy in a buffer of exact size, so that the sanitizer detects reads beyond its end.
    const std::vector<char> part(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(size));
    split.feed({part.data(), part.size()});
    rest.remove_prefix(size);
  }
  require(whole.shown == split.shown);
  require(whole.at_line_end() == split.at_line_end());
}

// Items of a list are judged as each one alone is.
void check_list(std::string_view bytes) {
  static ObjectDecoder lists(FieldSet({"spec.a"}), {}, kLimits);
  const auto alone = lists.decode(bytes);
  const std::string list =
      R"({"items":[)" + std::string(bytes) + R"(],"metadata":{"resourceVersion":"1"}})";
  std::vector<std::string> kept;
  std::size_t bad = 0;
  const auto meta = lists.decode_list(
      list, [&](Record&& record, std::string_view) { kept.push_back(show(record, 1)); },
      [&](Quarantined&& item) {
        require(!item.reason.empty());
        ++bad;
      });
  if (alone.kind == ObjectDecoder::Kind::object) {
    require(meta.has_value() && kept.size() == 1 && bad == 0);
    require(kept.front() == show(alone.record, 1));
  }
  if (!meta) require(kept.empty() && bad == 0);
  (void)lists.decode_list(bytes, [](Record&&, std::string_view) {}, [](Quarantined&&) {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_splits(bytes);
  check_list(bytes);
  return 0;
}
