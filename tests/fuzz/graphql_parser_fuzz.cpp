// Any text as a document, and as a schema. A literal that was read is printed and read as the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/graphql/parser.hpp"
#include "common/graphql/print.hpp"
#include "common/graphql/schema.hpp"

namespace {

using namespace gitops::graphql;

void check(const Literal& literal) {
  const std::string text = print(literal);
  const auto again = parse("{ a(b: " + text + ") }", {.max_nesting = 1000});
  if (!again) std::abort();
  const auto& field = (*again)->definitions()[0].operation->selection_set->selections[0];
  if (print(field.arguments[0].value) != text) std::abort();
}

void check(const SelectionSet& set) {
  for (const Selection& selection : set.selections) {
    for (const Argument& argument : selection.arguments) check(argument.value);
    if (selection.selection_set) check(*selection.selection_set);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = parse(text, {.max_tokens = 5000, .max_nesting = 50});
  if (!document) {
    if (document.error().at > size || document.error().message.empty()) std::abort();
  } else {
    for (const Definition& definition : (*document)->definitions()) {
      const Location at = (*document)->locate(definition.at);
      if (at.line == 0 || at.column == 0) std::abort();
      if (definition.operation) check(*definition.operation->selection_set);
      if (definition.fragment) check(*definition.fragment->selection_set);
    }
  }
  const auto schema = Schema::parse(text);
  if (schema && !(*schema)->root(OperationKind::query)) std::abort();
  return 0;
}
