#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/ast.hpp"

namespace gitops::graphql {

struct NamedType;
struct Input;

// Type of a field, an argument or a variable: a named type, or a list or non-null form of `of`.
struct Type {
  enum class Wrap : std::uint8_t { named, list, non_null };
  Wrap wrap = Wrap::named;
  const NamedType* named = nullptr;  // innermost type, in every form
  const Type* of = nullptr;          // type wrapped by a list or non-null form
  std::string_view text = {};        // as written: [String!]!

  [[nodiscard]] bool is_non_null() const { return wrap == Wrap::non_null; }
  [[nodiscard]] bool is_list() const { return wrap == Wrap::list; }
  // Returns the type without its outer non-null form.
  [[nodiscard]] const Type& nullable() const { return is_non_null() ? *of : *this; }
};
// Returns whether both have the same wrapping of the same named type.
bool same_type(const Type& a, const Type& b);

// Argument, or field of an input object.
struct InputValue {
  std::string_view name;
  std::optional<std::string_view> description;
  const Type* type = nullptr;
  const Literal* default_literal = nullptr;
  const Input* default_value = nullptr;  // coerced; null without a default
  std::optional<std::string_view> deprecation;

  [[nodiscard]] bool is_required() const { return type->is_non_null() && !default_value; }
};

struct Field {
  std::string_view name;
  std::optional<std::string_view> description;
  std::vector<InputValue> arguments;
  const Type* type = nullptr;
  std::optional<std::string_view> deprecation;
  const NamedType* parent = nullptr;
  std::uint32_t index = 0;  // among the fields of its parent

  [[nodiscard]] const InputValue* argument(std::string_view name) const;
};

struct EnumValue {
  std::string_view name;
  std::optional<std::string_view> description;
  std::optional<std::string_view> deprecation;
};

// Scalars of the specification; `custom` are those of a schema.
enum class ScalarKind : std::uint8_t { custom, integer, floating, string, boolean, id };

struct NamedType {
  TypeKind kind = TypeKind::scalar;
  std::uint32_t index = 0;  // among all types of the schema
  std::string_view name;
  std::optional<std::string_view> description;
  std::optional<std::string_view> specified_by;  // of a scalar
  ScalarKind scalar = ScalarKind::custom;
  std::vector<Field> fields;       // of an object or an interface
  std::vector<InputValue> inputs;  // of an input object
  std::vector<EnumValue> values;   // of an enum
  std::vector<const NamedType*> interfaces;
  std::vector<const NamedType*> possible;  // object types of a union or an interface
  std::vector<const NamedType*> subtypes;  // the same, and interfaces that implement this one
  Type self;                               // this type without list or non-null

  [[nodiscard]] bool is_leaf() const {
    return kind == TypeKind::scalar || kind == TypeKind::enumeration;
  }
  [[nodiscard]] bool is_abstract() const {
    return kind == TypeKind::interface_type || kind == TypeKind::union_type;
  }
  [[nodiscard]] bool is_composite() const { return is_abstract() || kind == TypeKind::object; }
  [[nodiscard]] bool is_input() const { return is_leaf() || kind == TypeKind::input_object; }
  [[nodiscard]] const Field* field(std::string_view field_name) const;
  [[nodiscard]] const InputValue* input(std::string_view input_name) const;
  [[nodiscard]] const EnumValue* value(std::string_view value_name) const;
  // Returns whether this is an abstract type that includes `other`.
  [[nodiscard]] bool has_subtype(const NamedType& other) const;

  std::unordered_map<std::string_view, std::uint32_t> field_index;
};

struct DirectiveDefinition {
  std::string_view name;
  std::optional<std::string_view> description;
  std::vector<InputValue> arguments;
  std::vector<std::string_view> locations;
  bool is_repeatable = false;

  [[nodiscard]] const InputValue* argument(std::string_view name) const;
};

// Schema of a server, parsed from its definition language (section 3 of the specification).
// Immutable. All pointers into it live as long as the schema.
class Schema {
 public:
  // Parses a schema and merges type extensions into their types. Adds the built-in scalars, the
  // directives @skip, @include, @deprecated and @specifiedBy, and the introspection types. The
  // error lists every mistake.
  static Result<std::unique_ptr<Schema>> parse(std::string sdl);

  [[nodiscard]] const NamedType* find(std::string_view name) const;
  [[nodiscard]] const DirectiveDefinition* directive(std::string_view name) const;
  // Returns the root type of an operation; null if the schema has none of that kind.
  [[nodiscard]] const NamedType* root(OperationKind kind) const;
  // Types in the order of introspection: those of the SDL, each followed by the built-in scalars
  // that it is the first to use, then the introspection types.
  [[nodiscard]] const std::vector<const NamedType*>& types() const { return order_; }
  [[nodiscard]] const std::vector<DirectiveDefinition>& directives() const { return directives_; }
  [[nodiscard]] std::optional<std::string_view> description() const { return description_; }
  [[nodiscard]] const Field& schema_field() const { return schema_field_; }      // __schema
  [[nodiscard]] const Field& type_field() const { return type_field_; }          // __type
  [[nodiscard]] const Field& typename_field() const { return typename_field_; }  // __typename
  // Returns the definition of a field selected on `parent`, including the three fields above; null
  // if there is none.
  [[nodiscard]] const Field* field_of(const NamedType& parent, std::string_view name) const;

  // Returns the type that a document's node refers to; null if a name is unknown. Allocates new
  // forms in `arena`.
  [[nodiscard]] const Type* resolve(const TypeNode& node, Arena& arena) const;

 private:
  class Builder;
  Schema() = default;

  std::vector<std::unique_ptr<Document>> documents_;
  Arena arena_{4096};
  std::deque<NamedType> all_;
  std::unordered_map<std::string_view, NamedType*> by_name_;
  std::vector<const NamedType*> order_;
  std::vector<DirectiveDefinition> directives_;
  std::optional<std::string_view> description_;
  const NamedType* query_ = nullptr;
  const NamedType* mutation_ = nullptr;
  const NamedType* subscription_ = nullptr;
  Field schema_field_;
  Field type_field_;
  Field typename_field_;
};

// Returns whether a value of `type` is valid where `expected` is required.
bool is_subtype(const Type& type, const Type& expected);
// Returns whether an object may belong to both types.
bool types_overlap(const NamedType& a, const NamedType& b);

}  // namespace gitops::graphql
