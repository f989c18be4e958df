// Any text as tokens: they follow each other, lie within the text, and the lexer comes to an end.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/graphql/lexer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::graphql;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Arena arena;
  Lexer lexer(text, arena);
  std::uint32_t last = 0;
  for (;;) {
    const Token token = lexer.next();
    if (lexer.error() && (lexer.error()->at > size || lexer.error()->message.empty())) std::abort();
    if (token.kind == TokenKind::end) return 0;
    if (token.at < last || token.end <= token.at || token.end > size) std::abort();
    last = token.end;
  }
}
