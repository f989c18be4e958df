#include "control-plane/resolvers/application_details.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "control-plane/projection/event.hpp"
#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/resolvers/visible.hpp"
#include "control-plane/views/journal_view.hpp"
#include "control-plane/views/manifest_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using OptionalText = std::optional<std::string>;
using ReadDetail = std::function<Result<OptionalText>(store::Connection&, std::int64_t account,
                                                      const ObjectState& application)>;

// Runs `read_detail` for the Application that the arguments name. Null when the caller sees none of that name.
Task<Result<std::optional<graphql::Json>>> detail(store::Database& database, Call& call,
                                                  ReadDetail read_detail) {
  const ObjectName name{.runtime = std::string(call["runtime"].text()),
                        .object_namespace = std::string(call["namespace"].text()),
                        .name = std::string(call["name"].text())};
  auto found = co_await database.read(
      call.deadline(),
      [who = call.context<RequestContext>().caller, name,
       read_detail = std::move(read_detail)](store::Connection& db) -> Result<OptionalText> {
        const auto account = who->account->number;
        const auto visibility = visibility_of(db, *who);
        if (!visibility) return std::unexpected(visibility.error());
        const auto row = find_visible(db, account, name, *visibility);
        if (!row) return std::unexpected(row.error());
        if (!*row) return OptionalText();
        return read_detail(db, account, (*row)->state);
      });
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return std::optional<graphql::Json>();
  co_return std::optional(graphql::Json::trusted(std::move(**found)));
}

Task<Result<std::optional<graphql::Json>>> journal(store::Database& database, Call& call) {
  auto window = window_of(call, kDeliveryKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  co_return co_await detail(
      database, call,
      [window = std::move(*window)](store::Connection& db, std::int64_t account,
                                    const ObjectState& application) -> Result<OptionalText> {
        auto slice = journal_slice(db, account, application, window);
        if (!slice) return std::unexpected(std::move(slice.error()));
        return OptionalText(std::move(*slice));
      });
}

Task<Result<std::optional<graphql::Json>>> resource(store::Database& database, Call& call) {
  const auto of = call["resource"];
  ResourceName name{.group = std::string(of["group"].text()),
                    .kind = std::string(of["kind"].text()),
                    .object_namespace = std::string(of["namespace"].text()),
                    .name = std::string(of["name"].text())};
  co_return co_await detail(
      database, call,
      [name = std::move(name)](store::Connection& db, std::int64_t account,
                               const ObjectState& application) -> Result<OptionalText> {
        const auto found = find_resource(db, account, application, name);
        if (!found) return std::unexpected(found.error());
        if (!*found) return OptionalText();
        std::string out;
        append_manifests(out, **found);
        return OptionalText(std::move(out));
      });
}

}  // namespace

std::vector<FieldRow> application_detail_rows(Dependencies& dependencies) {
  auto& database = dependencies.database;
  return {
      read("applicationJournal", Permission::member,
           [&database](Call& call) { return journal(database, call); }),
      read("applicationResource", Permission::member,
           [&database](Call& call) { return resource(database, call); }),
  };
}

}  // namespace gitops::control_plane_server
