#pragma once

#include <string>
#include <vector>

#include "common/graphql/parser.hpp"
#include "common/graphql/validator.hpp"

// The errors of documents against one schema, for the tests of the validator and its rules.
namespace gitops::graphql {

inline const Schema& validation_schema() {
  static const auto made = Schema::parse(R"(
    type Query { dog: Dog pets: [Pet] pet: Pet named: Named find(id: ID!, where: Where, limit: Int = 1): Dog }
    type Mutation { rename(name: String!): Dog }
    type Subscription { barks: Int wags: Int }
    interface Named { name: String }
    type Dog implements Named { name: String age: Int owner: Person loud(at: Int): Boolean }
    type Cat implements Named { name: String lives: Int age: String }
    type Person implements Named { name: String dog: Dog }
    union Pet = Dog | Cat
    enum Size { SMALL LARGE }
    input Where { name: String! size: Size = SMALL and: [Where!] }
    directive @many repeatable on FIELD
  )");
  return **made;
}

// Each error as "message (line:column …)".
inline std::vector<std::string> errors(const std::string& text,
                                       const ValidationOptions& options = {}) {
  const auto document = parse(text);
  if (!document) return {document.error().message};
  std::vector<std::string> found;
  for (const ResponseError& error : validate(validation_schema(), **document, options)) {
    std::string one = error.message + " (";
    for (const Location& at : error.locations) {
      one += (one.ends_with('(') ? "" : " ") + std::to_string(at.line) + ":" +
             std::to_string(at.column);
    }
    found.push_back(one + ")");
  }
  return found;
}

}  // namespace gitops::graphql
