#include "control-plane/views/git_source_view.hpp"

#include <array>

#include "control-plane/views/application_view.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::array<store::Statement, 1> kGitSourceStatements{
    {{.name = "views.git_permissions",
      .sql = "SELECT runtime, source_namespace, name, permissions FROM git_source_permission "
             "WHERE account = $1"}}};

// Writes the valid permissions. A malformed entry is dropped and does not affect the others.
void write_permissions(ObjectJson& out, const std::string& json) {
  JsonParser parser;
  const auto permissions = parser.parse(json.empty() ? "[]" : json, "permissions");
  out.array("permissions", [&](ArrayJson& items) {
    if (!permissions) return;
    for (const auto permission : permissions->items()) {
      if (permission["userId"].text().empty()) continue;
      items.object([&](ObjectJson& at) {
        at.text("userId", permission["userId"].text());
        at.flag("read", permission["read"].is_true());
        at.flag("write", permission["write"].is_true());
      });
    }
  });
}

}  // namespace

Result<GitSourceFacts> read_git_source_facts(store::Connection& connection, std::int64_t account) {
  GitSourceFacts facts;
  const auto rows = connection.run(kGitSourceStatements[0], {account});
  if (!rows) return std::unexpected(rows.error());
  for (std::size_t row = 0; row < rows->size(); ++row) {
    facts.permissions[{rows->string(row, 0), rows->string(row, 1), rows->string(row, 2)}] =
        rows->string(row, 3);
  }
  const auto restricted =
      list_objects(connection, account,
                   {.kind = "RestrictedGitSource", .groups = {"csdp.codefresh.io", "codefresh.io"}},
                   {}, BodyUse::skip);
  if (!restricted) return std::unexpected(restricted.error());
  for (const auto& row : *restricted) {
    const auto& key = row.state.key;
    facts.restricted[{key.runtime, key.object_namespace, key.name}] = true;
  }
  return facts;
}

void append_git_source(std::string& out, const ObjectState& state, const ParsedBody& body,
                       const ViewContext& context, const GitSourceFacts& facts) {
  const auto& key = state.key;
  const GitSourceFacts::Name name{key.runtime, key.object_namespace, key.name};
  ObjectJson at(out);
  at.raw("metadata", metadata_json(state, body.live()["metadata"], context));
  append_application(at.begin("self"), state, body, context);
  write_states(at, state);
  at.flag("isRestricted", facts.restricted.contains(name));
  const auto permissions = facts.permissions.find(name);
  write_permissions(at, permissions == facts.permissions.end() ? "" : permissions->second);
  at.end();
}

std::span<const store::Statement> git_source_statements() {
  return kGitSourceStatements;
}

}  // namespace gitops::control_plane_server
