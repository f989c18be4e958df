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

// What the program passes to all resolvers of one operation: who asks, the request's id. Borrowed; it
// must live until the operation has ended.
class Context {
 public:
  Context() = default;
  template <class T>
  explicit Context(T& data) : data_(&data), tag_(type_tag<T>()) {}

  // Throws std::logic_error when the operation was given something else.
  template <class T>
  [[nodiscard]] T& get() const {
    if (tag_ != type_tag<T>()) throw std::logic_error("graphql: another context was given");
    return *static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  TypeTag tag_ = nullptr;
};

// A field that is being resolved. Lives until the resolver has returned.
class Call {
 public:
  Call(const PlannedField& field, const Input& arguments, const Context& context, Deadline deadline)
      : field_(&field), arguments_(&arguments), context_(&context), deadline_(deadline) {}

  // An argument, checked against the schema and with its default; absent if it was not given.
  InputView operator[](std::string_view argument) const { return arguments()[argument]; }
  // All of them, as an object.
  [[nodiscard]] InputView arguments() const { return InputView(arguments_); }
  template <class T>
  [[nodiscard]] T& context() const {
    return context_->get<T>();
  }
  // When the operation's answer is due.
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  // The field's name in the schema.
  [[nodiscard]] std::string_view field() const;
  // True when that field is selected below this one, also in fragments.
  [[nodiscard]] bool selects(std::string_view field) const;
  // The same at any depth: for a list, whose items lie below edges and node.
  [[nodiscard]] bool selects_below(std::string_view field) const;

 private:
  const PlannedField* field_;
  const Input* arguments_;
  const Context* context_;
  Deadline deadline_;
};

// The events of a subscription: each becomes the value of its field in one answer.
class Stream {
 public:
  // `next` waits for an event; nothing ends the subscription, an error too, after it was shown. It is
  // a callable that returns Task<Result<std::optional<T>>>. It is cancelled when the client leaves.
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

// How one field is resolved.
struct Row {
  std::string field;
  TypeTag parent = nullptr;
  std::function<Value(const void* parent, Call& call)> now;          // one of these three
  std::function<Task<Value>(const void* parent, Call& call)> later;  // has to wait
  std::function<Task<Result<Stream>>(Call& call)> stream;            // of a subscription
};

// The parent of the fields of Query, Mutation and Subscription.
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

// A row of the type that T stands for: a field's name and how to get it. That is a member pointer, or
// a callable which takes (const T&, Call&), (const T&), (Call&) or nothing. It returns what to_value()
// takes, or a Task of that if it has to wait.
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

// A field of Subscription: a callable that takes (Call&) or nothing and returns
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

// The tables of a program: which function resolves which field. Engine::make() compares them with
// the schema. Rows live as long as the engine; what their functions capture must too.
class Resolvers {
 public:
  struct Table {
    TypeTag tag = nullptr;
    bool is_json = false;
    std::vector<Row> rows;
  };

  // May be called once for each domain of the program.
  void query(std::initializer_list<RowOf<Root>> rows) { add("Query", rows); }
  void mutation(std::initializer_list<RowOf<Root>> rows) { add("Mutation", rows); }
  void subscription(std::initializer_list<StreamRow> rows) {
    for (const StreamRow& row : rows) tables_["Subscription"].rows.push_back(row);
    tables_["Subscription"].tag = type_tag<Root>();
  }
  // The object type `name` is a T. A row "__typename" tells the type of a T that stands for several.
  template <class T>
  void type(const std::string& name, std::initializer_list<RowOf<T>> rows) {
    add(name, rows);
  }
  // The object type `name` comes as JSON whose members are called like the fields; an absent member
  // is null. Rows are for fields that are not.
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
