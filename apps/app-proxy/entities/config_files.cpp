#include "app-proxy/entities/config_files.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kReadme =
    "# Shared configuration\n"
    "\n"
    "GitOps runtimes apply the files of this folder:\n"
    "\n"
    "- `all-runtimes-all-clusters/`: every runtime, to each of its clusters\n"
    "- `control-planes/`: every runtime, to its own cluster\n"
    "- `runtimes/<runtime>/`: one runtime\n"
    "- `<runtime>/`: Git sources of one runtime\n"
    "- `app-projects/`: every runtime, projects of Argo CD\n"
    "- `configurations/`: the configuration runtime\n";

ManifestPath include_path() {
  return {"spec", "source", "directory", "include"};
}

// Adds globs for all YAML files of a folder below "resources", directly in it and deeper.
void add_folder(std::vector<std::string>& globs, const std::string& folder) {
  globs.push_back(folder + "/*.yaml");
  globs.push_back(folder + "/**/*.yaml");
}

// Returns in-cluster.yaml with its globs changed by `change`, which returns false when they are
// right.
Result<std::string> with_globs(const ConfigRepository& repository,
                               std::optional<std::string_view> content,
                               const std::function<bool(std::vector<std::string>&)>& change) {
  const std::string text(content ? std::string(*content) : in_cluster_manifest(repository));
  const auto include = read_manifest(text, include_path());
  if (!include) {
    return std::unexpected(
        Error{.code = ErrorCode::invalid_data,
              .message = repository.in_cluster_file() +
                         " has no spec.source.directory.include: " + include.error().message,
              .subcode = git_source_errors::kForm});
  }
  auto globs = parse_globs(*include);
  if (!change(globs)) return text;
  const auto list = format_globs(globs);
  // The text has unclosed braces, or a comma outside of them.
  if (parse_globs(list) != globs) {
    return std::unexpected(Error{.code = ErrorCode::invalid_data,
                                 .message = repository.in_cluster_file() +
                                            " has globs in spec.source.directory.include that "
                                            "cannot be put into a list: " +
                                            *include,
                                 .subcode = git_source_errors::kForm});
  }
  return edit_manifest(text, {.path = include_path(), .value = {.text = list}});
}

// Returns an Application that applies these globs of "resources" to a cluster.
std::string resources_manifest(const ConfigRepository& repository, std::string_view name,
                               std::string_view server, const std::vector<std::string>& globs,
                               std::string_view exclude = {}) {
  RepositorySpecifier resources = repository.at;
  resources.path = repository.resources_folder();
  Json source = application_source(resources);
  source["directory"] = {{"recurse", true}, {"include", format_globs(globs)}};
  if (!exclude.empty()) source["directory"]["exclude"] = exclude;
  return to_yaml(argo_application(
      name, repository,
      {{"codefresh.io/entity", "internal-config"}, {"codefresh.io/internal", "true"}},
      std::move(source),
      {{"namespace", repository.runtime_namespace}, {"server", std::string(server)}}));
}

}  // namespace

std::vector<std::string> parse_globs(std::string_view include) {
  if (include.empty()) return {};
  std::vector<std::string> globs;
  std::size_t depth = 0;
  std::size_t begin = 1;
  for (std::size_t i = 0; i < include.size() && include.starts_with('{'); ++i) {
    if (include[i] == '{') ++depth;
    const bool ends = include[i] == '}' && --depth == 0;
    if (!ends && (include[i] != ',' || depth != 1)) continue;
    if (i > begin) globs.emplace_back(include.substr(begin, i - begin));
    begin = i + 1;
    if (!ends) continue;
    if (begin == include.size()) return globs;
    break;  // "{a,b}/c" is one glob
  }
  return {std::string(include)};
}

std::string format_globs(const std::vector<std::string>& globs) {
  std::string text = "{";
  for (const auto& glob : globs) text += (text.size() > 1 ? "," : "") + glob;
  return text + "}";
}

std::vector<std::string> runtime_globs(const ConfigRepository& repository) {
  std::vector<std::string> globs;
  add_folder(globs, "all-runtimes-all-clusters");
  add_folder(globs, "app-projects");
  if (repository.is_configuration_runtime) add_folder(globs, "configurations");
  add_folder(globs, "control-planes");
  add_folder(globs, "runtimes/" + repository.runtime);
  return globs;
}

std::string to_yaml(const Json& document) {
  return json_to_yaml(to_text(document)).value();
}

Json application_sync_policy() {
  return {{"automated", {{"allowEmpty", true}, {"prune", true}, {"selfHeal", true}}},
          {"syncOptions", Json::array({"allowEmpty=true"})}};
}

Json argo_application(std::string_view name, const ConfigRepository& repository, Json labels,
                      Json source, Json destination) {
  return {{"apiVersion", "argoproj.io/v1alpha1"},
          {"kind", "Application"},
          {"metadata",
           {{"name", name},
            {"namespace", repository.runtime_namespace},
            {"labels", std::move(labels)},
            {"finalizers", Json::array({"resources-finalizer.argocd.argoproj.io"})}}},
          {"spec",
           {{"project", "default"},
            {"source", std::move(source)},
            {"destination", std::move(destination)},
            {"syncPolicy", application_sync_policy()}}}};
}

Json application_source(const RepositorySpecifier& at) {
  return {{"repoURL", at.repository.to_string()},
          {"path", at.path.empty() ? "." : at.path},
          {"targetRevision", at.ref.empty() ? "HEAD" : at.ref}};
}

