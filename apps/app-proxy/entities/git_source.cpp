#include "app-proxy/entities/git_source.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/entities/config_files.hpp"
#include "common/core/json_value.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

// Largest number of entries in a list of a restricted Git source.
constexpr std::size_t kMaxEntries = 100;

std::string glob_of(const ConfigRepository& repository, std::string_view git_source) {
  return repository.runtime + "/" + std::string(git_source) + ".yaml";
}

// Returns the "source" of the Application of either kind.
Json folder_source(const auto& git_source) {
  Json source = application_source(git_source.source);
  source["directory"] = {{"recurse", true},
                         {"include", git_source.include.empty() ? "*" : git_source.include},
                         {"exclude", git_source.exclude}};
  return source;
}

// Creates a file with this text, and fails when a different one exists.
FileChange create_file(std::string path, std::string_view name, std::string manifest) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::edit,
          .edit = [name = std::string(name), manifest = std::move(manifest)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (content && *content != manifest) {
              return std::unexpected(Error{.code = ErrorCode::conflict,
                                           .message = "there is another Git source " + name +
                                                      " in this runtime; edit it instead",
                                           .subcode = git_source_errors::kExists});
            }
            return manifest;
          }};
}

FileChange ensure_no_cluster(const ConfigRepository& repository, const std::string& name) {
  return ensure_name_free(
      repository.cluster_file(name),
      "this runtime has a managed cluster " + name + "; choose another name for the Git source");
}

Error unknown_git_source(std::string_view name) {
  return {.code = ErrorCode::not_found,
          .message = "there is no Git source " + std::string(name) + " in this runtime",
          .subcode = git_source_errors::kUnknown};
}

Error other_form(std::string_view name, std::string_view what) {
  return {.code = ErrorCode::unsupported,
          .message = "Git source " + std::string(name) + " " + std::string(what) +
                     "; edit its file in the shared configuration repository",
          .subcode = git_source_errors::kForm};
}

// Returns the values of the source at `at`, such as "spec.source".
ManifestValues source_values(ManifestPath at, const RepositorySpecifier& source,
                             const std::optional<std::string>& include,
                             const std::optional<std::string>& exclude) {
  const auto below = [&](std::initializer_list<std::string> keys) {
    ManifestPath path = at;
    path.insert(path.end(), keys.begin(), keys.end());
    return path;
  };
  ManifestValues values = {{below({"repoURL"}), source.repository.to_string()},
                           {below({"path"}), source.path.empty() ? "." : source.path},
                           {below({"targetRevision"}), source.ref.empty() ? "HEAD" : source.ref}};
  if (include) {
    values.emplace_back(below({"directory", "include"}), include->empty() ? "*" : *include);
  }
  if (exclude) values.emplace_back(below({"directory", "exclude"}), *exclude);
  return values;
}

Result<std::string> edit_application(std::string text, const GitSourceEdit& edit) {
  const auto kind = read_manifest(text, {"kind"});
  if (kind && *kind == "RestrictedGitSource") {
    return std::unexpected(
        other_form(edit.name, "is restricted, so editRestrictedGitSource is for it"));
  }
  if (!kind || *kind != "Application") {
    return std::unexpected(other_form(edit.name, "is not an Application"));
  }
  ManifestPath at = {"spec", "source"};
  const auto has = [&](const ManifestPath& source) {
    ManifestPath path = source;
    path.emplace_back("repoURL");
    return read_manifest(text, path).has_value();
  };
  if (!has(at)) {
    at = {"spec", "sources", std::size_t{0}};
    if (has({"spec", "sources", std::size_t{1}})) {
      return std::unexpected(other_form(edit.name, "has several sources"));
    }
  }
  return set_manifest_values(std::move(text),
                             source_values(at, edit.source, edit.include, edit.exclude));
}

std::vector<RestrictedGitSource::Destination> destinations_in(std::string_view text) {
  std::vector<RestrictedGitSource::Destination> found;
  for (std::size_t i = 0; i <= kMaxEntries; ++i) {
    const auto value = [&](const char* key) {
      return read_manifest(text, {"spec", "destinations", i, key}).value_or("");
    };
    RestrictedGitSource::Destination next{.name = value("name"),
                                          .server = value("server"),
                                          .destination_namespace = value("namespace")};
    if (next == RestrictedGitSource::Destination()) break;
    found.push_back(std::move(next));
  }
  return found;
}

