#include "app-proxy/entities/config_repository.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "app-proxy/git/manifest_edit.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/yaml_text.hpp"
#include "common/http/url.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kInCluster = "in-cluster";
constexpr std::string_view kOwnServer = "https://kubernetes.default.svc";

// Of the lists of a restricted Git source.
constexpr std::size_t kMostEntries = 100;

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

ManifestPath server_path() {
  return {"spec", "destination", "server"};
}

// As Argo CD compares them.
std::string_view without_slashes(std::string_view server) {
  while (server.ends_with('/')) server.remove_suffix(1);
  return server;
}

// "https://kubernetes.default.svc" → "in-cluster", others by their host: a part of a file's name.
std::string cluster_word(std::string_view server) {
  if (server == kOwnServer) return std::string(kInCluster);
  const auto url = http::parse_url(server);
  std::string word = url ? url->host : std::string();
  std::ranges::replace_if(
      word, [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9'); }, '-');
  constexpr std::size_t kLongest = 40;
  word.resize(std::min(word.size(), kLongest));
  while (word.ends_with('-')) word.pop_back();
  return word;
}

ManifestPath include_path() {
  return {"spec", "source", "directory", "include"};
}

std::string yaml_of(const Json& document) {
  return json_to_yaml(to_text(document)).value();
}

// All YAML files of a folder below "resources", directly in it and deeper.
void add_folder(std::vector<std::string>& globs, const std::string& folder) {
  globs.push_back(folder + "/*.yaml");
  globs.push_back(folder + "/**/*.yaml");
}

std::vector<std::string> common_globs(const ConfigRepository& repository) {
  std::vector<std::string> globs;
  add_folder(globs, "all-runtimes-all-clusters");
  add_folder(globs, "app-projects");
  if (repository.is_configuration_runtime) add_folder(globs, "configurations");
  add_folder(globs, "control-planes");
  add_folder(globs, "runtimes/" + repository.runtime);
  return globs;
}

std::string glob_of(const ConfigRepository& repository, std::string_view git_source) {
  return repository.runtime + "/" + std::string(git_source) + ".yaml";
}

Json sync_policy() {
  return {{"automated", {{"allowEmpty", true}, {"prune", true}, {"selfHeal", true}}},
          {"syncOptions", Json::array({"allowEmpty=true"})}};
}

Json application(std::string_view name, const ConfigRepository& repository, Json labels,
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
            {"syncPolicy", sync_policy()}}}};
}

Json source_of(const RepositorySpecifier& at) {
  return {{"repoURL", at.repository.to_string()},
          {"path", at.path.empty() ? "." : at.path},
          {"targetRevision", at.ref.empty() ? "HEAD" : at.ref}};
}

// in-cluster.yaml with its globs changed by `change`, which returns false when they are right.
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
              .reason = std::string(git_source_errors::kForm)});
  }
  auto globs = parse_globs(*include);
  if (!change(globs)) return text;
  const auto list = format_globs(globs);
  // Braces that are not closed, or a comma outside of them.
  if (parse_globs(list) != globs) {
    return std::unexpected(Error{.code = ErrorCode::invalid_data,
                                 .message = repository.in_cluster_file() +
                                            " has globs in spec.source.directory.include that "
                                            "cannot be put into a list: " +
                                            *include,
                                 .reason = std::string(git_source_errors::kForm)});
  }
  return edit_manifest(text, {.path = include_path(), .value = {.text = list}});
}

// A change of in-cluster.yaml that puts all these globs in. None is taken out: without the globs of `configurations`, Argo
// CD would prune every product of the account.
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

// A file that is left as it is when it is there.
FileChange keep_file(std::string path, std::string otherwise) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::edit,
          .edit = [otherwise = std::move(otherwise)](std::optional<std::string_view> content)
              -> Result<std::string> { return content ? std::string(*content) : otherwise; }};
}

// Argo CD refuses a path without files, so the folder "resources" must not become empty.
FileChange keep_resources(const ConfigRepository& repository) {
  return keep_file(repository.readme_file(), std::string(kReadme));
}

// Argo CD refuses an Application whose project is not there.
FileChange keep_project(const ConfigRepository& repository) {
  return keep_file(repository.project_file(), git_source_project_manifest());
}

