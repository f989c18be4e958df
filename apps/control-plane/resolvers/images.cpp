#include "control-plane/resolvers/images.hpp"

#include <string>
#include <utility>

#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/views/image_store.hpp"
#include "control-plane/views/image_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

Task<Result<graphql::Json>> create_binary(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto context = view_context(caller);
  const auto row = co_await database.write(
      call.deadline(),
      [account = caller.account->number, input = call["imageBinary"].json(), now = context.now](
          store::Connection& db) { return put_image_binary(db, account, input, now); });
  if (!row) co_return std::unexpected(row.error());
  co_return graphql::Json::trusted(image_binary_json(*row, context));
}

Task<Result<graphql::Json>> patch_binary(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto context = view_context(caller);
  const auto row = co_await database.write(
      call.deadline(),
      [account = caller.account->number, name = std::string(call["imageName"].text()),
       patch = call["imagePatch"].json(), now = context.now](store::Connection& db) {
        return patch_image_binary(db, account, name, patch, now);
      });
  if (!row) co_return std::unexpected(row.error());
  co_return graphql::Json::trusted(image_binary_json(*row, context));
}

Task<Result<graphql::Json>> create_registry(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto input = call["imageRegistry"].json();
  const auto put = co_await database.write(
      call.deadline(),
      [account = caller.account->number, input, now = micros_at(wall_now())](
          store::Connection& db) { return put_image_registry(db, account, input, now); });
  if (!put) co_return std::unexpected(put.error());
  co_return graphql::Json::trusted(image_registry_json(input));
}

Task<Result<graphql::Json>> create_layers(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto input = call["imageLayers"].json();
  const auto put = co_await database.write(
      call.deadline(),
      [account = caller.account->number, input, now = micros_at(wall_now())](
          store::Connection& db) { return put_image_layers(db, account, input, now); });
  if (!put) co_return std::unexpected(put.error());
  co_return graphql::Json::trusted(image_layers_json(input, view_context(caller)));
}

Task<Result<bool>> annotate(store::Database& database, Call& call) {
  const auto saved = co_await database.write(
      call.deadline(),
      [account = caller_of(call).account->number, input = call["annotation"].json(),
       now = micros_at(wall_now())](store::Connection& db) {
        return save_annotation(db, account, input, now);
      });
  if (!saved) co_return std::unexpected(saved.error());
  co_return true;
}

}  // namespace

std::vector<FieldRow> image_rows(Dependencies& dependencies) {
  const auto of_database = [&database = dependencies.database](auto function) {
    return [&database, function](Call& call) { return function(database, call); };
  };
  const Scopes reports{kScopeImages, kScopeWrite};
  return {
      change("createImageBinary", Permission::member, {"imageBinary.imageName"},
             of_database(create_binary), reports),
      change("patchImageBinary", Permission::member, {"imageName"}, of_database(patch_binary),
             reports),
      change("createImageRegistry", Permission::member, {"imageRegistry.imageName"},
             of_database(create_registry), reports),
      change("createImageLayers", Permission::member, {"imageLayers.image"},
             of_database(create_layers), reports),
      change("saveAnnotation", Permission::member, {"annotation.key"}, of_database(annotate),
             reports),
  };
}

}  // namespace gitops::control_plane_server
