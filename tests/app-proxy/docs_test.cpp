// docs/reference/app-proxy/api.md lists the operations and routes that there are. GITOPS_WRITE_DOCS=1 makes it so.
#include <filesystem>

#include <gtest/gtest.h>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "support/docs_part.hpp"

namespace gitops::app_proxy {
namespace {

const std::filesystem::path kPage =
    std::filesystem::path(GITOPS_SOURCE_DIR) / "docs" / "reference" / "app-proxy" / "api.md";

std::string_view word_of(Permission permission) {
  switch (permission) {
    case Permission::anyone:
      return "anyone";
    case Permission::user:
      return "user";
    case Permission::admin:
      return "admin";
  }
  return {};
}

std::string operations() {
  const VersionInfo version;
  std::string text = "| Field | Under | Who |\n|---|---|---|\n";
  for (const FieldRow& row : table({.version = version})) {
    text.append("| `" + row.field + "` | ")
        .append(row.root == RootType::query      ? "Query"
                : row.root == RootType::mutation ? "Mutation"
                                                 : "Subscription")
        .append(" | ")
        .append(word_of(row.permission))
        .append(" |\n");
  }
  return text;
}

std::string route_table() {
  std::string text = "| Route | For |\n|---|---|\n";
  for (const auto& [method, path, purpose] : route_list()) {
    text += "| `" + method + " " + path + "` | " + purpose + " |\n";
  }
  return text;
}

TEST(AppProxyDocs, ListOperationsAndRoutes) {
  test::expect_docs_part(kPage, "operations", operations());
  test::expect_docs_part(kPage, "routes", route_table());
}

}  // namespace
}  // namespace gitops::app_proxy
