#pragma once

#include <cstddef>
#include <expected>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/async.hpp"
#include "common/graphql/executor.hpp"
#include "common/graphql/limits.hpp"
#include "common/graphql/resolvers.hpp"
#include "common/graphql/schema.hpp"
#include "common/graphql/validator.hpp"

namespace simdjson::dom {
class element;
class parser;
}  // namespace simdjson::dom

namespace gitops::graphql {

struct EngineOptions {
  Limits limits = {};
  Strictness strictness = Strictness::lenient;
  // False refuses __schema and __type (INTROSPECTION_DISABLED) and omits suggested names from
  // messages.
  bool allows_introspection = true;
  // Omits values, which may be secrets, from messages about variables.
  bool hides_values = false;
  // Omits double quotes from messages about variables. A public client converts Python's text of an
  // error into JSON by swapping quotes.
  bool plain_variable_errors = false;
  std::size_t max_parallel = 16;                     // see ExecutionOptions
  std::size_t max_cached_bytes = 4UL * 1024 * 1024;  // of the cache of valid documents; 0: no cache
};

// Errors of a request that is not executed.
struct Refusal {
  std::vector<ResponseError> errors;
  // False for a malformed request; true for an invalid document or invalid variables.
  bool is_well_formed = true;

  [[nodiscard]] std::string body() const { return errors_body(errors); }
};

// Request as received: texts, and the variables as JSON (empty: none).
struct RequestText {
  std::string_view query;
  std::string_view variables = {};
  std::string_view operation_name = {};
};

// Operation that is ready to run. Loop thread only. The engine must outlive it.
class Prepared {
 public:
  [[nodiscard]] OperationKind kind() const { return operation_->kind; }
  [[nodiscard]] std::string_view name() const { return operation_->name.text; }
  // Names in the schema of the selected fields of the root type, including __typename and the like.
  [[nodiscard]] std::vector<std::string_view> root_fields() const {
    return execution_->root_fields();
  }

  // Runs a query or a mutation and returns the response, for HTTP status 200. After the deadline
  // the response is an error with the code TIMEOUT, and waiting resolvers are cancelled.
  Task<std::string> run();
  // Starts a subscription. next() then returns one response for each event, and nothing at the end.
  // An error of the stream is the last response.
  Task<std::expected<void, std::vector<ResponseError>>> subscribe();
  Task<std::optional<std::string>> next();

 private:
  friend class Engine;
  std::shared_ptr<const Document> document_;
  const Operation* operation_ = nullptr;
  Arena arena_{512};
  std::unique_ptr<Execution> execution_;
  Deadline deadline_ = kNever;
  std::optional<Stream> stream_;
};

// GraphQL server without a transport: executes documents and returns responses. One for each
// schema. Loop thread only. Caches recently used valid documents, so that a repeated request skips
// the parser and the validator.
class Engine {
 public:
  ~Engine();

  // Builds the engine. The error lists every mistake in the schema, or every field without a
  // resolver and every resolver without a field.
  static Result<std::unique_ptr<Engine>> make(std::string sdl, const Resolvers& resolvers,
                                              EngineOptions options = {});

  // Parses the body of a request: {"query", "operationName", "variables", "extensions"}. Ignores
  // other members, and variables that the operation does not declare. Refuses an array (a batch).
  std::expected<std::unique_ptr<Prepared>, Refusal> prepare_body(std::string_view body,
                                                                 Context context,
                                                                 Deadline deadline = kNever);
  std::expected<std::unique_ptr<Prepared>, Refusal> prepare(const RequestText& request,
                                                            Context context,
                                                            Deadline deadline = kNever);

  [[nodiscard]] const Schema& schema() const { return *schema_; }
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] std::size_t cached_documents() const { return cached_.size(); }

 private:
  Engine();
  std::expected<std::unique_ptr<Prepared>, Refusal> prepare_with(
      std::string_view query, std::string_view operation_name,
      const std::optional<simdjson::dom::element>& variables, Context context, Deadline deadline);
  std::expected<std::shared_ptr<const Document>, Refusal> document(std::string_view query);
  void keep(std::shared_ptr<const Document> document);

  EngineOptions options_;
  std::unique_ptr<Schema> schema_;
  Bindings bindings_;
  std::unique_ptr<simdjson::dom::parser> parser_;
  using Recent = std::list<std::shared_ptr<const Document>>;  // last used first
  Recent recent_;
  std::unordered_map<std::string_view, Recent::iterator> cached_;  // by source
  std::size_t cached_bytes_ = 0;
};

}  // namespace gitops::graphql
