#include "event-reporter/event/manifest.hpp"

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

constexpr std::string_view kMask = "++++++++";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

bool is_masked(std::string_view value) {
  return value.size() >= 2 && value.front() == '"' &&
         value.find_first_not_of('+', 1) == value.size() - 1;
}

std::string mask_values(std::string_view object) {
  if (object == "null") return "null";
  if (!object.starts_with('{')) return json_string(kMask);
  std::string out = "{";
  for_each_member(object, [&out](std::string_view key, std::string_view value) {
    if (out.size() > 1) out += ',';
    out.append("\"").append(key).append("\":");
    if (is_masked(value)) {
      out += value;
    } else {
      append_json_string(out, kMask);
    }
    return true;
  });
  return out += '}';
}

std::string mask_members(std::string_view secret) {
  return edit_present_member(edit_present_member(secret, "data", &mask_values), "stringData",
                             &mask_values);
}

// Masks the value of a last-applied annotation: a JSON string that holds the whole Secret.
std::string mask_last_applied(std::string_view value) {
  JsonParser parser;
  const auto text = parser.parse(value, "annotation");
  const auto applied = text ? text->text() : std::string_view();
  if (!applied.starts_with('{')) return json_string(kMask);
  return json_string(mask_members(applied));
}

bool is_secret(std::string_view manifest) {
  std::string_view kind;
  std::string_view api_version;
  for_each_member(manifest, [&](std::string_view key, std::string_view value) {
    if (key == "kind") kind = value;
    if (key == "apiVersion") api_version = value;
    return true;
  });
  return kind == "\"Secret\"" && api_version == "\"v1\"";
}

}  // namespace

std::string mask_secret(std::string_view manifest) {
  if (!is_secret(manifest)) return std::string(manifest);
  return edit_present_member(mask_members(manifest), "metadata", [](std::string_view metadata) {
    return edit_present_member(metadata, "annotations", [](std::string_view annotations) {
      return edit_present_member(annotations, kLastApplied, &mask_last_applied);
    });
  });
}

std::string with_namespace(std::string_view manifest, std::string_view ns) {
  if (ns.empty()) return std::string(manifest);
  return edit_member(manifest, "metadata", [ns](std::string_view metadata) {
    return with_strings(metadata, {{"namespace", ns}});
  });
}

std::string stub(const ResourceId& id) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("apiVersion", id.group.empty() ? id.version : id.group + '/' + id.version);
  writer.text("kind", id.kind);
  ObjectWriter metadata(writer.begin("metadata"));
  metadata.text("name", id.name);
  if (!id.ns.empty()) metadata.text("namespace", id.ns);
  metadata.end();
  writer.end();
  return out;
}

std::string stub(const ResourceId& id, std::string_view uid, std::string_view resource_version) {
  return edit_member(stub(id), "metadata", [&](std::string_view metadata) {
    return with_strings(metadata, {{"resourceVersion", resource_version}, {"uid", uid}});
  });
}

std::string application_stub(const k8s::ObjectKey& key, std::string_view uid,
                             std::string_view resource_version) {
  return stub(application_id(key.ns, key.name), uid, resource_version);
}

std::string identity_stub(std::string_view object) {
  const auto annotations = [](std::string_view text) {
    return keep_members(
        text, {{"argocd.argoproj.io/tracking-id", {}}, {"argocd.argoproj.io/installation-id", {}}});
  };
  const auto metadata = [&](std::string_view text) {
    return keep_members(text, {{"name", {}},
                               {"namespace", {}},
                               {"uid", {}},
                               {"resourceVersion", {}},
                               {"creationTimestamp", {}},
                               {"deletionTimestamp", {}},
                               {"labels", {}},
                               {"annotations", annotations}});
  };
  return keep_members(object, {{"apiVersion", {}}, {"kind", {}}, {"metadata", metadata}});
}

}  // namespace gitops::reporter
