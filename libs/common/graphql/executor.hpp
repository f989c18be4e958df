#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/graphql/ast.hpp"
#include "common/graphql/bindings.hpp"
#include "common/graphql/input.hpp"
#include "common/graphql/leaf.hpp"
#include "common/graphql/limits.hpp"
#include "common/graphql/resolvers.hpp"
#include "common/graphql/response.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql {

struct Plan;

// Field of a response: all selections with the same response key.
struct PlannedField {
  std::string_view key;
  std::string label;  // ,"key":
  const Field* field = nullptr;
  const Row* row = nullptr;
  std::vector<const Selection*> nodes;
  Input arguments;
  std::optional<ResponseError> refusal;  // error of its arguments
  bool is_typename = false;
  bool awaits = false;  // this field or a field below must wait
  bool awaits_below = false;
  const class Execution* execution = nullptr;
  mutable std::vector<std::pair<const NamedType*, std::unique_ptr<Plan>>> plans;  // of its values
};

// Fields of an object of one type, in the order of the response.
struct Plan {
  const NamedType* type = nullptr;
  std::vector<PlannedField> fields;
  std::optional<ResponseError> refusal;  // error of a @skip or @include
  bool awaits = false;
};

struct ExecutionOptions {
  Context context = {};
  Deadline deadline = kNever;
  std::size_t max_fields = 20'000;  // planned fields of all types together
  std::size_t max_response = 64UL * 1024 * 1024;
  std::size_t max_parallel = 16;  // concurrently waiting items of a list, or fields
};

// Executes one operation of a valid document (section 6 of the specification). Writes the response
// as text in the order of the query, without a tree of values. Waiting fields run concurrently in
// queries and one after the other in mutations. Loop thread only. The document, the schema and the
// bindings must outlive it.
class Execution {
 public:
  Execution(const Schema& schema, const Bindings& bindings, const Document& document,
            const Operation& operation, Variables variables, ExecutionOptions options);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Runs a query or a mutation and returns the response.
  Task<std::string> run();
  // Starts a subscription. Returns its events, or the errors of a response without `data`.
  Task<std::expected<Stream, std::vector<ResponseError>>> subscribe();
  // Returns the response for one event.
  Task<std::string> answer(Value event);

  // Returns whether run() may wait.
  [[nodiscard]] bool waits() const { return root_ && root_->awaits; }
  // Names in the schema of the selected fields of the root type. Valid as long as the schema.
  [[nodiscard]] std::vector<std::string_view> root_fields() const;
  // Implements Call::selects() (own) and Call::selects_below() (any).
  enum class Depth { own, any };
  [[nodiscard]] bool selects(const PlannedField& field, std::string_view name, Depth depth) const;

 private:
  // Object whose fields are being written.
  struct Parent {
    explicit Parent(const Value& object) : value(object), members(object) {}
    const Value& value;
    Members members;
  };
  struct Path {
    const Path* parent = nullptr;
    std::string_view key = {};
    std::size_t index = 0;  // without a key
  };

  struct Collected {
    Plan& plan;
    std::unordered_map<std::string_view, std::size_t> by_key = {};
    std::vector<std::string_view> visited = {};  // fragments
  };
  void collect(Collected& into, const SelectionSet& set);
  std::unique_ptr<Plan> plan_of(const NamedType& type,
                                const std::vector<const SelectionSet*>& sets);
  bool is_included(Plan& plan, List<Directive> directives);
  bool applies(std::string_view type_condition, const NamedType& type) const;
  void finish(Plan& plan);
  bool awaits(const SelectionSet& set, const NamedType& parent);
  const Plan* plan_below(const PlannedField& field, const NamedType& type);

  std::expected<Input, ResponseError> arguments(const std::vector<InputValue>& definitions,
                                                List<Argument> given, std::uint32_t at);

  // Records an error at `path` of the response; always returns false.
  bool add(ResponseError error, const PlannedField* field, const Path* path);
  bool stopped(const std::string& out) {
    if (out.size() > options_.max_response) refuse_size();
    return stop_.has_value();
  }
  void refuse_size();
  void reserve(std::string& out, std::size_t begin, std::size_t count) const;
  Call call(const PlannedField& field) const;
  Value resolve(const PlannedField& field, const Parent& parent);
  Task<Value> resolve_later(const PlannedField& field, const Parent& parent);
  const NamedType* runtime_type(const PlannedField& field, const NamedType& type,
                                const Value& value, std::string& problem);

  // The writers exist twice, since a coroutine costs an allocation and most fields are members of
  // structs (docs/adr/0013-graphql.md, "No tree"). These plain functions write parts of a response
  // in which no row waits.
  bool write_object(const Plan& plan, const Value& object, const Path* path, std::string& out);
  bool write_field(const PlannedField& field, const Parent& parent, const Path* path,
                   std::string& out);
  bool complete(const PlannedField& field, const Type& type, const Value& value, const Path* path,
                std::string& out);
  bool settle(bool done, const Type& type, std::size_t begin, std::string& out) const;

  // These coroutines write parts in which a row waits, and leave the parts below that do not wait
  // to the functions above. Both write the same text: executor_twins_test.cpp compares them.
  Task<bool> write_object_later(const Plan& plan, const Value& object, const Path* path,
                                std::string& out, bool is_serial);
  Task<bool> write_field_later(const PlannedField& field, const Parent& parent, const Path* path,
                               std::string& out);
  Task<bool> complete_later(const PlannedField& field, const Type& type, Value value,
                            const Path* path, std::string& out);
  Task<bool> write_items_later(const PlannedField& field, const Type& list, const Value& value,
                               const Path* path, std::string& out);
  // Runs job(0) to job(count - 1), up to max_parallel at a time.
  Task<> side_by_side(std::size_t count, std::function<Task<>(std::size_t)> job);

  std::string finished(std::string out, bool done);

  const Schema& schema_;
  const Bindings& bindings_;
  const Document& document_;
  const Operation& operation_;
  Variables variables_;
  ExecutionOptions options_;
  Arena arena_{2048};
  std::unique_ptr<Plan> root_;
  std::unordered_map<const SelectionSet*, bool> awaiting_;
  std::size_t planned_ = 0;
  std::vector<ResponseError> errors_;
  std::optional<ResponseError> stop_;  // error of an exceeded limit
  Clock::time_point yielded_ = {};
};

}  // namespace gitops::graphql
