// docs/reference/control-plane/api.md lists the routes and operations that there are. GITOPS_WRITE_DOCS=1 makes it so.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "control-plane/http/whole_port.hpp"
#include "support/docs_part.hpp"

namespace gitops::control_plane_server {
namespace {

const std::filesystem::path kPage =
    std::filesystem::path(GITOPS_SOURCE_DIR) / "docs" / "reference" / "control-plane" / "api.md";
constexpr std::string_view kSenders = "Sent by ";

std::string_view word_of(RootType root) {
  if (root == RootType::subscription) return "Subscription";
  return root == RootType::query ? "Query" : "Mutation";
}

// A field of a root type in the schema's text.
struct RootField {
  std::string type;
  std::string senders;  // without "Sent by "
  std::string description;
};

// Reads "  name(arguments): Type" with the description in the line before.
std::map<std::string, RootField> root_fields() {
  std::map<std::string, RootField> fields;
  std::istringstream lines{std::string(schema_text())};
  std::string description;
  bool is_root = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("type ")) {
      is_root =
          line == "type Query {" || line == "type Mutation {" || line == "type Subscription {";
    }
    if (line == "}") is_root = false;
    if (!is_root || !line.starts_with("  ")) continue;
    if (line.starts_with("  \"")) {
      description = line.substr(3, line.rfind('"') - 3);
      continue;
    }
    auto& field = fields[line.substr(2, line.find_first_of("(:") - 2)];
    field.type = line.substr(line.rfind(": ") + 2);
    if (!description.starts_with(kSenders)) {
      ADD_FAILURE() << "schema.graphql: the description does not begin with the senders:" << line;
      continue;
    }
    const auto end = std::min(description.find(". "), description.size());
    field.senders = description.substr(kSenders.size(), end - kSenders.size());
    field.description = description.substr(std::min(end + 2, description.size()));
    description.clear();
  }
  return fields;
}

std::string operations(const std::vector<FieldRow>& rows) {
  std::string text = "| Field | Under | Who may | Sent by | Response |\n|---|---|---|---|---|\n";
  auto fields = root_fields();
  EXPECT_EQ(fields.size(), rows.size());
  for (const FieldRow& row : rows) {
    const auto& field = fields[row.field];
    text.append("| `" + row.field + "` | ")
        .append(word_of(row.root))
        .append(" | ")
        .append(word_of(row.permission))
        .append(" | " + field.senders + " | `" + field.type + "` " + field.description + " |\n");
  }
  return text;
}

std::string route_table() {
  std::string text = "| Route | Who may | For |\n|---|---|---|\n";
  for (const auto& route : route_list()) {
    text.append("| `").append(route.method).append(" ").append(route.pattern).append("` | ");
    text.append(route.callers).append(" | ").append(route.purpose).append(" |\n");
  }
  return text;
}

TEST(ControlPlaneDocs, ListOperationsAndRoutes) {
  with_graphql([](GraphqlFixture& fixture) -> Task<> {
    test::expect_docs_part(kPage, "operations", operations(fixture.rows));
    test::expect_docs_part(kPage, "routes", route_table());
    co_return;
  });
}

TEST(ControlPlaneDocs, EveryRouteIsListed) {
  with_whole_port([](WholePort& port) -> Task<> {
    std::set<std::string> served;
    for (const auto& route : port.routes()) {
      // These answer 404.
      if (!route.pattern.ends_with("/{rest...}")) served.insert(route.method + " " + route.pattern);
    }
    std::set<std::string> listed;
    for (const auto& route : route_list()) {
      listed.insert(std::string(route.method) + " " + std::string(route.pattern));
    }
    EXPECT_EQ(listed, served);
    co_return;
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
