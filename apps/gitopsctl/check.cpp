#include "gitopsctl/check.hpp"

#include <memory>
#include <utility>

#include "common/argo/argocd_client.hpp"
#include "common/cli/table.hpp"
#include "common/control_plane/graphql.hpp"
#include "common/core/process.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/proxy_settings.hpp"
#include "gitopsctl/verdicts.hpp"
#include "k8s-client/client.hpp"

namespace gitops::ctl {

namespace {

using std::chrono::milliseconds;

struct Settings : CheckSettings {
  cli::OutputFormat output = cli::OutputFormat::text;
  cli::LoopOptions loop;
};

std::string user_agent() {
  return "gitopsctl/" + std::string(version());
}

milliseconds since(Clock::time_point begin) {
  return std::chrono::ceil<milliseconds>(Clock::now() - begin);
}

// One run of the check. Its parts fill the groups of the report concurrently.
class Check {
 public:
  Check(const CheckSettings& settings, const cli::Environment& environment,
        http::ProxySettings proxy, const cli::LoopContext& context)
      : settings_(settings),
        environment_(environment),
        proxy_(std::move(proxy)),
        context_(context),
        resolver_(context.metrics) {}

  Task<Report> run() {
    TaskGroup parts(context_.executor);
    parts.spawn("kubernetes", [this] { return check_kubernetes(); });
    parts.spawn("argocd", [this] { return check_argocd(); });
    parts.spawn("control-plane", [this] { return check_control_plane(); });
    co_await parts.join();
    // An interrupted run has no report.
    if ((co_await asio::this_coro::cancellation_state).cancelled() !=
        asio::cancellation_type::none) {
      throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return Report{std::move(kubernetes_), std::move(permissions_), std::move(argocd_),
                     std::move(control_plane_)};
  }

 private:
  Task<> check_kubernetes() {
    const auto wanted = permissions_of_runtime(settings_.installation);
    const auto skip_permissions = [&](const std::string& ns, const std::string& why) {
      for (const Permission& permission : wanted) {
        permissions_.rows.push_back(skipped(permission.daemon, why));
        permissions_.rows.back().subject = describe(permission, ns);
      }
    };
    auto cluster = find_cluster(settings_.kubernetes, environment_);
    if (!cluster) {
      kubernetes_.rows.push_back(failed("kubeconfig", cluster.error(),
                                        "--kubeconfig chooses another file, --context "
                                        "another cluster in it"));
      skip_permissions(settings_.kubernetes.ns.empty() ? "default" : settings_.kubernetes.ns,
                       "there is no usable kubeconfig");
      co_return;
    }
    const std::string ns = cluster->default_namespace;
    kubernetes_.about = cluster->server.to_string();
    permissions_.about = "in namespace " + ns;
    k8s::Client client(context_.executor, resolver_, std::move(*cluster), proxy_, user_agent());

    const auto begin = Clock::now();
    const auto answer = co_await client.server_version(context_.deadline);
    if (!answer && is_without_credential(answer.error())) {
      kubernetes_.rows = {skipped("API server", "not asked: there is no credential"),
                          credentials_row(std::unexpected(answer.error()))};
      skip_permissions(ns, "not asked: there is no credential");
      co_return;
    }
    kubernetes_.rows.push_back(api_server_row(answer, since(begin)));
    if (kubernetes_.rows.back().status != Status::ok) {
      kubernetes_.rows.push_back(skipped("credentials", "the API server could not be asked"));
      skip_permissions(ns, "the API server could not be asked");
      co_return;
    }
    const auto user = co_await client.who_am_i(context_.deadline);
    kubernetes_.rows.push_back(credentials_row(user));
    if (kubernetes_.rows.back().status == Status::failed) {
      skip_permissions(ns, "the credentials were refused");
      co_return;
    }
    if (user) permissions_.about = "of " + *user + ", " + permissions_.about;
    permissions_.rows.resize(wanted.size());
    TaskGroup questions(context_.executor);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      questions.spawn(
          "right",
          [this, &client, &permission = wanted[i], &ns, &row = permissions_.rows[i]]() -> Task<> {
            row = co_await check_permission(client, permission, ns);
          });
    }
    co_await questions.join();
  }

  Task<Row> check_permission(k8s::Client& client, const Permission& permission,
                             const std::string& ns) {
    std::vector<PermissionAnswer> answers;
    // "rollouts/status"
    const auto slash = permission.resource.find('/');
    const std::string resource = permission.resource.substr(0, slash);
    const std::string subresource =
        slash == std::string::npos ? std::string() : permission.resource.substr(slash + 1);
    const std::vector<std::string> any = {""};
    for (const std::string& name : permission.names.empty() ? any : permission.names) {
      for (const std::string& verb : permission.verbs) {
        auto allowed = co_await client.can_i({.verb = verb,
                                              .group = permission.group,
                                              .resource = resource,
                                              .subresource = subresource,
                                              .ns = permission.everywhere ? std::string() : ns,
                                              .name = name},
                                             context_.deadline);
        answers.push_back({.verb = verb, .name = name, .allowed = std::move(allowed)});
      }
    }
    co_return permission_row(permission, ns, answers);
  }

