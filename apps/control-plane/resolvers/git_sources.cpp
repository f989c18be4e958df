#include "control-plane/resolvers/git_sources.hpp"

#include <string>
#include <utility>

#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/views/git_source_view.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;

Task<Result<graphql::Json>> git_sources(store::Database& database, Call& call) {
  auto window = window_of(call, kObjectKeyNumbers);
  if (!window) co_return std::unexpected(std::move(window.error()));
  const auto& caller = caller_of(call);
  ObjectList list{.filter = {.entities = {"git-source"}}, .window = std::move(*window)};
  add_given(list.filter.runtimes, call["runtime"]);
  if (auto project = std::string(call["project"].text()); !project.empty()) {
    list.accepts = [project = std::move(project)](const ObjectState&, const ParsedBody& body) {
      return has_project(body.live()["metadata"], project);
    };
  }
  auto slice = co_await database.read(
      call.deadline(),
      [account = caller.account->number, list = std::move(list),
       context = view_context(caller)](store::Connection& db) mutable -> Result<std::string> {
        auto runtimes = runtimes_with_resource_reporter(db, account);
        if (!runtimes) return std::unexpected(std::move(runtimes.error()));
        context.rollout_runtimes = std::move(*runtimes);
        const auto facts = read_git_source_facts(db, account);
        if (!facts) return std::unexpected(facts.error());
        list.append = [&](std::string& out, const ObjectState& state, const ParsedBody& body) {
          append_git_source(out, state, body, context, *facts);
        };
        return object_slice(db, account, list);
      });
  if (!slice) co_return std::unexpected(std::move(slice.error()));
  co_return graphql::Json::trusted(std::move(*slice));
}

}  // namespace

std::vector<FieldRow> git_source_rows(Dependencies& dependencies) {
  auto& database = dependencies.database;
  return {read("gitSources", Permission::member,
               [&database](Call& call) { return git_sources(database, call); })};
}

}  // namespace gitops::control_plane_server
