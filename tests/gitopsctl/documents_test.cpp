#include "gitopsctl/documents.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "common/graphql/parser.hpp"
#include "common/graphql/schema.hpp"
#include "common/graphql/validator.hpp"
#include "support/process.hpp"

namespace gitops::ctl {
namespace {

std::unique_ptr<graphql::Schema> schema_of(const std::string& app) {
  return graphql::Schema::parse(
             test::read_file(std::string(GITOPS_SOURCE_DIR) + "/apps/" + app + "/schema.graphql"))
      .value();
}

TEST(Documents, FitTheSchemasOfTheirServers) {
  const auto control_plane = schema_of("control-plane");
  const auto app_proxy = schema_of("app-proxy");
  for (const Document& document : kDocuments) {
    const auto parsed = graphql::parse(std::string(document.text));
    ASSERT_TRUE(parsed) << document.text;
    const auto& schema = document.peer == Document::Peer::control_plane ? control_plane : app_proxy;
    for (const auto& error : graphql::validate(*schema, **parsed)) {
      ADD_FAILURE() << error.message << "\n" << document.text;
    }
  }
}

}  // namespace
}  // namespace gitops::ctl
