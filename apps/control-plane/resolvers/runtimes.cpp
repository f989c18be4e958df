#include "control-plane/resolvers/runtimes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/resolvers/arguments.hpp"
#include "control-plane/runtimes/cluster_view.hpp"
#include "control-plane/runtimes/runtime_store.hpp"
#include "control-plane/runtimes/runtime_view.hpp"
#include "control-plane/runtimes/tunnel_bans.hpp"
#include "control-plane/views/page.hpp"

namespace gitops::control_plane_server {
namespace {

using graphql::Call;
using Json = nlohmann::json;

constexpr std::size_t kMaxShownClusters = 1'000;        // in managedClusters
constexpr std::int64_t kRemovedAtATime = 500;           // objects of a deleted runtime
constexpr std::size_t kMaxReportedErrors = 1'000;       // of a runtime
constexpr std::size_t kMaxArgumentsText = 64UL * 1024;  // bytes of JSON
constexpr std::size_t kMaxStatusText = 256UL * 1024;    // bytes of JSON

// The data for views of runtimes, read in one transaction.
struct RuntimeRead {
  std::vector<RuntimeRow> runtimes;
  std::map<std::string, ClusterCounts> counts;
  std::multimap<std::string, RuntimeApplication> applications;
  std::vector<ClusterRow> clusters;
};

// Reads one runtime, or all when the name is empty.
Result<RuntimeRead> read_runtimes(store::Connection& db, std::int64_t account,
                                  const std::string& name, bool with_clusters) {
  RuntimeRead read;
  if (name.empty()) {
    auto runtimes = list_runtimes(db, account);
    if (!runtimes) return std::unexpected(std::move(runtimes.error()));
    read.runtimes = std::move(*runtimes);
  } else {
    auto runtime = find_runtime(db, account, name);
    if (!runtime) return std::unexpected(std::move(runtime.error()));
    if (!*runtime) return read;
    read.runtimes.push_back(std::move(**runtime));
  }
  auto counts = count_clusters(db, account);
  if (!counts) return std::unexpected(std::move(counts.error()));
  read.counts = std::move(*counts);
  auto applications = list_runtime_applications(db, account, name);
  if (!applications) return std::unexpected(std::move(applications.error()));
  for (auto& application : *applications) {
    auto runtime = application.runtime;
    read.applications.emplace(std::move(runtime), std::move(application));
  }
  if (with_clusters) {
    ClusterQuery query;
    query.runtime = name;
    query.limit = kMaxShownClusters;
    auto clusters = list_clusters(db, account, query);
    if (!clusters) return std::unexpected(std::move(clusters.error()));
    read.clusters = std::move(*clusters);
  }
  return read;
}

std::string shown(const RuntimeRead& read, const RuntimeRow& runtime, const Account& account,
                  const Dependencies& dependencies) {
  RuntimeFacts facts{.account = account,
                     .tunnel_domain = dependencies.tunnel_domain,
                     .now = micros_at(wall_now())};
  if (const auto found = read.counts.find(runtime.name); found != read.counts.end()) {
    facts.clusters = found->second;
  }
  const auto [begin, end] = read.applications.equal_range(runtime.name);
  for (auto at = begin; at != end; ++at) facts.applications.push_back(at->second);
  for (const auto& cluster : read.clusters) {
    if (cluster.runtime == runtime.name && cluster.server != kInCluster) {
      facts.managed_clusters.push_back(cluster_json(cluster, account.id));
    }
  }
  return runtime_json(runtime, facts);
}

// Returns a forward window. Clients do not page backwards through these lists.
Result<PageWindow> forward_window(const Call& call) {
  auto window = window_of(call, 0);
  if (window && window->is_backward) {
    return fail(ErrorCode::invalid_argument, "this list is read forward: use first and after");
  }
  return window;
}

Task<Result<graphql::Json>> runtimes(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const auto window = forward_window(call);
  if (!window) co_return std::unexpected(window.error());
  const auto read = co_await dependencies.database.read(
      call.deadline(),
      [number = account->number, with_clusters = call.selects_below("managedClusters")](
          store::Connection& db) { return read_runtimes(db, number, {}, with_clusters); });
  if (!read) co_return std::unexpected(read.error());
  std::vector<PageItem> items;
  for (const auto& runtime : read->runtimes) {
    if (window->from && runtime.name <= window->from->text) continue;
    if (items.size() > window->limit) break;
    items.push_back({.node = shown(*read, runtime, *account, dependencies),
                     .key = {.numbers = {}, .text = runtime.name}});
  }
  co_return graphql::Json::trusted(slice_json(*window, std::move(items)));
}

Task<Result<std::optional<graphql::Json>>> runtime_of_name(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const std::string name(call["name"].text());
  if (name.empty()) co_return std::optional<graphql::Json>();
  const auto read = co_await dependencies.database.read(
      call.deadline(),
      [number = account->number, name, with_clusters = call.selects("managedClusters")](
          store::Connection& db) { return read_runtimes(db, number, name, with_clusters); });
  if (!read) co_return std::unexpected(read.error());
  if (read->runtimes.empty()) co_return std::optional<graphql::Json>();
  co_return std::optional(
      graphql::Json::trusted(shown(*read, read->runtimes.front(), *account, dependencies)));
}

Task<Result<graphql::Json>> clusters(store::Database& database, Call& call) {
  const auto account = caller_of(call).account;
  const auto window = forward_window(call);
  if (!window) co_return std::unexpected(window.error());
  ClusterQuery query;
  if (window->from) {
    auto after = query_after(window->from->text);
    if (!after) co_return std::unexpected(std::move(after.error()));
    query = std::move(*after);
  }
  query.runtime = call["runtime"].text();
  query.limit = static_cast<std::int64_t>(window->limit) + 1;
  const auto rows = co_await database.read(
      call.deadline(), [number = account->number, query](store::Connection& db) {
        return list_clusters(db, number, query);
      });
  if (!rows) co_return std::unexpected(rows.error());
  std::vector<PageItem> items;
  for (const auto& row : *rows) {
    items.push_back(
        {.node = cluster_json(row, account->id), .key = {.numbers = {}, .text = cluster_key(row)}});
  }
  co_return graphql::Json::trusted(slice_json(*window, std::move(items)));
}

Task<Result<bool>> is_configuration_runtime(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto runtime = co_await database.read(
      call.deadline(), [number = caller.account->number, name = caller.runtime](
                           store::Connection& db) { return find_runtime(db, number, name); });
  if (!runtime) co_return std::unexpected(runtime.error());
  co_return *runtime && (*runtime)->is_configuration_runtime;
}

// Invalidates revoked tokens in the cache and disconnects the tunnel.
void forget_tokens(Dependencies& dependencies, const std::vector<std::string>& revoked) {
  if (dependencies.authenticator != nullptr) {
    for (const auto& id : revoked) dependencies.authenticator->forget(id);
  }
  if (dependencies.tunnels != nullptr && !revoked.empty()) dependencies.tunnels->wake();
}

std::string registration_mistake(const NewRuntime& runtime) {
  if (auto mistake = runtime_name_mistake(runtime.name); !mistake.empty()) return mistake;
  if (runtime.arguments.size() > kMaxArgumentsText) return "the arguments have more than 64 KiB";
  const auto is_line = [](std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= ' '; });
  };
  return is_line(runtime.runtime_namespace) && is_line(runtime.cluster)
             ? std::string()
             : "runtimeNamespace and cluster have no control characters";
}

