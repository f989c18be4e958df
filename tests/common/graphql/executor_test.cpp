// The execution of operations by the engine: values and lists, null and errors, abstract types,
// arguments, directives, resolvers that wait, and the order of mutations.
#include <chrono>
#include <optional>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/executor_fixture.hpp"
#include "support/run_coro.hpp"

namespace gitops::graphql {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(GraphqlExecutor, AnswersTheThinnestPath) {
  EXPECT_EQ(run("{ version }"), R"({"data":{"version":"1.0"}})");
}

TEST(GraphqlExecutor, WritesPlainStructsInTheOrderOfTheQuery) {
  EXPECT_EQ(
      run("{ repositories { owner { name } name: name isPrivate stars branches __typename } }"),
      R"({"data":{"repositories":[{"owner":{"name":"Ann \"A\""},"name":"one","isPrivate":true,"stars":5,"branches":["main","dev"],"__typename":"Repository"},)"
      R"({"owner":{"name":"Ann \"A\""},"name":"more","isPrivate":true,"stars":null,"branches":["main","dev"],"__typename":"Repository"}]}})");
}

TEST(GraphqlExecutor, PassesVariablesDefaultsAndDirectives) {
  EXPECT_EQ(run("query($n: String! = \"x\", $no: Boolean!) { repository(name: $n) { name stars "
                "@skip(if: $no) isPrivate @include(if: $no) } repositories(first: 0) { name } }",
                R"({"no": true, "unknown": 1})"),
            R"({"data":{"repository":{"name":"x","isPrivate":true},"repositories":[]}})");
}

TEST(GraphqlExecutor, MergesFieldsAndFragments) {
  EXPECT_EQ(
      run("{ repository(name: \"one\") { ...F owner { __typename } ... { stars } } } "
          "fragment F on Repository { name owner { name } }"),
      R"({"data":{"repository":{"name":"one","owner":{"name":"Ann \"A\"","__typename":"Owner"},"stars":5}}})");
}

TEST(GraphqlExecutor, FindsTheTypeOfAUnion) {
  EXPECT_EQ(
      run("{ both { __typename ... on Owner { name } ... on Team { title } } team { title } }"),
      R"({"data":{"both":[{"__typename":"Owner","name":"o"},{"__typename":"Team","title":"t"}],"team":null}})");
}

TEST(GraphqlExecutor, CutsJsonToWhatIsSelected) {
  EXPECT_EQ(
      run("{ json { title count kind extra parts { title } computed } raw }"),
      R"({"data":{"json":{"title":"T \"x\"","count":3,"kind":"GOOD","extra":{"a": [1, 2]},"parts":[{"title":null},{"title":null}],"computed":"long"},"raw":{"any": ["thing"]}}})");
  const std::string answer = run("{ json { parts { count kind } } }");
  EXPECT_THAT(answer,
              HasSubstr(R"("parts":[{"count":null,"kind":null},{"count":null,"kind":null}])"));
  EXPECT_THAT(
      answer,
      HasSubstr(
          R"({"message":"Int cannot represent non-integer value: 1.5","locations":[{"line":1,"column":18}],"path":["json","parts",0,"count"]})"));
  EXPECT_THAT(answer, HasSubstr(R"(Enum \"Kind\" cannot represent value: \"WORSE\")"));
}

TEST(GraphqlExecutor, ShowsErrorsInTheFormsThatClientsRead) {
  EXPECT_EQ(
      run("{ forbidden }"),
      R"({"data":{"forbidden":null},"errors":[{"message":"Forbidden","locations":[{"line":1,"column":3}],"path":["forbidden"],"extensions":403}]})");
  EXPECT_EQ(
      run("{ a: missing version }"),
      R"({"data":{"a":null,"version":"1.0"},"errors":[{"message":"not there","locations":[{"line":1,"column":3}],"path":["a"],"extensions":{"code":"NOT_FOUND","statusCode":404}}]})");
  const std::string answer = run("{ broken }");
  EXPECT_THAT(answer, HasSubstr("Internal server error"));
  EXPECT_THAT(answer, testing::Not(HasSubstr("secret")));
}

TEST(GraphqlExecutor, NullOfANonNullFieldTakesItsParentAlong) {
  EXPECT_EQ(
      run("{ hard { ok never } version }"),
      R"({"data":{"hard":null,"version":"1.0"},"errors":[{"message":"Cannot return null for non-nullable field Hard.never.","locations":[{"line":1,"column":13}],"path":["hard","never"]}]})");
  EXPECT_THAT(run("{ hard { ok later } version }"),
              HasSubstr(R"({"data":{"hard":null,"version":"1.0"},"errors":[{"message":"gone",)"));
}

