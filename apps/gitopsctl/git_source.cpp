#include "gitopsctl/git_source.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

std::vector<cli::Command> git_source_commands() {
  const auto runtime = std::make_shared<std::string>();
  const Sheet sheet{
      .schema = "gitopsctl/git-sources/v1",
      .columns = {text_column("RUNTIME", {"metadata", "runtime"}),
                  text_column("NAME", {"metadata", "name"}), state_column("SYNC", {"syncStatus"}),
                  state_column("HEALTH", {"healthStatus"}), text_column("PATH", {"self", "path"}),
                  text_column("REPOSITORY", {"self", "repoURL"}),
                  text_column("REVISION", {"self", "revision"}, true),
                  text_column("RESTRICTED", {"isRestricted"}, true)},
      .name = [](const Json& item) {
        return text_at(item, {"metadata", "runtime"}) + "/" + text_at(item, {"metadata", "name"});
      }};
  return {list_command({.name = "git-source list",
                        .summary = "List the Git sources of the runtimes",
                        .description = "Examples:\n"
                                       "  gitopsctl git-source list\n"
                                       "  gitopsctl git-source list prod -o wide\n",
                        .operands = {{.name = "RUNTIME",
                                      .help = "Only those of this runtime",
                                      .target = runtime.get(),
                                      .is_required = false}}},
                       sheet, [runtime](Server& server, std::int64_t limit) {
                         return read_slices(server, kGitSources, "gitSources",
                                            Json{{"runtime", *runtime}}, limit);
                       })};
}

}  // namespace gitops::ctl