Task<Result<graphql::Json>> register_runtime(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const auto arguments = call["installationArgs"];
  NewRuntime runtime{.name = std::string(arguments["runtimeName"].text()),
                     .runtime_namespace = std::string(arguments["runtimeNamespace"].text()),
                     .cluster = std::string(arguments["cluster"].text()),
                     .arguments = arguments.json()};
  if (auto mistake = registration_mistake(runtime); !mistake.empty()) {
    co_return fail(ErrorCode::invalid_argument, std::move(mistake));
  }
  const auto issued = co_await dependencies.database.write(
      call.deadline(),
      [number = account->number, runtime, now = micros_at(wall_now())](store::Connection& db) {
        return create_runtime(db, number, runtime, now);
      });
  if (!issued) co_return std::unexpected(issued.error());
  forget_tokens(dependencies, issued->revoked);
  Log("runtimes")
      .info("a runtime was registered", {{"runtime", runtime.name},
                                         {"account", account->id},
                                         {"is_new", issued->revoked.empty()}});
  co_return graphql::Json::trusted(
      to_text({{"name", runtime.name}, {"newAccessToken", issued->text.reveal()}}));
}

Task<Result<std::int64_t>> remove_runtime(Dependencies& dependencies, Call& call) {
  const auto account = caller_of(call).account;
  const std::string name(call["name"].text());
  const auto deadline = call.deadline();
  const auto revoked = co_await dependencies.database.write(
      deadline,
      [number = account->number, name, now = micros_at(wall_now())](store::Connection& db) {
        auto ids = delete_runtime(db, number, name);
        if (!ids) return ids;
        for (const auto& id : *ids) {
          if (auto added =
                  add_revocation(db, {.account = number, .subject = id, .runtime = name}, now);
              !added) {
            return Result<std::vector<std::string>>(std::unexpected(std::move(added.error())));
          }
        }
        return ids;
      });
  if (!revoked) co_return std::unexpected(revoked.error());
  forget_tokens(dependencies, *revoked);
  Log("runtimes").info("a runtime was deleted", {{"runtime", name}, {"account", account->id}});
  // Small transactions let the events of other runtimes be stored in between.
  while (true) {
    const auto removed = co_await dependencies.database.write(
        deadline, [number = account->number, name](store::Connection& db) {
          return remove_objects_of_runtime(db, number, name, kRemovedAtATime);
        });
    if (!removed) {
      Log("runtimes")
          .warning("objects of a deleted runtime are left",
                   {{"runtime", name}, {"error", removed.error().message}});
      break;
    }
    if (*removed < kRemovedAtATime) break;
  }
  // Pages that are open still show its objects.
  const auto told = co_await dependencies.database.write(
      deadline, [number = account->number, now = micros_at(wall_now())](store::Connection& db) {
        return add_account_change(db, number, now);
      });
  if (told && dependencies.account_changed) dependencies.account_changed();
  co_return 0;
}

