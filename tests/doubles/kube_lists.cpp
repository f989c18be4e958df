#include "doubles/kube_lists.hpp"

#include <optional>
#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

std::string key_text(const Json& object) {
  return object["metadata"].value("namespace", "") + "/" +
         object["metadata"]["name"].get<std::string>();
}

std::string list_item(const KubeType& type, const FakeKubeStore::Stored& object) {
  if (type.custom) return object.text;
  Json item = object.json;
  item.erase("apiVersion");
  item.erase("kind");
  return item.dump();
}

// Where a page ends: the version of its snapshot (0: none, go on with what is there now) and the
// last key that was given out.
struct Continuation {
  std::uint64_t version = 0;
  std::string last;

  [[nodiscard]] std::string token() const {
    return base64_encode(Json{{"v", "meta.k8s.io/v1"}, {"rv", version}, {"start", last}}.dump());
  }
  static std::optional<Continuation> parse(const std::string& token) {
    const auto text = base64_decode(token);
    if (!text) return std::nullopt;
    const auto json = Json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("rv") || !json.contains("start")) return std::nullopt;
    return Continuation{json["rv"].get<std::uint64_t>(), json["start"].get<std::string>()};
  }
};

std::string snapshot_key(std::uint64_t version, const KubeTarget& target) {
  return std::to_string(version) + " " + target.type->id() + " " + target.key.ns;
}

http::Response page_expired(const std::string& last) {
  return refusal(
      {.code = 410,
       .reason = "Expired",
       .message = "The provided continue parameter is too old to display a consistent list "
                  "result. You can start a new list without the continue parameter, or use "
                  "the continue token in this response to retrieve the remainder of the "
                  "results. Continuing with the provided token results in an inconsistent "
                  "list - objects that were created, modified, or deleted between the time "
                  "the first chunk was returned and now may show up in the list."},
      {{"continue", Continuation{0, last}.token()}});
}

std::string list_text(const KubeType& type, const Json& metadata,
                      const std::vector<std::string>& items) {
  std::string text = R"({"kind":")" + type.resource.kind + R"(List","apiVersion":")" +
                     type.resource.api_version() + R"(","metadata":)" + metadata.dump() +
                     R"(,"items":[)";
  for (const auto& item : items) {
    if (&item != items.data()) text += ',';
    text += item;
  }
  return text + "]}";
}

}  // namespace

void KubeLists::set_extra_item(const std::string& type, std::string text) {
  extra_items_[type] = std::move(text);
}

KubeLists::Start KubeLists::begin(const KubeTarget& target, const std::string& version) const {
  const auto asked = version.empty() ? 0 : parse_version(version);
  if (!asked) {
    return std::unexpected(refusal(bad_request("Invalid value: \"" + version + "\"")));
  }
  if (*asked > store_.version())
    return std::unexpected(refusal(too_new(version, store_.version())));
  return Snapshot{store_.version(), store_.list(*target.type, target.key.ns)};
}

KubeLists::Start KubeLists::go_on(const KubeTarget& target, const std::string& token) const {
  auto place = Continuation::parse(token);
  if (!place) return std::unexpected(refusal(bad_request("continue key is not valid")));
  Snapshot snapshot;
  if (place->version == 0) {
    snapshot = {store_.version(), store_.list(*target.type, target.key.ns)};
  } else {
    const auto kept = snapshots_.find(snapshot_key(place->version, target));
    if (kept == snapshots_.end()) return std::unexpected(page_expired(place->last));
    snapshot = kept->second;
  }
  snapshot.after = std::move(place->last);
  return snapshot;
}

http::Response KubeLists::list(const KubeTarget& target, const Query& query) {
  const KubeType& type = *target.type;
  const auto selectors = parse_selectors(query, type);
  if (!selectors) return refusal(selectors.error());
  const auto version = query.get("resourceVersion");
  const auto token = query.get("continue");
  if (!token.empty() && !version.empty()) {
    return refusal(bad_request("specifying resource version is not allowed when using continue"));
  }
  auto snapshot = token.empty() ? begin(target, version) : go_on(target, token);
  if (!snapshot) return std::move(snapshot.error());

  std::vector<FakeKubeStore::Object> objects;
  for (const auto& object : snapshot->objects) {
    if (!snapshot->after.empty() && key_text(object->json) <= snapshot->after) continue;
    if (selectors->matches(object->json)) objects.push_back(object);
  }
  Json metadata{{"resourceVersion", std::to_string(snapshot->version)}};
  // As the watch cache does: "any version" is answered whole.
  const auto limit = version == "0" ? 0 : parse_size(query.get("limit"));
  if (limit > 0 && objects.size() > limit) {
    if (query.get("labelSelector").empty() && query.get("fieldSelector").empty()) {
      metadata["remainingItemCount"] = objects.size() - limit;
    }
    objects.resize(limit);
    metadata["continue"] = Continuation{snapshot->version, key_text(objects.back()->json)}.token();
    snapshots_[snapshot_key(snapshot->version, target)] = std::move(*snapshot);
  }
  std::vector<std::string> items;
  for (const auto& object : objects) items.push_back(list_item(type, *object));
  if (const auto extra = extra_items_.find(type.id());
      extra != extra_items_.end() && !extra->second.empty()) {
    items.push_back(extra->second);
  }
  return json_response(200, list_text(type, metadata, items));
}

}  // namespace gitops::test