std::vector<std::string> source_repositories_in(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i <= kMaxEntries; ++i) {
    auto next = read_manifest(text, {"spec", "sourceRepos", i});
    if (!next) break;
    found.push_back(std::move(*next));
  }
  return found;
}

Result<std::string> edit_restricted(std::string text, const ConfigRepository& repository,
                                    const RestrictedGitSourceEdit& edit) {
  const auto& wanted = edit.wanted;
  const auto kind = read_manifest(text, {"kind"});
  if (!kind || *kind != "RestrictedGitSource") {
    return std::unexpected(other_form(wanted.name, "is not restricted"));
  }
  if (destinations_in(text) == wanted.destinations &&
      source_repositories_in(text) == wanted.source_repositories) {
    auto values = source_values({"spec", "source"}, wanted.source, edit.include, edit.exclude);
    values.push_back({{"spec", "sourceNamespace"}, wanted.source_namespace});
    return set_manifest_values(std::move(text), values);
  }
  const auto present = [&](const char* key) {
    return read_manifest(text, {"spec", "source", "directory", key}).value_or("");
  };
  RestrictedGitSource all = wanted;
  all.include = edit.include.value_or(present("include"));
  all.exclude = edit.exclude.value_or(present("exclude"));
  const auto api = read_manifest(text, {"apiVersion"});
  return restricted_git_source_manifest(
      repository, all, api && *api == kOldRestrictedGitSourceApi ? *api : kRestrictedGitSourceApi);
}

}  // namespace

Result<void> check_restricted(const RestrictedGitSource& source) {
  const auto mistake = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  if (auto checked = check_entity_name(source.name); !checked) {
    return mistake("appName: " + checked.error().message);
  }
  // The operator creates a project "<name>-restricted".
  constexpr std::size_t kMaxLength = 63 - std::string_view("-restricted").size();
  if (source.name.size() > kMaxLength) {
    return mistake("appName: at most " + std::to_string(kMaxLength) + " characters");
  }
  if (!source.source_namespace.starts_with("cf-") || !check_entity_name(source.source_namespace)) {
    return mistake("sourceNamespace: expected the name of a namespace that begins with \"cf-\"");
  }
  if (source.destinations.empty() || source.destinations.size() > kMaxEntries) {
    return mistake("destinations: expected 1 to " + std::to_string(kMaxEntries) + " namespaces");
  }
  for (const auto& each : source.destinations) {
    if (each.name.empty() == each.server.empty()) {
      return mistake("destinations: expected either name or server");
    }
    const auto url = http::parse_url(each.server);
    if (each.name.empty() &&
        (!url || (url->scheme != "https" && url->scheme != "http") || !url->userinfo.empty())) {
      return mistake("destinations: server: expected the URL of a cluster's API server");
    }
    std::string plain = each.destination_namespace;  // globs of Argo CD are allowed
    std::ranges::replace(plain, '*', 'x');
    if (!check_entity_name(plain)) {
      return mistake("destinations: namespaces: expected names of namespaces");
    }
  }
  if (source.source_repositories.empty() || source.source_repositories.size() > kMaxEntries) {
    return mistake("sourceRepos: expected 1 to " + std::to_string(kMaxEntries) +
                   " repositories; * allows all");
  }
  const auto is_strange = [](const std::string& text) {
    return text.empty() || std::ranges::any_of(text, [](unsigned char c) { return c <= ' '; });
  };
  if (std::ranges::any_of(source.source_repositories, is_strange)) {
    return mistake("sourceRepos: expected URLs or globs");
  }
  return {};
}

std::string git_source_manifest(const ConfigRepository& repository, const GitSource& wanted) {
  Json labels = Json::object();
  for (const auto& [key, value] : wanted.labels) labels[key] = value;
  labels["codefresh.io/entity"] = "git-source";
  labels["codefresh.io/internal"] = wanted.is_internal ? "true" : "false";
  Json manifest = argo_application(
      wanted.name, repository, std::move(labels), folder_source(wanted),
      {{"namespace", wanted.destination_namespace.empty() ? repository.runtime_namespace
                                                          : wanted.destination_namespace},
       {"server", wanted.server}});
  manifest["spec"]["project"] = kGitSourceProject;
  return to_yaml(manifest);
}

