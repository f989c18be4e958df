#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// Section 5.5 of the specification: fragments. A suite for each rule, with its number. The expected
// errors are those of the reference implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Section 5.5.1.1.
TEST(FragmentNameUniqueness, AcceptsDifferentNames) {
  EXPECT_THAT(errors("{ dog { ...A ...B } } fragment A on Dog { name } fragment B on Dog { age }"),
              IsEmpty());
}

TEST(FragmentNameUniqueness, RefusesANameTwice) {
  EXPECT_THAT(errors("{ dog { ...A } } fragment A on Dog { name } fragment A on Dog { age }"),
              ElementsAre("There can be only one fragment named \"A\". (1:27 1:54)"));
}

// Section 5.5.1.2.
TEST(FragmentSpreadTypeExistence, AcceptsAKnownType) {
  EXPECT_THAT(errors("{ pet { ... on Named { name } } }"), IsEmpty());
}

TEST(FragmentSpreadTypeExistence, RefusesAnUnknownOne) {
  EXPECT_THAT(errors("{ pet { ... on Dogg { name } } }"),
              ElementsAre("Unknown type \"Dogg\". Did you mean \"Dog\"? (1:16)"));
  EXPECT_THAT(errors("{ pet { ...F } } fragment F on Dogg { name }"),
              ElementsAre("Unknown type \"Dogg\". Did you mean \"Dog\"? (1:32)"));
}

TEST(FragmentSpreadTypeExistence, LooksAtVariablesToo) {
  EXPECT_THAT(errors("query ($w: [Wher!]!) { find(id: 1, where: $w) { name } }"),
              ElementsAre("Unknown type \"Wher\". Did you mean \"Where\"? (1:13)"));
}

// Section 5.5.1.3.
TEST(FragmentsOnCompositeTypes, AcceptsObjectsInterfacesAndUnions) {
  EXPECT_THAT(
      errors("{ pet { ... on Dog { name } ... on Pet { __typename } ... on Named { name } } }"),
      IsEmpty());
}

TEST(FragmentsOnCompositeTypes, RefusesOthers) {
  EXPECT_THAT(
      errors("{ dog { ...F } } fragment F on Size { x }"),
      ElementsAre("Fragment \"F\" cannot condition on non composite type \"Size\". (1:32)"));
  EXPECT_THAT(errors("{ dog { ... on Where { name } } }"),
              ElementsAre("Fragment cannot condition on non composite type \"Where\". (1:16)"));
}

// Section 5.5.1.4.
TEST(FragmentsMustBeUsed, AcceptsUseThroughOtherFragments) {
  EXPECT_THAT(errors("{ dog { ...A } } fragment A on Dog { ...B } fragment B on Dog { name }"),
              IsEmpty());
}

TEST(FragmentsMustBeUsed, RefusesFragmentsThatNoOperationReaches) {
  EXPECT_THAT(
      errors("{ dog { name } } fragment A on Dog { ...B } fragment B on Dog { name }"),
      ElementsAre("Fragment \"A\" is never used. (1:18)", "Fragment \"B\" is never used. (1:45)"));
}

// Section 5.5.2.1.
TEST(FragmentSpreadTargetDefined, AcceptsAKnownFragment) {
  EXPECT_THAT(errors("{ dog { ...A } } fragment A on Dog { name }"), IsEmpty());
}

TEST(FragmentSpreadTargetDefined, RefusesAnUnknownOne) {
  EXPECT_THAT(errors("{ dog { ...a name } }"), ElementsAre("Unknown fragment \"a\". (1:12)"));
}

// Section 5.5.2.2.
TEST(FragmentSpreadsMustNotFormCycles, AcceptsAFragmentOnTwoWays) {
  EXPECT_THAT(errors("{ dog { ...A ...B } } fragment A on Dog { ...B } fragment B on Dog { name }"),
              IsEmpty());
}

TEST(FragmentSpreadsMustNotFormCycles, RefusesAFragmentWithinItself) {
  EXPECT_THAT(errors("{ dog { ...A } } fragment A on Dog { owner { dog { ...A } } }"),
              ElementsAre("Cannot spread fragment \"A\" within itself. (1:52)"));
}

TEST(FragmentSpreadsMustNotFormCycles, NamesTheFragmentsOfACycle) {
  EXPECT_THAT(
      errors("{ dog { ...A } } fragment A on Dog { ...B } fragment B on Dog { ...C } fragment C on "
             "Dog { ...A }"),
      ElementsAre("Cannot spread fragment \"A\" within itself via \"B\", \"C\". (1:38 1:65 1:92)"));
}

// Section 5.5.2.3.
TEST(FragmentSpreadIsPossible, AcceptsTypesThatOverlap) {
  EXPECT_THAT(errors("{ pet { ...F } named { ... on Cat { name } } } fragment F on Named { name }"),
              IsEmpty());
}

TEST(FragmentSpreadIsPossible, RefusesOthers) {
  EXPECT_THAT(errors("{ dog { ...F } } fragment F on Cat { name }"),
              ElementsAre("Fragment \"F\" cannot be spread here as objects of type \"Dog\" can "
                          "never be of type \"Cat\". (1:9)"));
  EXPECT_THAT(errors("{ pet { ... on Person { name } } }"),
              ElementsAre("Fragment cannot be spread here as objects of type \"Pet\" can never be "
                          "of type \"Person\". (1:9)"));
}

}  // namespace
}  // namespace gitops::graphql