// A file with these words, unless there is another one.
FileChange create_file(std::string path, std::string_view name, std::string manifest) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::edit,
          .edit = [name = std::string(name), manifest = std::move(manifest)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (content && *content != manifest) {
              return std::unexpected(Error{.code = ErrorCode::conflict,
                                           .message = "there is another Git source " + name +
                                                      " in this runtime; edit it instead",
                                           .reason = std::string(git_source_errors::kExists)});
            }
            return manifest;
          }};
}

// Refuses an Application whose name that of this file has: all of a runtime lie in one namespace.
FileChange keep_name_free(std::string path, std::string taken) {
  return {.path = std::move(path),
          .kind = FileChange::Kind::look,
          .edit = [taken = std::move(taken)](
                      std::optional<std::string_view> content) -> Result<std::string> {
            if (!content) return std::string();
            return std::unexpected(Error{.code = ErrorCode::conflict,
                                         .message = taken,
                                         .reason = std::string(git_source_errors::kNameTaken)});
          }};
}

FileChange keep_free_of_cluster(const ConfigRepository& repository, const std::string& name) {
  return keep_name_free(
      repository.cluster_file(name),
      "this runtime has a managed cluster " + name + "; choose another name for the Git source");
}

Error unknown_git_source(std::string_view name) {
  return {.code = ErrorCode::not_found,
          .message = "there is no Git source " + std::string(name) + " in this runtime",
          .reason = std::string(git_source_errors::kUnknown)};
}

Error other_form(std::string_view name, std::string_view what) {
  return {.code = ErrorCode::unsupported,
          .message = "Git source " + std::string(name) + " " + std::string(what) +
                     "; edit its file in the shared configuration repository",
          .reason = std::string(git_source_errors::kForm)};
}

using Values = std::vector<std::pair<ManifestPath, std::string>>;

// Sets these values in `text`. A value that is already there keeps its spelling.
Result<std::string> with_values(std::string text, const Values& values) {
  for (const auto& [path, value] : values) {
    if (const auto present = read_manifest(text, path); present && *present == value) continue;
    auto edited = edit_manifest(text, {.path = path, .value = {.text = value}});
    if (!edited) return edited;
    text = std::move(*edited);
  }
  return text;
}

