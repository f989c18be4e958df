#include "common/graphql/bindings.hpp"

namespace gitops::graphql {

Result<Bindings> Bindings::make(const Schema& schema, const Resolvers& resolvers) {
  Bindings made;
  made.own_ = std::make_shared<const Resolvers>(resolvers);
  made.introspection_ = introspection_resolvers(schema);
  made.types_.resize(schema.types().size());
  std::string mistakes;
  made.bind(schema, *made.own_, mistakes);
  made.bind(schema, *made.introspection_, mistakes);
  for (const NamedType* type : schema.types()) {
    if (type->kind != TypeKind::object) continue;
    const TypeBinding& binding = made.types_[type->index];
    for (const Field& field : type->fields) {
      if (binding.is_json) continue;
      if (binding.rows.size() <= field.index || !binding.rows[field.index]) {
        mistakes += " The field \"" + std::string(type->name) + "." + std::string(field.name) +
                    "\" has no resolver.";
      }
    }
  }
  if (!mistakes.empty()) return fail(ErrorCode::invalid_data, "resolvers:" + mistakes);
  return made;
}

void Bindings::bind(const Schema& schema, const Resolvers& resolvers, std::string& mistakes) {
  for (const auto& [name, table] : resolvers.tables()) {
    const NamedType* type = schema.find(name);
    for (const OperationKind kind :
         {OperationKind::query, OperationKind::mutation, OperationKind::subscription}) {
      std::string root(to_string(kind));
      root[0] = static_cast<char>(root[0] - 'a' + 'A');
      if (name == root) type = schema.root(kind);
    }
    if (name == "__Meta") {  // __schema and __type
      for (const Row& row : table.rows) (row.field == "__schema" ? schema_row_ : type_row_) = &row;
      continue;
    }
    if (!type || type->kind != TypeKind::object) {
      mistakes += " There is no object type \"" + name + "\".";
      continue;
    }
    TypeBinding& binding = types_[type->index];
    binding.tag = table.tag;
    binding.is_json = table.is_json;
    binding.rows.resize(type->fields.size());
    for (const Row& row : table.rows) {
      if (row.field == "__typename") {
        binding.type_name = &row;
        continue;
      }
      const Field* field = type->field(row.field);
      const std::string place = "\"" + name + "." + row.field + "\"";
      if (!field) {
        mistakes += " There is no field " + place + ".";
      } else if (binding.rows[field->index]) {
        mistakes += " The field " + place + " has two resolvers.";
      } else {
        binding.rows[field->index] = &row;
      }
    }
  }
}

const Row* Bindings::row(const Field& field) const {
  if (field.name == "__schema") return schema_row_;
  if (field.name == "__type") return type_row_;
  if (field.name == "__typename") return nullptr;
  const TypeBinding& binding = types_[field.parent->index];
  return field.index < binding.rows.size() ? binding.rows[field.index] : nullptr;
}

}  // namespace gitops::graphql
