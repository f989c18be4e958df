#include "app-proxy/resolvers/git_sources.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_files.hpp"
#include "app-proxy/entities/git_source.hpp"
#include "app-proxy/entities/rollouts_installation.hpp"
#include "app-proxy/git/failure_codes.hpp"
#include "app-proxy/resolvers/arguments.hpp"
#include "app-proxy/resolvers/commits.hpp"
#include "app-proxy/resolvers/config_commit.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"
#include "common/core/json_value.hpp"
#include "common/core/log.hpp"
#include "common/core/text.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;

// Version of the chart of Argo Rollouts 1.8 (https://github.com/argoproj/argo-helm).
constexpr std::string_view kRolloutsChart = "2.40.5";

// Time limit for pruning. The public CLI waits 30 s for a response.
constexpr auto kPruneTime = std::chrono::seconds(25);
constexpr auto kLook = std::chrono::seconds(10);
constexpr std::size_t kLabelExcerpt = 100;  // bytes, in a message

Error mistake(std::string message) {
  return {.code = ErrorCode::invalid_argument, .message = std::move(message)};
}

GitCredential credential_of(const ConfigTarget& target) {
  return {.username = git_username_of(target.account), .password = target.account.access.token};
}

// Returns the paths of the files in a folder of the repository; none when there is no branch yet.
Task<Result<std::vector<std::string>>> files_in(const ConfigTarget& target, TreeReader& reader,
                                                std::string folder, Deadline deadline) {
  // The job on the pool may outlive this coroutine.
  const auto paths = std::make_shared<std::vector<std::string>>();
  const auto read = co_await reader.read({.repository = target.repository.at.repository,
                                          .branch = target.repository.at.ref,
                                          .folder = std::move(folder),
                                          .credential = credential_of(target),
                                          .wanted =
                                              [paths](std::string_view path) {
                                                paths->emplace_back(path);
                                                return false;
                                              }},
                                         deadline);
  if (read) co_return *paths;
  if (is_missing_branch(read.error())) co_return std::vector<std::string>();
  co_return std::unexpected(public_commit_error(read.error()));
}

// Files that removeRuntimeFromIscRepo removes.
struct RuntimeRemoval {
  std::vector<FileChange> changes;
  std::int64_t files = 0;
  std::string left = {};  // remaining files, for people; empty: none
};

// Returns all files that concern this runtime alone. In the default Git source's folder it is only
// our own file; the others belong to people.
Task<Result<RuntimeRemoval>> removal_of(const ConfigTarget& target, TreeReader& reader,
                                        Deadline deadline) {
  RuntimeRemoval removal{.changes = changes_to_remove_runtime(target.repository)};
  for (auto& folder : target.repository.own_folders()) {
    const auto paths = co_await files_in(target, reader, std::move(folder), deadline);
    if (!paths) co_return std::unexpected(paths.error());
    removal.files += static_cast<std::int64_t>(paths->size());
  }
  const auto folder = target.repository.default_source_folder();
  const auto paths = co_await files_in(target, reader, folder, deadline);
  if (!paths) co_return std::unexpected(paths.error());
  const bool is_ours = *paths == std::vector<std::string>{"README.md"};
  if (is_ours) {
    removal.changes.push_back(
        {.path = folder + "/README.md", .kind = FileChange::Kind::remove_folder});
    ++removal.files;
  } else if (!paths->empty()) {
    removal.left = "Left: the folder " + folder + " with " + std::to_string(paths->size()) +
                   " files, which are not the runtime's own. Nothing applies them any more.";
  }
  co_return removal;
}

// Looks whether a commit of a removal is in the branch after all.
Task<bool> was_removed(const ConfigTarget& target, TreeReader& reader, const Error& error) {
  if (error.subcode != kOutcomeUnknown) co_return false;
  const auto present = co_await removal_of(target, reader, deadline_after(kLook));
  co_return present && present->files == 0;
}

Result<void> checked_name(InputView name, const RuntimeFiles& files) {
  if (auto checked = check_entity_name(name.text()); !checked) {
    return std::unexpected(mistake("appName: " + checked.error().message));
  }
  if (name.text() == files.runtime) {
    return std::unexpected(
        mistake("appName: the runtime itself has an Application " + files.runtime));
  }
  return {};
}

