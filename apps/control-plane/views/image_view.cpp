#include "control-plane/views/image_view.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "control-plane/views/image_name.hpp"

namespace gitops::control_plane_server {
namespace {

// Members of ImageBinary that are copied from the input, of any JSON type.
constexpr std::array<std::string_view, 20> kSentMembers{
    "branch",     "commit",       "commitMsg",       "commitURL",    "dockerFile",    "size",
    "os",         "info",         "author",          "workflowName", "workflowUrl",   "logsUrl",
    "hash",       "architecture", "internalImageId", "repoDigest",   "gitRepository", "gitProvider",
    "ciProvider", "runtime"};

void write_sent(ObjectJson& out, std::string_view key, JsonView value) {
  out.raw(key, value.exists() ? value.to_text() : "null");
}

}  // namespace

std::string image_binary_json(const ImageRow& row, const ViewContext& context) {
  JsonParser data_parser;
  JsonParser registry_parser;
  const auto data = data_parser.parse(row.data, "image").value_or(JsonView());
  const auto registries = registry_parser.parse(row.registry, "registry").value_or(JsonView());
  const auto name = image_name(row.name);
  return object_json([&](ObjectJson& out) {
    out.text("id", row.id);
    const auto created = data["created"].text();
    out.text("created", created.empty() ? time_text(row.updated_at) : std::string(created));
    out.text("imageName", row.name);
    for (const auto member : kSentMembers) write_sent(out, member, data[member]);
    out.text("lastUpdate", time_text(row.updated_at));
    out.text("repositoryName", name.repository);
    out.text("accountId", context.account);
    std::set<std::string_view> domains{registry_type(name.registry)};
    for (const auto& [id, registry] : registries.members()) {
      const auto domain = registry["registry"]["domain"].text();
      if (!domain.empty()) domains.insert(registry_type(domain));
    }
    out.array("imageRegistryDomains", [&](ArrayJson& items) {
      for (const auto domain : domains) items.text(domain);
    });
    out.text("imageDomain", registry_type(name.registry));
  });
}

std::string image_registry_json(std::string_view input) {
  JsonParser parser;
  const auto sent = parser.parse(input, "registry").value_or(JsonView());
  return object_json([&](ObjectJson& out) {
    out.text("binaryId", sent["binaryId"].text());
    out.text_or_null("created", sent["created"].text());
    out.text("imageName", sent["imageName"].text());
    out.text_or_null("repoDigest", sent["repoDigest"].text());
  });
}

std::string image_layers_json(std::string_view input, const ViewContext& context) {
  JsonParser parser;
  const auto sent = parser.parse(input, "layers").value_or(JsonView());
  return object_json([&](ObjectJson& out) {
    out.text("accountId", context.account);
    for (const auto member : {"created", "image", "layerDigests", "layers"}) {
      write_sent(out, member, sent[member]);
    }
  });
}

void write_image(ArrayJson& out, std::string_view name, const ImageFacts& facts) {
  const auto parts = image_name(name);
  JsonParser parser;
  JsonView data;
  if (facts.row) data = parser.parse(facts.row->data, "image").value_or(JsonView());
  out.object([&](ObjectJson& at) {
    at.text("name", parts.short_name());
    at.text("image", name);
    at.text("repositoryName", parts.repository);
    at.text_or_null("binaryId", facts.row ? facts.row->id : std::string());
    at.text_or_null("tag", parts.tag);
    at.text_or_null("workflowName", data["workflowName"].text());
    at.text_or_null("workflowUrl", data["workflowUrl"].text());
    at.text_or_null("ciProvider", data["ciProvider"].text());
  });
}

}  // namespace gitops::control_plane_server
