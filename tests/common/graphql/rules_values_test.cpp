#include <gmock/gmock.h>

#include "common/graphql/validation_errors.hpp"

// Sections 5.6 and 5.7 of the specification: values and directives. A suite for each rule, with its
// number. The expected errors are those of the reference implementation.
namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Section 5.6.1.
TEST(ValuesOfCorrectType, AcceptsWhatCanBeCoerced) {
  EXPECT_THAT(errors("{ find(id: \"a\", where: {name: \"x\", size: LARGE, and: {name: \"y\"}}, "
                     "limit: null) { name } }"),
              IsEmpty());
}

TEST(ValuesOfCorrectType, RefusesOthers) {
  EXPECT_THAT(errors("{ find(id: true, limit: \"1\", where: [{name: 1}]) { name } }"),
              ElementsAre("ID cannot represent a non-string and non-integer value: true (1:12)",
                          "Int cannot represent non-integer value: \"1\" (1:25)",
                          "Expected value of type \"Where\", found [{name: 1}]. (1:37)"));
  EXPECT_THAT(errors("{ find(id: {a: 1}, where: SMALL) { name } }"),
              ElementsAre("ID cannot represent a non-string and non-integer value: {a: 1} (1:12)",
                          "Expected value of type \"Where\", found SMALL. (1:27)"));
}

TEST(ValuesOfCorrectType, LooksAtItemsOfLists) {
  EXPECT_THAT(errors("{ find(id: 1, where: {name: \"x\", and: [null, 1]}) { name } }"),
              ElementsAre("Expected value of type \"Where!\", found null. (1:40)",
                          "Expected value of type \"Where!\", found 1. (1:46)"));
}

TEST(ValuesOfCorrectType, RefusesNullAndLargeNumbers) {
  EXPECT_THAT(
      errors("{ find(id: null, limit: 99999999999) { name } }"),
      ElementsAre("Expected value of type \"ID!\", found null. (1:12)",
                  "Int cannot represent non 32-bit signed integer value: 99999999999 (1:25)"));
}

// Section 5.6.2.
TEST(InputObjectFieldNames, AcceptsDefinedFields) {
  EXPECT_THAT(errors("{ find(id: 1, where: {name: \"x\"}) { name } }"), IsEmpty());
}

TEST(InputObjectFieldNames, RefusesOthers) {
  EXPECT_THAT(
      errors("{ find(id: 1, where: {name: \"x\", siz: LARGE}) { name } }"),
      ElementsAre("Field \"siz\" is not defined by type \"Where\". Did you mean \"size\"? (1:34)"));
  EXPECT_THAT(
      errors("{ find(id: 1, where: {name: \"x\", and: [{name: \"y\", color: 1}]}) { name } }"),
      ElementsAre("Field \"color\" is not defined by type \"Where\". (1:52)"));
}

// Section 5.6.3.
TEST(InputObjectFieldUniqueness, AcceptsAFieldInAnotherObject) {
  EXPECT_THAT(errors("{ find(id: 1, where: {name: \"x\", and: [{name: \"y\"}]}) { name } }"),
              IsEmpty());
}

TEST(InputObjectFieldUniqueness, RefusesAFieldTwice) {
  EXPECT_THAT(errors("{ find(id: 1, where: {name: \"x\", name: \"y\", name: \"z\"}) { name } }"),
              ElementsAre("There can be only one input field named \"name\". (1:23 1:34)",
                          "There can be only one input field named \"name\". (1:23 1:45)"));
}

TEST(InputObjectFieldUniqueness, LooksIntoAValueThatIsRefused) {
  EXPECT_THAT(
      errors("{ find(id: {a: 1, a: 2}) { name } }"),
      ElementsAre("ID cannot represent a non-string and non-integer value: {a: 1, a: 2} (1:12)",
                  "There can be only one input field named \"a\". (1:13 1:19)"));
}

// Section 5.6.4.
TEST(InputObjectRequiredFields, AcceptsAbsentOptionalFields) {
  EXPECT_THAT(errors("{ find(id: 1, where: {name: \"x\"}) { name } }"), IsEmpty());
}

TEST(InputObjectRequiredFields, RefusesAnAbsentField) {
  EXPECT_THAT(
      errors("{ find(id: 1, where: {and: [{size: LARGE}]}) { name } }"),
      ElementsAre("Field \"Where.name\" of required type \"String!\" was not provided. (1:22)",
                  "Field \"Where.name\" of required type \"String!\" was not provided. (1:29)"));
}

// Section 5.7.1.
TEST(DirectivesAreDefined, AcceptsDefinedDirectives) {
  EXPECT_THAT(errors("{ dog @include(if: true) { name @many } }"), IsEmpty());
}

TEST(DirectivesAreDefined, RefusesOthers) {
  EXPECT_THAT(errors("query @a { dog @b { name @c } }"),
              ElementsAre("Unknown directive \"@a\". (1:7)", "Unknown directive \"@b\". (1:16)",
                          "Unknown directive \"@c\". (1:26)"));
}

// Section 5.7.2.
TEST(DirectivesAreInValidLocations, AcceptsLocationsOfTheDefinition) {
  EXPECT_THAT(errors("{ ... @skip(if: true) { dog { name @many } } }"), IsEmpty());
}

TEST(DirectivesAreInValidLocations, RefusesOthers) {
  EXPECT_THAT(errors("query @many { ... @many { dog { ...F @many } } } fragment F on Dog @skip(if: "
                     "true) { name }"),
              ElementsAre("Directive \"@many\" may not be used on QUERY. (1:7)",
                          "Directive \"@many\" may not be used on INLINE_FRAGMENT. (1:19)",
                          "Directive \"@many\" may not be used on FRAGMENT_SPREAD. (1:38)",
                          "Directive \"@skip\" may not be used on FRAGMENT_DEFINITION. (1:68)"));
  EXPECT_THAT(errors("query ($l: Int @include(if: true)) { find(id: 1, limit: $l) { name } }"),
              ElementsAre("Directive \"@include\" may not be used on VARIABLE_DEFINITION. (1:16)"));
}

// Section 5.7.3.
TEST(DirectivesAreUniquePerLocation, AcceptsRepeatableDirectives) {
  EXPECT_THAT(errors("{ dog @skip(if: true) @include(if: true) { name @many @many } }"), IsEmpty());
}

TEST(DirectivesAreUniquePerLocation, RefusesOthersTwice) {
  EXPECT_THAT(
      errors("{ dog @skip(if: true) @skip(if: false) @skip(if: true) { name } }"),
      ElementsAre("The directive \"@skip\" can only be used once at this location. (1:7 1:23)",
                  "The directive \"@skip\" can only be used once at this location. (1:7 1:40)"));
}

}  // namespace
}  // namespace gitops::graphql