ManifestPath server_path() {
  return {"spec", "destination", "server"};
}

Result<std::string> set_manifest_values(std::string text, const ManifestValues& values) {
  for (const auto& [path, value] : values) {
    if (const auto present = read_manifest(text, path); present && *present == value) continue;
    auto edited = edit_manifest(text, {.path = path, .value = {.text = value}});
    if (!edited) return edited;
    text = std::move(*edited);
  }
  return text;
}

std::string in_cluster_manifest(const ConfigRepository& repository) {
  return resources_manifest(repository, kInClusterName, kOwnClusterServer,
                            runtime_globs(repository));
}

std::string cluster_manifest(const ConfigRepository& repository, std::string_view name,
                             std::string_view server) {
  std::vector<std::string> globs;
  add_folder(globs, "all-runtimes-all-clusters");
  return resources_manifest(repository, name, server, globs,
                            "all-runtimes-all-clusters/integrations/**");
}

std::string runtime_application(const ConfigRepository& repository) {
  RepositorySpecifier clusters = repository.at;
  clusters.path = repository.clusters_folder();
  return to_text(argo_application(
      repository.runtime, repository,
      {{"codefresh.io/entity", "runtime"}, {"codefresh.io/internal", "true"}},
      application_source(clusters),
      {{"namespace", repository.runtime_namespace}, {"server", kOwnClusterServer}}));
}

std::string git_source_project_manifest() {
  const Json everything = {{"group", "*"}, {"kind", "*"}};
  return to_yaml(
      {{"apiVersion", "argoproj.io/v1alpha1"},
       {"kind", "AppProject"},
       {"metadata", {{"name", kGitSourceProject}, {"labels", {{"codefresh.io/internal", "true"}}}}},
       {"spec",
        {{"description", "Git sources of GitOps runtimes"},
         {"sourceRepos", Json::array({"*"})},
         {"destinations", Json::array({{{"namespace", "*"}, {"server", "*"}}})},
         {"clusterResourceWhitelist", Json::array({everything})}}}});
}

FileChange add_globs(const ConfigRepository& repository, std::vector<std::string> wanted) {
  return {
      .path = repository.in_cluster_file(),
      .kind = FileChange::Kind::edit,
      .edit = [repository, wanted = std::move(wanted)](std::optional<std::string_view> content) {
        return with_globs(repository, content, [&](std::vector<std::string>& globs) {
          bool changed = false;
          for (const auto& glob : wanted) {
            if (std::ranges::find(globs, glob) != globs.end()) continue;
            globs.push_back(glob);
            changed = true;
          }
          return changed;
        });
      }};
}

FileChange remove_glob(const ConfigRepository& repository, std::string glob) {
  return {.path = repository.in_cluster_file(),
          .kind = FileChange::Kind::edit,
          .edit = [repository, glob = std::move(glob)](std::optional<std::string_view> content) {
            return with_globs(repository, content, [&](std::vector<std::string>& globs) {
              return std::erase(globs, glob) > 0;
            });
          }};
}

FileChange ensure_file(std::string path, std::string otherwise) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::edit,
          .edit = [otherwise = std::move(otherwise)](std::optional<std::string_view> content)
              -> Result<std::string> { return content ? std::string(*content) : otherwise; }};
}

FileChange ensure_resources(const ConfigRepository& repository) {
  return ensure_file(repository.readme_file(), std::string(kReadme));
}

FileChange ensure_project(const ConfigRepository& repository) {
  return ensure_file(repository.project_file(), git_source_project_manifest());
}

FileChange ensure_name_free(std::string path, std::string taken) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::look,
          .edit = [taken = std::move(taken)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (!content) return std::string();
            return std::unexpected(Error{.code = ErrorCode::conflict,
                                         .message = taken,
                                         .subcode = git_source_errors::kNameTaken});
          }};
}

std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository) {
  return {add_globs(repository, runtime_globs(repository)), ensure_project(repository),
          ensure_resources(repository)};
}

std::vector<FileChange> changes_to_add_cluster(const ConfigRepository& repository,
                                               std::string_view name, std::string_view server) {
  return {{.path = repository.cluster_file(name),
           .kind = FileChange::Kind::edit,
           .edit = [manifest = cluster_manifest(repository, name, server),
                    server = std::string(server)](
                       std::optional<std::string_view> content) -> Result<std::string> {
             if (!content) return manifest;
             return set_manifest_values(std::string(*content), {{server_path(), server}});
           }},
          ensure_name_free(repository.git_source_file(name),
                           "this runtime has a Git source " + std::string(name) +
                               "; choose another name for the cluster"),
          ensure_resources(repository)};
}

std::vector<FileChange> changes_to_remove_cluster(const ConfigRepository& repository,
                                                  std::string_view name) {
  std::vector<FileChange> changes{
      {.path = repository.cluster_file(name), .kind = FileChange::Kind::remove_folder}};
  // Argo CD refuses a path without files. Nothing applies the path of a removed runtime.
  if (!repository.is_removed) changes.push_back(add_globs(repository, {}));
  return changes;
}

std::vector<FileChange> changes_to_remove_runtime(const ConfigRepository& repository) {
  std::vector<FileChange> changes;
  for (auto& folder : repository.own_folders()) {
    changes.push_back({.path = std::move(folder), .kind = FileChange::Kind::remove_folder});
  }
  return changes;
}

}  // namespace gitops::app_proxy
