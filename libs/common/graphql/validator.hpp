#pragma once

#include <cstddef>
#include <vector>

#include "common/graphql/ast.hpp"
#include "common/graphql/response.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql {

enum class Strictness {
  strict,
  // Accepts what real clients get wrong and what can still be executed: variables and fragments that
  // nobody uses, and a nullable variable where non-null is expected (its value is checked then).
  lenient,
};

struct ValidationOptions {
  Strictness strictness = Strictness::strict;
  bool hides_names = false;      // no "Did you mean", which tells names of the schema
  std::size_t max_errors = 100;  // one more says that the validation was aborted
  std::size_t max_message = 0;   // bytes; longer messages are cut; 0: no limit
};

// Checks a document by the rules of section 5 of the specification; empty when it may be executed.
// The rules, messages, locations and their order are those of the reference implementation (graphql
// 16), with these exceptions: a document with type system definitions gets the error for these and
// no other, and @oneOf is not known.
std::vector<ResponseError> validate(const Schema& schema, const Document& document,
                                    const ValidationOptions& options = {});

}  // namespace gitops::graphql
