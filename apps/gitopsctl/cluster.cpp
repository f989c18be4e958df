#include "gitopsctl/cluster.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "gitopsctl/cluster_add.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

Sheet cluster_sheet() {
  return {.schema = "gitopsctl/clusters/v1",
          .columns = {text_column("RUNTIME", {"metadata", "runtime"}),
                      text_column("NAME", {"metadata", "name"}),
                      state_column("STATUS", {"info", "connectionState", "status"}),
                      text_column("VERSION", {"info", "serverVersion"}),
                      text_column("APPS", {"info", "applicationsCount"}),
                      age_column("CHANGED", {"updatedAt"}), text_column("SERVER", {"server"}),
                      text_column("MESSAGE", {"info", "connectionState", "message"}, true)},
          .name = [](const Json& item) {
            return text_at(item, {"metadata", "runtime"}) + "/" +
                   text_at(item, {"metadata", "name"});
          }};
}

cli::Command list() {
  const auto runtime = std::make_shared<std::string>();
  return list_command({.name = "cluster list",
                       .summary = "List the clusters that the runtimes deploy to",
                       .description = "Examples:\n"
                                      "  gitopsctl cluster list\n"
                                      "  gitopsctl cluster list prod\n",
                       .operands = {{.name = "RUNTIME",
                                     .help = "Only those of this runtime",
                                     .target = runtime.get(),
                                     .is_required = false}}},
                      cluster_sheet(), [runtime](Server& server, std::int64_t limit) {
                        return read_slices(server, kClusters, "clusters",
                                           Json{{"runtime", *runtime}}, limit);
                      });
}

struct RemoveSettings {
  std::string cluster;
  bool yes = false;
};

Task<Result<int>> remove_cluster(Call& call, const RemoveSettings& settings) {
  const auto items =
      co_await read_slices(call.server, kClusters, "clusters", Json{{"runtime", ""}}, 0);
  if (!items) co_return std::unexpected(items.error());
  const auto found = one_of(items->all, cluster_sheet(), "cluster", settings.cluster);
  if (!found) co_return std::unexpected(found.error());
  const auto name = cluster_sheet().name(*found);
  if (!settings.yes) co_return needs_yes("this removes cluster " + name + " from its runtime");
  const auto runtime = string_at(*found, {"metadata", "runtime"});
  const auto answer = co_await call.server.ask_runtime(
      runtime, kRemoveCluster.text, Json{{"server", at(*found, {"server"})}, {"runtime", runtime}});
  co_return tell_outcome(call, answer, "cluster " + name + " is removed",
                         "gitopsctl cluster list " + runtime);
}

cli::Command remove() {
  const auto settings = std::make_shared<RemoveSettings>();
  return noun_command({.name = "cluster remove",
                       .summary = "Remove a cluster from its runtime (administrators)",
                       .description = "What is deployed there stays.\n\n" +
                                      std::string(kOutcomeHelp) +
                                      "Examples:\n  gitopsctl cluster remove prod/east --yes\n",
                       .operands = {{.name = "CLUSTER",
                                     .help = "NAME or RUNTIME/NAME",
                                     .target = &settings->cluster}},
                       .bind = [settings](ConfigReader& reader) { add_yes(reader, settings->yes); },
                       .has_form = false,
                       .work = [settings](Call& call) { return remove_cluster(call, *settings); }});
}

}  // namespace

std::vector<cli::Command> cluster_commands() {
  return {list(), cluster_add_command(), remove()};
}

}  // namespace gitops::ctl