  Task<> check_argocd() {
    const ArgoCdSettings& settings = settings_.argocd;
    if (settings.server.empty()) {
      argocd_.rows.push_back(not_configured("argocd-server", "no address was given",
                                            "set --argocd-server or ARGOCD_SERVER"));
      co_return;
    }
    // The URL was checked when the settings were read.
    const http::Url server = argo::parse_server(settings.server).value();
    argocd_.about = server.to_string();
    http::Client http(context_.executor, resolver_,
                      client_options(settings.ca_file, settings.insecure));
    argo::ArgoCdClient client(http, {.server = server, .root_path = settings.root_path},
                              [&settings] { return settings.token; });
    const auto begin = Clock::now();
    const auto answer = co_await client.version(context_.deadline);
    argocd_.rows.push_back(argocd_row(answer, since(begin)));
    if (settings.token.empty()) {
      argocd_.rows.push_back(
          not_configured("token", "no token was given", "set --argocd-token-file or ARGOCD_TOKEN"));
    } else if (argocd_.rows.back().status != Status::ok) {
      argocd_.rows.push_back(skipped("token", "argocd-server could not be asked"));
    } else {
      argocd_.rows.push_back(
          argocd_token_row(co_await client.can_i("applications", "get", "*/*", context_.deadline)));
      if (settings_.installation.registration && argocd_.rows.back().status == Status::ok) {
        argocd_.rows.push_back(
            argocd_clusters_row(co_await client.can_i("clusters", "get", "*", context_.deadline)));
      }
    }
  }

  Task<> check_control_plane() {
    const ControlPlaneSettings& settings = settings_.control_plane;
    if (settings.url.empty()) {
      control_plane_.rows.push_back(not_configured("control plane", "no address was given",
                                                   "set --control-plane-url or CODEFRESH_URL"));
      co_return;
    }
    const http::Url url = http::parse_url(settings.url).value();
    control_plane_.about = url.to_string();
    if (settings.token.empty()) {
      control_plane_.rows.push_back(not_configured(
          "token", "no token was given", "set --control-plane-token-file or CODEFRESH_TOKEN"));
      // The request is sent even then: a refusal shows that the control plane is reachable.
    }
    http::Client http(context_.executor, resolver_,
                      client_options(settings.ca_file, settings.insecure));
    control_plane::GraphqlClient client(http, url, [&settings] { return settings.token; });
    const auto begin = Clock::now();
    const auto account = co_await client.account(context_.deadline);
    auto rows = control_plane_rows(account, since(begin));
    if (!control_plane_.rows.empty()) rows[1] = std::move(control_plane_.rows[0]);
    control_plane_.rows = std::move(rows);
  }

  [[nodiscard]] http::ClientOptions client_options(const std::string& ca_file,
                                                   bool insecure) const {
    http::ClientOptions options;
    options.tls.ca_file = ca_file;
    options.tls.insecure_skip_verify = insecure;
    options.proxy = proxy_;
    options.user_agent = user_agent();
    return options;
  }

  const CheckSettings& settings_;
  const cli::Environment& environment_;
  http::ProxySettings proxy_;
  const cli::LoopContext& context_;
  net::Resolver resolver_;
  Group kubernetes_{.id = "kubernetes", .title = "Kubernetes", .about = {}, .rows = {}};
  Group permissions_{.id = "rights", .title = "Rights", .about = {}, .rows = {}};
  Group argocd_{.id = "argocd", .title = "Argo CD", .about = {}, .rows = {}};
  Group control_plane_{.id = "control_plane", .title = "Control plane", .about = {}, .rows = {}};
};

int run_check(const Settings& settings, const cli::Environment& environment,
              cli::Console& console) {
  return cli::run_on_loop(
      settings.loop, console, [&](const cli::LoopContext& context) -> Task<int> {
        const Report report = co_await run_checks(settings, environment, context);
        const bool json = settings.output == cli::OutputFormat::json;
        console.out << (json ? to_json(report) : to_text(report, console.colour));
        co_return exit_code(verdict(report));
      });
}

constexpr const char* kDescription =
    R"(Checks that Kubernetes, Argo CD and the control plane are reachable and accept your
credentials, and that you have the rights in the cluster that the runtime's daemons need.
Installing the chart requires these rights, too. To check the rights of a daemon itself, use a
kubeconfig with the token of its ServiceAccount.

Each row is ok, failed or not known. Not known means that the check could not be made. Exit code: 0
all ok, 1 something failed, 3 nothing failed but something is not known.
)";

}  // namespace

void CheckSettings::add_to(ConfigReader& reader) {
  kubernetes.add_to(reader);
  kubernetes.add_namespace_to(reader);
  argocd.add_to(reader);
  control_plane.add_to(reader);
  add_installation(reader, installation);
}

Task<Report> run_checks(const CheckSettings& settings, const cli::Environment& environment,
                        const cli::LoopContext& context) {
  Check check(settings, environment, http::proxy_settings(environment), context);
  co_return co_await check.run();
}

cli::Command check_command() {
  const auto settings = std::make_shared<Settings>();
  return {.name = "check",
          .summary = "Check what a runtime needs: peers, credentials and rights",
          .description = kDescription,
          .bind =
              [settings](ConfigReader& reader) {
                settings->add_to(reader);
                settings->loop.add_to(reader);
                cli::add_output_row(reader, settings->output);
              },
          .run = [settings](
                     const cli::Environment& environment,
                     cli::Console& console) { return run_check(*settings, environment, console); }};
}

}  // namespace gitops::ctl
