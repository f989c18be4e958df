#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Parsed documents of GraphQL (https://spec.graphql.org/October2021/, sections 2 and 3). All nodes
// lie in the document's arena and live as long as the document. Texts are slices of the source, or
// decoded copies in the arena. `at` is a byte offset into the source.
namespace gitops::graphql {

// Memory that is released as a whole. Holds only objects that need no destructor.
class Arena {
 public:
  explicit Arena(std::size_t first_block = 1024) : memory_(first_block) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <class T>
  T* make(T value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (memory_.allocate(sizeof(T), alignof(T))) T(std::move(value));
  }
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    auto* to = static_cast<char*>(memory_.allocate(text.size(), 1));
    text.copy(to, text.size());
    return {to, text.size()};
  }
  [[nodiscard]] std::pmr::memory_resource* resource() { return &memory_; }

 private:
  std::pmr::monotonic_buffer_resource memory_;
};

// List of elements in an arena.
template <class T>
struct List {
  const T* first = nullptr;
  std::uint32_t count = 0;

  [[nodiscard]] const T* begin() const { return first; }
  [[nodiscard]] const T* end() const { return first + count; }
  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] bool empty() const { return count == 0; }
  const T& operator[](std::size_t index) const { return first[index]; }
};

struct Name {
  std::string_view text = {};
  std::uint32_t at = 0;
};

enum class LiteralKind : std::uint8_t {
  variable,
  integer,
  floating,
  string,
  boolean,
  null,
  enumeration,
  list,
  object
};

struct LiteralField;
struct Literal {
  LiteralKind kind = LiteralKind::null;
  bool is_block = false;  // of strings: written with three quotes
  bool truth = false;     // of booleans
  std::uint32_t at = 0;
  // The name of a variable or an enum value, a number as written, or a string without its quotes
  // and escapes.
  std::string_view text = {};
  List<Literal> items = {};
  List<LiteralField> fields = {};
};
struct LiteralField {
  Name name;  // the field begins with it
  Literal value;
};

struct Argument {
  Name name;  // the argument begins with it
  Literal value;
};

struct Directive {
  std::uint32_t at = 0;
  Name name;
  List<Argument> arguments;
};

// A type as written: a name, or a list or non-null form of `of`.
struct TypeNode {
  enum class Form : std::uint8_t { named, list, non_null };
  Form form = Form::named;
  std::uint32_t at = 0;
  std::string_view name = {};
  const TypeNode* of = nullptr;
};

struct VariableDefinition {
  std::uint32_t at = 0;  // of the whole definition
  Name name;             // without '$'
  const TypeNode* type = nullptr;
  const Literal* default_value = nullptr;
  List<Directive> directives;
};

struct Selection;
struct SelectionSet {
  std::uint32_t at = 0;
  List<Selection> selections;
};

struct Selection {
  enum class Kind : std::uint8_t { field, spread, inline_fragment };
  Kind kind = Kind::field;
  std::uint32_t at = 0;
  Name alias;           // of a field; empty without an alias
  Name name;            // of a field or of the spread fragment
  Name type_condition;  // of an inline fragment; empty without a condition
  List<Argument> arguments;
  List<Directive> directives;
  const SelectionSet* selection_set = nullptr;  // null for a leaf or a spread

  // The key of the field in the response.
  [[nodiscard]] std::string_view response_key() const {
    return alias.text.empty() ? name.text : alias.text;
  }
};

enum class OperationKind : std::uint8_t { query, mutation, subscription };
std::string_view to_string(OperationKind kind);

struct Operation {
  OperationKind kind = OperationKind::query;
  std::uint32_t at = 0;
  Name name;  // empty for an anonymous operation
  List<VariableDefinition> variables;
  List<Directive> directives;
  const SelectionSet* selection_set = nullptr;
};

struct Fragment {
  std::uint32_t at = 0;
  Name name;
  Name type_condition;
  List<Directive> directives;
  const SelectionSet* selection_set = nullptr;
};

// Definitions of the type system.
struct InputValueNode {
  std::optional<std::string_view> description;
  Name name;
  const TypeNode* type = nullptr;
  const Literal* default_value = nullptr;
  List<Directive> directives;
};
struct FieldNode {
  std::optional<std::string_view> description;
  Name name;
  List<InputValueNode> arguments;
  const TypeNode* type = nullptr;
  List<Directive> directives;
};
struct EnumValueNode {
  std::optional<std::string_view> description;
  Name name;
  List<Directive> directives;
};
struct OperationTypeNode {
  OperationKind operation = OperationKind::query;
  Name type;
};

enum class TypeKind : std::uint8_t {
  scalar,
  object,
  interface_type,
  union_type,
  enumeration,
  input_object
};

// Definition in a document. `name` and the members below are set if the kind has them; an operation
// or a fragment has its own struct.
struct Definition {
  enum class Kind : std::uint8_t { operation, fragment, schema, type, directive };
  Kind kind = Kind::operation;
  std::uint32_t at = 0;
  const Operation* operation = nullptr;
  const Fragment* fragment = nullptr;

  bool is_extension = false;  // extend …
  TypeKind type_kind = TypeKind::scalar;
  std::optional<std::string_view> description;
  Name name;
  List<Directive> directives;
  List<Name> interfaces;
  List<FieldNode> fields;
  List<InputValueNode> inputs;  // fields of an input object, or arguments of a directive
  List<EnumValueNode> values;
  List<Name> names;  // members of a union, or locations of a directive
  List<OperationTypeNode> operation_types;
  bool is_repeatable = false;
};

// Line and column of a byte in a source, both from 1. Columns count UTF-16 code units, as in the
// reference implementation.
struct Location {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  bool operator==(const Location&) const = default;
};

// Parsed document with its source.
class Document {
 public:
  explicit Document(std::string source);

  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] List<Definition> definitions() const { return definitions_; }
  [[nodiscard]] Location locate(std::uint32_t at) const;
  [[nodiscard]] Arena& arena() { return arena_; }
  // Returns the last fragment of that name; null if there is none.
  [[nodiscard]] const Fragment* fragment(std::string_view name) const;
  // Approximate memory of the document, in bytes.
  [[nodiscard]] std::size_t size() const { return source_.size() * 5 + 1024; }

 private:
  friend class Parser;
  struct Checkpoint {
    std::uint32_t at;
    Location location;
  };
  void make_checkpoints() const;

  std::string source_;
  Arena arena_;
  List<Definition> definitions_;
  mutable std::vector<Checkpoint> checkpoints_;  // made by the first locate()
};

}  // namespace gitops::graphql