Result<RepositorySpecifier> specifier_of(InputView text, Scheme scheme) {
  auto specifier = parse_specifier(text.text(), scheme);
  if (!specifier) {
    return std::unexpected(mistake("appSpecifier: " + specifier.error().message +
                                   "; expected https://host/owner/name.git/path?ref=branch"));
  }
  return specifier;
}

// Ends an earlier removal of the runtime's files, in all replicas.
Task<Result<void>> end_removal(const RuntimeFiles& files) {
  auto told = co_await files.set_removed(false, deadline_after(kLook));
  if (told) co_return told;
  told.error().message =
      "the Git source was committed, but the other replicas of the runtime could not be told; call "
      "it again: " +
      told.error().message;
  co_return told;
}

// Parses a JSON object of texts, or the text of one.
Result<std::vector<std::pair<std::string, std::string>>> labels_of(InputView given) {
  std::vector<std::pair<std::string, std::string>> labels;
  if (!given.exists()) return labels;
  const auto object = parse_json_object(given.text().empty() ? given.json() : given.text());
  if (!object.is_object()) return std::unexpected(mistake("labels: expected a JSON object"));
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) {
      return std::unexpected(mistake("labels: the value of " + key + " is not a string"));
    }
    auto text = value.get<std::string>();
    if (!is_label_key(key) || !is_label_value(text)) {
      return std::unexpected(mistake("labels: " + shortened(key + "=" + text, kLabelExcerpt) +
                                     " is no label that Kubernetes takes"));
    }
    labels.emplace_back(key, std::move(text));
  }
  return labels;
}

Result<void> check_server(InputView server) {
  const auto url = http::parse_url(server.text());
  if (url && (url->scheme == "https" || url->scheme == "http") && url->userinfo.empty()) return {};
  return std::unexpected(mistake(
      "destServer: expected the URL of a cluster's API server, as https://kubernetes.default.svc"));
}

Result<void> check_namespace(InputView name) {
  if (name.text().empty() || check_entity_name(name.text())) return {};
  return std::unexpected(mistake("destNamespace: expected the name of a namespace"));
}

// Checks that the repository has the branch or tag. Skips other hosts than that of the caller's
// token, which is sent to no other.
Task<Result<void>> look_for_source(const ConfigTarget& target, TreeReader& reader,
                                   const RepositorySpecifier& source, Deadline deadline) {
  const auto url = clone_url_of(target.account.root, source.repository.to_string());
  if (!url) co_return Result<void>();
  const bool is_commit = source.kind == RepositorySpecifier::Kind::commit;
  const auto found =
      co_await reader.has(*url, is_commit ? std::string() : source.ref, credential_of(target),
                          std::min(deadline, deadline_after(kLook)));
  if (found && *found) co_return Result<void>();
  if (found) {
    co_return std::unexpected(
        public_commit_error({.code = ErrorCode::not_found,
                             .message = "appSpecifier: " + source.repository.name +
                                        " has no branch or tag " + source.ref}));
  }
  // Other errors concern the caller's token or are temporary. Argo CD has its own credentials.
  const auto code = found.error().code;
  if (code != ErrorCode::not_found && code != ErrorCode::protocol) co_return Result<void>();
  Error error = public_commit_error(found.error());
  error.message = "appSpecifier: " + error.message;
  co_return std::unexpected(std::move(error));
}

// Checks that Argo CD has the cluster to deploy to.
Task<Result<void>> look_for_cluster(ClustersPart clusters, std::string server, Deadline deadline) {
  if (!clusters) co_return Result<void>();
  auto found =
      co_await clusters->look_for(std::move(server), std::min(deadline, deadline_after(kLook)));
  if (!found) found.error().message = "destServer: " + found.error().message;
  co_return found;
}

