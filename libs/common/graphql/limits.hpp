#pragma once

#include <cstddef>
#include <optional>

#include "common/graphql/ast.hpp"
#include "common/graphql/response.hpp"

namespace gitops::graphql {

// Limits of one request. Each has a stable error code: DOCUMENT_TOO_LARGE, QUERY_TOO_DEEP,
// QUERY_TOO_BROAD, TOO_MANY_ALIASES, TOO_MANY_FRAGMENTS, TOO_MANY_DIRECTIVES, QUERY_TOO_COMPLEX,
// RESPONSE_TOO_LARGE.
struct Limits {
  std::size_t max_source = 256UL * 1024;  // bytes of the document
  std::size_t max_tokens = 10'000;
  std::size_t max_nesting = 100;                  // brackets within brackets
  std::size_t max_depth = 20;                     // fields within fields, fragments included
  std::size_t max_breadth = 200;                  // selections in one selection set
  std::size_t max_aliases = 100;                  // in the document
  std::size_t max_fragments = 100;                // definitions and spreads in the document
  std::size_t max_directives = 100;               // in the document
  std::size_t max_fields = 10'000;                // of one operation, with its fragments expanded
  std::size_t max_errors = 100;                   // of a validation, which ends then
  std::size_t max_message = 2000;                 // bytes of a validation message; the rest is cut
  std::size_t max_response = 64UL * 1024 * 1024;  // bytes
};

// Returns the error of the first exceeded limit, if any. Runs in linear time.
std::optional<ResponseError> check_limits(const Document& document, const Limits& limits);

}  // namespace gitops::graphql
