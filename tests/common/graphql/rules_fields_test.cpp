#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// Sections 5.3 and 5.4 of the specification: fields and arguments. A suite for each rule, with its
// number. The expected errors are those of the reference implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Section 5.3.1.
TEST(FieldSelections, AcceptsFieldsOfTheType) {
  EXPECT_THAT(errors("{ dog { name __typename } pet { __typename } named { name } }"), IsEmpty());
}

TEST(FieldSelections, RefusesFieldsOfASubtype) {
  EXPECT_THAT(errors("{ named { age } }"),
              ElementsAre("Cannot query field \"age\" on type \"Named\". Did you mean to use an "
                          "inline fragment on \"Cat\" or \"Dog\"? (1:11)"));
}

TEST(FieldSelections, LooksIntoFragmentsAndNotBelowUnknownFields) {
  EXPECT_THAT(errors("{ dog { ...F } } fragment F on Dog { bark { loud } }"),
              ElementsAre("Cannot query field \"bark\" on type \"Dog\". (1:38)"));
  EXPECT_THAT(
      errors("{ cow { x { y } } }"),
      ElementsAre("Cannot query field \"cow\" on type \"Query\". Did you mean \"dog\"? (1:3)"));
}

TEST(FieldSelections, SuggestsNames) {
  EXPECT_THAT(
      errors("{ dog { nam } pet { name } dog2 }"),
      ElementsAre("Cannot query field \"nam\" on type \"Dog\". Did you mean \"name\"? (1:9)",
                  "Cannot query field \"name\" on type \"Pet\". Did you mean to use an "
                  "inline fragment on \"Named\", \"Cat\", or \"Dog\"? (1:21)",
                  "Cannot query field \"dog2\" on type \"Query\". Did you mean \"dog\"? (1:28)"));
  EXPECT_THAT(errors("{ dog { nam } }", {.hides_names = true}),
              ElementsAre("Cannot query field \"nam\" on type \"Dog\". (1:9)"));
}

// Section 5.3.2.
TEST(FieldSelectionMerging, AcceptsTheSameFieldTwice) {
  EXPECT_THAT(errors("{ dog { name name x: age x: age loud(at: 1) loud(at: 1) } }"), IsEmpty());
}

TEST(FieldSelectionMerging, AcceptsDifferentFieldsOfOneTypeInObjectsThatNeverMeet) {
  EXPECT_THAT(errors("{ pet { ... on Dog { x: name } ... on Cat { x: name y: lives } } }"),
              IsEmpty());
}

TEST(FieldSelectionMerging, RefusesDifferentTypesInThem) {
  EXPECT_THAT(
      errors("{ pet { ... on Dog { x: name } ... on Cat { x: lives } } }"),
      ElementsAre(
          "Fields \"x\" conflict because they return conflicting types \"String\" and \"Int\". Use "
          "different aliases on the fields to fetch both if this was intentional. (1:22 1:45)"));
}

TEST(FieldSelectionMerging, NamesTheWayToAConflictBelow) {
  EXPECT_THAT(
      errors("{ dog { owner { x: name } } dog { owner { x: dog { name } } } }"),
      ElementsAre(
          "Fields \"dog\" conflict because subfields \"owner\" conflict because subfields \"x\" "
          "conflict because \"name\" and \"dog\" are different fields. Use different aliases on "
          "the fields to fetch both if this was intentional. (1:3 1:9 1:17 1:29 1:35 1:43)"));
}

TEST(FieldSelectionMerging, RefusesOtherFieldsArgumentsAndTypes) {
  EXPECT_THAT(
      errors("{ dog { x: name x: age } dog { loud(at: 1) ...A } } fragment A on Dog { loud }"),
      ElementsAre(
          "Fields \"x\" conflict because \"name\" and \"age\" are different fields. Use "
          "different aliases on the fields to fetch both if this was intentional. (1:9 1:17)",
          "Fields \"loud\" conflict because they have differing arguments. Use different "
          "aliases on the fields to fetch both if this was intentional. (1:32 1:73)"));
  EXPECT_THAT(
      errors("{ pet { ... on Dog { age } ... on Cat { age } } }"),
      ElementsAre("Fields \"age\" conflict because they return conflicting types \"Int\" and "
                  "\"String\". Use different aliases on the fields to fetch both if this was "
                  "intentional. (1:22 1:41)"));
}

