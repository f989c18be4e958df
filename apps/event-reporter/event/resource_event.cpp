#include "event-reporter/event/resource_event.hpp"

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

// Writes the metadata without managedFields. `deletion_time`, when not empty, is added to an object
// without a deletionTimestamp.
void write_metadata(std::string& out, std::string_view metadata, std::string_view deletion_time) {
  bool says = false;
  ObjectWriter writer(out);
  for_each_member(metadata, [&](std::string_view key, std::string_view value) {
    if (key == "managedFields") return true;
    const bool is_time = key == "deletionTimestamp";
    if (is_time && value == "null") return true;
    says = says || is_time;
    writer.raw(key, value);
    return true;
  });
  if (!says && !deletion_time.empty()) writer.text("deletionTimestamp", deletion_time);
  writer.end();
}

std::string write_object(std::string_view object, const k8s::Resource& resource,
                         std::string_view deletion_time) {
  std::string out;
  out.reserve(object.size() + 128);
  ObjectWriter writer(out);
  writer.text("apiVersion", resource.api_version());
  writer.text("kind", resource.kind);
  for_each_member(object, [&](std::string_view key, std::string_view value) {
    if (key == "apiVersion" || key == "kind") return true;
    if (key == "metadata") {
      write_metadata(writer.begin(key), value, deletion_time);
    } else {
      writer.raw(key, value);
    }
    return true;
  });
  writer.end();
  return out;
}

std::string write_body(std::string_view object, std::string_view cluster, bool deleted) {
  std::string out;
  out.reserve(object.size() + object.size() / 4 + 128);
  out += "{\"data\":";
  ObjectWriter data(out);
  data.text("object", object);
  if (!cluster.empty()) data.text("cluster", cluster);
  if (deleted) data.raw("deleted", "true");
  data.end();
  out += '}';
  return out;
}

std::string reduced_object(std::string_view object) {
  return keep_members(
      object, {{"apiVersion", {}},
               {"kind", {}},
               {"metadata",
                [](std::string_view metadata) {
                  return keep_members(metadata, {{"name", {}},
                                                 {"namespace", {}},
                                                 {"uid", {}},
                                                 {"resourceVersion", {}},
                                                 {"creationTimestamp", {}},
                                                 {"deletionTimestamp", {}},
                                                 {"ownerReferences", {}}});
                }},
               {"status", [](std::string_view status) {
                  return keep_members(
                      status,
                      {{"phase", {}}, {"message", {}}, {"startedAt", {}}, {"finishedAt", {}}});
                }}});
}

}  // namespace

Result<ResourceFacts> read_resource(std::string_view object) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "the object");
  if (!root) return std::unexpected(root.error());
  const auto metadata = (*root)["metadata"];
  return ResourceFacts{.uid = std::string(metadata["uid"].text()),
                       .resource_version = std::string(metadata["resourceVersion"].text()),
                       .digest = object_digest(object)};
}

std::string resource_event(std::string_view object, const k8s::Resource& resource,
                           std::string_view cluster) {
  return write_body(write_object(object, resource, {}), cluster, false);
}

std::string deleted_resource_event(std::string_view object, const k8s::Resource& resource,
                                   std::string_view cluster, WallTime now) {
  return write_body(write_object(object, resource, format_rfc3339(now)), cluster, true);
}

std::string resource_stub(const k8s::ObjectKey& key, std::string_view uid) {
  std::string out;
  ObjectWriter writer(out);
  ObjectWriter metadata(writer.begin("metadata"));
  metadata.text("name", key.name);
  metadata.text("namespace", key.ns);
  if (!uid.empty()) metadata.text("uid", uid);
  metadata.end();
  writer.end();
  return out;
}

std::string reduced_resource_event(std::string_view body) {
  JsonParser parser;
  const auto event = parser.parse_object(body, "event");
  if (!event) return {};
  const auto object = (*event)["data"]["object"].text();
  auto out = edit_present_member(body, "data", [&](std::string_view data) {
    return edit_present_member(
        data, "object", [&](std::string_view) { return json_string(reduced_object(object)); });
  });
  return out.size() < body.size() ? out : std::string{};
}

}  // namespace gitops::reporter