// Returns the runtime that an argument names, which must be the runtime of the token.
Result<std::string> own_runtime(Call& call, graphql::InputView named) {
  const auto& caller = caller_of(call);
  if (named.text() != caller.runtime) {
    return fail(ErrorCode::invalid_argument, "the token is that of runtime " + caller.runtime +
                                                 ", not of runtime " + std::string(named.text()));
  }
  return caller.runtime;
}

Task<Result<std::int64_t>> update_runtime_status(store::Database& database, Call& call) {
  const auto runtime = own_runtime(call, call["args"]["runtime"]);
  if (!runtime) co_return std::unexpected(runtime.error());
  auto status = call["args"]["status"].json();
  if (status.size() > kMaxStatusText) {
    co_return fail(ErrorCode::invalid_argument, "the status has more than 256 KiB");
  }
  const auto set = co_await database.write(
      call.deadline(),
      [number = caller_of(call).account->number, name = *runtime, status = std::move(status)](
          store::Connection& db) { return set_runtime_status(db, number, name, status); });
  if (!set) co_return std::unexpected(set.error());
  co_return 1;
}

Task<Result<std::int64_t>> report_runtime_errors(store::Database& database, Call& call) {
  const auto runtime = own_runtime(call, call["reportErrorsArgs"]["runtime"]);
  if (!runtime) co_return std::unexpected(runtime.error());
  const auto errors = call["reportErrorsArgs"]["errors"];
  auto text = errors.json();
  if (errors.items().size() > kMaxReportedErrors || text.size() > kMaxStatusText) {
    co_return fail(ErrorCode::invalid_argument,
                   "a runtime reports at most 1,000 errors and 256 KiB");
  }
  const auto set = co_await database.write(
      call.deadline(),
      [number = caller_of(call).account->number, name = *runtime, text = std::move(text)](
          store::Connection& db) { return set_runtime_errors(db, number, name, text); });
  if (!set) co_return std::unexpected(set.error());
  co_return static_cast<std::int64_t>(errors.items().size());
}

