#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/graphql/ast.hpp"

namespace gitops::graphql {

enum class TokenKind : std::uint8_t {
  start,
  end,
  bang,
  dollar,
  ampersand,
  open_paren,
  close_paren,
  spread,
  colon,
  equals,
  at,
  open_bracket,
  close_bracket,
  open_brace,
  pipe,
  close_brace,
  name,
  integer,
  floating,
  string,
  block_string
};

// Returns the name of a kind in messages of the reference implementation: "{" with its quotes,
// Name, <EOF>.
std::string_view describe(TokenKind kind);

struct Token {
  TokenKind kind = TokenKind::start;
  std::uint32_t at = 0;         // first byte
  std::uint32_t end = 0;        // after the last byte
  std::string_view value = {};  // of names, numbers and strings
};

// Syntax error of a source, with its offset.
struct SyntaxError {
  std::string message;  // the reference implementation's, without "Syntax Error: "
  std::uint32_t at = 0;
};

// Splits a source into tokens (section 2.1 of the specification). Decodes strings with escapes into
// `arena`. Never reads outside `source`; invalid UTF-8 is reported as an invalid character.
class Lexer {
 public:
  Lexer(std::string_view source, Arena& arena) : source_(source), arena_(&arena) {}

  // Returns the next token; `end` at the end and after an error.
  Token next();
  [[nodiscard]] const std::optional<SyntaxError>& error() const { return error_; }

 private:
  [[nodiscard]] int byte(std::size_t at) const {
    return at < source_.size() ? static_cast<unsigned char>(source_[at]) : -1;
  }
  Token fail(std::size_t at, std::string message);
  Token token(TokenKind kind, std::size_t end);
  Token number();
  bool digits(std::size_t& at);
  Token string();
  bool escape(std::size_t& at, std::string& value);
  Token block_string();
  [[nodiscard]] std::string shown(std::size_t at) const;

  std::string_view source_;
  Arena* arena_;
  std::size_t at_ = 0;
  std::optional<SyntaxError> error_;
};

}  // namespace gitops::graphql
