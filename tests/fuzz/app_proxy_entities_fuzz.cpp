#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/entities/config_files.hpp"
#include "app-proxy/entities/git_source.hpp"
#include "app-proxy/entities/plain_folder.hpp"
#include "app-proxy/promotions/promotion.hpp"

namespace {

using namespace gitops::app_proxy;

const ConfigRepository& repository() {
  static const ConfigRepository kRepository{
      .at = parse_specifier("https://git.example.test/acme/config.git").value(),
      .runtime = "prod",
      .runtime_namespace = "gitops"};
  return kRepository;
}

void check(bool is_right) {
  if (!is_right) std::abort();
}

// What a change makes of a file, it makes once: the next commit would be empty.
void apply_twice(const std::vector<FileChange>& changes, std::string_view content) {
  for (const auto& change : changes) {
    if (change.kind != FileChange::Kind::edit) continue;
    const auto edited = change.edit(content);
    if (!edited) continue;
    const auto again = change.edit(*edited);
    check(again && *again == *edited);
  }
}

RestrictedGitSource restricted() {
  return {.name = "team",
          .source = repository().at,
          .source_namespace = "cf-team",
          .destinations = {{.server = "https://x.test", .destination_namespace = "a"}},
          .source_repositories = {"*"}};
}

}  // namespace

// The first byte chooses; the rest, up to a NUL, is a file of the repository, a glob or a JSON path, and
// what follows the NUL the other text of a promotion.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > 4096) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string text(all.substr(0, all.find('\0')));
  const std::string rest(text.size() < all.size() ? all.substr(text.size() + 1) : "");
  (void)plain_folder_answer({{.path = "a.yaml", .text = text}});
  if (const auto folder = read_plain_folder(text)) (void)is_manifest_file(*folder, rest);
  (void)matches_pattern(text, rest.substr(0, 256));
  const GitSource source{.name = "shop", .source = repository().at, .server = "https://x.test"};
  switch (data[0] % 8) {
    case 0:
      apply_twice(changes_to_create(repository(), source), text);
      break;
    case 1:
      apply_twice(changes_to_edit(repository(), GitSourceEdit{.name = "shop",
                                                              .source = repository().at,
                                                              .include = "*.yaml",
                                                              .exclude = ""}),
                  text);
      break;
    case 2:
      apply_twice(changes_to_remove(repository(), "shop"), text);
      break;
    case 3:
      apply_twice(changes_to_edit(repository(),
                                  RestrictedGitSourceEdit{.wanted = restricted(), .include = "*"}),
                  text);
      break;
    case 4: {
      const auto globs = parse_globs(text);
      const bool is_list = globs.size() != 1 || globs.front() != text;
      if (is_list) check(parse_globs(format_globs(globs)) == globs);
      (void)matches_glob(text, rest);
      break;
    }
    case 5:
      (void)parse_json_path(text);
      (void)check_entity_name(text);
      break;
    default: {
      const char* const path = data[0] % 8 == 6 ? "$" : "$.a";
      const auto changes = promotion_changes({{"**", {path}}}, {{"values.yaml", text}}, "prod");
      if (changes) apply_twice(*changes, rest);
      break;
    }
  }
  return 0;
}
