#include "control-plane/views/manifest_view.hpp"

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "control-plane/projection/event.hpp"
#include "control-plane/views/entity_view.hpp"
#include "control-plane/views/view_json.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Statement;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

constexpr std::array<Statement, 1> kStatements{{
    {.name = "views.resource",
     .sql = "SELECT id FROM object WHERE account = $1 AND runtime = $2 AND origin = 0 AND "
            "owner_uid = $3 AND cluster = '' AND api_group = $4 AND kind = $5 AND namespace = $6 "
            "AND name = $7"},
}};

bool is_secret(const ObjectState& state) {
  return state.key.group.empty() && state.key.kind == "Secret";
}

// Replaces the values of Secrets by numbers. Reporters mask them already, but not all reporters are ours.
class SecretMask {
 public:
  // Returns the manifest without values; empty for a text that is no JSON object.
  std::string masked(const std::string& manifest) {
    JsonParser parser;
    const auto root = parser.parse_object(manifest, "a manifest");
    if (!root) return {};
    return object_text(*root, [this](std::string& out, std::string_view key, JsonView value) {
      if (key == "data" || key == "stringData") {
        out += masked_values(value);
      } else if (key == "metadata") {
        out += masked_metadata(value);
      } else {
        out += value.exists() ? value.to_text() : "null";
      }
    });
  }

 private:
  template <class Write>
  static std::string object_text(JsonView object, const Write& write) {
    std::string out = "{";
    for (const auto& [key, value] : object.members()) {
      if (out.size() > 1) out += ',';
      append_json_string(out, key, JsonEscape::minimal);
      out += ':';
      write(out, key, value);
    }
    return out += '}';
  }

  std::string number_of(std::string_view value) {
    const auto next = numbers_.size() + 1;
    const auto number = numbers_.try_emplace(std::string(value), next).first->second;
    return json_string("hidden value " + std::to_string(number));
  }

  std::string masked_values(JsonView values) {
    if (!values.is_object()) return values.exists() ? number_of(values.to_text()) : "null";
    return object_text(values, [this](std::string& out, std::string_view, JsonView value) {
      out += number_of(value.is_text() ? std::string(value.text()) : value.to_text());
    });
  }

  std::string masked_metadata(JsonView metadata) {
    return object_text(metadata, [this](std::string& out, std::string_view key, JsonView value) {
      if (key != "annotations" || !value.is_object()) {
        out += value.exists() ? value.to_text() : "null";
        return;
      }
      out += object_text(value, [this](std::string& inner, std::string_view name, JsonView text) {
        inner += name == kLastApplied ? number_of(text.to_text()) : text.to_text();
      });
    });
  }

  std::map<std::string, std::size_t, std::less<>> numbers_;
};

}  // namespace

Result<std::optional<ObjectRow>> find_resource(store::Connection& connection, std::int64_t account,
                                               const ObjectState& application,
                                               const ResourceName& name) {
  // An Application without a uid would own the rows of all Applications.
  if (application.uid.empty()) return std::optional<ObjectRow>();
  const auto ids =
      connection.run(kStatements[0], {account, application.key.runtime, application.uid, name.group,
                                      name.kind, name.object_namespace, name.name});
  if (!ids) return std::unexpected(ids.error());
  if (ids->size() == 0) return std::optional<ObjectRow>();
  const std::array<std::int64_t, 1> id{ids->number(0, 0)};
  auto rows = objects_of_ids(connection, account, id, BodyUse::read);
  if (!rows) return std::unexpected(std::move(rows.error()));
  if (rows->empty()) return std::optional<ObjectRow>();
  return std::optional(std::move(rows->front()));
}

void append_manifests(std::string& out, const ObjectRow& resource) {
  const auto& state = resource.state;
  const auto body = resource.body.value_or(ObjectBody());
  // An object that Git alone has stands in the place of the live one. The API server gives each object a uid.
  const bool is_in_cluster = !state.uid.empty();
  const auto& live = is_in_cluster ? body.live : std::string();
  const auto& desired = !is_in_cluster && body.desired.empty() ? body.live : body.desired;
  const bool is_masked = is_secret(state);
  SecretMask mask;
  const auto shown = [&](const std::string& manifest) {
    return is_masked && !manifest.empty() ? mask.masked(manifest) : manifest;
  };
  ObjectJson at(out);
  at.text_or_null("group", state.key.group);
  at.text("kind", state.key.kind);
  at.text_or_null("namespace", state.key.object_namespace);
  at.text("name", state.key.name);
  write_states(at, state);
  at.text_or_null("revision", state.revision);
  at.time_or_null("seenAt", state.seen_at);
  at.text("presence", to_string(state.presence));
  at.text_or_null("desiredManifest", shown(desired));
  at.text_or_null("liveManifest", shown(live));
  at.text_or_null("gitManifest", is_masked ? std::string_view() : std::string_view(body.in_git));
  at.flag("masked", is_masked);
  at.end();
}

std::span<const Statement> manifest_statements() {
  return kStatements;
}

}  // namespace gitops::control_plane_server
