// Any text as a document against a schema: what is accepted strictly is accepted leniently, and the
// number of errors is bounded.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/graphql/limits.hpp"
#include "common/graphql/parser.hpp"
#include "common/graphql/validator.hpp"
#include "fuzz/graphql_everything.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops::graphql;
  static const auto engine = fuzz_engine();
  const auto document = parse(std::string(reinterpret_cast<const char*>(data), size),
                              {.max_tokens = 5000, .max_nesting = 50});
  if (!document || check_limits(**document, {})) return 0;
  const auto errors =
      validate(engine->schema(), **document, {.max_errors = 20, .max_message = 500});
  if (errors.size() > 22) std::abort();
  for (const ResponseError& error : errors) {
    if (error.message.empty() || error.message.size() > 510) std::abort();
  }
  if (errors.empty() &&
      !validate(engine->schema(), **document, {.strictness = Strictness::lenient}).empty()) {
    std::abort();
  }
  return 0;
}
