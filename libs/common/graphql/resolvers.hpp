#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/time.hpp"
#include "common/graphql/input.hpp"
#include "common/graphql/value.hpp"

namespace gitops::graphql {

struct PlannedField;

// Data of the program for all resolvers of one operation, such as the user and the request's id.
// Borrowed; it must outlive the operation.
class Context {
 public:
  Context() = default;
  template <class T>
  explicit Context(T& data) : data_(&data), tag_(type_tag<T>()) {}

  // Returns the data. Throws std::logic_error if it has another type.
  template <class T>
  [[nodiscard]] T& get() const {
    if (tag_ != type_tag<T>()) throw std::logic_error("graphql: another context was given");
    return *static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  TypeTag tag_ = nullptr;
};

// Arguments of a resolver for one field. Valid until the resolver has returned.
class Call {
 public:
  Call(const PlannedField& field, const Input& arguments, const Context& context, Deadline deadline)
      : field_(&field), arguments_(&arguments), context_(&context), deadline_(deadline) {}

  // Returns an argument, validated against the schema and with its default; absent if not given.
  InputView operator[](std::string_view argument) const { return arguments()[argument]; }
  // All arguments, as an object.
  [[nodiscard]] InputView arguments() const { return InputView(arguments_); }
  template <class T>
  [[nodiscard]] T& context() const {
    return context_->get<T>();
  }
  // Deadline of the operation's response.
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  // Name of the field in the schema.
  [[nodiscard]] std::string_view field() const;
  // Returns whether that field is selected below this one, also in fragments.
  [[nodiscard]] bool selects(std::string_view field) const;
  // Returns the same for any depth: for lists, whose items lie below edges and node.
  [[nodiscard]] bool selects_below(std::string_view field) const;

 private:
  const PlannedField* field_;
  const Input* arguments_;
  const Context* context_;
  Deadline deadline_;
};

// Stream of a subscription's events. Each becomes the value of its field in one response.
class Stream {
 public:
  // Makes a stream from `next`, a callable that waits for an event and returns
  // Task<Result<std::optional<T>>>. Nothing ends the subscription; an error ends it, too, after it
  // was sent. The callable is cancelled when the client disconnects.
  template <class Next>
  static Stream from(Next next) {
    auto kept = std::make_shared<Next>(std::move(next));
    Stream made;
    made.next_ = [kept]() -> Task<Result<std::optional<Value>>> { return adapt(kept); };
    return made;
  }

  Task<Result<std::optional<Value>>> next() { return next_(); }

 private:
  template <class Next>
  static Task<Result<std::optional<Value>>> adapt(std::shared_ptr<Next> next) {
    auto event = co_await (*next)();
    if (!event) co_return std::unexpected(std::move(event.error()));
    Result<std::optional<Value>> made = std::optional<Value>();
    if (*event) made->emplace(to_value(std::move(**event)));
    co_return made;
  }
  std::function<Task<Result<std::optional<Value>>>()> next_;
};

// Resolver of one field.
struct Row {
  std::string field;
  TypeTag parent = nullptr;
  std::function<Value(const void* parent, Call& call)> now;          // one of these three
  std::function<Task<Value>(const void* parent, Call& call)> later;  // waits
  std::function<Task<Result<Stream>>(Call& call)> stream;            // for a subscription
};

// Parent of the fields of Query, Mutation and Subscription.
struct Root {};

namespace detail {
template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

template <class T, class F>
decltype(auto) resolve_with(const F& function, const T& parent, Call& call) {
  if constexpr (std::is_invocable_v<const F&, const T&, Call&>) {
    return std::invoke(function, parent, call);
  } else if constexpr (std::is_invocable_v<const F&, const T&>) {
    return std::invoke(function, parent);
  } else if constexpr (std::is_invocable_v<const F&, Call&>) {
    return std::invoke(function, call);
  } else {
    return std::invoke(function);
  }
}
}  // namespace detail

// Row of the type that T represents: a field's name and its resolver. The resolver is a member
// pointer, or a callable that takes (const T&, Call&), (const T&), (Call&) or nothing. It returns a
// type accepted by to_value(), or a Task of it if it waits.
template <class T>
struct RowOf : Row {
  template <class F>
  RowOf(std::string name, F function) {
    field = std::move(name);
    parent = type_tag<T>();
    using Given = decltype(detail::resolve_with<T>(function, std::declval<const T&>(),
                                                   std::declval<Call&>()));
    if constexpr (std::is_same_v<Given, Task<>>) {
      later = [function](const void* object, Call& call) -> Task<Value> {
        co_await detail::resolve_with<T>(function, *static_cast<const T*>(object), call);
        co_return Value();
      };
    } else if constexpr (detail::is_task<Given>) {
      later = [function](const void* object, Call& call) -> Task<Value> {
        auto given =
            co_await detail::resolve_with<T>(function, *static_cast<const T*>(object), call);
        co_return to_value(std::move(given));
      };
    } else if constexpr (std::is_void_v<Given>) {
      now = [function](const void* object, Call& call) {
        detail::resolve_with<T>(function, *static_cast<const T*>(object), call);
        return Value();
      };
    } else {
      now = [function](const void* object, Call& call) {
        return to_value(detail::resolve_with<T>(function, *static_cast<const T*>(object), call));
      };
    }
  }
};

// Row of a field of Subscription: a callable that takes (Call&) or nothing and returns
// Task<Result<Stream>>.
struct StreamRow : Row {
  template <class F>
  StreamRow(std::string name, F function) {
    field = std::move(name);
    parent = type_tag<Root>();
    stream = [function](Call& call) -> Task<Result<Stream>> {
      static constexpr Root kRoot;
      return detail::resolve_with<Root>(function, kRoot, call);
    };
  }
};

// Tables of a program's resolvers. Engine::make() checks them against the schema. Rows, and the
// data that their functions capture, live as long as the engine.
class Resolvers {
 public:
  struct Table {
    TypeTag tag = nullptr;
    bool is_json = false;
    std::vector<Row> rows;
  };

  // Adds fields of the root type. May be called once for each domain of the program.
  void query(std::initializer_list<RowOf<Root>> rows) { add("Query", rows); }
  void mutation(std::initializer_list<RowOf<Root>> rows) { add("Mutation", rows); }
  void subscription(std::initializer_list<StreamRow> rows) {
    for (const StreamRow& row : rows) tables_["Subscription"].rows.push_back(row);
    tables_["Subscription"].tag = type_tag<Root>();
  }
  // Maps the object type `name` to T. For a T of several types, a row "__typename" returns the
  // type's name.
  template <class T>
  void type(const std::string& name, std::initializer_list<RowOf<T>> rows) {
    add(name, rows);
  }
  // Maps the object type `name` to JSON with members named like the fields; an absent member is
  // null. Rows are for other fields.
  void json(const std::string& name, std::initializer_list<RowOf<JsonSlice>> rows = {}) {
    add(name, rows);
    tables_[name].is_json = true;
  }
  [[nodiscard]] const std::map<std::string, Table>& tables() const { return tables_; }

 private:
  template <class T>
  void add(const std::string& name, std::initializer_list<RowOf<T>> rows) {
    Table& table = tables_[name];
    if (table.tag && table.tag != type_tag<T>()) {
      throw std::logic_error("graphql: two C++ types for the type " + name);
    }
    table.tag = type_tag<T>();
    for (const RowOf<T>& row : rows) table.rows.push_back(row);
  }

  std::map<std::string, Table> tables_;
};

}  // namespace gitops::graphql
