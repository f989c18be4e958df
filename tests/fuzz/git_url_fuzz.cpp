#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app-proxy/git/git_url.hpp"
#include "app-proxy/git/tree_path.hpp"

// URLs, specifiers, branches and paths as users write them: what is accepted is read the same again
// and holds nothing that leads elsewhere.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::app_proxy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = parse_repository_url(text, Scheme::http_too)) {
    const auto again = parse_repository_url(url->to_string(), Scheme::http_too);
    if (!again || again->key() != url->key()) std::abort();
    if (url->name.contains("..") && (url->name == ".." || url->name.contains("/../"))) std::abort();
  }
  if (const auto specifier = parse_specifier(text, Scheme::http_too)) {
    if (!parse_repository_url(specifier->repository.to_string(), Scheme::http_too)) std::abort();
    if (!specifier->ref.empty() && !parse_branch(specifier->ref)) std::abort();
  }
  if (const auto branch = parse_branch(text)) {
    if (branch->starts_with('-') || branch->contains("..")) std::abort();
  }
  if (check_tree_path(text) &&
      (text.starts_with('/') || text.contains('\\') || text.contains("/../"))) {
    std::abort();
  }
  return 0;
}
