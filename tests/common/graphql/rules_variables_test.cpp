#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// Section 5.8 of the specification: variables. And the depth of introspection. A suite for each
// rule, with its number. The expected errors are those of the reference implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Section 5.8.1.
TEST(VariableUniqueness, AcceptsANameOfAnotherOperation) {
  EXPECT_THAT(
      errors(
          "query A($i: ID!) { find(id: $i) { name } } query B($i: ID!) { find(id: $i) { age } }"),
      IsEmpty());
}

TEST(VariableUniqueness, RefusesANameTwice) {
  EXPECT_THAT(errors("query A($i: ID!, $i: ID!, $i: ID!) { find(id: $i) { name } }"),
              ElementsAre("There can be only one variable named \"$i\". (1:10 1:19 1:28)"));
}

// Section 5.8.2.
TEST(VariablesAreInputTypes, AcceptsInputTypes) {
  EXPECT_THAT(
      errors("query ($i: ID!, $w: Where, $l: Int) { find(id: $i, where: $w, limit: $l) { name } }"),
      IsEmpty());
}

TEST(VariablesAreInputTypes, RefusesOthers) {
  EXPECT_THAT(errors("query ($i: [Dog!]!) { find(id: $i) { name } }"),
              ElementsAre("Variable \"$i\" cannot be non-input type \"[Dog!]!\". (1:12)",
                          "Variable \"$i\" of type \"[Dog!]!\" used in position expecting type "
                          "\"ID!\". (1:8 1:32)"));
}

// Section 5.8.3.
TEST(AllVariableUsesDefined, AcceptsAUseInAFragment) {
  EXPECT_THAT(errors("query ($a: Int) { dog { ...F } } fragment F on Dog { loud(at: $a) }"),
              IsEmpty());
}

TEST(AllVariableUsesDefined, RefusesAUseWithoutADefinition) {
  EXPECT_THAT(errors("query Q { dog { ...F } } fragment F on Dog { loud(at: $a) }"),
              ElementsAre("Variable \"$a\" is not defined by operation \"Q\". (1:55 1:1)"));
  EXPECT_THAT(errors("{ find(id: 1, where: {name: $n}) { name } }"),
              ElementsAre("Variable \"$n\" is not defined. (1:29 1:1)"));
}

TEST(AllVariableUsesDefined, LooksAtEachOperation) {
  EXPECT_THAT(errors("query A($a: Int) { dog { ...F } } query B { dog { ...F } } fragment F on Dog "
                     "{ loud(at: $a) }"),
              ElementsAre("Variable \"$a\" is not defined by operation \"B\". (1:89 1:35)"));
}

// Section 5.8.4.
TEST(AllVariablesUsed, AcceptsAUseInAFragment) {
  EXPECT_THAT(errors("query ($a: Int) { dog { ...F } } fragment F on Dog { loud(at: $a) }"),
              IsEmpty());
}

TEST(AllVariablesUsed, RefusesADefinitionWithoutAUse) {
  EXPECT_THAT(errors("query Q($a: Int, $b: Int) { dog { loud(at: $a) } }"),
              ElementsAre("Variable \"$b\" is never used in operation \"Q\". (1:18)"));
  EXPECT_THAT(errors("query ($b: Int) { dog { name } }"),
              ElementsAre("Variable \"$b\" is never used. (1:8)"));
}

// Section 5.8.5.
TEST(AllVariableUsagesAreAllowed, AcceptsTypesThatFit) {
  EXPECT_THAT(
      errors("query ($i: ID!, $n: String = \"x\") { find(id: $i, where: {name: $n}) { name } }"),
      IsEmpty());
  EXPECT_THAT(errors("query ($l: Int) { find(id: 1, limit: $l) { name } }"), IsEmpty());
}

TEST(AllVariableUsagesAreAllowed, RefusesOthers) {
  EXPECT_THAT(
      errors("query ($i: ID, $n: Int!) { find(id: $i, where: {name: $n}) { name } }"),
      ElementsAre(
          "Variable \"$i\" of type \"ID\" used in position expecting type \"ID!\". (1:8 1:37)",
          "Variable \"$n\" of type \"Int!\" used in position expecting type \"String!\". (1:16 "
          "1:55)"));
  EXPECT_THAT(errors("query ($a: String) { dog { ...F } } fragment F on Dog { loud(at: $a) }"),
              ElementsAre("Variable \"$a\" of type \"String\" used in position expecting type "
                          "\"Int\". (1:8 1:66)"));
}

// A rule of the reference implementation.
TEST(IntrospectionDepth, AcceptsTwoListsWithinEachOther) {
  EXPECT_THAT(errors("{ __schema { types { fields { type { fields { name } } } } } }"), IsEmpty());
}

TEST(IntrospectionDepth, RefusesThree) {
  EXPECT_THAT(
      errors("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"),
      ElementsAre("Maximum introspection depth exceeded (1:3)"));
  EXPECT_THAT(errors("{ __type(name: \"Dog\") { ...F } } fragment F on __Type { fields { type { "
                     "interfaces { possibleTypes { name } } } } }"),
              ElementsAre("Maximum introspection depth exceeded (1:3)"));
}

}  // namespace
}  // namespace gitops::graphql
