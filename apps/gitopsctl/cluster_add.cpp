#include "gitopsctl/cluster_add.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/process.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/http/proxy_settings.hpp"
#include "gitopsctl/cluster_account.hpp"
#include "gitopsctl/config.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"
#include "k8s-client/client.hpp"

namespace gitops::ctl {

namespace {

constexpr auto kTokenTime = std::chrono::seconds(15);  // for the cluster to fill in the token
constexpr auto kTokenPeriod = std::chrono::milliseconds(200);
constexpr const char* kFieldManager = "gitopsctl";

struct Settings {
  std::string name;
  std::string runtime;
  std::string system_namespace = "kube-system";
  std::vector<std::string> labels;
  std::vector<std::string> annotations;
  bool skip_tls_validation = false;
  bool dry_run = false;
  bool yes = false;
  KubernetesSettings kubernetes;

  void add_to(ConfigReader& reader) {
    add_runtime_flag(reader, runtime, "Runtime that deploys to it; needed when there are several");
    reader.add({.flag = "system-namespace", .help = "Namespace of the ServiceAccount"},
               system_namespace);
    reader.add({.flag = "labels", .help = "Labels of the cluster for Argo CD, as KEY=VALUE"},
               labels);
    reader.add(
        {.flag = "annotations", .help = "Annotations of the cluster for Argo CD, as KEY=VALUE"},
        annotations);
    reader.add({.flag = "skip-tls-validation",
                .help = "Let Argo CD accept any certificate of the cluster"},
               skip_tls_validation);
    reader.add({.flag = "dry-run", .help = "Print the objects for the cluster, and do nothing"},
               dry_run);
    add_yes(reader, yes);
    kubernetes.add_to(reader, "kube-context");
  }
};

// The same URL may be written with a slash at its end.
std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// Returns the runtime of the flag, else the only one.
Task<Result<std::string>> runtime_of(Server& server, const std::string& wanted) {
  if (!wanted.empty()) co_return wanted;
  const auto items = co_await read_slices(server, kRuntimes, "runtimes", Json::object(), 0);
  if (!items) co_return std::unexpected(items.error());
  std::vector<std::string> names;
  for (const Json& item : items->all) names.push_back(string_at(item, {"metadata", "name"}));
  if (names.empty()) {
    co_return fail(ErrorCode::not_found, "the account has no runtime; see gitopsctl runtime add");
  }
  if (names.size() == 1) co_return names[0];
  co_return usage_error("there are several runtimes, " + join(names, ", ") +
                        "; --runtime chooses one");
}

// Refuses a name that the runtime has for another server: app-proxy would take it for a change of that cluster.
Task<Result<void>> check_name_is_free(Server& server, const std::string& runtime,
                                      const std::string& name, const std::string& url) {
  const auto items =
      co_await read_slices(server, kClusters, "clusters", Json{{"runtime", runtime}}, 0);
  if (!items) co_return std::unexpected(items.error());
  for (const Json& item : items->all) {
    const auto known = without_slash(string_at(item, {"server"}));
    if (string_at(item, {"metadata", "name"}) == name && known != url) {
      co_return fail(ErrorCode::conflict, "runtime " + runtime + " has another cluster " + name +
                                              ", at " + known +
                                              "; choose another NAME, or remove "
                                              "that one: gitopsctl cluster remove " +
                                              runtime + "/" + name);
    }
  }
  co_return Result<void>();
}

// Makes the account in the cluster, or completes it.
class Account {
 public:
  Account(Call& call, const Settings& settings, k8s::ClusterConfig cluster)
      : call_(call),
        settings_(settings),
        resolver_(call.loop.metrics),
        client_(call.loop.executor, resolver_, std::move(cluster),
                http::proxy_settings(call.environment), "gitopsctl/" + std::string(version()),
                {.attempts = 3}) {}

  // Returns the token of the account.
  Task<Result<Secret>> ensure() {
    for (const AccountObject& object : account_objects(settings_.system_namespace)) {
      const auto applied = co_await client_.patch(
          object.resource, object.key, k8s::PatchType::apply, to_text(object.object),
          call_.loop.deadline, {.field_manager = kFieldManager});
      if (applied) continue;
      if (!is_other_role(object, applied.error())) co_return std::unexpected(applied.error());
      call_.console.err << "ClusterRole " << kClusterRole
                        << " has rules that others have set; it is kept as it is.\n";
    }
    co_return co_await wait_for_token();
  }

 private:
  // Somebody may have restricted what Argo CD may do there.
  static bool is_other_role(const AccountObject& object, const Error& error) {
    return object.key.name == kClusterRole && error.cause == k8s::causes::kFieldManagerConflict;
  }

  Task<Result<Secret>> wait_for_token() {
    const auto key = token_secret(settings_.system_namespace);
    const auto deadline = std::min(call_.loop.deadline, deadline_after(kTokenTime));
    while (true) {
      const auto secret = co_await client_.get(k8s::resources::kSecrets, key, deadline);
      if (!secret) co_return std::unexpected(secret.error());
      auto token = token_of(*secret);
      if (!token) co_return std::unexpected(token.error());
      if (*token) co_return std::move(**token);
      if (Clock::now() + kTokenPeriod >= deadline) {
        co_return fail(ErrorCode::timeout, "Secret " + key.to_string() +
                                               " has no token yet; the cluster's controller "
                                               "manager fills it in");
      }
      co_await sleep_for(kTokenPeriod);
    }
  }