// A nullable variable may stand for a required argument, so its value is checked here.
TEST(GraphqlExecutor, RefusesANullForARequiredArgument) {
  const std::string query = "query($n: String) { repository(name: $n) { name } version }";
  EXPECT_THAT(
      run(query, "{\"n\":null}"),
      HasSubstr(
          R"("data":{"repository":null,"version":"1.0"},"errors":[{"message":"Argument \"name\" of non-null type \"String!\" must not be null.","locations":[{"line":1,"column":38}],"path":["repository"])"));
  EXPECT_THAT(run(query), HasSubstr("which was not provided a runtime value."));
  EXPECT_THAT(run(query, "{\"n\":\"one\"}"), HasSubstr(R"({"repository":{"name":"one"})"));
}

TEST(GraphqlExecutor, FieldsOfAQueryWaitSideBySide) {
  test::run_in_test_time([]() -> Task<> {
    const auto begin = Clock::now();
    auto prepared =
        engine().prepare({"{ a: slow(ms: 30, text: \"x\") version b: slow(ms: 20, text: \"y\") }"},
                         Context(session));
    CO_ASSERT_TRUE(prepared.has_value());
    EXPECT_EQ(co_await (*prepared)->run(), R"({"data":{"a":"x","version":"1.0","b":"y"}})");
    EXPECT_LT(Clock::now() - begin, milliseconds(45));
  });
}

TEST(GraphqlExecutor, ItemsOfAListWaitSideBySide) {
  test::run_in_test_time([]() -> Task<> {
    const auto begin = Clock::now();
    auto prepared =
        engine().prepare({"{ repositories(first: 32) { slowName } }"}, Context(session));
    CO_ASSERT_TRUE(prepared.has_value());
    const std::string answer = co_await (*prepared)->run();
    EXPECT_THAT(answer, testing::StartsWith(
                            R"({"data":{"repositories":[{"slowName":"one"},{"slowName":"more"},)"));
    EXPECT_LT(Clock::now() - begin, milliseconds(45));  // two rounds of 16
  });
}

TEST(GraphqlExecutor, FieldsOfAMutationRunOneAfterTheOther) {
  session.log.clear();
  EXPECT_EQ(
      run("mutation { a: add(text: \"1\") b: add(text: \"2\") fail remove(name: \"x\") }"),
      R"({"data":{"a":2,"b":4,"fail":null,"remove":null},"errors":[{"message":"taken","locations":[{"line":1,"column":48}],"path":["fail"],"extensions":{"code":"CONFLICT","statusCode":409}}]})");
  EXPECT_THAT(session.log, testing::ElementsAre("begin 1", "end 1", "begin 2", "end 2"));
}

TEST(GraphqlExecutor, EndsAtTheDeadline) {
  EXPECT_EQ(
      run("{ slow(ms: 10000, text: \"x\") }", {}, deadline_after(milliseconds(50))),
      R"({"errors":[{"message":"The operation took longer than this server allows.","extensions":{"code":"TIMEOUT","statusCode":504}}]})");
}

TEST(GraphqlExecutor, ACancelledOperationEndsItsResolvers) {
  test::run_in_test_time([]() -> Task<> {
    TaskGroup group(co_await asio::this_coro::executor);
    bool answered = false;
    group.spawn("operation", [&]() -> Task<> {
      auto prepared =
          engine().prepare({"{ a: slow(ms: 60000, text: \"x\") b: slow(ms: 60000, text: \"y\") }"},
                           Context(session));
      (void)co_await (*prepared)->run();
      answered = true;
    });
    co_await sleep_for(milliseconds(10));
    const auto begin = Clock::now();
    group.cancel();
    co_await group.join();
    EXPECT_FALSE(answered);
    EXPECT_LT(Clock::now() - begin, milliseconds(10));
  });
}

TEST(GraphqlExecutor, PassesContext) {
  session.user = "ann";
  EXPECT_EQ(run("{ whoAmI }"), R"({"data":{"whoAmI":"ann"}})");
}

TEST(GraphqlExecutor, MapsEventsToAnswers) {
  test::run_in_test_time([]() -> Task<> {
    auto prepared = engine().prepare({"subscription { n: ticks(upTo: 2) }"}, Context(session));
    CO_ASSERT_TRUE(prepared.has_value());
    CO_ASSERT_TRUE((co_await (*prepared)->subscribe()).has_value());
    EXPECT_EQ(co_await (*prepared)->next(), R"({"data":{"n":1}})");
    EXPECT_EQ(co_await (*prepared)->next(), R"({"data":{"n":2}})");
    EXPECT_EQ(co_await (*prepared)->next(), std::nullopt);

    auto failing = engine().prepare({"subscription { fails }"}, Context(session));
    CO_ASSERT_TRUE(failing.has_value());
    const auto refused = co_await (*failing)->subscribe();
    CO_ASSERT_TRUE(!refused.has_value());
    EXPECT_EQ(refused.error()[0].message, "no source");
    EXPECT_EQ(refused.error()[0].path, "[\"fails\"]");
  });
}

TEST(GraphqlExecutor, RefusesTablesThatDoNotFitTheSchema) {
  Resolvers to = resolvers();
  to.type<Owner>("Owner", {{"nick", &Owner::name}});
  to.type<Owner>("Nobody", {{"name", &Owner::name}});
  const auto made = Engine::make(std::string(kSchema) + " extend type Team { size: Int }", to);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("There is no field \"Owner.nick\"."));
  EXPECT_THAT(made.error().message, HasSubstr("There is no object type \"Nobody\"."));
  EXPECT_THAT(made.error().message, HasSubstr("The field \"Team.size\" has no resolver."));
}

}  // namespace
}  // namespace gitops::graphql
