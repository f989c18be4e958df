#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <unordered_set>

#include "common/graphql/input.hpp"
#include "common/graphql/parser.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql {
namespace {

// Definitions built into every schema (sections 3.5, 3.13 and 4 of the specification).
constexpr std::string_view kBuiltIn = R"(
"UTF-8 text."
scalar String
"A whole number between -(2^31) and 2^31 - 1."
scalar Int
"A number as in IEEE 754, double precision."
scalar Float
"true or false."
scalar Boolean
"An identifier: a string or a whole number on input, a string on output."
scalar ID

"Leaves out the field or fragment unless `if` is true."
directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
"Leaves out the field or fragment if `if` is true."
directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
"Marks an element that should not be used any more."
directive @deprecated(reason: String = "No longer supported") on FIELD_DEFINITION | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION | ENUM_VALUE
"Names the page that specifies a scalar."
directive @specifiedBy(url: String!) on SCALAR

type __Schema {
  description: String
  types: [__Type!]!
  queryType: __Type!
  mutationType: __Type
  subscriptionType: __Type
  directives: [__Directive!]!
}
type __Type {
  kind: __TypeKind!
  name: String
  description: String
  specifiedByURL: String
  fields(includeDeprecated: Boolean = false): [__Field!]
  interfaces: [__Type!]
  possibleTypes: [__Type!]
  enumValues(includeDeprecated: Boolean = false): [__EnumValue!]
  inputFields(includeDeprecated: Boolean = false): [__InputValue!]
  ofType: __Type
  isOneOf: Boolean
}
enum __TypeKind { SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL }
type __Field {
  name: String!
  description: String
  args(includeDeprecated: Boolean = false): [__InputValue!]!
  type: __Type!
  isDeprecated: Boolean!
  deprecationReason: String
}
type __InputValue {
  name: String!
  description: String
  type: __Type!
  defaultValue: String
  isDeprecated: Boolean!
  deprecationReason: String
}
type __EnumValue {
  name: String!
  description: String
  isDeprecated: Boolean!
  deprecationReason: String
}
type __Directive {
  name: String!
  description: String
  isRepeatable: Boolean!
  locations: [__DirectiveLocation!]!
  args(includeDeprecated: Boolean = false): [__InputValue!]!
}
enum __DirectiveLocation {
  QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION FRAGMENT_SPREAD INLINE_FRAGMENT
  VARIABLE_DEFINITION SCHEMA SCALAR OBJECT FIELD_DEFINITION ARGUMENT_DEFINITION INTERFACE UNION
  ENUM ENUM_VALUE INPUT_OBJECT INPUT_FIELD_DEFINITION
}
type __Meta {
  __schema: __Schema!
  __type(name: String!): __Type
  __typename: String!
}
)";

const Directive* directive_named(List<Directive> directives, std::string_view name) {
  for (const Directive& directive : directives) {
    if (directive.name.text == name) return &directive;
  }
  return nullptr;
}

