#include <gmock/gmock.h>

#include "common/graphql/engine.hpp"
#include "support/run_coro.hpp"

namespace gitops::graphql {
namespace {

std::string ask(const std::string& query, bool allowed = true) {
  Resolvers to;
  to.query({{"one", [] { return 1; }}});
  auto engine = Engine::make(R"(
    type Query { one(a: Int = 2, old: Int @deprecated): Int "Is gone." two: Int @deprecated(reason: "one") }
    extend type Query { three(in: In): Kind! }
    input In { list: [String!]! = ["x"] }
    enum Kind { A B @deprecated }
  )",
                             [&] {
                               to.query({{"two", [] { return 2; }}, {"three", [] { return "A"; }}});
                               return to;
                             }(),
                             {.allows_introspection = allowed});
  if (!engine) return engine.error().message;
  std::string answer;
  test::run_coro([&]() -> Task<> {
    auto prepared = (*engine)->prepare({query}, Context());
    answer = prepared ? co_await (*prepared)->run() : prepared.error().body();
  });
  return answer;
}

TEST(GraphqlIntrospection, DescribesTypes) {
  EXPECT_EQ(
      ask("{ __type(name: \"Query\") { kind fields { name args { name defaultValue } type { "
          "kind name ofType { name } } } } }"),
      R"({"data":{"__type":{"kind":"OBJECT","fields":[{"name":"one","args":[{"name":"a","defaultValue":"2"}],"type":{"kind":"SCALAR","name":"Int","ofType":null}},)"
      R"({"name":"three","args":[{"name":"in","defaultValue":null}],"type":{"kind":"NON_NULL","name":null,"ofType":{"name":"Kind"}}}]}}})");
  EXPECT_EQ(
      ask("{ __type(name: \"In\") { inputFields { defaultValue } } k: __type(name: \"Kind\") { "
          "enumValues(includeDeprecated: true) { name isDeprecated deprecationReason } } none: "
          "__type(name: \"No\") { name } }"),
      R"({"data":{"__type":{"inputFields":[{"defaultValue":"[\"x\"]"}]},"k":{"enumValues":[{"name":"A","isDeprecated":false,"deprecationReason":null},{"name":"B","isDeprecated":true,"deprecationReason":"No longer supported"}]},"none":null}})");
}

// Of the specification of September 2025; editors ask for it.
TEST(GraphqlIntrospection, TellsThatNoInputIsOneOfSeveral) {
  EXPECT_EQ(
      ask("{ in: __type(name: \"In\") { isOneOf } kind: __type(name: \"Kind\") { isOneOf } }"),
      R"({"data":{"in":{"isOneOf":false},"kind":{"isOneOf":null}}})");
}

TEST(GraphqlIntrospection, DescribesTheSchema) {
  EXPECT_EQ(
      ask("{ __schema { queryType { name } mutationType { name } directives { name } } }"),
      R"({"data":{"__schema":{"queryType":{"name":"Query"},"mutationType":null,"directives":[{"name":"include"},{"name":"skip"},{"name":"deprecated"},{"name":"specifiedBy"}]}}})");
}

// Attack case 32: nothing of the schema is told, neither by introspection nor by suggestions.
TEST(GraphqlIntrospection, Ac32CanBeSwitchedOff) {
  for (const char* query : {"{ __schema { queryType { name } } }",
                            "{ one ...F } fragment F on Query { __type(name: \"In\") { name } }"}) {
    EXPECT_EQ(
        ask(query, false),
        R"({"errors":[{"message":"This server does not show its schema.","extensions":{"code":"INTROSPECTION_DISABLED","statusCode":400}}]})");
  }
  EXPECT_EQ(
      ask("{ on }", false),
      R"({"errors":[{"message":"Cannot query field \"on\" on type \"Query\".","locations":[{"line":1,"column":3}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED","statusCode":400}}]})");
  EXPECT_EQ(ask("{ __typename one }", false), R"({"data":{"__typename":"Query","one":1}})");
}

// Attack case 32: introspection that multiplies through its own lists.
TEST(GraphqlIntrospection, Ac32NestedListsOfTheSchemaAreRefused) {
  EXPECT_THAT(
      ask("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"),
      testing::HasSubstr("Maximum introspection depth exceeded"));
}

}  // namespace
}  // namespace gitops::graphql
