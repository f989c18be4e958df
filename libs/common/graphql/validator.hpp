#pragma once

#include <cstddef>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/response.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql {

enum class Strictness {
  strict,
  // Accepts common mistakes of real clients that can still be executed: unused variables and
  // fragments, and a nullable variable where non-null is expected (its value is checked at
  // execution).
  lenient,
};

struct ValidationOptions {
  Strictness strictness = Strictness::strict;
  bool hides_names = false;      // omits "Did you mean", which reveals names of the schema
  std::size_t max_errors = 100;  // one more reports that the validation was aborted
  std::size_t max_message = 0;   // bytes; longer messages are cut off; 0: no limit
};

// Validates a document by the rules of section 5 of the specification. Returns the errors; empty if
// it may be executed. Rules, messages, locations and their order are those of the reference
// implementation (graphql 16), with these exceptions: a document with type system definitions gets
// only the error for these, and @oneOf is not supported.
std::vector<ResponseError> validate(const Schema& schema, const Document& document,
                                    const ValidationOptions& options = {});

}  // namespace gitops::graphql
