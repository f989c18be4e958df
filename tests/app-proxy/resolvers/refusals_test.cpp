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

// The values of the chart do not have the variable of the program.
TEST(Refusals, ARuntimeThatMayNotActSaysByWhichValueItMay) {
  const auto error = not_available(Feature::applications);
  EXPECT_TRUE(error.message.contains("app-proxy.actions.enabled")) << error.message;
}

struct Clones {
  int count = 3;
};
using ClonesPart = FeaturePart<Feature::commits, Clones>;

// A resolver takes its parts by reference, so it must not be called without them.
TEST(Refusals, AFieldWhoseFeatureIsMissingSaysWhatIsMissing) {
  test::run_coro([]() -> Task<> {
    Audit audit("/dev/null");
    Clones clones;
    const auto count = [](Clones& of, graphql::Call&) { return of.count; };
    const auto is_there = [](ClonesPart part, graphql::Call&) { return static_cast<bool>(part); };
    const std::vector<FieldRow> rows{
        read("there", Permission::user, bound(count, ClonesPart(&clones))),
        read("missing", Permission::user, bound(count, ClonesPart())),
        read("forAdmins", Permission::admin, bound(count, ClonesPart())),
        read("without", Permission::user, bound(is_there, if_there(ClonesPart()))),
        change("change", Permission::user, {}, bound(count, ClonesPart()))};
    EXPECT_EQ(rows[0].needs, std::vector{Feature::commits});
    EXPECT_EQ(rows[1].needs, std::vector{Feature::commits});
    EXPECT_TRUE(rows[3].needs.empty());
    const auto engine = graphql::Engine::make(
        "type Query { there: Int missing: Int forAdmins: Int without: Boolean } "
        "type Mutation { change: Int }",
        guarded(rows, audit));
    CO_ASSERT_OK(engine);
    Caller bob{.user = std::make_shared<User>(User{.id = "u-bob"})};
    const auto ask = [&](std::string_view query) -> Task<Json> {
      auto prepared = (*engine)->prepare({.query = query}, graphql::Context(bob));
      co_return Json::parse(co_await (*prepared)->run());
    };
    const auto present = co_await ask("{ there without }");
    EXPECT_EQ(present["data"], (Json{{"there", 3}, {"without", false}}));
    for (const char* query : {"{ missing }", "mutation { change }"}) {
      const auto absent = co_await ask(query);
      EXPECT_EQ(absent["errors"][0]["message"],
                "the runtime has no folder for clones; see its log");
      EXPECT_EQ(absent["errors"][0]["extensions"]["code"], "UNAVAILABLE");
    }
    const auto refused = co_await ask("{ forAdmins }");
    EXPECT_EQ(refused["errors"][0]["message"], "only an administrator of the account may do this");
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
