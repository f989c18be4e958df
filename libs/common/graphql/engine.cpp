#include "common/graphql/engine.hpp"

#include <simdjson.h>

#include "common/core/race.hpp"
#include "common/graphql/operation.hpp"
#include "common/graphql/parser.hpp"

namespace gitops::graphql {
namespace {

Refusal malformed(std::string message, std::string_view code = "BAD_REQUEST") {
  return {{coded_error(std::move(message), code, 400)}, false};
}

bool selects_schema(const SelectionSet& set) {
  for (const Selection& selection : set.selections) {
    const bool is_field = selection.kind == Selection::Kind::field;
    if (is_field && (selection.name.text == "__schema" || selection.name.text == "__type")) {
      return true;
    }
    if (selection.selection_set && selects_schema(*selection.selection_set)) return true;
  }
  return false;
}

bool selects_schema(const Document& document) {
  for (const Definition& definition : document.definitions()) {
    if (definition.operation && selects_schema(*definition.operation->selection_set)) return true;
    if (definition.fragment && selects_schema(*definition.fragment->selection_set)) return true;
  }
  return false;
}

}  // namespace

Task<std::string> Prepared::run() {
  if (deadline_ == kNever || !execution_->waits()) co_return co_await execution_->run();
  auto work = [](Execution& execution) -> Task<Result<std::string>> {
    co_return co_await execution.run();
  };
  auto answer = co_await with_timeout(deadline_, work(*execution_));
  if (answer) co_return std::move(*answer);
  co_return errors_body(
      {coded_error("The operation took longer than this server allows.", "TIMEOUT", 504)});
}

Task<std::expected<void, std::vector<ResponseError>>> Prepared::subscribe() {
  auto stream = co_await execution_->subscribe();
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  stream_ = std::move(*stream);
  co_return std::expected<void, std::vector<ResponseError>>();
}

Task<std::optional<std::string>> Prepared::next() {
  if (!stream_) co_return std::nullopt;
  auto event = co_await stream_->next();
  if (!event) {
    stream_.reset();
    co_return errors_body({present(event.error())});
  }
  if (!*event) {
    stream_.reset();
    co_return std::nullopt;
  }
  co_return co_await execution_->answer(std::move(**event));
}

Engine::Engine() : parser_(std::make_unique<simdjson::dom::parser>()) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::make(std::string sdl, const Resolvers& resolvers,
                                             EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine);
  engine->options_ = options;
  auto schema = Schema::parse(std::move(sdl));
  if (!schema) return std::unexpected(schema.error());
  engine->schema_ = std::move(*schema);
  auto bindings = Bindings::make(*engine->schema_, resolvers);
  if (!bindings) return std::unexpected(bindings.error());
  engine->bindings_ = std::move(*bindings);
  return engine;
}

std::expected<std::unique_ptr<Prepared>, Refusal> Engine::prepare_body(std::string_view body,
                                                                       Context context,
                                                                       Deadline deadline) {
  const auto refuse = [](std::string message) {
    return std::unexpected(malformed(std::move(message)));
  };
  // Skips a byte order mark, which some editors write and RFC 8259, 8.1 allows readers to ignore.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  simdjson::dom::element root;
  const simdjson::padded_string padded(body);
  if (parser_->parse(padded).get(root) != simdjson::SUCCESS) {
    return refuse("The body is not valid JSON.");
  }
  if (root.is_array()) {
    return std::unexpected(malformed("Batches of requests are not supported.", "BATCH_REFUSED"));
  }
  if (!root.is_object()) return refuse("The body must be a JSON object.");
  std::string_view query;
  std::string_view operation_name;
  std::optional<simdjson::dom::element> variables;
  bool has_query = false;
  bool is_persisted = false;
  for (const auto& member : root.get_object().value_unsafe()) {
    if (member.value.is_null()) continue;
    if (member.key == "query") {
      if (member.value.get(query) != simdjson::SUCCESS) return refuse("query must be a string.");
      has_query = true;
    } else if (member.key == "operationName") {
      if (member.value.get(operation_name) != simdjson::SUCCESS) {
        return refuse("operationName must be a string.");
      }
    } else if (member.key == "variables") {
      if (!member.value.is_object()) return refuse("variables must be an object.");
      variables = member.value;
    } else if (member.key == "extensions") {
      if (!member.value.is_object()) return refuse("extensions must be an object.");
      is_persisted = !member.value["persistedQuery"].error();
    }
  }
  if (!has_query && is_persisted) {
    return std::unexpected(
        Refusal{{coded_error("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED", 400)}});
  }
  if (!has_query) return refuse("query is missing.");
  return prepare_with(query, operation_name, variables, context, deadline);
}

