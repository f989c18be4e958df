#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/core/error.hpp"

namespace gitops::graphql {

// Run-time identity of a C++ type.
using TypeTag = const void*;
template <class T>
TypeTag type_tag() {
  static char tag = 0;
  return &tag;
}

// Valid JSON text.
class Json {
 public:
  // Parses the text. Error: ErrorCode::invalid_data.
  static Result<Json> parse(std::string text);
  // Wraps text of our own serializers without a check.
  static Json trusted(std::string text) { return Json(std::move(text)); }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  explicit Json(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// Borrowed JSON text, such as a member of a Json.
struct JsonSlice {
  std::string_view text;
};

// Value of a field from its resolver. The executor checks it against the field's type. Resolvers
// return their own types, which to_value() converts. Borrowed data must live until the parent
// object is written, or as long as the `owner` that the value keeps.
class Value {
 public:
  struct Null {};
  struct Object {
    const void* data = nullptr;
    TypeTag tag = nullptr;
  };
  struct Items {
    std::size_t size = 0;
    std::function<Value(std::size_t)> at;
  };
  using Failure = std::unique_ptr<Error>;
  using Content = std::variant<Null, bool, std::int64_t, double, std::string_view, std::string,
                               JsonSlice, Object, Items, Failure>;

  Value() = default;
  explicit Value(Content content, std::shared_ptr<const void> owner = {})
      : content_(std::move(content)), owner_(std::move(owner)) {}

  [[nodiscard]] bool is_null() const { return std::holds_alternative<Null>(content_); }
  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&content_);
  }
  // The text of a string; nothing for other values.
  [[nodiscard]] std::optional<std::string_view> text() const {
    if (const auto* borrowed = get<std::string_view>()) return *borrowed;
    if (const auto* own = get<std::string>()) return *own;
    return std::nullopt;
  }
  [[nodiscard]] const Content& content() const { return content_; }

 private:
  Content content_;
  std::shared_ptr<const void> owner_;
};

template <class Given>
Value to_value(Given&& given);

namespace detail {
template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_a<Template<Args...>, Template> = true;

// Converts a std::vector: borrowed as an lvalue, else kept.
template <class Given>
Value list_value(Given&& given) {
  using T = std::remove_cvref_t<Given>;
  const auto items_of = [](const T* items) {
    return Value::Items{items->size(), [items](std::size_t i) { return to_value((*items)[i]); }};
  };
  if constexpr (std::is_lvalue_reference_v<Given>) {
    return Value(items_of(&given));
  } else {
    auto owner = std::make_shared<const T>(std::forward<Given>(given));
    const T* items = owner.get();
    return Value(items_of(items), std::move(owner));
  }
}

// Converts an object with rows of its own: borrowed as an lvalue, else kept.
template <class Given>
Value object_value(Given&& given) {
  using T = std::remove_cvref_t<Given>;
  if constexpr (std::is_lvalue_reference_v<Given>) {
    return Value(Value::Object{&given, type_tag<T>()});
  } else {
    auto owner = std::make_shared<const T>(std::forward<Given>(given));
    const Value::Object object{owner.get(), type_tag<T>()};
    return Value(object, std::move(owner));
  }
}
}  // namespace detail

// Converts a resolver's result to a Value:
//   bool, numbers, strings          that value; a std::string_view or a literal is borrowed
//   std::optional, pointers         null, or the value in them; raw pointers are borrowed
//   Result                          a field error, or its value; Result<void> is null
//   std::vector                     a list
//   std::variant                    its value: for unions and interfaces
//   Json, JsonSlice                 a subtree of JSON, reduced to the selected fields
//   any other class                 an object, whose fields the rows of its type resolve
// Borrows lvalues and keeps rvalues.
template <class Given>
Value to_value(Given&& given) {
  using T = std::remove_cvref_t<Given>;
  constexpr bool kOwned = !std::is_lvalue_reference_v<Given>;
  if constexpr (std::is_same_v<T, Value>) {
    return std::forward<Given>(given);
  } else if constexpr (std::is_same_v<T, std::nullptr_t> || std::is_same_v<T, std::nullopt_t>) {
    return {};
  } else if constexpr (std::is_same_v<T, bool>) {
    return Value(Value::Content(std::in_place_type<bool>, given));
  } else if constexpr (std::is_integral_v<T>) {
    return Value(
        Value::Content(std::in_place_type<std::int64_t>, static_cast<std::int64_t>(given)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return Value(Value::Content(std::in_place_type<double>, given));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if constexpr (kOwned) {
      return Value(Value::Content(std::in_place_type<std::string>, std::forward<Given>(given)));
    } else {
      return Value(Value::Content(std::in_place_type<std::string_view>, given));
    }
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return Value(Value::Content(std::in_place_type<std::string_view>, given));
  } else if constexpr (std::is_same_v<T, JsonSlice>) {
    return Value(given);
  } else if constexpr (std::is_same_v<T, Json>) {
    if constexpr (kOwned) {
      auto owner = std::make_shared<const Json>(std::forward<Given>(given));
      const JsonSlice slice{owner->text()};
      return Value(slice, std::move(owner));
    } else {
      return Value(JsonSlice{given.text()});
    }
  } else if constexpr (detail::is_a<T, Result>) {
    if (!given) return Value(std::make_unique<Error>(std::forward<Given>(given).error()));
    if constexpr (std::is_void_v<typename T::value_type>) {
      return {};
    } else {
      return to_value(*std::forward<Given>(given));
    }
  } else if constexpr (detail::is_a<T, std::optional>) {
    return given ? to_value(*std::forward<Given>(given)) : Value();
  } else if constexpr (std::is_pointer_v<T>) {
    return given ? to_value(std::as_const(*given)) : Value();
  } else if constexpr (detail::is_a<T, std::unique_ptr> || detail::is_a<T, std::shared_ptr>) {
    if (!given) return {};
    if constexpr (kOwned) {
      std::shared_ptr<const typename T::element_type> owner(std::forward<Given>(given));
      const Value::Object object{owner.get(),
                                 type_tag<std::remove_const_t<typename T::element_type>>()};
      return Value(object, std::move(owner));
    } else {
      return to_value(std::as_const(*given));
    }
  } else if constexpr (detail::is_a<T, std::variant>) {
    return std::visit([](auto&& held) { return to_value(std::forward<decltype(held)>(held)); },
                      std::forward<Given>(given));
  } else if constexpr (detail::is_a<T, std::vector>) {
    return detail::list_value(std::forward<Given>(given));
  } else {
    static_assert(std::is_class_v<T>, "a resolver cannot return this type");
    return detail::object_value(std::forward<Given>(given));
  }
}

}  // namespace gitops::graphql
