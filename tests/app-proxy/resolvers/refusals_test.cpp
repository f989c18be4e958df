// How a caller is told that it may not do something.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app-proxy/resolvers/table.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/response.hpp"
#include "support/run_coro.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

// Public clients compare the second form, which hides whether there is such an object.
TEST(Refusals, AFieldForAdministratorsSaysSoAndAnObjectIsHidden) {
  test::run_coro([]() -> Task<> {
    Audit audit("/dev/null");
    const std::vector<FieldRow> rows{
        read("admins", Permission::admin, [] { return 1; }),
        read("object", Permission::user,
             [] { return Result<int>(fail(ErrorCode::forbidden, "no such object")); }),
        change("change", Permission::admin, {}, [] { return 2; })};
    const auto engine = graphql::Engine::make(
        "type Query { admins: Int object: Int } type Mutation { change: Int }",
        guarded(rows, audit));
    CO_ASSERT_OK(engine);
    Caller bob{.user = std::make_shared<User>(User{.id = "u-bob"})};
    const auto first_error = [&](std::string_view query) -> Task<Json> {
      auto prepared = (*engine)->prepare({.query = query}, graphql::Context(bob));
      const Json answer = Json::parse(co_await (*prepared)->run());
      Json error = answer["errors"][0];
      error.erase("locations");
      error.erase("path");
      co_return error;
    };
    const Json for_admins{{"message", "only an administrator of the account may do this"},
                          {"extensions", {{"code", "FORBIDDEN"}, {"statusCode", 403}}}};
    EXPECT_EQ(co_await first_error("{ admins }"), for_admins);
    EXPECT_EQ(co_await first_error("mutation { change }"), for_admins);
    EXPECT_EQ(co_await first_error("{ object }"),
              (Json{{"message", "Forbidden"}, {"extensions", 403}}));
  });
}

// A server behind the runtime has no say in what is shown.
TEST(Refusals, WordsOfPeersShowNothing) {
  for (const char* reason : {"", "Forbidden", "forbidden", "FORBIDDEN"}) {
    const auto shown = graphql::present(
        {.code = ErrorCode::forbidden, .message = "secrets is forbidden", .reason = reason});
    EXPECT_EQ(shown.message, "Forbidden") << reason;
    EXPECT_EQ(shown.extensions, "403") << reason;
  }
}

}  // namespace
}  // namespace gitops::app_proxy