std::expected<std::unique_ptr<Prepared>, Refusal> Engine::prepare(const RequestText& request,
                                                                  Context context,
                                                                  Deadline deadline) {
  std::optional<simdjson::dom::element> variables;
  if (!request.variables.empty()) {
    const simdjson::padded_string padded(request.variables);
    simdjson::dom::element given;
    if (parser_->parse(padded).get(given) != simdjson::SUCCESS || !given.is_object()) {
      return std::unexpected(malformed("variables must be an object."));
    }
    variables = given;
  }
  return prepare_with(request.query, request.operation_name, variables, context, deadline);
}

std::expected<std::unique_ptr<Prepared>, Refusal> Engine::prepare_with(
    std::string_view query, std::string_view operation_name,
    const std::optional<simdjson::dom::element>& variables, Context context, Deadline deadline) {
  auto found = document(query);
  if (!found) return std::unexpected(std::move(found.error()));
  const auto operation = choose_operation(**found, operation_name);
  if (!operation) return std::unexpected(Refusal{{operation.error()}});

  auto prepared = std::make_unique<Prepared>();
  prepared->document_ = std::move(*found);
  prepared->operation_ = *operation;
  prepared->deadline_ = deadline;
  const Document& text = *prepared->document_;
  auto values =
      coerce_variables(*schema_, text, **operation, variables, prepared->arena_,
                       {.names = !options_.allows_introspection, .values = options_.hides_values});
  if (!values) {
    if (options_.plain_variable_errors) {
      for (auto& error : values.error()) std::erase(error.message, '"');
    }
    return std::unexpected(Refusal{std::move(values.error())});
  }
  prepared->execution_ =
      std::make_unique<Execution>(*schema_, bindings_, text, **operation, std::move(*values),
                                  ExecutionOptions{.context = context,
                                                   .deadline = deadline,
                                                   .max_fields = 2 * options_.limits.max_fields,
                                                   .max_response = options_.limits.max_response,
                                                   .max_parallel = options_.max_parallel});
  return prepared;
}

// Returns the parsed and valid document, from the cache if possible.
std::expected<std::shared_ptr<const Document>, Refusal> Engine::document(std::string_view query) {
  const auto refuse = [](ResponseError error) {
    return std::unexpected(Refusal{{std::move(error)}});
  };
  if (const auto known = cached_.find(query); known != cached_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
    return *known->second;
  }
  const Limits& limits = options_.limits;
  if (query.size() > limits.max_source) {
    return refuse(coded_error("The document has more than " + std::to_string(limits.max_source) +
                                  " bytes, the limit of this server.",
                              "DOCUMENT_TOO_LARGE", 400));
  }
  auto parsed = graphql::parse(
      std::string(query), {.max_tokens = limits.max_tokens, .max_nesting = limits.max_nesting});
  if (!parsed) {
    // Computes the location from the text, since there is no document.
    const Document text{std::string(query)};
    ResponseError error =
        coded_error("Syntax Error: " + parsed.error().message, "GRAPHQL_PARSE_FAILED", 400);
    error.locations.push_back(text.locate(parsed.error().at));
    return refuse(std::move(error));
  }
  std::shared_ptr<const Document> document = std::move(*parsed);
  if (auto excess = check_limits(*document, limits)) return refuse(std::move(*excess));
  auto errors = validate(*schema_, *document,
                         {.strictness = options_.strictness,
                          .hides_names = !options_.allows_introspection,
                          .max_errors = limits.max_errors,
                          .max_message = limits.max_message});
  if (!errors.empty()) {
    for (ResponseError& error : errors) {
      error.extensions = R"({"code":"GRAPHQL_VALIDATION_FAILED","statusCode":400})";
    }
    return std::unexpected(Refusal{std::move(errors)});
  }
  if (!options_.allows_introspection && selects_schema(*document)) {
    return refuse(
        coded_error("This server does not show its schema.", "INTROSPECTION_DISABLED", 400));
  }
  keep(document);
  return document;
}

void Engine::keep(std::shared_ptr<const Document> document) {
  const std::size_t size = document->size();
  if (size > options_.max_cached_bytes / 4) return;
  while (cached_bytes_ + size > options_.max_cached_bytes) {
    cached_bytes_ -= recent_.back()->size();
    cached_.erase(recent_.back()->source());
    recent_.pop_back();
  }
  cached_bytes_ += size;
  recent_.push_front(std::move(document));
  cached_.emplace(recent_.front()->source(), recent_.begin());
}

}  // namespace gitops::graphql
