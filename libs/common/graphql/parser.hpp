#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>

#include "common/graphql/ast.hpp"
#include "common/graphql/lexer.hpp"

namespace gitops::graphql {

struct ParseOptions {
  std::size_t max_tokens = 0;  // 0: no limit
  // Maximum nesting of selection sets, lists, objects and list types; bounds the stack.
  std::size_t max_nesting = 200;
};

// Parses operations, fragments and type system definitions (the whole grammar of the specification,
// appendix B). Errors are those of the reference implementation. Exceeded limits are syntax errors,
// too.
std::expected<std::unique_ptr<Document>, SyntaxError> parse(std::string source,
                                                            const ParseOptions& options = {});

}  // namespace gitops::graphql
