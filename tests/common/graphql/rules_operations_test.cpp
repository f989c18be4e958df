#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// Sections 5.1 and 5.2 of the specification: documents and operations. A suite for each rule, with
// its number. The expected errors are those of the reference implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Section 5.1.1.
TEST(ExecutableDefinitions, AcceptsOperationsAndFragments) {
  EXPECT_THAT(errors("{ dog { ...F } } fragment F on Dog { name }"), IsEmpty());
}

TEST(ExecutableDefinitions, RefusesTypes) {
  EXPECT_THAT(
      errors("{ dog { name } } type Cow { name: String } extend type Dog { color: String }"),
      ElementsAre("The \"Cow\" definition is not executable. (1:18)",
                  "The \"Dog\" definition is not executable. (1:44)"));
  EXPECT_THAT(errors("schema { query: Query }"),
              ElementsAre("The schema definition is not executable. (1:1)"));
}

TEST(ExecutableDefinitions, IsTheOnlyErrorThen) {
  EXPECT_THAT(errors("type T { a: Int } { nonsense }"),
              ElementsAre("The \"T\" definition is not executable. (1:1)"));
}

// Section 5.2.1.1.
TEST(OperationNameUniqueness, AcceptsDifferentNames) {
  EXPECT_THAT(errors("query A { dog { name } } mutation B { rename(name: \"x\") { name } }"),
              IsEmpty());
}

TEST(OperationNameUniqueness, RefusesANameOfAnotherKindToo) {
  EXPECT_THAT(errors("query A { dog { name } } mutation A { rename(name: \"x\") { name } }"),
              ElementsAre("There can be only one operation named \"A\". (1:7 1:35)"));
}

// Section 5.2.2.1.
TEST(LoneAnonymousOperation, AcceptsFragmentsBesideIt) {
  EXPECT_THAT(errors("{ ...F } fragment F on Query { dog { name } }"), IsEmpty());
}

TEST(LoneAnonymousOperation, RefusesOtherOperations) {
  EXPECT_THAT(errors("{ dog { name } } { dog { age } }"),
              ElementsAre("This anonymous operation must be the only defined operation. (1:1)",
                          "This anonymous operation must be the only defined operation. (1:18)"));
  EXPECT_THAT(errors("query A { dog { name } } { dog { age } }"),
              ElementsAre("This anonymous operation must be the only defined operation. (1:26)"));
}

// Section 5.2.3.1.
TEST(SingleRootField, AcceptsOneField) {
  EXPECT_THAT(errors("subscription S { ...F } fragment F on Subscription { barks ... { barks } }"),
              IsEmpty());
  EXPECT_THAT(errors("subscription { barks wags @skip(if: true) }"), IsEmpty());
}

TEST(SingleRootField, RefusesMoreAlsoInFragments) {
  EXPECT_THAT(errors("subscription S { barks ...F } fragment F on Subscription { wags }"),
              ElementsAre("Subscription \"S\" must select only one top level field. (1:60)"));
  EXPECT_THAT(errors("subscription { a: barks b: barks }"),
              ElementsAre("Anonymous Subscription must select only one top level field. (1:25)"));
}

TEST(SingleRootField, RefusesIntrospection) {
  EXPECT_THAT(
      errors("subscription { __typename }"),
      ElementsAre(
          "Anonymous Subscription must not select an introspection top level field. (1:16)"));
}

TEST(SingleRootField, TellsBothErrors) {
  EXPECT_THAT(
      errors("subscription { barks wags __typename }"),
      ElementsAre("Anonymous Subscription must select only one top level field. (1:22 1:27)",
                  "Anonymous Subscription must not select an introspection top level field. "
                  "(1:27)"));
}

}  // namespace
}  // namespace gitops::graphql
