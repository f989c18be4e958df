#include "doubles/fake_kube_store.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/encoding.hpp"
#include "common/core/time.hpp"
#include "doubles/kube_selectors.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;
using Failure = FakeKubeStore::Failure;

bool is_dns_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (!alphanumeric(name.front()) || !alphanumeric(name.back())) return false;
  return std::ranges::all_of(name, [&](char c) { return alphanumeric(c) || c == '-' || c == '.'; });
}

// The object without the fields that the server maintains.
Json without_version(Json object) {
  object["metadata"].erase("resourceVersion");
  return object;
}

bool has_generation(const KubeType& type) {
  constexpr std::array<std::string_view, 6> kWithout{"ConfigMap", "Secret",         "Namespace",
                                                     "Service",   "ServiceAccount", "Lease"};
  return std::ranges::find(kWithout, type.resource.kind) == kWithout.end();
}

void encode_string_data(const KubeType& type, Json& object) {
  if (type.resource.kind != "Secret" || !type.resource.group.empty()) return;
  if (object.contains("stringData")) {
    for (const auto& [key, value] : object["stringData"].items()) {
      object["data"][key] = base64_encode(value.get<std::string>());
    }
    object.erase("stringData");
  }
  if (!object.contains("type")) object["type"] = "Opaque";
}

bool has_finalizers(const Json& object) {
  const auto& metadata = object["metadata"];
  return metadata.contains("finalizers") && !metadata["finalizers"].empty();
}

}  // namespace

FakeKubeStore::FakeKubeStore(std::size_t history) : history_limit_(history) {}

void FakeKubeStore::add_type(KubeType type) {
  const auto id = type.id();
  types_[id] = std::move(type);
  tables_.try_emplace(id);
}

void FakeKubeStore::remove_type(const std::string& id) {
  const auto type = types_.find(id);
  if (type == types_.end()) return;
  while (!tables_[id].empty()) {
    const Object first = tables_[id].begin()->second;
    drop(type->second, first);
  }
  tables_.erase(id);
  types_.erase(type);
  if (on_change_) on_change_();
}

const KubeType* FakeKubeStore::find_type(std::string_view group, std::string_view version,
                                         std::string_view plural) const {
  const auto found = std::ranges::find_if(types_, [&](const auto& entry) {
    const auto& resource = entry.second.resource;
    return resource.group == group && resource.version == version && resource.plural == plural;
  });
  return found == types_.end() ? nullptr : &found->second;
}

const FakeKubeStore::Object* FakeKubeStore::find(const KubeType& type,
                                                 const k8s::ObjectKey& key) const {
  const auto table = tables_.find(type.id());
  if (table == tables_.end()) return nullptr;
  const auto found = table->second.find(key);
  return found == table->second.end() ? nullptr : &found->second;
}

FakeKubeStore::Outcome<FakeKubeStore::Object> FakeKubeStore::get(const KubeType& type,
                                                                 const k8s::ObjectKey& key) const {
  const auto* found = find(type, key);
  if (found == nullptr) return std::unexpected(not_found(type, key.name));
  return *found;
}

std::vector<FakeKubeStore::Object> FakeKubeStore::list(const KubeType& type,
                                                       std::string_view ns) const {
  std::vector<Object> objects;
  const auto table = tables_.find(type.id());
  if (table == tables_.end()) return objects;
  for (const auto& [key, object] : table->second) {
    if (ns.empty() || key.ns == ns) objects.push_back(object);
  }
  return objects;
}

