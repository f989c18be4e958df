#include "common/graphql/bindings.hpp"

// The introspection types (section 4 of the specification) as rows over the schema itself.
namespace gitops::graphql {
namespace {

std::string_view kind_of(const Type& type) {
  if (type.is_list()) return "LIST";
  if (type.is_non_null()) return "NON_NULL";
  switch (type.named->kind) {
    case TypeKind::scalar:
      return "SCALAR";
    case TypeKind::object:
      return "OBJECT";
    case TypeKind::interface_type:
      return "INTERFACE";
    case TypeKind::union_type:
      return "UNION";
    case TypeKind::enumeration:
      return "ENUM";
    case TypeKind::input_object:
      return "INPUT_OBJECT";
  }
  return "SCALAR";
}

// Returns the named type itself; null for a list or non-null form.
const NamedType* plain(const Type& type) {
  return type.wrap == Type::Wrap::named ? type.named : nullptr;
}

template <class T>
std::vector<const T*> shown(const std::vector<T>& items, Call& call) {
  const bool with_deprecated = call["includeDeprecated"].is_true();
  std::vector<const T*> kept;
  for (const T& item : items) {
    if (with_deprecated || !item.deprecation) kept.push_back(&item);
  }
  return kept;
}

std::vector<const Type*> types_of(const std::vector<const NamedType*>& named) {
  std::vector<const Type*> types;
  for (const NamedType* type : named) types.push_back(&type->self);
  return types;
}

const Type* type_or_null(const NamedType* type) {
  return type ? &type->self : nullptr;
}

void add_schema(Resolvers& to, const Schema* all) {
  to.type<Root>(
      "__Meta",
      {
          {"__schema", [all] { return all; }},
          {"__type", [all](Call& call) { return type_or_null(all->find(call["name"].text())); }},
      });
  to.type<Schema>(
      "__Schema",
      {
          {"description", [](const Schema& s) { return s.description(); }},
          {"types", [](const Schema& s) { return types_of(s.types()); }},
          {"queryType", [](const Schema& s) { return type_or_null(s.root(OperationKind::query)); }},
          {"mutationType",
           [](const Schema& s) { return type_or_null(s.root(OperationKind::mutation)); }},
          {"subscriptionType",
           [](const Schema& s) { return type_or_null(s.root(OperationKind::subscription)); }},
          {"directives",
           [](const Schema& s) -> const std::vector<DirectiveDefinition>& {
             return s.directives();
           }},
      });
}

void add_type(Resolvers& to) {
  to.type<Type>(
      "__Type",
      {
          {"kind", [](const Type& t) { return kind_of(t); }},
          {"name",
           [](const Type& t) { return plain(t) ? std::optional(plain(t)->name) : std::nullopt; }},
          {"description",
           [](const Type& t) { return plain(t) ? plain(t)->description : std::nullopt; }},
          {"specifiedByURL",
           [](const Type& t) { return plain(t) ? plain(t)->specified_by : std::nullopt; }},
          {"fields",
           [](const Type& t, Call& call) {
             const NamedType* type = plain(t);
             const bool has_fields =
                 type && type->is_composite() && type->kind != TypeKind::union_type;
             return has_fields ? std::optional(shown(type->fields, call)) : std::nullopt;
           }},
          {"interfaces",
           [](const Type& t) {
             const NamedType* type = plain(t);
             const bool may = type && type->is_composite() && type->kind != TypeKind::union_type;
             return may ? std::optional(types_of(type->interfaces)) : std::nullopt;
           }},
          {"possibleTypes",
           [](const Type& t) {
             const NamedType* type = plain(t);
             return type && type->is_abstract() ? std::optional(types_of(type->possible))
                                                : std::nullopt;
           }},
          {"enumValues",
           [](const Type& t, Call& call) {
             const NamedType* type = plain(t);
             return type && type->kind == TypeKind::enumeration
                        ? std::optional(shown(type->values, call))
                        : std::nullopt;
           }},
          {"inputFields",
           [](const Type& t, Call& call) {
             const NamedType* type = plain(t);
             return type && type->kind == TypeKind::input_object
                        ? std::optional(shown(type->inputs, call))
                        : std::nullopt;
           }},
          {"ofType", [](const Type& t) { return t.of; }},
          // Never true: the schema does not support such input objects.
          {"isOneOf",
           [](const Type& t) {
             const bool is_input = plain(t) && plain(t)->kind == TypeKind::input_object;
             return is_input ? std::optional(false) : std::nullopt;
           }},
      });
}

void add_members(Resolvers& to) {
  to.type<Field>("__Field",
                 {
                     {"name", &Field::name},
                     {"description", &Field::description},
                     {"args", [](const Field& f, Call& call) { return shown(f.arguments, call); }},
                     {"type", [](const Field& f) { return f.type; }},
                     {"isDeprecated", [](const Field& f) { return f.deprecation.has_value(); }},
                     {"deprecationReason", &Field::deprecation},
                 });
  to.type<InputValue>(
      "__InputValue",
      {
          {"name", &InputValue::name},
          {"description", &InputValue::description},
          {"type", [](const InputValue& v) { return v.type; }},
          {"defaultValue",
           [](const InputValue& v) {
             return v.default_value ? std::optional(print(*v.default_value, *v.type))
                                    : std::nullopt;
           }},
          {"isDeprecated", [](const InputValue& v) { return v.deprecation.has_value(); }},
          {"deprecationReason", &InputValue::deprecation},
      });
  to.type<EnumValue>(
      "__EnumValue",
      {
          {"name", &EnumValue::name},
          {"description", &EnumValue::description},
          {"isDeprecated", [](const EnumValue& v) { return v.deprecation.has_value(); }},
          {"deprecationReason", &EnumValue::deprecation},
      });
}

void add_directive(Resolvers& to) {
  to.type<DirectiveDefinition>("__Directive",
                               {
                                   {"name", &DirectiveDefinition::name},
                                   {"description", &DirectiveDefinition::description},
                                   {"isRepeatable", &DirectiveDefinition::is_repeatable},
                                   {"locations", &DirectiveDefinition::locations},
                                   {"args", [](const DirectiveDefinition& d,
                                               Call& call) { return shown(d.arguments, call); }},
                               });
}

}  // namespace

std::shared_ptr<const Resolvers> introspection_resolvers(const Schema& schema) {
  auto made = std::make_shared<Resolvers>();
  add_schema(*made, &schema);
  add_type(*made);
  add_members(*made);
  add_directive(*made);
  return made;
}

}  // namespace gitops::graphql