  Call& call_;
  const Settings& settings_;
  net::Resolver resolver_;
  k8s::Client client_;
};

// Prints why the account could not be made.
int tell_cluster_failure(Call& call, const std::string& server, const Error& error) {
  call.console.err << "gitopsctl: cluster " << cli::printable(server) << ": "
                   << cli::printable(error.message) << '\n';
  switch (error.code) {
    case ErrorCode::forbidden:
      call.console.err << "hint: this takes an administrator of that cluster; --kube-context "
                          "chooses another user\n";
      break;
    case ErrorCode::unauthenticated:
    case ErrorCode::unavailable:
    case ErrorCode::timeout:
    case ErrorCode::tls:
      call.console.err << "hint: --kubeconfig and --kube-context choose the cluster and its user; "
                          "kubectl cluster-info asks it\n";
      break;
    default:
      break;
  }
  return exit_code_of(error);
}

// Sends the cluster to the runtime.
Task<Result<int>> send(Call& call, const std::string& runtime, const AddedCluster& cluster,
                       const std::string& system_namespace) {
  const auto body = add_request(cluster);
  const auto answer = co_await call.server.call_runtime(runtime, "POST", "/api/clusters",
                                                        std::string(body.reveal()));
  const int code = tell_outcome(
      call, answer, "cluster " + runtime + "/" + cluster.name + " is added, at " + cluster.server,
      "gitopsctl cluster list " + runtime);
  if (!answer) {
    call.console.err << "ServiceAccount " << system_namespace << '/' << kClusterAccount
                     << " in the cluster stays. Run the command again, or delete it with its "
                        "ClusterRole and ClusterRoleBinding.\n";
  }
  co_return code;
}

Task<Result<int>> add_cluster(Call& call, const Settings& settings) {
  const std::string& name = settings.name.empty() ? settings.kubernetes.context : settings.name;
  if (name.empty()) co_return usage_error("give the cluster a NAME, or choose a --kube-context");
  if (const auto mistake = cluster_name_mistake(name); !mistake.empty()) {
    co_return usage_error(name + ": " + mistake);
  }
  auto labels = key_values("labels", settings.labels);
  if (!labels) co_return std::unexpected(labels.error());
  auto annotations = key_values("annotations", settings.annotations);
  if (!annotations) co_return std::unexpected(annotations.error());
  if (settings.dry_run) {
    call.console.out << manifests_text(account_objects(settings.system_namespace));
    co_return cli::kDone;
  }
  auto config = find_cluster(settings.kubernetes, call.environment);
  if (!config) co_return usage_error("kubeconfig: " + config.error().message);
  AddedCluster cluster{.name = name,
                       .server = without_slash(config->server.to_string()),
                       .tls = config->tls,
                       .token = {},
                       .labels = std::move(*labels),
                       .annotations = std::move(*annotations)};
  cluster.tls.insecure_skip_verify |= settings.skip_tls_validation;
  if (!cluster.tls.ca_file.empty()) {
    auto pem = read_small_file(cluster.tls.ca_file);
    if (!pem) co_return usage_error(cluster.tls.ca_file + " " + pem.error().message);
    cluster.tls.ca_pem = std::move(*pem);
  }
  const auto runtime = co_await runtime_of(call.server, settings.runtime);
  if (!runtime) co_return std::unexpected(runtime.error());
  // Nothing is made in the cluster for a runtime that cannot be reached.
  if (const auto url = co_await call.server.runtime_url(*runtime); !url) {
    co_return std::unexpected(url.error());
  }
  const auto is_free =
      co_await check_name_is_free(call.server, *runtime, cluster.name, cluster.server);
  if (!is_free) co_return std::unexpected(is_free.error());
  if (!settings.yes) {
    co_return needs_yes("this gives Argo CD of runtime " + *runtime +
                        " all rights in the cluster " + cluster.server + ", by ServiceAccount " +
                        settings.system_namespace + "/" + std::string(kClusterAccount));
  }
  Account account(call, settings, std::move(*config));
  auto token = co_await account.ensure();
  if (!token) co_return tell_cluster_failure(call, cluster.server, token.error());
  cluster.token = std::move(*token);
  co_return co_await send(call, *runtime, cluster, settings.system_namespace);
}

}  // namespace

cli::Command cluster_add_command() {
  const auto settings = std::make_shared<Settings>();
  return noun_command(
      {.name = "cluster add",
       .summary = "Add a cluster of your kubeconfig to a runtime (administrators)",
       .description =
           "Makes the ServiceAccount argocd-manager in the cluster, with a ClusterRole that "
           "allows\n"
           "everything there, as `argocd cluster add` does: Argo CD deploys objects of any kind. "
           "Its\n"
           "token, which does not expire, goes to the runtime, which stores it for Argo CD.\n"
           "The API server must be reachable for Argo CD at the address in the kubeconfig.\n"
           "Run again, it updates the cluster. A ClusterRole argocd-manager-role that others have\n"
           "set is kept.\n\n" +
           std::string(kOutcomeHelp) +
           "Examples:\n"
           "  gitopsctl cluster add east --kube-context=east-admin --runtime=prod --yes\n"
           "  gitopsctl cluster add east --labels=env=prod,region=eu --yes\n"
           "  gitopsctl cluster add east --dry-run\n",
       .operands = {{.name = "NAME",
                     .help = "Name of the cluster; default: that of --kube-context",
                     .target = &settings->name,
                     .is_required = false}},
       .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
       .has_form = false,
       .timeout = std::chrono::seconds(75),
       .work = [settings](Call& call) { return add_cluster(call, *settings); }});
}

}  // namespace gitops::ctl