// Checks that a branch lacks the folder of a Git source. What cannot be read soon counts as present.
Task<bool> lacks_folder(const ConfigTarget& target, TreeReader& reader, RepositoryUrl url,
                        const RepositorySpecifier& source, Deadline deadline) {
  if (source.path.empty()) co_return false;
  const auto has_files = std::make_shared<std::atomic<bool>>(false);
  const auto read = co_await reader.read({.repository = std::move(url),
                                          .branch = source.ref,
                                          .folder = source.path,
                                          .credential = credential_of(target),
                                          .wanted =
                                              [has_files](std::string_view) {
                                                has_files->store(true);
                                                return false;
                                              }},
                                         std::min(deadline, deadline_after(kLook)));
  co_return read.has_value() && !has_files->load();
}

// Creates the repository of a Git source unless it exists, and a commit with its folder unless it
// has both, since Argo CD refuses a folder that does not exist. Completes a request that ended
// between them.
Task<Result<void>> ensure_repository(const ConfigTarget& target, Committer& committer,
                                     TreeReader& reader, const RepositorySpecifier& source,
                                     Deadline deadline) {
  if (source.kind != RepositorySpecifier::Kind::branch) {
    co_return std::unexpected(
        mistake("createRepo: a repository that is made has no tags and no commits to name"));
  }
  auto url = clone_url_of(target.account.root, source.repository.to_string());
  if (!url) co_return std::unexpected(std::move(url.error()));
  const auto name = parse_repository_name(source.repository.name);
  if (!name) co_return std::unexpected(name.error());
  auto& provider = *target.account.provider;
  std::string default_branch;
  const auto found = co_await provider.repository(target.account.access, *name, deadline);
  if (found) {
    default_branch = found->value.default_branch;
    Result<bool> has_branch(!default_branch.empty());
    if (!source.ref.empty()) {
      has_branch = co_await reader.has(*url, source.ref, credential_of(target),
                                       std::min(deadline, deadline_after(kLook)));
    }
    if (!has_branch) co_return Result<void>();
    // Most hosts make the branch with the repository, so a request may have ended after that.
    if (*has_branch && !co_await lacks_folder(target, reader, std::move(*url), source, deadline)) {
      co_return Result<void>();
    }
  } else {
    if (found.error().code != ErrorCode::not_found) {
      co_return std::unexpected(shown(found.error()));
    }
    const auto made =
        co_await provider.create_repository(target.account.access, {.name = *name}, deadline);
    if (!made) co_return std::unexpected(shown(made.error()));
    default_branch = made->default_branch;
    // Most hosts make the first commit; Bitbucket makes none.
    if (source.path.empty() && !default_branch.empty()) co_return Result<void>();
  }
  CommitRequest request{
      .repository = source.repository,
      .branch = source.ref,
      .default_branch = std::move(default_branch),
      .changes = {ensure_file((source.path.empty() ? "" : source.path + "/") + "README.md",
                              "Manifests in this folder are applied by the Git source that "
                              "names it.\n")},
      .message = source.path.empty() ? "Create the repository" : "Create " + source.path,
      .description = target.requested_by};
  const auto committed =
      co_await commit_as(target.account, committer, std::move(request), deadline);
  if (committed || committed.error().subcode == git_errors::kNothingToCommit) {
    co_return Result<void>();
  }
  // A branch that a repository with other branches lacks is an error of look_for_source().
  if (found && committed.error().subcode == git_errors::kNotFound) co_return Result<void>();
  co_return std::unexpected(committed.error());
}

// Common arguments of createRestrictedGitSource and editRestrictedGitSource.
Result<RestrictedGitSource> restricted_of(InputView args, Scheme scheme) {
  RestrictedGitSource source{.name = text_of(args["appName"]),
                             .source = {},
                             .source_namespace = text_of(args["sourceNamespace"])};
  for (const auto destination : args["destinations"].items()) {
    for (const auto each : destination["namespaces"].items()) {
      source.destinations.push_back({.name = text_of(destination["name"]),
                                     .server = text_of(destination["server"]),
                                     .destination_namespace = text_of(each)});
    }
  }
  for (const auto url : args["sourceRepos"].items()) {
    source.source_repositories.push_back(text_of(url));
  }
  if (auto checked = check_restricted(source); !checked) return std::unexpected(checked.error());
  auto specifier = specifier_of(args["appSpecifier"], scheme);
  if (!specifier) return std::unexpected(specifier.error());
  source.source = std::move(*specifier);
  return source;
}

