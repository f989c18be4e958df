#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "app-proxy/git/manifest_edit.hpp"

// The first byte chooses the edit, the others are the file. An edit that succeeds gives the value
// that was asked for, and one region of the text differs. edit_manifest() compares all other data.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::app_proxy;
  if (size < 1 || size > 4096) return 0;
  const std::uint8_t choice = data[0];
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  constexpr std::string_view kValues[] = {"new", "2.0", "a: b", "\n", "yes", "'\"", "", "# x"};
  ManifestEdit edit;
  edit.action = static_cast<ManifestEdit::Action>(choice % 3);
  edit.value.text = kValues[(choice >> 5U) % 8U];
  if ((choice & 4U) != 0) edit.path.emplace_back("a");
  if ((choice & 8U) != 0) edit.path.emplace_back(std::size_t{0});
  if ((choice & 16U) != 0) edit.path.emplace_back("b");
  // Whatever is replaced is what was asked for.
  ManifestData entry{.value = edit.value};
  ManifestEdit replacing = edit;
  replacing.action = ManifestEdit::Action::replace;
  replacing.data = {.kind = ManifestData::Kind::map,
                    .keys = {{.text = "k"}, {.text = "l"}},
                    .children = {entry, {.kind = ManifestData::Kind::list, .children = {entry}}}};
  if (const auto replaced = edit_manifest(text, replacing)) {
    const auto read = read_data(*replaced, replacing.path);
    if (!read || *read != replacing.data) std::abort();
  }
  const auto result = edit_manifest(text, edit);
  if (!result) return 0;
  YAML::Node after = YAML::Load(*result);
  if (edit.action == ManifestEdit::Action::set) {
    for (const auto& step : edit.path) {
      const YAML::Node next = std::holds_alternative<std::string>(step)
                                  ? after[std::get<std::string>(step)]
                                  : after[std::get<std::size_t>(step)];
      after.reset(next);
    }
    if (!after.IsScalar() || after.Scalar() != edit.value.text) std::abort();
    // The same edit once more changes nothing.
    const auto again = edit_manifest(*result, edit);
    if (!again || *again != *result) std::abort();
  }
  // What is set or appended replaces one region, without a comment, and within a line unless it was a
  // block scalar.
  if (edit.action != ManifestEdit::Action::remove) {
    const auto end = std::ranges::mismatch(text, *result).in1;
    const auto common = static_cast<std::size_t>(end - text.begin());
    std::size_t tail = 0;
    while (tail < std::min(text.size(), result->size()) - common &&
           text[text.size() - 1 - tail] == (*result)[result->size() - 1 - tail]) {
      ++tail;
    }
    const std::string gone = text.substr(common, text.size() - tail - common);
    const bool quoted = text.contains('"') || text.contains('\'');
    const bool has_block = text.contains('|') || text.contains('>');
    if (has_block) return 0;
    if (gone.contains('\n') || (!quoted && gone.contains(" #"))) std::abort();
  }
  return 0;
}