std::optional<std::string_view> text_argument(const Directive& directive, std::string_view name) {
  for (const Argument& argument : directive.arguments) {
    if (argument.name.text == name && argument.value.kind == LiteralKind::string) {
      return argument.value.text;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> deprecation(List<Directive> directives) {
  const Directive* found = directive_named(directives, "deprecated");
  if (!found) return std::nullopt;
  return text_argument(*found, "reason").value_or("No longer supported");
}

std::string quote(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

}  // namespace

// Builds a schema from its documents and collects all mistakes.
class Schema::Builder {
 public:
  explicit Builder(Schema& schema) : schema_(schema) {}

  Result<void> run(std::string sdl) {
    auto document = graphql::parse(std::move(sdl));
    if (!document) {
      // Reports the offset only: the text was moved into the parser.
      return fail(ErrorCode::invalid_data, "schema: Syntax Error: " + document.error().message +
                                               " (at byte " + std::to_string(document.error().at) +
                                               ")");
    }
    auto built_in = graphql::parse(std::string(kBuiltIn));
    if (!built_in) throw std::logic_error("graphql: built-in schema: " + built_in.error().message);
    schema_.documents_.push_back(std::move(*document));
    schema_.documents_.push_back(std::move(*built_in));

    for (const auto& source : schema_.documents_) declare(*source);
    for (const auto& source : schema_.documents_) define(*source);
    if (!mistakes_.empty()) return refused();
    find_roots();
    link_abstract_types();
    coerce_defaults();
    check();
    if (!mistakes_.empty()) return refused();
    order();
    take_meta_fields();
    return {};
  }

 private:
  Result<void> refused() {
    std::string text = "schema:";
    for (const std::string& mistake : mistakes_) text += " " + mistake;
    return fail(ErrorCode::invalid_data, std::move(text));
  }
  void mistake(std::string text) { mistakes_.push_back(std::move(text)); }

  [[nodiscard]] bool is_built_in(const Document& document) const {
    return &document == schema_.documents_.back().get();
  }

  void declare(const Document& document) {
    for (const Definition& definition : document.definitions()) {
      if (definition.kind != Definition::Kind::type || definition.is_extension) continue;
      const std::string_view name = definition.name.text;
      if (name.starts_with("__") && !is_built_in(document)) {
        mistake("The name " + quote(name) + " is reserved for introspection.");
      }
      if (schema_.by_name_.contains(name)) {
        // A schema may declare the built-in scalars itself.
        if (!is_built_in(document)) mistake("There are two types named " + quote(name) + ".");
        continue;
      }
      NamedType& type = schema_.all_.emplace_back();
      type.kind = definition.type_kind;
      type.name = name;
      type.self = {.wrap = Type::Wrap::named, .named = &type, .of = nullptr, .text = name};
      schema_.by_name_.emplace(name, &type);
      if (!is_built_in(document)) own_.push_back(&type);
      if (type.kind == TypeKind::scalar) type.scalar = scalar_kind(name);
    }
  }

  static ScalarKind scalar_kind(std::string_view name) {
    if (name == "Int") return ScalarKind::integer;
    if (name == "Float") return ScalarKind::floating;
    if (name == "String") return ScalarKind::string;
    if (name == "Boolean") return ScalarKind::boolean;
    if (name == "ID") return ScalarKind::id;
    return ScalarKind::custom;
  }

  void define(const Document& document) {
    for (const Definition& definition : document.definitions()) {
      switch (definition.kind) {
        case Definition::Kind::type:
          define_type(definition);
          break;
        case Definition::Kind::directive:
          define_directive(definition);
          break;
        case Definition::Kind::schema:
          for (const OperationTypeNode& root : definition.operation_types) roots_.push_back(root);
          has_roots_ = true;
          if (definition.description) schema_.description_ = definition.description;
          break;
        default:
          mistake("A schema cannot hold operations or fragments.");
      }
    }
  }

  const Type* type_of(const TypeNode& node, std::string_view where) {
    const Type* type = schema_.resolve(node, schema_.arena_);
    if (!type) {
      const TypeNode* inner = &node;
      while (inner->of) inner = inner->of;
      mistake(std::string(where) + " has the unknown type " + quote(inner->name) + ".");
    }
    return type;
  }

  std::vector<InputValue> inputs_of(List<InputValueNode> nodes, const std::string& where) {
    std::vector<InputValue> made;
    for (const InputValueNode& node : nodes) {
      const std::string place = where + "." + std::string(node.name.text);
      InputValue value;
      value.name = node.name.text;
      value.description = node.description;
      value.type = type_of(*node.type, place);
      value.default_literal = node.default_value;
      value.deprecation = deprecation(node.directives);
      check_directives(node.directives, place);
      if (std::ranges::find(made, value.name, &InputValue::name) != made.end()) {
        mistake(place + " is defined twice.");
      }
      if (!value.type) continue;
      if (!value.type->named->is_input()) {
        mistake(place + " needs an input type, not " + quote(value.type->text) + ".");
      }
      made.push_back(value);
    }
    return made;
  }

  void define_type(const Definition& definition) {
    const std::string name(definition.name.text);
    const auto found = schema_.by_name_.find(definition.name.text);
    if (found == schema_.by_name_.end()) {
      return mistake("The type " + quote(name) + " is extended, but there is none.");
    }
    NamedType& type = *found->second;
    if (type.kind != definition.type_kind) {
      return mistake("The extension of " + quote(name) + " has another kind.");
    }
    if (definition.description) type.description = definition.description;
    check_directives(definition.directives, name);
    if (const Directive* url = directive_named(definition.directives, "specifiedBy")) {
      type.specified_by = text_argument(*url, "url");
    }
    for (const Name& one : definition.interfaces) {
      const NamedType* interface = schema_.find(one.text);
      if (!interface || interface->kind != TypeKind::interface_type) {
        mistake(name + " implements " + quote(one.text) + ", which is no interface.");
      } else {
        type.interfaces.push_back(interface);
      }
    }
    for (const FieldNode& node : definition.fields) define_field(type, node);
    for (InputValue& input : inputs_of(definition.inputs, name)) {
      if (type.input(input.name))
        mistake(name + "." + std::string(input.name) + " is defined twice.");
      type.inputs.push_back(std::move(input));
    }
    for (const EnumValueNode& node : definition.values) {
      if (type.value(node.name.text)) {
        mistake(name + "." + std::string(node.name.text) + " is defined twice.");
      }
      type.values.push_back({node.name.text, node.description, deprecation(node.directives)});
    }
    for (const Name& one : definition.names) {
      const NamedType* member = schema_.find(one.text);
      if (!member || member->kind != TypeKind::object) {
        mistake("The union " + quote(name) + " has the member " + quote(one.text) +
                ", which is no object type.");
      } else {
        type.possible.push_back(member);
      }
    }
  }

  void define_field(NamedType& type, const FieldNode& node) {
    const std::string place = std::string(type.name) + "." + std::string(node.name.text);
    Field field;
    field.name = node.name.text;
    field.description = node.description;
    field.type = type_of(*node.type, place);
    field.arguments = inputs_of(node.arguments, place);
    field.deprecation = deprecation(node.directives);
    field.index = static_cast<std::uint32_t>(type.fields.size());
    check_directives(node.directives, place);
    if (field.name.starts_with("__") && !type.name.starts_with("__")) {
      mistake("The name " + quote(field.name) + " is reserved for introspection.");
    }
    if (!type.field_index.emplace(field.name, field.index).second) {
      return mistake(place + " is defined twice.");
    }
    if (field.type && !field.type->named->is_composite() && !field.type->named->is_leaf()) {
      mistake(place + " needs an output type, not " + quote(field.type->text) + ".");
    }
    field.parent = &type;
    type.fields.push_back(std::move(field));
  }

  void define_directive(const Definition& definition) {
    if (schema_.directive(definition.name.text)) {
      return;  // a schema may declare the built-in ones itself
    }
    DirectiveDefinition made;
    made.name = definition.name.text;
    made.description = definition.description;
    made.is_repeatable = definition.is_repeatable;
    made.arguments = inputs_of(definition.inputs, "@" + std::string(made.name));
    for (const Name& location : definition.names) made.locations.push_back(location.text);
    schema_.directives_.push_back(std::move(made));
  }

  void check_directives(List<Directive> directives, const std::string& where) {
    for (const Directive& directive : directives) used_directives_.emplace_back(directive, where);
  }

  void find_roots() {
    if (!has_roots_) {
      schema_.query_ = schema_.find("Query");
      schema_.mutation_ = schema_.find("Mutation");
      schema_.subscription_ = schema_.find("Subscription");
    }
    for (const OperationTypeNode& root : roots_) {
      const NamedType* type = schema_.find(root.type.text);
      if (!type) mistake("The root type " + quote(root.type.text) + " is not defined.");
      const NamedType*& place = root.operation == OperationKind::query      ? schema_.query_
                                : root.operation == OperationKind::mutation ? schema_.mutation_
                                                                            : schema_.subscription_;
      if (place) mistake("There are two root types for " + std::string(to_string(root.operation)));
      place = type;
    }
    for (const NamedType* root : {schema_.query_, schema_.mutation_, schema_.subscription_}) {
      if (root && root->kind != TypeKind::object) {
        mistake("The root type " + quote(root->name) + " is no object type.");
      }
    }
    if (!schema_.query_) mistake("There is no type for queries.");
  }

  void link_abstract_types() {
    for (NamedType& type : schema_.all_) {
      if (type.kind == TypeKind::union_type) type.subtypes = type.possible;
    }
    for (NamedType& type : schema_.all_) {
      for (const NamedType* one : type.interfaces) {
        NamedType& interface = *schema_.by_name_.at(one->name);
        interface.subtypes.push_back(&type);
        if (type.kind == TypeKind::object) interface.possible.push_back(&type);
      }
    }
  }

  void coerce_default(InputValue& value, const std::string& where) {
    if (!value.default_literal) return;
    const auto input = coerce_literal(*value.default_literal, *value.type, nullptr, schema_.arena_);
    if (!input) return mistake("The default value of " + where + " does not fit its type.");
    value.default_value = schema_.arena_.make(*input);
  }

  // Defaults of input fields come first, since those of arguments use them.
  void coerce_defaults() {
    for (NamedType& type : schema_.all_) {
      for (InputValue& input : type.inputs) {
        coerce_default(input, std::string(type.name) + "." + std::string(input.name));
      }
    }
    for (NamedType& type : schema_.all_) {
      for (Field& field : type.fields) {
        for (InputValue& argument : field.arguments) {
          coerce_default(argument, std::string(type.name) + "." + std::string(field.name) + "." +
                                       std::string(argument.name));
        }
      }
    }
    for (DirectiveDefinition& directive : schema_.directives_) {
      for (InputValue& argument : directive.arguments) {
        coerce_default(argument, "@" + std::string(directive.name));
      }
    }
  }

  void check() {
    for (const NamedType& type : schema_.all_) {
      const std::string name(type.name);
      if (type.is_composite() && type.kind != TypeKind::union_type && type.fields.empty()) {
        mistake(quote(name) + " has no fields.");
      }
      if (type.kind == TypeKind::union_type && type.possible.empty()) {
        mistake("The union " + quote(name) + " has no members.");
      }
      if (type.kind == TypeKind::enumeration && type.values.empty()) {
        mistake("The enum " + quote(name) + " has no values.");
      }
      if (type.kind == TypeKind::input_object) {
        if (type.inputs.empty()) mistake(quote(name) + " has no fields.");
        check_input_cycle(type);
      }
      for (const NamedType* interface : type.interfaces) check_interface(type, *interface);
    }
    for (const auto& [directive, where] : used_directives_) {
      const DirectiveDefinition* known = schema_.directive(directive.name.text);
      if (!known) {
        mistake(where + " uses the unknown directive \"@" + std::string(directive.name.text) +
                "\".");
        continue;
      }
      for (const Argument& argument : directive.arguments) {
        if (known->argument(argument.name.text)) continue;
        mistake(where + " passes the unknown argument " + quote(argument.name.text) + " to \"@" +
                std::string(known->name) + "\".");
      }
    }
  }

  void check_interface(const NamedType& type, const NamedType& interface) {
    const std::string both = quote(type.name) + " implements " + quote(interface.name);
    for (const NamedType* parent : interface.interfaces) {
      if (parent != &type && std::ranges::find(type.interfaces, parent) == type.interfaces.end()) {
        mistake(both + ", so it must implement " + quote(parent->name) + " too.");
      }
    }
    for (const Field& expected : interface.fields) {
      const Field* field = type.field(expected.name);
      if (!field || !is_subtype(*field->type, *expected.type)) {
        mistake(both + ", but has no field " + quote(expected.name) + " of type " +
                quote(expected.type->text) + ".");
        continue;
      }
      for (const InputValue& argument : expected.arguments) {
        const InputValue* own = field->argument(argument.name);
        if (!own || !same_type(*own->type, *argument.type)) {
          mistake(both + ", but its field " + quote(expected.name) + " has no argument " +
                  quote(argument.name) + " of type " + quote(argument.type->text) + ".");
        }
      }
      for (const InputValue& argument : field->arguments) {
        if (argument.is_required() && !expected.argument(argument.name)) {
          mistake(both + ", but its field " + quote(expected.name) + " requires the argument " +
                  quote(argument.name) + ".");
        }
      }
    }
  }

  // Checks that an input object does not require itself, which would make it unusable.
  void check_input_cycle(const NamedType& start) {
    std::unordered_set<const NamedType*> seen;
    std::vector<const NamedType*> open{&start};
    while (!open.empty()) {
      const NamedType* type = open.back();
      open.pop_back();
      for (const InputValue& input : type->inputs) {
        const Type& needed = *input.type;
        if (!needed.is_non_null() || needed.of->is_list()) continue;
        if (needed.named->kind != TypeKind::input_object) continue;
        if (needed.named == &start) {
          return mistake("The input " + quote(start.name) + " requires itself.");
        }
        if (seen.insert(needed.named).second) open.push_back(needed.named);
      }
    }
  }

  void add_in_order(const NamedType* type) {
    if (!type || !ordered_.insert(type).second) return;
    auto* known = schema_.by_name_.at(type->name);
    known->index = static_cast<std::uint32_t>(schema_.order_.size());
    schema_.order_.push_back(type);
    visit_references(*type);
  }
  void visit_references(const NamedType& type) {
    if (type.kind == TypeKind::union_type) {
      for (const NamedType* member : type.possible) add_in_order(member);
    }
    for (const NamedType* interface : type.interfaces) add_in_order(interface);
    for (const Field& field : type.fields) {
      add_in_order(field.type->named);
      for (const InputValue& argument : field.arguments) add_in_order(argument.type->named);
    }
    for (const InputValue& input : type.inputs) add_in_order(input.type->named);
  }

  void order() {
    // Marks types of the SDL as known before visiting them, so that they keep their order.
    for (const NamedType* type : own_) ordered_.insert(type);
    for (const NamedType* type : own_) {
      ordered_.erase(type);
      add_in_order(type);
    }
    for (const DirectiveDefinition& directive : schema_.directives_) {
      for (const InputValue& argument : directive.arguments) add_in_order(argument.type->named);
    }
    add_in_order(schema_.find("__Schema"));
    const auto is_hidden = [&](const NamedType& type) { return !ordered_.contains(&type); };
    for (const NamedType& type : schema_.all_) {
      if (is_hidden(type)) schema_.by_name_.at(type.name)->index = kHidden;
    }
    for (NamedType& type : schema_.all_) {
      const auto by_order = [](const NamedType* a, const NamedType* b) {
        return a->index < b->index;
      };
      if (type.kind == TypeKind::interface_type) std::ranges::sort(type.possible, by_order);
    }
  }

  void take_meta_fields() {
    const NamedType* meta = schema_.find("__Meta");
    schema_.schema_field_ = *meta->field("__schema");
    schema_.type_field_ = *meta->field("__type");
    schema_.typename_field_ = *meta->field("__typename");
    schema_.by_name_.erase("__Meta");
    for (auto it = schema_.by_name_.begin(); it != schema_.by_name_.end();) {
      it = it->second->index == kHidden ? schema_.by_name_.erase(it) : std::next(it);
    }
  }

  static constexpr std::uint32_t kHidden = 0xffffffff;

  Schema& schema_;
  std::vector<std::string> mistakes_;
  std::vector<const NamedType*> own_;
  std::vector<OperationTypeNode> roots_;
  bool has_roots_ = false;
  std::vector<std::pair<Directive, std::string>> used_directives_;
  std::unordered_set<const NamedType*> ordered_;
};

Result<std::unique_ptr<Schema>> Schema::parse(std::string sdl) {
  std::unique_ptr<Schema> schema(new Schema);
  if (auto built = Builder(*schema).run(std::move(sdl)); !built) {
    return std::unexpected(built.error());
  }
  return schema;
}

}  // namespace gitops::graphql