Task<Result<bool>> update_runtime_clusters(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  auto report = read_cluster_report(call["clusters"].json(), caller.runtime);
  if (!report) co_return std::unexpected(std::move(report.error()));
  const auto applied = co_await database.write(
      call.deadline(),
      [number = caller.account->number, name = caller.runtime, report = std::move(*report),
       now = micros_at(wall_now())](store::Connection& db) {
        return apply_cluster_report(db, number, name, report, now);
      });
  if (!applied) co_return std::unexpected(applied.error());
  co_return true;
}

Task<Result<bool>> update_git_source_permissions(store::Database& database, Call& call) {
  const auto& caller = caller_of(call);
  const auto arguments = call["args"];
  auto permissions = arguments["permissions"].json();
  if (permissions.size() > kMaxStatusText) {
    co_return fail(ErrorCode::invalid_argument, "the permissions have more than 256 KiB");
  }
  const auto set = co_await database.write(
      call.deadline(),
      [number = caller.account->number, runtime = caller.runtime,
       source_namespace = std::string(arguments["namespace"].text()),
       name = std::string(arguments["gitSource"].text()), permissions = std::move(permissions),
       now = micros_at(wall_now())](store::Connection& db) {
        return set_git_source_permissions(db, number, runtime, source_namespace, name, permissions,
                                          now);
      });
  if (!set) co_return std::unexpected(set.error());
  co_return true;
}

}  // namespace

std::vector<FieldRow> runtime_rows(Dependencies& dependencies) {
  using enum Permission;
  auto& database = dependencies.database;
  // Wraps a function that takes the database or the dependencies.
  const auto of_database = [&database](auto function) {
    return [&database, function](Call& call) { return function(database, call); };
  };
  const auto of_all = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) { return function(dependencies, call); };
  };
  const Scopes registers{kScopeRuntimes, kScopeWrite};
  return {
      read("runtimes", member, of_all(runtimes)),
      read("runtime", member, of_all(runtime_of_name)),
      read("clusters", member, of_database(clusters)),
      read("shouldBeImplicitConfigurationRuntime", Permission::runtime,
           of_database(is_configuration_runtime)),
      change("createRuntime", admin, {"installationArgs.runtimeName"}, of_all(register_runtime),
             registers),
      change("deleteRuntime", admin, {"name"}, of_all(remove_runtime), registers),
      change("deleteManagedRuntime", admin, {"name"}, of_all(remove_runtime), registers),
      // There is nothing to migrate, since the database has no runtimes of older control planes.
      change("migrateRuntime", admin, {"runtimeName"}, [] { return nullptr; }),
      report("updateRuntimeStatus", {}, of_database(update_runtime_status)),
      report("reportRuntimeErrors", {}, of_database(report_runtime_errors)),
      report("updateRuntimeClusters", {}, of_database(update_runtime_clusters)),
      report("updateGitSourcePermissions", {"args.gitSource", "args.namespace"},
             of_database(update_git_source_permissions)),
  };
}

}  // namespace gitops::control_plane_server
