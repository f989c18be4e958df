#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/core/error.hpp"
#include "common/graphql/resolvers.hpp"
#include "common/graphql/schema.hpp"

namespace gitops::graphql {

// Rows of each type, looked up by the schema's indices.
class Bindings {
 public:
  // Binds the resolvers to the schema. The error lists all mistakes: a field of an object type
  // without a row, a row without a field, a table without a type.
  static Result<Bindings> make(const Schema& schema, const Resolvers& resolvers);

  struct TypeBinding {
    TypeTag tag = nullptr;
    bool is_json = false;
    std::vector<const Row*> rows;  // by Field::index; null: a member of the JSON
    const Row* type_name = nullptr;
  };
  [[nodiscard]] const TypeBinding& of(const NamedType& type) const { return types_[type.index]; }
  [[nodiscard]] const Row* row(const Field& field) const;

 private:
  void bind(const Schema& schema, const Resolvers& resolvers, std::string& mistakes);

  std::vector<TypeBinding> types_;
  std::shared_ptr<const Resolvers> own_;
  std::shared_ptr<const Resolvers> introspection_;
  const Row* schema_row_ = nullptr;
  const Row* type_row_ = nullptr;
};

// Returns the rows of the introspection types (introspection.cpp).
std::shared_ptr<const Resolvers> introspection_resolvers(const Schema& schema);

}  // namespace gitops::graphql