FakeKubeStore::Outcome<FakeKubeStore::Object> FakeKubeStore::create(const KubeType& type,
                                                                    const std::string& ns,
                                                                    Json object) {
  const auto& resource = type.resource;
  if (!object.is_object()) return std::unexpected(bad_request("the body is not an object"));
  if (text_at(object, "kind") != resource.kind ||
      text_at(object, "apiVersion") != resource.api_version()) {
    return std::unexpected(
        bad_request("the API version or kind in the data (" + text_at(object, "apiVersion") +
                    ", Kind=" + text_at(object, "kind") + ") does not match the expected " +
                    resource.api_version() + ", Kind=" + resource.kind));
  }
  auto& metadata = object["metadata"];
  if (metadata.is_null()) metadata = Json::object();
  if (!metadata.is_object()) return std::unexpected(bad_request("metadata is not an object"));
  if (const auto own = text_at(object, "metadata.namespace"); !own.empty() && own != ns) {
    return std::unexpected(bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (resource.namespaced) metadata["namespace"] = ns;
  auto name = text_at(object, "metadata.name");
  const auto prefix = text_at(object, "metadata.generateName");
  if (name.empty() && !prefix.empty()) name = prefix + random_suffix();
  if (name.empty()) {
    return std::unexpected(invalid(type, "", "metadata.name",
                                   "Required value: name or generateName is required",
                                   "FieldValueRequired"));
  }
  if (!is_dns_name(name)) {
    return std::unexpected(
        invalid(type, name, "metadata.name",
                "Invalid value: \"" + name +
                    "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                    "characters, '-' or '.', and must start and end with an alphanumeric character",
                "FieldValueInvalid"));
  }
  if (!text_at(object, "metadata.resourceVersion").empty()) {
    return std::unexpected(
        bad_request("resourceVersion should not be set on objects to be created"));
  }
  const auto* namespaces = find_type("", "v1", "namespaces");
  if (resource.namespaced && namespaces != nullptr && find(*namespaces, {"", ns}) == nullptr) {
    return std::unexpected(not_found(*namespaces, ns));
  }
  const k8s::ObjectKey key{resource.namespaced ? ns : std::string(), name};
  if (find(type, key) != nullptr) {
    return std::unexpected(already_exists(type, name));
  }
  metadata["name"] = name;
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = format_rfc3339(wall_now());
  metadata.erase("deletionTimestamp");
  if (has_generation(type)) metadata["generation"] = 1;
  if (type.status_subresource) object.erase("status");
  if (resource.kind == "Namespace") object["status"] = {{"phase", "Active"}};
  encode_string_data(type, object);
  auto created = store(type, ChangeKind::added, std::move(object), nullptr);
  if (resource.kind == "CustomResourceDefinition" && !dry_run_) {
    follow_definition(created->json, false);
    created = find(type, key) != nullptr ? *find(type, key) : created;
  }
  return created;
}

FakeKubeStore::Outcome<FakeKubeStore::Object> FakeKubeStore::update(const KubeType& type,
                                                                    const k8s::ObjectKey& key,
                                                                    Json object,
                                                                    std::string_view subresource) {
  const auto* found = find(type, key);
  if (found == nullptr) return std::unexpected(not_found(type, key.name));
  if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object()) {
    return std::unexpected(bad_request("the body is not an object with metadata"));
  }
  if (type.custom && text_at(object, "metadata.resourceVersion").empty()) {
    return std::unexpected(invalid(type, key.name, "metadata.resourceVersion",
                                   "Invalid value: 0: must be specified for an update",
                                   "FieldValueInvalid"));
  }
  return replace(type, key, *found, std::move(object), subresource);
}

FakeKubeStore::Outcome<FakeKubeStore::Object> FakeKubeStore::replace(const KubeType& type,
                                                                     const k8s::ObjectKey& key,
                                                                     Object current, Json object,
                                                                     std::string_view subresource) {
  const auto name = text_at(object, "metadata.name");
  if (name != key.name) {
    return std::unexpected(bad_request("the name of the object (" + name +
                                       ") does not match the name on the URL (" + key.name + ")"));
  }
  const auto& before = current->json;
  const auto version = text_at(object, "metadata.resourceVersion");
  if (!version.empty() && version != text_at(before, "metadata.resourceVersion")) {
    return std::unexpected(conflict(type, key.name,
                                    "the object has been modified; please apply your changes to "
                                    "the latest version and try again"));
  }
  const auto uid = text_at(object, "metadata.uid");
  if (!uid.empty() && uid != text_at(before, "metadata.uid")) {
    return std::unexpected(
        conflict(type, key.name,
                 "Precondition failed: UID in precondition: " + uid +
                     ", UID in object meta: " + text_at(before, "metadata.uid")));
  }
  const auto keep = [&](Json& to, const Json& from, const char* field) {
    if (from.contains(field)) {
      to[field] = from[field];
    } else {
      to.erase(field);
    }
  };
  if (subresource == "status") {
    Json next = before;
    keep(next, object, "status");
    object = std::move(next);
  } else if (type.status_subresource) {
    keep(object, before, "status");
  }
  object["apiVersion"] = before["apiVersion"];
  object["kind"] = before["kind"];
  for (const auto* field : {"name", "namespace", "uid", "creationTimestamp", "generation",
                            "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    keep(object["metadata"], before["metadata"], field);
  }
  encode_string_data(type, object);
  if (without_version(object) == without_version(before)) return current;
  if (has_generation(type)) {
    auto specified = [&](Json copy) {
      copy.erase("metadata");
      if (type.status_subresource) copy.erase("status");
      return copy;
    };
    if (specified(object) != specified(before)) {
      object["metadata"]["generation"] = before["metadata"].value("generation", 0) + 1;
    }
  }
  if (before["metadata"].contains("deletionTimestamp") && !has_finalizers(object)) {
    return drop(type, current);
  }
  return store(type, ChangeKind::modified, std::move(object), std::move(current));
}

FakeKubeStore::Outcome<FakeKubeStore::Patched> FakeKubeStore::patch(const KubeType& type,
                                                                    const k8s::ObjectKey& key,
                                                                    PatchType patch,
                                                                    const Json& body,
                                                                    std::string_view subresource) {
  const auto* found = find(type, key);
  if (found == nullptr) {
    if (patch != PatchType::apply || !subresource.empty()) {
      return std::unexpected(not_found(type, key.name));
    }
    auto created = create(type, key.ns, body);
    if (!created) return std::unexpected(created.error());
    return Patched{.object = std::move(*created), .created = true};
  }
  Json next = (*found)->json;
  // Only a version within the patch is a precondition.
  next["metadata"].erase("resourceVersion");
  if (patch == PatchType::json) {
    if (!body.is_array()) return std::unexpected(bad_request("a JSON patch is an array"));
    try {
      next = next.patch(body);
    } catch (const Json::exception&) {
      return std::unexpected(
          Failure{.code = 422,
                  .reason = "Invalid",
                  .message = "the server rejected our request due to an error in our request",
                  .details = Json::object()});
    }
  } else {
    if (!body.is_object()) return std::unexpected(bad_request("a merge patch is an object"));
    next.merge_patch(body);
  }
  if (!next.is_object() || !next.contains("metadata") || !next["metadata"].is_object()) {
    return std::unexpected(bad_request("the patched object has no metadata"));
  }
  auto replaced = replace(type, key, *found, std::move(next), subresource);
  if (!replaced) return std::unexpected(replaced.error());
  return Patched{.object = std::move(*replaced), .created = false};
}

FakeKubeStore::Outcome<FakeKubeStore::Removed> FakeKubeStore::remove(const KubeType& type,
                                                                     const k8s::ObjectKey& key,
                                                                     const Json& options) {
  const auto* found = find(type, key);
  if (found == nullptr) return std::unexpected(not_found(type, key.name));
  const Object current = *found;
  if (options.is_object()) {
    for (const auto& [field, name] :
         {std::pair{"uid", "UID"}, std::pair{"resourceVersion", "ResourceVersion"}}) {
      const auto wanted = text_at(options, std::string("preconditions.") + field);
      const auto actual = text_at(current->json, std::string("metadata.") + field);
      if (wanted.empty() || wanted == actual) continue;
      return std::unexpected(conflict(type, key.name,
                                      std::string("Precondition failed: ") + name +
                                          " in precondition: " + wanted + ", " + name +
                                          " in object meta: " + actual));
    }
  }
  if (has_finalizers(current->json)) {
    if (current->json["metadata"].contains("deletionTimestamp")) {
      return Removed{.object = current, .gone = false};
    }
    Json next = current->json;
    auto& metadata = next["metadata"];
    metadata["deletionTimestamp"] = format_rfc3339(wall_now());
    metadata["deletionGracePeriodSeconds"] = 0;
    if (has_generation(type)) metadata["generation"] = metadata.value("generation", 0) + 1;
    return Removed{.object = store(type, ChangeKind::modified, std::move(next), current),
                   .gone = false};
  }
  if (type.resource.kind == "Namespace" && !dry_run_) {
    for (const auto& [id, inner] : types_) {
      if (!inner.resource.namespaced) continue;
      for (const auto& object : list(inner, key.name)) drop(inner, object);
    }
  }
  auto gone = drop(type, current);
  if (type.resource.kind == "CustomResourceDefinition" && !dry_run_) {
    follow_definition(current->json, true);
  }
  return Removed{.object = std::move(gone), .gone = true};
}

FakeKubeStore::Object FakeKubeStore::put(const KubeType& type, Json object) {
  const auto& resource = type.resource;
  object["apiVersion"] = resource.api_version();
  object["kind"] = resource.kind;
  auto& metadata = object["metadata"];
  k8s::ObjectKey key{.ns = {}, .name = metadata.at("name").get<std::string>()};
  if (resource.namespaced) {
    if (!metadata.contains("namespace")) metadata["namespace"] = "default";
    key.ns = metadata["namespace"].get<std::string>();
    const auto* namespaces = find_type("", "v1", "namespaces");
    if (namespaces != nullptr && find(*namespaces, {"", key.ns}) == nullptr) {
      put(*namespaces, {{"metadata", {{"name", key.ns}}}, {"status", {{"phase", "Active"}}}});
    }
  }
  const auto* found = find(type, key);
  const Object before = found == nullptr ? nullptr : *found;
  const auto inherit = [&](const char* field, Json otherwise) {
    if (metadata.contains(field)) return;
    const bool known = before && before->json["metadata"].contains(field);
    metadata[field] = known ? before->json["metadata"][field] : std::move(otherwise);
  };
  inherit("uid", new_uid());
  inherit("creationTimestamp", format_rfc3339(wall_now()));
  if (has_generation(type)) {
    inherit("generation", 0);
    metadata["generation"] = metadata["generation"].get<int>() + 1;
  }
  encode_string_data(type, object);
  return store(type, before ? ChangeKind::modified : ChangeKind::added, std::move(object), before);
}

FakeKubeStore::Object FakeKubeStore::store(const KubeType& type, ChangeKind kind, Json object,
                                           Object before) {
  auto& metadata = object["metadata"];
  if (dry_run_) {
    metadata.erase("resourceVersion");
    if (before) metadata["resourceVersion"] = before->json["metadata"]["resourceVersion"];
    auto answer = std::make_shared<Stored>();
    answer->text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
    answer->json = std::move(object);
    return answer;
  }
  ++version_;
  metadata["resourceVersion"] = std::to_string(version_);
  const k8s::ObjectKey key{type.resource.namespaced ? text_at(object, "metadata.namespace") : "",
                           text_at(object, "metadata.name")};
  auto stored = std::make_shared<Stored>();
  stored->text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  stored->json = std::move(object);
  const auto id = type.id();
  if (kind == ChangeKind::deleted) {
    tables_[id].erase(key);
  } else {
    tables_[id][key] = stored;
  }
  history_.push_back({.kind = kind,
                      .version = version_,
                      .type = id,
                      .ns = key.ns,
                      .object = stored,
                      .before = std::move(before)});
  if (history_.size() > history_limit_) {
    oldest_version_ = history_.front().version;
    history_.pop_front();
  }
  if (on_change_) on_change_();
  return stored;
}

FakeKubeStore::Object FakeKubeStore::drop(const KubeType& type, const Object& current) {
  return store(type, ChangeKind::deleted, current->json, current);
}

// As the CRD controller: serves the type, and states it in the definition's status.
void FakeKubeStore::follow_definition(const Json& definition, bool gone) {
  const auto spec = definition.value("spec", Json::object());
  KubeType type;
  type.resource.group = spec.value("group", "");
  type.resource.plural = text_at(spec, "names.plural");
  type.resource.kind = text_at(spec, "names.kind");
  type.resource.namespaced = spec.value("scope", "Namespaced") == "Namespaced";
  type.custom = true;
  for (const auto& version : spec.value("versions", Json::array())) {
    if (!version.value("served", false)) continue;
    type.resource.version = version.value("name", "v1");
    type.status_subresource =
        version.contains("subresources") && version["subresources"].contains("status");
  }
  if (gone) {
    remove_type(type.id());
    return;
  }
  add_type(type);
  Json established = definition;
  const auto condition = [](const char* name, const char* reason) {
    return Json{{"type", name},
                {"status", "True"},
                {"reason", reason},
                {"lastTransitionTime", format_rfc3339(wall_now())}};
  };
  established["status"] = {{"acceptedNames", spec.value("names", Json::object())},
                           {"conditions",
                            {condition("NamesAccepted", "NoConflicts"),
                             condition("Established", "InitialNamesAccepted")}},
                           {"storedVersions", {type.resource.version}}};
  const auto* definitions = find_type("apiextensions.k8s.io", "v1", "customresourcedefinitions");
  const auto* current = find(*definitions, {"", text_at(definition, "metadata.name")});
  store(*definitions, ChangeKind::modified, std::move(established), *current);
}

void FakeKubeStore::restore(Backup backup) {
  tables_ = std::move(backup.tables);
  version_ = backup.version;
  compact();
}

void FakeKubeStore::compact() {
  history_.clear();
  oldest_version_ = version_;
}

std::string FakeKubeStore::random_suffix() {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kLetters[random_() % kLetters.size()];
  return suffix;
}

std::string FakeKubeStore::new_uid() {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string uid = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
  for (char& c : uid) {
    if (c == 'x') c = kHex[random_() % 16];
  }
  return uid;
}

}  // namespace gitops::test