std::string restricted_git_source_manifest(const ConfigRepository& repository,
                                           const RestrictedGitSource& wanted,
                                           std::string_view api) {
  Json destinations = Json::array();
  for (const auto& each : wanted.destinations) {
    Json& destination = destinations.emplace_back(Json{{"namespace", each.destination_namespace}});
    if (each.name.empty()) {
      destination["server"] = each.server;
    } else {
      destination["name"] = each.name;
    }
  }
  Json policy = application_sync_policy();
  policy["syncOptions"].push_back("CreateNamespace=true");
  return to_yaml(
      {{"apiVersion", api},
       {"kind", "RestrictedGitSource"},
       {"metadata",
        {{"name", wanted.name},
         {"namespace", repository.runtime_namespace},
         {"labels", {{"codefresh.io/entity", "git-source"}, {"codefresh.io/internal", "false"}}}}},
       {"spec",
        {{"source", folder_source(wanted)},
         {"sourceNamespace", wanted.source_namespace},
         {"destinations", std::move(destinations)},
         {"sourceRepos", wanted.source_repositories},
         {"syncPolicy", std::move(policy)}}}});
}

std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source) {
  auto globs = runtime_globs(repository);
  globs.push_back(glob_of(repository, source.name));
  return {create_file(repository.git_source_file(source.name), source.name,
                      git_source_manifest(repository, source)),
          ensure_no_cluster(repository, source.name), add_globs(repository, std::move(globs)),
          ensure_project(repository), ensure_resources(repository)};
}

std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const RestrictedGitSource& source, std::string_view api) {
  auto globs = runtime_globs(repository);
  globs.push_back(glob_of(repository, source.name));
  return {create_file(repository.git_source_file(source.name), source.name,
                      restricted_git_source_manifest(repository, source, api)),
          ensure_no_cluster(repository, source.name), add_globs(repository, std::move(globs)),
          ensure_resources(repository)};
}

std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const GitSourceEdit& edit) {
  return {{.path = repository.git_source_file(edit.name),
           .kind = FileChange::Kind::edit,
           .edit = [edit](std::optional<std::string_view> content) -> Result<std::string> {
             if (!content) return std::unexpected(unknown_git_source(edit.name));
             return edit_application(std::string(*content), edit);
           }}};
}

std::vector<FileChange> changes_to_edit(const ConfigRepository& repository,
                                        const RestrictedGitSourceEdit& edit) {
  return {
      {.path = repository.git_source_file(edit.wanted.name),
       .kind = FileChange::Kind::edit,
       .edit = [repository, edit](std::optional<std::string_view> content) -> Result<std::string> {
         if (!content) return std::unexpected(unknown_git_source(edit.wanted.name));
         return edit_restricted(std::string(*content), repository, edit);
       }}};
}

std::vector<FileChange> changes_to_remove(const ConfigRepository& repository,
                                          std::string_view name) {
  std::vector<FileChange> changes{
      {.path = repository.git_source_file(name), .kind = FileChange::Kind::remove_folder}};
  // The file with the globs is gone with a removed runtime, and would be made again.
  if (!repository.is_removed) {
    changes.push_back(remove_glob(repository, glob_of(repository, name)));
  }
  changes.push_back(ensure_resources(repository));
  return changes;
}

std::vector<FileChange> changes_to_bring_up(const ConfigRepository& repository) {
  RepositorySpecifier folder = repository.at;
  folder.path = repository.default_source_folder();
  const GitSource source{.name = std::string(kDefaultGitSource),
                         .source = std::move(folder),
                         .server = std::string(kOwnClusterServer)};
  auto globs = runtime_globs(repository);
  globs.push_back(glob_of(repository, kDefaultGitSource));
  return {
      ensure_file(repository.git_source_file(kDefaultGitSource),
                  git_source_manifest(repository, source)),
      ensure_file(repository.default_source_folder() + "/README.md",
                  "Manifests in this folder are applied by the Git source " +
                      std::string(kDefaultGitSource) + " of runtime " + repository.runtime + ".\n"),
      add_globs(repository, std::move(globs)), ensure_project(repository),
      ensure_resources(repository)};
}

}  // namespace gitops::app_proxy