// Returns the version of RestrictedGitSource that the cluster has. An object of an unknown kind
// would keep Argo CD from applying other objects of the repository.
Task<Result<std::string_view>> restricted_api(k8s::Client& cluster, Deadline deadline) {
  for (const auto api : {kRestrictedGitSourceApi, kOldRestrictedGitSourceApi}) {
    const auto slash = api.find('/');
    const auto there = co_await cluster.exists({.group = std::string(api.substr(0, slash)),
                                                .version = std::string(api.substr(slash + 1)),
                                                .plural = "restrictedgitsources",
                                                .kind = "RestrictedGitSource"},
                                               deadline);
    if (!there) co_return std::unexpected(there.error());
    if (*there) co_return api;
  }
  co_return fail(ErrorCode::unsupported,
                 "the cluster does not know restricted Git sources: install the operator with the "
                 "definition of RestrictedGitSource (" +
                     std::string(kRestrictedGitSourceApi) + ") first");
}

// Returns the files that may install Argo Rollouts on a cluster.
Task<Result<RolloutsFiles>> rollouts_files(const ConfigTarget& target, TreeReader& reader,
                                           std::string server, Deadline deadline) {
  const auto names = rollouts_names(server);
  const std::string by_host = names.by_host + ".yaml";
  const std::string by_url = names.by_url + ".yaml";
  auto read = co_await reader.read(
      {.repository = target.repository.at.repository,
       .branch = target.repository.at.ref,
       .folder = target.repository.own_resources_folder(),
       .credential = credential_of(target),
       .wanted = [by_host,
                  by_url](std::string_view path) { return path == by_host || path == by_url; }},
      deadline);
  RolloutsFiles files;
  if (!read && is_missing_branch(read.error())) co_return files;  // no branch yet
  if (!read) co_return std::unexpected(public_commit_error(std::move(read.error())));
  for (auto& file : read->files) {
    (file.path == by_host ? files.by_host : files.by_url) = std::move(file.content);
  }
  co_return files;
}

}  // namespace

Task<Result<Integration>> register_git_token(GitIntegrations& git, CommitterPart committer,
                                             const RuntimeFiles& files, Call& call) {
  auto registered = co_await register_to_git_integration(git, call);
  if (registered) {
    co_await prepare_config_repository(git, committer, files, actor_of(call),
                                       text_of(call["args"]["name"]), call.deadline());
  }
  co_return registered;
}

Task<> prepare_config_repository(GitIntegrations& git, CommitterPart committer,
                                 const RuntimeFiles& files, Actor actor, std::string integration,
                                 Deadline deadline) {
  if (!committer) co_return;
  const auto repository = files.repository();
  if (!repository) co_return;
  const auto account = co_await git.open(std::move(actor), std::move(integration), deadline);
  if (account) prepare_clone(*account, *committer, repository->at.repository);
}

Task<Result<void>> create_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                     ClustersPart clusters, const RuntimeFiles& files, Call& call) {
  const auto args = call["args"];
  GitSource source{.name = text_of(args["appName"]),
                   .source = {},
                   .server = text_of(args["destServer"]),
                   .destination_namespace = text_of(args["destNamespace"]),
                   .include = text_of(args["include"]),
                   .exclude = text_of(args["exclude"]),
                   .is_internal = args["isInternal"].is_true()};
  for (const auto& checked :
       {checked_name(args["appName"], files), check_server(args["destServer"]),
        check_namespace(args["destNamespace"])}) {
    if (!checked) co_return std::unexpected(checked.error());
  }
  auto specifier = specifier_of(args["appSpecifier"], files.scheme);
  if (!specifier) co_return std::unexpected(specifier.error());
  source.source = std::move(*specifier);
  auto labels = labels_of(args["labels"]);
  if (!labels) co_return std::unexpected(labels.error());
  source.labels = std::move(*labels);
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  if (auto there = co_await look_for_cluster(clusters, source.server, deadline); !there) {
    co_return there;
  }
  if (args["createRepo"].is_true()) {
    auto ensured = co_await ensure_repository(*target, committer, reader, source.source, deadline);
    if (!ensured) co_return ensured;
  }
  if (auto there = co_await look_for_source(*target, reader, source.source, deadline); !there) {
    co_return there;
  }
  const auto done = co_await commit_config(
      *target, committer, changes_to_create(target->repository, source),
      "Create Git source " + source.name + " of runtime " + files.runtime, deadline);
  if (!done) co_return std::unexpected(done.error());
  prepare_clone(target->account, committer, source.source.repository);
  co_return co_await end_removal(files);
}

