#include "gitopsctl/git_source.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

Sheet git_source_sheet() {
  return {
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
}

cli::Command list() {
  const auto runtime = std::make_shared<std::string>();
  return list_command({.name = "git-source list",
                       .summary = "List the Git sources of the runtimes",
                       .description = "Examples:\n"
                                      "  gitopsctl git-source list\n"
                                      "  gitopsctl git-source list prod -o wide\n",
                       .operands = {{.name = "RUNTIME",
                                     .help = "Only those of this runtime",
                                     .target = runtime.get(),
                                     .is_required = false}}},
                      git_source_sheet(), [runtime](Server& server, std::int64_t limit) {
                        return read_slices(server, kGitSources, "gitSources",
                                           Json{{"runtime", *runtime}}, limit);
                      });
}

struct CreateSettings {
  std::string runtime;
  std::string name;
  std::string repository;
  std::string server = "https://kubernetes.default.svc";
  std::string ns;
  std::string include;
  std::string exclude;
  bool create_repository = false;
  void add_to(ConfigReader& reader) {
    reader.add({.flag = "server", .help = "API server to which its Applications deploy"}, server);
    reader.add(
        {.flag = "namespace", .help = "Namespace there; empty means the runtime's", .letter = 'n'},
        ns);
    reader.add({.flag = "include", .help = "Files to read, as a glob; empty means all"}, include);
    reader.add({.flag = "exclude", .help = "Files to leave out, as a glob"}, exclude);
    reader.add({.flag = "create-repository", .help = "Make the repository when there is none"},
               create_repository);
  }
};

Task<Result<int>> create_git_source(Call& call, const CreateSettings& settings) {
  Json arguments{{"appName", settings.name},
                 {"appSpecifier", settings.repository},
                 {"destServer", settings.server},
                 {"createRepo", settings.create_repository}};
  if (!settings.ns.empty()) arguments["destNamespace"] = settings.ns;
  if (!settings.include.empty()) arguments["include"] = settings.include;
  if (!settings.exclude.empty()) arguments["exclude"] = settings.exclude;
  const auto answer = co_await call.server.ask_runtime(settings.runtime, kCreateGitSource.text,
                                                       Json{{"args", std::move(arguments)}});
  co_return tell_outcome(
      call, answer,
      "Git source " + settings.name + " of runtime " + settings.runtime + " is committed",
      "gitopsctl git-source list " + settings.runtime);
}

cli::Command create() {
  const auto settings = std::make_shared<CreateSettings>();
  return noun_command(
      {.name = "git-source create",
       .summary = "Create a Git source of a runtime",
       .description = "Commits to the shared configuration repository with your Git token of the "
                      "runtime.\n\n" +
                      std::string(kOutcomeHelp) +
                      "Examples:\n"
                      "  gitopsctl git-source create prod apps "
                      "https://git.example/acme/apps.git/prod?ref=main\n",
       .operands =
           {{.name = "RUNTIME", .help = "Name of the runtime", .target = &settings->runtime},
            {.name = "NAME", .help = "Name of the new Git source", .target = &settings->name},
            {.name = "REPOSITORY",
             .help = "https://host/owner/name.git, then a path and ?ref= as needed",
             .target = &settings->repository}},
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .work = [settings](Call& call) { return create_git_source(call, *settings); }});
}

struct DeleteSettings {
  std::string name;
  bool yes = false;
};

Task<Result<int>> delete_git_source(Call& call, const DeleteSettings& settings) {
  const auto items =
      co_await read_slices(call.server, kGitSources, "gitSources", Json{{"runtime", ""}}, 0);
  if (!items) co_return std::unexpected(items.error());
  const auto found = one_of(items->all, git_source_sheet(), "Git source", settings.name);
  if (!found) co_return std::unexpected(found.error());
  const auto name = git_source_sheet().name(*found);
  if (!settings.yes) {
    co_return needs_yes("this deletes Git source " + name + " with its Applications");
  }
  const auto runtime = string_at(*found, {"metadata", "runtime"});
  const auto answer = co_await call.server.ask_runtime(
      runtime, kDeleteGitSource.text, Json{{"name", at(*found, {"metadata", "name"})}});
  co_return tell_outcome(call, answer, "Git source " + name + " is deleted",
                         "gitopsctl git-source list " + runtime);
}

cli::Command remove() {
  const auto settings = std::make_shared<DeleteSettings>();
  return noun_command(
      {.name = "git-source delete",
       .summary = "Delete a Git source of a runtime, with its Applications",
       .description =
           kOutcomeHelp + std::string("Examples:\n  gitopsctl git-source delete prod/apps --yes\n"),
       .operands = {{.name = "GIT-SOURCE",
                     .help = "NAME or RUNTIME/NAME",
                     .target = &settings->name}},
       .bind = [settings](ConfigReader& reader) { add_yes(reader, settings->yes); },
       .has_form = false,
       .work = [settings](Call& call) { return delete_git_source(call, *settings); }});
}

}  // namespace

std::vector<cli::Command> git_source_commands() {
  return {list(), create(), remove()};
}

}  // namespace gitops::ctl