// Section 5.3.3.
TEST(LeafFieldSelections, RefusesSelectionsOfAScalar) {
  EXPECT_THAT(
      errors("{ dog { age { x } } }"),
      ElementsAre(
          "Field \"age\" must not have a selection since type \"Int\" has no subfields. (1:13)"));
}

TEST(LeafFieldSelections, RefusesAnObjectWithoutSelections) {
  EXPECT_THAT(errors("{ named dog { owner } }"),
              ElementsAre("Field \"named\" of type \"Named\" must have a selection of subfields. "
                          "Did you mean \"named { ... }\"? (1:3)",
                          "Field \"owner\" of type \"Person\" must have a selection of subfields. "
                          "Did you mean \"owner { ... }\"? (1:15)"));
}

TEST(LeafFieldSelections, RefusesBothInOneDocument) {
  EXPECT_THAT(
      errors("{ dog dog { name { x } } }"),
      ElementsAre("Field \"dog\" of type \"Dog\" must have a selection of subfields. Did you "
                  "mean \"dog { ... }\"? (1:3)",
                  "Field \"name\" must not have a selection since type \"String\" has no "
                  "subfields. (1:18)"));
}

// Section 5.4.1.
TEST(ArgumentNames, AcceptsDefinedArguments) {
  EXPECT_THAT(errors("{ find(id: 1, limit: 2) { loud(at: 1) } }"), IsEmpty());
}

TEST(ArgumentNames, RefusesOthersOfAField) {
  EXPECT_THAT(
      errors("{ find(id: 1, wher: null) { name } }"),
      ElementsAre(
          "Unknown argument \"wher\" on field \"Query.find\". Did you mean \"where\"? (1:15)"));
  EXPECT_THAT(errors("{ dog { __typename(x: 1) } }"),
              ElementsAre("Unknown argument \"x\" on field \"Dog.__typename\". (1:20)"));
}

TEST(ArgumentNames, RefusesOthersOfADirective) {
  EXPECT_THAT(
      errors("{ dog @skip(if: true, iff: 1) { name } }"),
      ElementsAre("Unknown argument \"iff\" on directive \"@skip\". Did you mean \"if\"? (1:23)"));
}

// Section 5.4.2.
TEST(ArgumentUniqueness, RefusesAnArgumentOfAFieldTwice) {
  EXPECT_THAT(errors("{ find(id: 1, limit: 1, id: 2, id: 3) { name } }"),
              ElementsAre("There can be only one argument named \"id\". (1:8 1:25 1:32)"));
}

TEST(ArgumentUniqueness, RefusesAnArgumentOfADirectiveTwice) {
  EXPECT_THAT(errors("{ dog @skip(if: true, if: false) { name } }"),
              ElementsAre("There can be only one argument named \"if\". (1:13 1:23)"));
}

// Section 5.4.2.1.
TEST(RequiredArguments, AcceptsAbsentOptionalArguments) {
  EXPECT_THAT(errors("{ find(id: 1) { loud } }"), IsEmpty());
}

TEST(RequiredArguments, RefusesAnAbsentArgumentOfAField) {
  EXPECT_THAT(errors("{ find(limit: 1) { name } }"),
              ElementsAre("Field \"find\" argument \"id\" of type \"ID!\" is required, but it was "
                          "not provided. (1:3)"));
}

TEST(RequiredArguments, RefusesAnAbsentArgumentOfADirective) {
  EXPECT_THAT(errors("{ dog @include { name } }"),
              ElementsAre("Directive \"@include\" argument \"if\" of type \"Boolean!\" is "
                          "required, but it was not provided. (1:7)"));
}

}  // namespace
}  // namespace gitops::graphql