Task<Result<void>> edit_git_source(GitIntegrations& git, Committer& committer, TreeReader& reader,
                                   const RuntimeFiles& files, Call& call) {
  const auto args = call["args"];
  if (auto checked = checked_name(args["appName"], files); !checked) co_return checked;
  auto specifier = specifier_of(args["appSpecifier"], files.scheme);
  if (!specifier) co_return std::unexpected(specifier.error());
  GitSourceEdit edit{.name = text_of(args["appName"]), .source = std::move(*specifier)};
  if (args["include"].exists()) edit.include = text_of(args["include"]);
  if (args["exclude"].exists()) edit.exclude = text_of(args["exclude"]);
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  if (auto there = co_await look_for_source(*target, reader, edit.source, deadline); !there) {
    co_return there;
  }
  const auto done = co_await commit_config(
      *target, committer, changes_to_edit(target->repository, edit),
      "Edit Git source " + edit.name + " of runtime " + files.runtime, deadline);
  if (!done) co_return std::unexpected(done.error());
  prepare_clone(target->account, committer, edit.source.repository);
  co_return Result<void>();
}

Task<Result<void>> create_restricted_git_source(GitIntegrations& git, Committer& committer,
                                                TreeReader& reader, k8s::Client& cluster,
                                                const RuntimeFiles& files, Call& call) {
  const auto args = call["args"];
  auto source = restricted_of(args, files.scheme);
  if (!source) co_return std::unexpected(source.error());
  source->include = text_of(args["include"]);
  source->exclude = text_of(args["exclude"]);
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  const auto api = co_await restricted_api(cluster, deadline);
  if (!api) co_return std::unexpected(api.error());
  if (args["createRepo"].is_true()) {
    auto ensured = co_await ensure_repository(*target, committer, reader, source->source, deadline);
    if (!ensured) co_return ensured;
  }
  if (auto there = co_await look_for_source(*target, reader, source->source, deadline); !there) {
    co_return there;
  }
  const auto done = co_await commit_config(
      *target, committer, changes_to_create(target->repository, *source, *api),
      "Create restricted Git source " + source->name + " of runtime " + files.runtime, deadline);
  if (!done) co_return std::unexpected(done.error());
  prepare_clone(target->account, committer, source->source.repository);
  co_return co_await end_removal(files);
}

Task<Result<void>> edit_restricted_git_source(GitIntegrations& git, Committer& committer,
                                              TreeReader& reader, const RuntimeFiles& files,
                                              Call& call) {
  const auto args = call["args"];
  auto source = restricted_of(args, files.scheme);
  if (!source) co_return std::unexpected(source.error());
  RestrictedGitSourceEdit edit{.wanted = std::move(*source)};
  if (args["include"].exists()) edit.include = text_of(args["include"]);
  if (args["exclude"].exists()) edit.exclude = text_of(args["exclude"]);
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  if (auto there = co_await look_for_source(*target, reader, edit.wanted.source, deadline);
      !there) {
    co_return there;
  }
  const auto done = co_await commit_config(
      *target, committer, changes_to_edit(target->repository, edit),
      "Edit restricted Git source " + edit.wanted.name + " of runtime " + files.runtime, deadline);
  if (!done) co_return std::unexpected(done.error());
  prepare_clone(target->account, committer, edit.wanted.source.repository);
  co_return Result<void>();
}

