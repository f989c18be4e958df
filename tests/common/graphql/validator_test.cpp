#include "common/graphql/validator.hpp"

#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// The rules together: the order of their errors, leniency, limits. rules_*_test.cpp has them one by
// one; tests/peers/graphql_js_test.cpp compares thousands of documents with the reference
// implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GraphqlValidator, AcceptsWhatIsValid) {
  EXPECT_THAT(errors(R"(
    query Q($id: ID!, $w: Where, $on: Boolean! = true) {
      find(id: $id, where: $w) { ...F @include(if: $on) owner { dog { name } } }
      pets { __typename ... on Dog { age } ... on Cat { years: age } ... on Named { name } }
      __schema { types { name } } __type(name: "Dog") { name }
    }
    fragment F on Named { name @many @many }
  )"),
              IsEmpty());
}

TEST(GraphqlValidator, OrdersErrorsOfFragments) {
  EXPECT_THAT(
      errors("{ dog { ...A ...B ... on Cat { name } ... on Int { x } } } "
             "fragment A on Dog { name ...A } fragment U on Missing { x }"),
      ElementsAre("Unknown fragment \"B\". (1:17)",
                  "Fragment cannot be spread here as objects of type \"Dog\" can never be of "
                  "type \"Cat\". (1:19)",
                  "Fragment cannot condition on non composite type \"Int\". (1:46)",
                  "Cannot spread fragment \"A\" within itself. (1:85)",
                  "Unknown type \"Missing\". (1:106)", "Fragment \"U\" is never used. (1:92)"));
  EXPECT_THAT(errors("{ dog { ...A } } fragment A on Dog { ...B } fragment B on Dog { ...A } "
                     "fragment A on Dog { age }"),
              ElementsAre("Cannot spread fragment \"A\" within itself via \"B\". (1:38 1:65)",
                          "There can be only one fragment named \"A\". (1:27 1:81)",
                          "Fragment \"B\" is never used. (1:45)"));
}

TEST(GraphqlValidator, OrdersErrorsOfArgumentsAndValues) {
  EXPECT_THAT(
      errors(
          "{ find(limt: 1, where: {size: BIG, nme: 1, size: null}) { loud(at: \"x\", at: 1.5) } }"),
      ElementsAre(
          "Unknown argument \"limt\" on field \"Query.find\". Did you mean \"limit\"? (1:8)",
          "Field \"Where.name\" of required type \"String!\" was not provided. (1:24)",
          "Value \"BIG\" does not exist in \"Size\" enum. (1:31)",
          "Field \"nme\" is not defined by type \"Where\". Did you mean \"name\"? (1:36)",
          "There can be only one input field named \"size\". (1:25 1:44)",
          "There can be only one argument named \"at\". (1:64 1:73)",
          "Int cannot represent non-integer value: \"x\" (1:68)",
          "Int cannot represent non-integer value: 1.5 (1:77)",
          "Field \"find\" argument \"id\" of type \"ID!\" is required, but it was not "
          "provided. (1:3)"));
}

TEST(GraphqlValidator, OrdersErrorsOfVariables) {
  EXPECT_THAT(
      errors("query Q($a: Int, $a: Dog, $u: Boolean = 1) { find(id: $a) { loud(at: $b) } }"),
      ElementsAre("There can be only one variable named \"$a\". (1:10 1:19)",
                  "Variable \"$a\" cannot be non-input type \"Dog\". (1:22)",
                  "Boolean cannot represent a non boolean value: 1 (1:41)",
                  "Variable \"$b\" is not defined by operation \"Q\". (1:70 1:1)",
                  "Variable \"$u\" is never used in operation \"Q\". (1:27)",
                  "Variable \"$a\" of type \"Dog\" used in position expecting type \"ID!\". "
                  "(1:18 1:55)"));
}

TEST(GraphqlValidator, OrdersErrorsOfDirectives) {
  EXPECT_THAT(
      errors("query @skip(if: true) { dog @include @once @include(if: 1) { name @many @many } }"),
      ElementsAre("Directive \"@skip\" may not be used on QUERY. (1:7)",
                  "The directive \"@include\" can only be used once at this location. "
                  "(1:29 1:44)",
                  "Directive \"@include\" argument \"if\" of type \"Boolean!\" is required, "
                  "but it was not provided. (1:29)",
                  "Unknown directive \"@once\". (1:38)",
                  "Boolean cannot represent a non boolean value: 1 (1:57)"));
}

TEST(GraphqlValidator, OrdersErrorsOfOperations) {
  EXPECT_THAT(errors("{ dog { age } } query A { dog { age } } query A { dog { age } }"),
              ElementsAre("This anonymous operation must be the only defined operation. (1:1)",
                          "There can be only one operation named \"A\". (1:23 1:47)"));
}

// What real clients send: app-proxy's operations with a nullable variable for a required argument.
TEST(GraphqlValidator, LenientWhereTheValueDecides) {
  const std::string text =
      "mutation M($name: String, $unused: Int) { rename(name: $name) { age } } "
      "fragment U on Dog { age }";
  EXPECT_EQ(errors(text).size(), 3u);
  EXPECT_THAT(errors(text, {.strictness = Strictness::lenient}), IsEmpty());
  EXPECT_THAT(errors("mutation M($name: Int) { rename(name: $name) { age } }",
                     {.strictness = Strictness::lenient}),
              ElementsAre("Variable \"$name\" of type \"Int\" used in position expecting type "
                          "\"String!\". (1:12 1:39)"));
}

TEST(GraphqlValidator, BoundsErrors) {
  std::string text = "{";
  for (int i = 0; i < 200; ++i) text += " x" + std::to_string(i);
  auto found = errors(text + " }");
  EXPECT_EQ(found.size(), 101u);
  EXPECT_EQ(found.back(),
            "Too many validation errors, error limit reached. Validation aborted. ()");
  found = errors("{ " + std::string(5000, 'x') + " }", {.max_message = 100});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_LT(found[0].size(), 120u);
}

// Attack case 32: pairs of fragments that each spread all others.
TEST(GraphqlValidator, Ac32FragmentsThatMultiplyEndTheValidation) {
  std::string text = "{ dog { ...F0 ...F1 } }";
  for (int i = 0; i < 150; ++i) {
    text += " fragment F" + std::to_string(i) + " on Dog { a" + std::to_string(i) + ": name";
    for (int j = 0; j < 150; ++j) text += " ...F" + std::to_string(j);
    text += " }";
  }
  const auto found = errors(text);
  EXPECT_THAT(found, testing::Contains("Validation aborted. ()"));
}

}  // namespace
}  // namespace gitops::graphql
