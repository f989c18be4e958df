#include "control-plane/resolvers/promotions.hpp"

#include <optional>
#include <string>
#include <utility>

#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/views/promotion_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

Result<std::optional<graphql::Json>> json_of(Result<std::optional<std::string>> found) {
  if (!found) return std::unexpected(std::move(found.error()));
  if (!*found) return std::optional<graphql::Json>();
  return std::optional(graphql::Json::trusted(std::move(**found)));
}

Task<Result<std::optional<graphql::Json>>> promotion_template(store::Database& database,
                                                              Call& call) {
  const ObjectName name{.runtime = std::string(call["runtime"].text()),
                        .object_namespace = std::string(call["namespace"].text()),
                        .name = std::string(call["name"].text())};
  co_return json_of(co_await database.read(
      call.deadline(), [account = caller_of(call).account->number, name](store::Connection& db) {
        return find_promotion_template(db, account, name);
      }));
}

// The caller sends the Application's metadata. Without labels in it the reported labels count.
Task<Result<std::optional<graphql::Json>>> template_by_runtime(store::Database& database,
                                                               Call& call) {
  const auto metadata = call["applicationMetadata"];
  const auto& caller = caller_of(call);
  Labels labels;
  for (const auto& label : metadata["labels"].items()) {
    labels.emplace_back(label["key"].text(), label["value"].text());
  }
  ObjectName name{.runtime = std::string(metadata["runtime"].text_or(caller.runtime)),
                  .object_namespace = std::string(metadata["namespace"].text()),
                  .name = std::string(metadata["name"].text())};
  co_return json_of(co_await database.read(
      call.deadline(), [account = caller.account->number, labels = std::move(labels),
                        name = std::move(name)](store::Connection& db) {
        return labels.empty() ? find_promotion_template(db, account, name)
                              : find_promotion_template(db, account, labels);
      }));
}

graphql::Json nothing_in_slices() {
  return graphql::Json::trusted(empty_slice_json());
}

graphql::Json no_items() {
  return graphql::Json::trusted("[]");
}

}  // namespace

std::vector<FieldRow> promotion_rows(Dependencies& dependencies) {
  auto& database = dependencies.database;
  return {
      read("promotionTemplate", Permission::member,
           [&database](Call& call) { return promotion_template(database, call); }),
      read("promotionTemplateByRuntime", Permission::member,
           [&database](Call& call) { return template_by_runtime(database, call); }),
      read("promotions", Permission::member, nothing_in_slices),
      read("productReleases", Permission::member, nothing_in_slices),
      read("productReleaseTasks", Permission::member, no_items),
      read("productReleaseRunHooksTasks", Permission::member, no_items),
      read("productReleaseCommitStatuses", Permission::member, no_items),
      read("productComponentsList", Permission::member, no_items),
  };
}

}  // namespace gitops::control_plane_server