Task<Result<void>> delete_application(GitIntegrations& git, Committer& committer,
                                      ApplicationsPart applications, const RuntimeFiles& files,
                                      Call& call) {
  const auto args = call["args"];
  const Deadline answer_by = deadline_after(kPruneTime);
  if (auto checked = checked_name(args["appName"], files); !checked) co_return checked;
  const std::string name = text_of(args["appName"]);
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  const auto done = co_await commit_config(
      *target, committer, changes_to_remove(target->repository, name),
      "Delete Git source " + name + " of runtime " + files.runtime, deadline);
  if (!done) co_return std::unexpected(done.error());
  bool was_there = *done;
  if (applications) {
    const auto& ns = target->repository.runtime_namespace;
    const auto pruned = co_await applications->wait_until_pruned(
        name, {{.name = target->repository.runtime, .ns = ns}, {.name = "in-cluster", .ns = ns}},
        answer_by);
    if (!pruned) co_return std::unexpected(pruned.error());
    was_there = was_there || *pruned;
  }
  if (was_there) co_return Result<void>();
  co_return std::unexpected(Error{.code = ErrorCode::not_found,
                                  .message = "there is no Git source " + name + " in this runtime",
                                  .subcode = git_source_errors::kUnknown});
}

Task<Result<void>> create_argo_rollouts(GitIntegrations& git, Committer& committer,
                                        TreeReader& reader, ClustersPart clusters,
                                        const RuntimeFiles& files, Call& call) {
  const auto args = call["args"];
  for (const auto& checked :
       {check_server(args["destServer"]), check_namespace(args["destNamespace"])}) {
    if (!checked) co_return std::unexpected(checked.error());
  }
  if (args["destNamespace"].text().empty()) {
    co_return std::unexpected(mistake("destNamespace: expected the name of a namespace"));
  }
  const Deadline deadline = commit_deadline(call);
  const auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  const std::string server = text_of(args["destServer"]);
  if (auto there = co_await look_for_cluster(clusters, server, deadline); !there) co_return there;
  const auto present = co_await rollouts_files(*target, reader, server, deadline);
  if (!present) co_return std::unexpected(present.error());
  auto changes = changes_to_install_rollouts(
      target->repository, {.name = rollouts_name(server, *present),
                           .server = server,
                           .destination_namespace = text_of(args["destNamespace"]),
                           .chart_repository = files.chart_repository,
                           .chart_version = std::string(kRolloutsChart)});
  const auto done = co_await commit_config(*target, committer, std::move(changes),
                                           "Install Argo Rollouts on " + server, deadline);
  if (!done) co_return std::unexpected(done.error());
  co_return Result<void>();
}

Task<Result<std::int64_t>> remove_runtime_from_isc_repo(GitIntegrations& git, Committer& committer,
                                                        TreeReader& reader,
                                                        const RuntimeFiles& files, Call& call) {
  const Deadline deadline = commit_deadline(call);
  auto target = co_await config_target(git, files, call, deadline);
  if (!target) co_return std::unexpected(target.error());
  auto removal = co_await removal_of(*target, reader, deadline);
  if (!removal) co_return std::unexpected(removal.error());
  if (!removal->left.empty()) target->requested_by += "\n\n" + removal->left;
  // Counts from before the commit, so that the hourly round (ConfigRepositorySetup) does not recreate
  // the files right after it. Ends also when the caller leaves.
  const struct Removing {
    explicit Removing(std::shared_ptr<int> shared) : count(std::move(shared)) { ++*count; }
    ~Removing() { --*count; }
    Removing(const Removing&) = delete;
    Removing& operator=(const Removing&) = delete;
    std::shared_ptr<int> count;
  } removing(files.removals);
  auto done = co_await commit_config(*target, committer, std::move(removal->changes),
                                     "Remove runtime " + files.runtime, deadline);
  if (!done && co_await was_removed(*target, reader, done.error())) done = Result<bool>(true);
  if (!done) co_return std::unexpected(done.error());
  // The Application is deleted from now on, with all objects below it.
  auto told = co_await files.set_removed(true, deadline_after(kLook));
  static const Log log("git_sources");
  log.info("the runtime's files were removed from the shared configuration repository",
           {{"files", removal->files}, {"left", removal->left}});
  if (!told) {
    told.error().message =
        "the files were removed, but the other replicas of the runtime could not be told and may "
        "make them again; call it again: " +
        told.error().message;
    co_return std::unexpected(std::move(told.error()));
  }
  co_return *done ? removal->files : 0;
}

}  // namespace gitops::app_proxy
