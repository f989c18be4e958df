// The body of a request, from its JSON to the answer: which is always JSON with data, errors or both.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "common/core/task_group.hpp"
#include "fuzz/graphql_everything.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const std::string& answer) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  require(parser.parse(answer).get(root) == simdjson::SUCCESS);
  const bool has_data = !root["data"].error();
  simdjson::dom::array errors;
  const bool has_errors = root["errors"].get(errors) == simdjson::SUCCESS;
  require(has_data || has_errors);
  require(!has_errors || errors.size() > 0);  // a public client takes an empty list for a failure
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  using namespace gitops::graphql;
  EngineOptions options;
  options.limits.max_fields = 2000;
  options.limits.max_response = 100'000;
  options.max_cached_bytes = 0;
  static const auto engine = fuzz_engine(options);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The body as it is, and the text as a query.
  auto prepared = engine->prepare_body(text, Context());
  if (!prepared) check(prepared.error().body());
  if (!prepared) prepared = engine->prepare(RequestText{.query = text}, Context());
  if (!prepared) {
    // A text that is not UTF-8 is quoted in its error, which a JSON body cannot bring about.
    return 0;
  }
  Loop loop;
  std::string answer;
  {
    TaskGroup group(loop.get_executor());
    group.spawn("operation", [&]() -> Task<> {
      if ((*prepared)->kind() == OperationKind::subscription) {
        const auto started = co_await (*prepared)->subscribe();
        require(!started);
        answer = errors_body(started.error());
      } else {
        answer = co_await (*prepared)->run();
      }
    });
    loop.run();
  }
  check(answer);
  return 0;
}