// The values of the source at `at`, as "spec.source".
Values source_values(ManifestPath at, const RepositorySpecifier& source,
                     const std::optional<std::string>& include,
                     const std::optional<std::string>& exclude) {
  const auto below = [&](std::initializer_list<std::string> keys) {
    ManifestPath path = at;
    path.insert(path.end(), keys.begin(), keys.end());
    return path;
  };
  Values values = {{below({"repoURL"}), source.repository.to_string()},
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
  return with_values(std::move(text), source_values(at, edit.source, edit.include, edit.exclude));
}

std::vector<RestrictedGitSource::Destination> destinations_in(std::string_view text) {
  std::vector<RestrictedGitSource::Destination> found;
  for (std::size_t i = 0; i <= kMostEntries; ++i) {
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
  for (std::size_t i = 0; i <= kMostEntries; ++i) {
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
    return with_values(std::move(text), values);
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

Result<ConfigRepository> RuntimeFiles::repository() const {
  const auto specifier = config_repository();
  if (specifier.empty()) {
    return fail(ErrorCode::unavailable,
                "the account has no shared configuration repository, or the control plane has "
                "not told it yet");
  }
  auto at = parse_specifier(specifier, scheme);
  if (!at) {
    return fail(
        ErrorCode::unavailable,
        "the account's shared configuration repository is not usable: " + at.error().message);
  }
  return ConfigRepository{.at = std::move(*at),
                          .runtime = runtime,
                          .runtime_namespace = runtime_namespace,
                          .is_configuration_runtime = is_configuration_runtime,
                          .is_removed = *is_removed};
}

std::string ConfigRepository::below(std::string_view path) const {
  return at.path.empty() ? std::string(path) : at.path + "/" + std::string(path);
}

std::string ConfigRepository::clusters_folder() const {
  return below("runtimes/" + runtime);
}

std::string ConfigRepository::in_cluster_file() const {
  return clusters_folder() + "/" + std::string(kInCluster) + ".yaml";
}

std::string ConfigRepository::cluster_file(std::string_view name) const {
  return clusters_folder() + "/" + std::string(name) + ".yaml";
}

std::string ConfigRepository::git_source_file(std::string_view name) const {
  return below("resources/" + runtime + "/" + std::string(name) + ".yaml");
}

std::string ConfigRepository::project_file() const {
  return below("resources/app-projects/" + std::string(kGitSourceProject) + ".yaml");
}

std::string ConfigRepository::default_source_folder() const {
  return below("git-sources/" + runtime + "/default");
}

std::string ConfigRepository::own_resources_folder() const {
  return below("resources/runtimes/" + runtime);
}

std::string ConfigRepository::own_resource_file(std::string_view name) const {
  return own_resources_folder() + "/" + std::string(name) + ".yaml";
}

std::string ConfigRepository::resources_folder() const {
  return below("resources");
}

std::string ConfigRepository::readme_file() const {
  return resources_folder() + "/README.md";
}

std::vector<std::string> ConfigRepository::own_folders() const {
  return {clusters_folder(), below("resources/" + runtime), own_resources_folder()};
}

Result<void> check_entity_name(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (name.empty() || name.size() > kLongest || !std::ranges::all_of(name, is_inner) ||
      name.starts_with('-') || name.ends_with('-')) {
    return fail(ErrorCode::invalid_argument,
                "the name must be a DNS label: a to z, 0 to 9 and '-', at most 63 characters");
  }
  if (name == kInCluster) {
    return fail(ErrorCode::invalid_argument,
                "the runtime itself has an Application \"in-cluster\"");
  }
  return {};
}

Result<void> check_restricted(const RestrictedGitSource& source) {
  const auto mistake = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  if (auto checked = check_entity_name(source.name); !checked) {
    return mistake("appName: " + checked.error().message);
  }
  // The operator makes a project "<name>-restricted".
  constexpr std::size_t kLongest = 63 - std::string_view("-restricted").size();
  if (source.name.size() > kLongest) {
    return mistake("appName: at most " + std::to_string(kLongest) + " characters");
  }
  if (!source.source_namespace.starts_with("cf-") || !check_entity_name(source.source_namespace)) {
    return mistake("sourceNamespace: expected the name of a namespace that begins with \"cf-\"");
  }
  if (source.destinations.empty() || source.destinations.size() > kMostEntries) {
    return mistake("destinations: expected 1 to " + std::to_string(kMostEntries) + " namespaces");
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
  if (source.source_repositories.empty() || source.source_repositories.size() > kMostEntries) {
    return mistake("sourceRepos: expected 1 to " + std::to_string(kMostEntries) +
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

namespace {

// An Application that applies these globs of "resources" to a cluster.
std::string resources_manifest(const ConfigRepository& repository, std::string_view name,
                               std::string_view server, const std::vector<std::string>& globs,
                               std::string_view exclude = {}) {
  RepositorySpecifier resources = repository.at;
  resources.path = repository.resources_folder();
  Json source = source_of(resources);
  source["directory"] = {{"recurse", true}, {"include", format_globs(globs)}};
  if (!exclude.empty()) source["directory"]["exclude"] = exclude;
  return yaml_of(
      application(name, repository,
                  {{"codefresh.io/entity", "internal-config"}, {"codefresh.io/internal", "true"}},
                  std::move(source),
                  {{"namespace", repository.runtime_namespace}, {"server", std::string(server)}}));
}

}  // namespace

std::string in_cluster_manifest(const ConfigRepository& repository) {
  return resources_manifest(repository, kInCluster, kOwnServer, common_globs(repository));
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
  return to_text(application(
      repository.runtime, repository,
      {{"codefresh.io/entity", "runtime"}, {"codefresh.io/internal", "true"}}, source_of(clusters),
      {{"namespace", repository.runtime_namespace}, {"server", kOwnServer}}));
}

std::string git_source_manifest(const ConfigRepository& repository, const GitSource& wanted) {
  Json source = source_of(wanted.source);
  source["directory"] = {{"recurse", true},
                         {"include", wanted.include.empty() ? "*" : wanted.include},
                         {"exclude", wanted.exclude}};
  Json labels = Json::object();
  for (const auto& [key, value] : wanted.labels) labels[key] = value;
  labels["codefresh.io/entity"] = "git-source";
  labels["codefresh.io/internal"] = wanted.is_internal ? "true" : "false";
  Json manifest = application(
      wanted.name, repository, std::move(labels), std::move(source),
      {{"namespace", wanted.destination_namespace.empty() ? repository.runtime_namespace
                                                          : wanted.destination_namespace},
       {"server", wanted.server}});
  manifest["spec"]["project"] = kGitSourceProject;
  return yaml_of(manifest);
}

std::string restricted_git_source_manifest(const ConfigRepository& repository,
                                           const RestrictedGitSource& wanted,
                                           std::string_view api) {
  Json source = source_of(wanted.source);
  source["directory"] = {{"recurse", true},
                         {"include", wanted.include.empty() ? "*" : wanted.include},
                         {"exclude", wanted.exclude}};
  Json destinations = Json::array();
  for (const auto& each : wanted.destinations) {
    Json& destination = destinations.emplace_back(Json{{"namespace", each.destination_namespace}});
    if (each.name.empty()) {
      destination["server"] = each.server;
    } else {
      destination["name"] = each.name;
    }
  }
  Json policy = sync_policy();
  policy["syncOptions"].push_back("CreateNamespace=true");
  return yaml_of(
      {{"apiVersion", api},
       {"kind", "RestrictedGitSource"},
       {"metadata",
        {{"name", wanted.name},
         {"namespace", repository.runtime_namespace},
         {"labels", {{"codefresh.io/entity", "git-source"}, {"codefresh.io/internal", "false"}}}}},
       {"spec",
        {{"source", std::move(source)},
         {"sourceNamespace", wanted.source_namespace},
         {"destinations", std::move(destinations)},
         {"sourceRepos", wanted.source_repositories},
         {"syncPolicy", std::move(policy)}}}});
}

std::string git_source_project_manifest() {
  const Json everything = {{"group", "*"}, {"kind", "*"}};
  return yaml_of(
      {{"apiVersion", "argoproj.io/v1alpha1"},
       {"kind", "AppProject"},
       {"metadata", {{"name", kGitSourceProject}, {"labels", {{"codefresh.io/internal", "true"}}}}},
       {"spec",
        {{"description", "Git sources of GitOps runtimes"},
         {"sourceRepos", Json::array({"*"})},
         {"destinations", Json::array({{{"namespace", "*"}, {"server", "*"}}})},
         {"clusterResourceWhitelist", Json::array({everything})}}}});
}

std::string rollouts_manifest(const ConfigRepository& repository,
                              const RolloutsInstallation& wanted) {
  Json manifest =
      application(wanted.name, repository,
                  {{"codefresh.io/entity", "argo-rollouts"}, {"codefresh.io/internal", "true"}},
                  {{"repoURL", wanted.chart_repository},
                   {"chart", "argo-rollouts"},
                   {"targetRevision", wanted.chart_version}},
                  {{"namespace", wanted.destination_namespace}, {"server", wanted.server}});
  manifest["spec"]["syncPolicy"]["syncOptions"] =
      Json::array({"CreateNamespace=true", "ServerSideApply=true"});
  return yaml_of(manifest);
}

std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const GitSource& source) {
  auto globs = common_globs(repository);
  globs.push_back(glob_of(repository, source.name));
  return {create_file(repository.git_source_file(source.name), source.name,
                      git_source_manifest(repository, source)),
          keep_free_of_cluster(repository, source.name), add_globs(repository, std::move(globs)),
          keep_project(repository), keep_resources(repository)};
}

std::vector<FileChange> changes_to_create(const ConfigRepository& repository,
                                          const RestrictedGitSource& source, std::string_view api) {
  auto globs = common_globs(repository);
  globs.push_back(glob_of(repository, source.name));
  return {create_file(repository.git_source_file(source.name), source.name,
                      restricted_git_source_manifest(repository, source, api)),
          keep_free_of_cluster(repository, source.name), add_globs(repository, std::move(globs)),
          keep_resources(repository)};
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
  return {
      {.path = repository.git_source_file(name), .kind = FileChange::Kind::remove_folder},
      {.path = repository.in_cluster_file(),
       .kind = FileChange::Kind::edit,
       .edit =
           [repository, glob = glob_of(repository, name)](std::optional<std::string_view> content) {
             return with_globs(repository, content, [&](std::vector<std::string>& globs) {
               return std::erase(globs, glob) > 0;
             });
           }},
      keep_resources(repository)};
}

std::vector<FileChange> changes_to_add_cluster(const ConfigRepository& repository,
                                               std::string_view name, std::string_view server) {
  return {{.path = repository.cluster_file(name),
           .kind = FileChange::Kind::edit,
           .edit = [manifest = cluster_manifest(repository, name, server),
                    server = std::string(server)](
                       std::optional<std::string_view> content) -> Result<std::string> {
             if (!content) return manifest;
             return with_values(std::string(*content), {{server_path(), server}});
           }},
          keep_name_free(repository.git_source_file(name),
                         "this runtime has a Git source " + std::string(name) +
                             "; choose another name for the cluster"),
          keep_resources(repository)};
}

std::vector<FileChange> changes_to_remove_cluster(const ConfigRepository& repository,
                                                  std::string_view name) {
  // Argo CD refuses a path without files.
  return {{.path = repository.cluster_file(name), .kind = FileChange::Kind::remove_folder},
          add_globs(repository, {})};
}

std::vector<FileChange> changes_to_prepare(const ConfigRepository& repository) {
  return {add_globs(repository, common_globs(repository)), keep_project(repository),
          keep_resources(repository)};
}

std::vector<FileChange> changes_to_bring_up(const ConfigRepository& repository) {
  RepositorySpecifier folder = repository.at;
  folder.path = repository.default_source_folder();
  const GitSource source{.name = std::string(kDefaultGitSource),
                         .source = std::move(folder),
                         .server = std::string(kOwnServer)};
  auto globs = common_globs(repository);
  globs.push_back(glob_of(repository, kDefaultGitSource));
  return {
      keep_file(repository.git_source_file(kDefaultGitSource),
                git_source_manifest(repository, source)),
      keep_file(repository.default_source_folder() + "/README.md",
                "Manifests in this folder are applied by the Git source " +
                    std::string(kDefaultGitSource) + " of runtime " + repository.runtime + ".\n"),
      add_globs(repository, std::move(globs)), keep_project(repository),
      keep_resources(repository)};
}

RolloutsNames rollouts_names(std::string_view server) {
  server = without_slashes(server);
  constexpr std::size_t kBytes = 4;
  std::string by_host = "argo-rollouts-" + cluster_word(server);
  std::string by_url = by_host + "-" + hex_encode(bytes_of(sha256(server)).substr(0, kBytes));
  return {.by_host = std::move(by_host), .by_url = std::move(by_url)};
}

std::string rollouts_name(std::string_view server, const RolloutsFiles& files) {
  server = without_slashes(server);
  auto names = rollouts_names(server);
  if (files.by_host) {
    const auto present = read_manifest(*files.by_host, server_path());
    return present && without_slashes(*present) == server ? names.by_host : names.by_url;
  }
  const auto url = http::parse_url(server);
  const bool is_host_alone = url && url->path.empty() && url->query.empty();
  return is_host_alone && !files.by_url ? names.by_host : names.by_url;
}

std::vector<FileChange> changes_to_install_rollouts(const ConfigRepository& repository,
                                                    const RolloutsInstallation& wanted) {
  auto changes = changes_to_prepare(repository);
  const auto path = repository.own_resource_file(wanted.name);
  changes.push_back({.path = path,
                     .kind = FileChange::Kind::edit,
                     .edit = [path, wanted, manifest = rollouts_manifest(repository, wanted)](
                                 std::optional<std::string_view> content) -> Result<std::string> {
                       if (!content) return manifest;
                       const auto server = read_manifest(*content, server_path());
                       if (!server || without_slashes(*server) != without_slashes(wanted.server)) {
                         return std::unexpected(
                             Error{.code = ErrorCode::conflict,
                                   .message = path + " is not for the cluster " + wanted.server +
                                              "; edit it in the shared configuration repository",
                                   .reason = std::string(git_source_errors::kNameTaken)});
                       }
                       return with_values(
                           std::string(*content),
                           {{{"spec", "destination", "namespace"}, wanted.destination_namespace}});
                     }});
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
