#include "gitopsctl/cluster.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

std::vector<cli::Command> cluster_commands() {
  const auto runtime = std::make_shared<std::string>();
  const Sheet sheet{
      .schema = "gitopsctl/clusters/v1",
      .columns = {text_column("RUNTIME", {"metadata", "runtime"}),
                  text_column("NAME", {"metadata", "name"}),
                  state_column("STATUS", {"info", "connectionState", "status"}),
                  text_column("VERSION", {"info", "serverVersion"}),
                  text_column("APPS", {"info", "applicationsCount"}),
                  age_column("CHANGED", {"updatedAt"}), text_column("SERVER", {"server"}),
                  text_column("MESSAGE", {"info", "connectionState", "message"}, true)},
      .name = [](const Json& item) {
        return text_at(item, {"metadata", "runtime"}) + "/" + text_at(item, {"metadata", "name"});
      }};
  return {list_command({.name = "cluster list",
                        .summary = "List the clusters that the runtimes deploy to",
                        .description = "Examples:\n"
                                       "  gitopsctl cluster list\n"
                                       "  gitopsctl cluster list prod\n",
                        .operands = {{.name = "RUNTIME",
                                      .help = "Only those of this runtime",
                                      .target = runtime.get(),
                                      .is_required = false}}},
                       sheet, [runtime](Server& server, std::int64_t limit) {
                         return read_slices(server, kClusters, "clusters",
                                            Json{{"runtime", *runtime}}, limit);
                       })};
}

}  // namespace gitops::ctl
