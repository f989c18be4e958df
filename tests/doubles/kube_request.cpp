#include "doubles/kube_request.hpp"

#include <charconv>
#include <map>
#include <system_error>
#include <utility>

namespace gitops::test {

namespace {

std::string verb_of(const http::Request& request, bool of_one_object, const Query& query) {
  static const std::map<std::string, std::pair<std::string, std::string>> verbs{
      {"GET", {"list", "get"}},
      {"POST", {"create", "create"}},
      {"PUT", {"", "update"}},
      {"PATCH", {"", "patch"}},
      {"DELETE", {"deletecollection", "delete"}}};
  const auto found = verbs.find(request.method);
  if (found == verbs.end()) return {};
  const auto& verb = of_one_object ? found->second.second : found->second.first;
  const bool watching = query.get("watch") == "true" || query.get("watch") == "1";
  return verb == "list" && watching ? "watch" : verb;
}

}  // namespace

std::optional<KubeTarget> find_target(const FakeKubeStore& store, const http::Request& request,
                                      const std::vector<std::string>& path, const Query& query) {
  // /api/VERSION/… or /apis/GROUP/VERSION/…, then [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]].
  const bool core = path.front() == "api";
  const std::size_t first = core ? 2 : 3;
  std::vector<std::string> rest(path.begin() + static_cast<std::ptrdiff_t>(first), path.end());
  KubeTarget target;
  const bool of_namespace =
      rest[0] == "namespaces" && rest.size() >= 3 && rest[2] != "status" && rest[2] != "finalize";
  if (of_namespace) {
    target.key.ns = rest[1];
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  target.type = store.find_type(core ? "" : path[1], path[first - 1], rest[0]);
  if (target.type == nullptr || rest.size() > 3) return std::nullopt;
  if (rest.size() > 1) target.key.name = rest[1];
  if (rest.size() > 2) target.subresource = rest[2];
  const bool one = !target.key.name.empty();
  if (one && target.type->resource.namespaced && target.key.ns.empty()) return std::nullopt;
  target.verb = verb_of(request, one, query);
  return target;
}

std::expected<Selectors, KubeFailure> parse_selectors(const Query& query, const KubeType& type) {
  auto labels = LabelSelector::parse(query.get("labelSelector"));
  if (!labels) return std::unexpected(bad_request(labels.error()));
  auto fields = FieldSelector::parse(query.get("fieldSelector"), type);
  if (!fields) return std::unexpected(bad_request(fields.error()));
  return Selectors{std::move(*labels), std::move(*fields)};
}

std::optional<std::uint64_t> parse_version(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::size_t parse_size(const std::string& text) {
  return static_cast<std::size_t>(parse_version(text).value_or(0));
}

}  // namespace gitops::test
