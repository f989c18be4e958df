// The chart without a cluster: its unit tests, its rendered objects, and whether the daemon knows
// every variable that the chart sets.

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The StatefulSets of the event-reporters.
const std::vector<std::string> kReporters{"runtime-event-reporter", "cluster-event-reporter"};
constexpr const char* kRouter = "internal-router";
constexpr const char* kAppProxy = "cap-app-proxy";

// The workload of a daemon, and the daemon's program.
struct Daemon {
  std::string kind;
  std::string name;
  std::string program;
};
const std::vector<Daemon> kDaemons{{"StatefulSet", "runtime-event-reporter", "event-reporter"},
                                   {"StatefulSet", "cluster-event-reporter", "event-reporter"},
                                   {"Deployment", kRouter, "request-router"},
                                   {"Deployment", kAppProxy, "app-proxy"}};

class ChartTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  }

  // The minimal values and every value that makes the chart render more.
  static std::vector<std::string> everything() {
    std::vector<std::string> arguments{"-f", values_file("minimal.yaml"), "--api-versions",
                                       "monitoring.coreos.com/v1"};
    for (const auto* set : {
             "global.codefresh.tls.caCerts.secret.create=true",
             "global.codefresh.tls.caCerts.secret.content=canary-ca",
             "global.integrations.argo-cd.server.auth.token=canary-token",
             "global.integrations.argo-cd.server.auth.type=token",
             "global.integrations.argo-cd.server.port=443",
             "global.integrations.argo-cd.server.tls.caCerts.secretKeyRef.key=ca.crt",
             "global.integrations.argo-cd.server.tls.caCerts.secretKeyRef.name=argo-ca",
             "global.integrations.argo-cd.server.tls.insecure=true",
             "global.httpProxy=http://proxy:3128",
             "global.httpsProxy=http://proxy:3128",
             "global.noProxy=.svc",
             "event-reporters.cluster-event-reporter.managedClusters=true",
             "event-reporters.cluster-event-reporter.config.report\\.kinds=rollouts",
             "event-reporters.cluster-event-reporter.config.report\\.all\\.replicasets=true",
             "event-reporters.cluster-event-reporter.config.workflow\\.namespaces=ci-*",
             "global.event-reporters.config.codefresh\\.tls\\.insecure=false",
             "global.event-reporters.config.listen\\.address=0.0.0.0",
             "global.event-reporters.config.log\\.format=json",
             "global.event-reporters.config.log\\.level=debug",
             "global.event-reporters.config.heartbeat\\.interval=1m",
             "global.event-reporters.config.resend\\.on\\.revision=true",
             "global.event-reporters.config.sweep\\.interval=1m",
             "global.event-reporters.config.metrics\\.listen\\.address=0.0.0.0",
             "global.event-reporters.dashboard.enabled=true",
             "global.event-reporters.persistence.enabled=true",
             "global.event-reporters.prometheusRule.enabled=true",
             "global.event-reporters.replicaCount=3",
             "global.event-reporters.serviceMonitor.enabled=true",
             "global.integrations.argo-cd.server.rootpath=/argocd",
             "global.runtime.ingress.enabled=true",
             "global.runtime.ingress.hosts[0]=a.example.com",
             "global.runtime.httpRoute.enabled=true",
             "global.runtime.httpRoute.hostnames[0]=a.example.com",
             "global.runtime.httpRoute.parentRefs[0].name=gateway",
             "app-proxy.enabled=true",
             "app-proxy.config.graphqlPlayground=true",
             "app-proxy.image-enrichment.enabled=true",
             "app-proxy.pdb.enabled=true",
             "app-proxy.replicaCount=2",
             "app-proxy.serviceMonitor.enabled=true",
             "app-proxy.prometheusRule.enabled=true",
             "app-proxy.networkPolicy.enabled=true",
             "global.codefresh.tls.workflowPipelinesGitWebhooks.certificates.git=canary-git-ca",
             "app-proxy.config.skipGitPermissionValidation=true",
             "internal-router.hpa.enabled=true",
             "internal-router.ipv6.enabled=false",
             "internal-router.networkPolicy.enabled=true",
             "internal-router.prometheusRule.enabled=true",
             "internal-router.replicaCount=3",
             "internal-router.serviceMonitor.enabled=true",
             "internal-router.trustedProxies={10.0.0.0/8,::1}",
             "internal-router.webhooks.allowedNamespaces={argo,ci}",
             "internal-router.webhooks.signatures[0].namespace=argo",
             "internal-router.webhooks.signatures[0].eventSource=github",
             "internal-router.webhooks.signatures[0].kind=github",
             "internal-router.webhooks.signatures[0].key=github",
             "internal-router.config.app-proxy-ca-file=/ca/a.pem",
             "internal-router.config.app-proxy-max-body=1Gi",
             "internal-router.config.workflows-ca-file=/ca/w.pem",
             "internal-router.config.workflows-insecure=true",
             "internal-router.config.webhook-port=12000",
             "internal-router.config.webhook-rate=0",
             "internal-router.config.webhook-concurrency=1000000",
             "internal-router.config.webhook-max-body=1048576",
             "internal-router.config.connect-timeout=1s",
             "internal-router.config.answer-timeout=1m30s",
             "internal-router.config.body-timeout=24h",
             "internal-router.config.request-body-deadline=15m",
             "internal-router.config.upstream-idle-timeout=30s",
             "internal-router.config.websocket-timeout=5m",
             "internal-router.config.gzip=false",
             "internal-router.config.upstream-allowed-addresses={169.254.20.10}",
         }) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return arguments;
  }

  static const json& pod_spec(const json& set) {
    return set.at("/spec/template/spec"_json_pointer);
  }
  static const json& container(const json& set) { return pod_spec(set).at("containers").at(0); }

  static std::string checksum(const std::vector<json>& objects, const std::string& of) {
    return object(objects, "StatefulSet", "runtime-event-reporter")
        .at("/spec/template/metadata/annotations"_json_pointer)
        .at("checksum/" + of);
  }

  Helm helm_;
};

TEST_F(ChartTest, PassesItsUnitTests) {
  const auto result = run_command({Helm::program("helm-unittest"), "--strict", chart_folder()},
                                  {{"HOME", "/nonexistent"}}, {}, std::chrono::seconds(240));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Test Suites:"));
}

TEST_F(ChartTest, PassesLintWithEachValuesFile) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(chart_folder() / "tests/values")) {
    ++files;
    const auto result = helm_.run({"lint", "--strict", chart_folder(), "-f",
                                   values_file("minimal.yaml"), "-f", entry.path()});
    EXPECT_EQ(result.exit_code, 0) << entry.path() << ": " << result.out << result.err;
  }
  EXPECT_GE(files, 4);
}

TEST(ChartValues, AreDocumentedAndDescribedInTheSchema) {
  const auto script = fs::path(GITOPS_SOURCE_DIR) / "tests/chart/chart_values.py";
  const auto result = run_command({"python3", script, "--check"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The objects of the schema that take keys beside those that they name, by their paths.
void find_open(const json& node, const std::string& path, std::set<std::string>& open) {
  if (!node.is_object()) return;
  if (node.contains("properties")) {
    if (node.value("additionalProperties", json()) != false) open.insert(path);
    for (const auto& [name, child] : node.at("properties").items()) {
      find_open(child, path + "/" + name, open);
    }
  }
  if (node.contains("items")) find_open(node.at("items"), path + "/[]", open);
}

TEST(ChartValues, AnyOtherKeyIsAnError) {
  const auto schema = json::parse(read_file(chart_folder() / "values.schema.json"));
  std::set<std::string> open;
  find_open(schema, "", open);
  // Parts of Argo have their own charts, and global belongs to all of them; app-proxy's config becomes a
  // ConfigMap as it is. Reporters' config too, below which older keys are named. Of older parts that there
  // are no more any key is taken.
  const std::set<std::string> expected{"/app-proxy/config",
                                       "/argo-cd",
                                       "/argo-events",
                                       "/argo-rollouts",
                                       "/argo-workflows",
                                       "/cf-argocd-extras",
                                       "/cf-argocd-extras/eventReporter",
                                       "/event-reporters/cluster-event-reporter/config",
                                       "/event-reporters/runtime-event-reporter/config",
                                       "/global",
                                       "/global/event-reporters/config",
                                       "/global/image",
                                       "/sealed-secrets"};
  std::set<std::string> outside;
  for (const auto& path : open) {
    if (path.starts_with("/argo-cd/") || path.starts_with("/argo-workflows/")) continue;
    outside.insert(path);
  }
  EXPECT_EQ(outside, expected);
}

// One wrong value for each rule of the schema and of the forms, each with a message that names the key and the rule.
TEST_F(ChartTest, EveryRuleAboutValuesIsExplainedToWhoBreaksIt) {
  const auto script = fs::path(GITOPS_SOURCE_DIR) / "tests/chart/wrong_values.py";
  const auto result =
      run_command({"python3", script, Helm::program("helm"), values_file("minimal.yaml")});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("schema: "), HasSubstr("forms: ")));
}

TEST_F(ChartTest, HasAnEntryInTheSupportedRangeOfKubernetes) {
  const std::vector<std::string> with{"template", "rt", chart_folder(), "-f",
                                      values_file("minimal.yaml")};
  auto old = with, oldest = with;
  old.insert(old.end(), {"--kube-version", "1.24.17"});
  oldest.insert(oldest.end(), {"--kube-version", "1.25.0"});
  EXPECT_THAT(helm_.run(old).err, HasSubstr("incompatible with Kubernetes v1.24.17"));
  EXPECT_EQ(helm_.run(oldest).exit_code, 0);
}

// The environment names that the daemon prints in its configuration table.
std::set<std::string> names_the_daemon_knows(const std::string& program) {
  const auto table = run_or_throw({fs::path(GITOPS_BIN_DIR) / program, "--print-config-table"});
  std::set<std::string> names;
  std::string word;
  for (const char c : table + " ") {
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
    } else {
      if (word.size() > 3) names.insert(word);
      word.clear();
    }
  }
  return names;
}

TEST_F(ChartTest, HandsOverOnlyVariablesThatTheDaemonKnows) {
  // The proxy variables are not in the daemon's table, and the pod's name is for readers.
  const std::set<std::string> conventional{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "POD_NAME"};
  ASSERT_THAT(names_the_daemon_knows("event-reporter"), Contains("CODEFRESH_URL"));

  auto password = everything();
  password.insert(password.end(),
                  {"--set", "global.integrations.argo-cd.server.auth.type=password", "--set",
                   "global.integrations.argo-cd.server.auth.password=canary-password"});
  for (const auto& arguments : {everything(), password}) {
    const auto objects = helm_.render(arguments);
    for (const auto& daemon : kDaemons) {
      const auto known = names_the_daemon_knows(daemon.program);
      const auto& env = container(object(objects, daemon.kind, daemon.name)).at("env");
      EXPECT_GE(env.size(), daemon.kind == "Deployment" ? 5U : 22U);
      for (const auto& variable : env) {
        const std::string name = variable.at("name");
        EXPECT_TRUE(known.contains(name) || conventional.contains(name)) << name;
      }
    }
  }
}

// The environment that the kubelet would make of the env list, with "canary" for Secrets.
Environment resolve_env(const std::vector<json>& objects, const json& env) {
  Environment environment;
  for (const auto& variable : env) {
    const std::string name = variable.at("name");
    if (variable.contains("value")) {
      environment[name] = variable.at("value").get<std::string>();
      continue;
    }
    const auto& from = variable.at("valueFrom");
    if (from.contains("secretKeyRef")) {
      environment[name] = "canary";
    } else if (from.contains("fieldRef")) {
      environment[name] = from.at("/fieldRef/fieldPath"_json_pointer) == "metadata.name"
                              ? "runtime-event-reporter-0"
                              : "gitops";
    } else {
      const auto& ref = from.at("configMapKeyRef");
      if (ref.at("name") == "argocd-cmd-params-cm") continue;  // Argo CD's own, optional
      const auto& data = object(objects, "ConfigMap", ref.at("name").get<std::string>()).at("data");
      const std::string key = ref.at("key");
      if (data.contains(key)) {
        environment[name] = data.at(key).get<std::string>();
      } else if (!ref.value("optional", false)) {
        throw std::runtime_error(name + " needs the missing key " + key);
      }
    }
  }
  return environment;
}

TEST_F(ChartTest, RendersAConfigurationThatTheDaemonAccepts) {
  const std::vector<std::string> minimal{"-f", values_file("minimal.yaml"), "--set",
                                         "app-proxy.enabled=true"};
  auto password = minimal;
  auto confined = minimal;
  password.insert(password.end(),
                  {"--set", "global.integrations.argo-cd.server.auth.password=canary"});
  confined.insert(confined.end(), {"--set", "global.runtime.singleNamespace=true"});
  TempDir folder;
  for (const auto& arguments : {minimal, everything(), password, confined}) {
    const auto objects = helm_.render(arguments);
    const auto& routes = object(objects, "ConfigMap", "internal-router-config").at("data");
    write_file(folder / "routes.yaml", routes.at("routes.yaml").get<std::string>());
    for (const auto& daemon : kDaemons) {
      const auto& spec = container(object(objects, daemon.kind, daemon.name));
      ASSERT_EQ(spec.at("command"), json({daemon.program}));
      std::vector<std::string> command{fs::path(GITOPS_BIN_DIR) / daemon.program, "--check-config"};
      auto environment = resolve_env(objects, spec.at("env"));
      if (daemon.name == kRouter) {
        // --check-config does not check the routes; they have the same form.
        command.push_back("--config=" + (folder / "routes.yaml").string());
      } else if (daemon.kind == "StatefulSet") {
        environment["EVENT_REPORTER_SHARD"] = "0";  // what the host name of a pod ends with
      }
      const auto result = run_command(command, environment);
      EXPECT_EQ(result.exit_code, 0) << daemon.name << ": " << result.out << result.err;
    }
  }
}

// The flags that --help lists below these titles.
std::set<std::string> flags_of_groups(const std::string& program,
                                      const std::set<std::string>& groups) {
  std::istringstream help(run_or_throw({fs::path(GITOPS_BIN_DIR) / program, "--help"}));
  std::set<std::string> flags;
  bool inside = false;
  for (std::string line; std::getline(help, line);) {
    if (line.ends_with(":") && !line.starts_with(" ")) inside = groups.contains(line);
    if (inside && line.starts_with("  --")) flags.insert(line.substr(4, line.find(' ', 4) - 4));
  }
  return flags;
}

TEST_F(ChartTest, TheTunnelClientAcceptsItsConfiguration) {
  const std::vector<std::string> minimal{"-f", values_file("minimal.yaml"), "--set",
                                         "global.codefresh.accountId=0123456789abcdef01234567"};
  auto full = minimal;
  for (const auto* set :
       {"tunnel-client.tunnelServer.insecure=true", "tunnel-client.tunnelServer.links=4",
        "tunnel-client.tunnelServer.protocol=tcp",
        "tunnel-client.tunnelServer.host=a.example.com\\,b.example.com:8443",
        "tunnel-client.tunnelServer.token.secretKeyRef.name=frp",
        "tunnel-client.tunnelServer.token.secretKeyRef.key=token",
        "tunnel-client.tunnelServer.groupKey.secretKeyRef.name=frp",
        "tunnel-client.tunnelServer.groupKey.secretKeyRef.key=group",
        "tunnel-client.tunnelServer.caCerts.secretKeyRef.name=ca",
        "tunnel-client.tunnelServer.caCerts.secretKeyRef.key=ca.pem",
        "tunnel-client.tunnel.ipsAllowList=10.0.0.0/8\\,::1",
        "tunnel-client.tunnel.extraProxies[0].name=argocd",
        "tunnel-client.tunnel.extraProxies[0].host=argocd-server",
        "tunnel-client.tunnel.extraProxies[0].port=80", "tunnel-client.tunnel.poolSize=5",
        "tunnel-client.logLevel=debug", "global.httpsProxy=http://proxy:3128",
        "tunnel-client.terminationGracePeriodSeconds=60"}) {
    full.insert(full.end(), {"--set", set});
  }
  auto known = names_the_daemon_knows("tunnel-client");
  ASSERT_THAT(known, Contains("TUNNEL_SERVER_HOST"));
  known.insert({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"});
  TempDir folder;
  for (const auto& arguments : {minimal, full}) {
    const auto objects = helm_.render(arguments);
    const auto& workload = object(objects, "Deployment", "codefresh-tunnel-client");
    const auto& spec = container(workload);
    const auto environment = resolve_env(objects, spec.at("env"));
    for (const auto& [name, value] : environment) EXPECT_THAT(known, Contains(name));
    EXPECT_LT(std::stoi(environment.at("DRAIN_TIMEOUT").value()),
              pod_spec(workload).at("terminationGracePeriodSeconds"));
    std::vector<std::string> command{fs::path(GITOPS_BIN_DIR) / "tunnel-client", "--check-config"};
    ASSERT_EQ(spec.at("args"),
              json({"--authorization-file=/app/config/tunnel-authorization/token"}));
    write_file(folder / "token", "canary");
    command.push_back("--authorization-file=" + (folder / "token").string());
    const auto result = run_command(command, environment);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}

// The minimal values and those that a tunnel-server needs.
std::vector<std::string> with_tunnel_server(const std::vector<std::string>& sets = {}) {
  std::vector<std::string> arguments{"-f", values_file("minimal.yaml")};
  const auto add = [&](const std::string& set) {
    arguments.insert(arguments.end(), {"--set", "tunnel-server." + set});
  };
  add("enabled=true");
  add("subdomainHost=Tunnels.example.com");
  add("auth.runtimes.secretKeyRef.name=runtimes");
  add("auth.runtimes.secretKeyRef.key=list");
  for (const auto& set : sets) add(set);
  return arguments;
}

const std::vector<std::string> kTunnelServerConfig{
    "tunnel.heartbeat-timeout=30s", "tunnel.max-clients=1000000",
    "tunnel.max-strangers=100",     "tunnel.max-strangers-per-address=10",
    "tunnel.max-streams=100000",    "tunnel.max-pool=0",
    "tunnel.stream-window=262144",  "max-connections=1000000",
    "max-requests-per-host=0",      "max-body=10000000",
    "connect-timeout=1s",           "answer-timeout=10m",
    "stream-timeout=24h",           "idle-timeout=1m5s"};

TEST_F(ChartTest, TheTunnelServerAcceptsItsConfiguration) {
  std::vector<std::string> more{
      "replicaCount=2",
      "auth.token.secretKeyRef.name=shared",
      "auth.token.secretKeyRef.key=token",
      "auth.plugin.url=https://cp.example.com/plugin",
      "auth.plugin.operations={Login,NewProxy,CloseProxy,Ping,NewWorkConn}",
      "auth.plugin.timeout=500ms",
      "auth.plugin.caCerts.secretKeyRef.name=ca",
      "auth.plugin.caCerts.secretKeyRef.key=ca.pem",
      "clients.hosts={a.example.com,b.example.com}",
      "clients.port=8443",
      "clients.links=4",
      "clients.tls.secretName=clients",
      "clients.tls.required=false",
      "clients.caCerts.secretKeyRef.name=ca",
      "clients.caCerts.secretKeyRef.key=ca.pem",
      "users.tls.secretName=users",
      "users.trustedProxies={10.0.0.0/8,::1}",
      "api.enabled=true",
      "api.token.secretKeyRef.name=api",
      "api.token.secretKeyRef.key=token",
      "logLevel=warning"};
  for (const auto& setting : kTunnelServerConfig) {
    auto [name, value] =
        std::pair(setting.substr(0, setting.find('=')), setting.substr(setting.find('=')));
    if (name.starts_with("tunnel.")) name.insert(6, "\\");
    more.push_back("config." + name + value);
  }
  const auto known = names_the_daemon_knows("tunnel-server");
  ASSERT_THAT(known, Contains("RUNTIMES_FILE"));
  TempDir folder;
  for (const auto& name : {"tunnel-token", "api-token"}) write_file(folder / name, "canary");
  for (const auto& arguments : {with_tunnel_server(), with_tunnel_server(more)}) {
    const auto objects = helm_.render(arguments);
    const auto& spec = container(object(objects, "StatefulSet", "tunnel-server"));
    const auto environment = resolve_env(objects, spec.at("env"));
    for (const auto& [name, value] : environment) EXPECT_THAT(known, Contains(name));
    std::vector<std::string> command{fs::path(GITOPS_BIN_DIR) / "tunnel-server", "--check-config"};
    for (const std::string argument : spec.value("args", json::array())) {
      const auto file = argument.substr(argument.rfind('/') + 1);
      command.push_back(argument.substr(0, argument.find('=') + 1) + (folder / file).string());
    }
    const auto result = run_command(command, environment);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    // Each port that the daemon listens on is one of the container, and the other way round.
    std::set<std::string> ports{"8087", environment.at("LISTEN_PORT").value(),
                                environment.at("TUNNEL_PORT").value()};
    if (environment.contains("API_PORT")) ports.insert(environment.at("API_PORT").value());
    std::set<std::string> declared;
    for (const auto& port : spec.at("ports")) declared.insert(port.at("containerPort").dump());
    EXPECT_EQ(declared, ports);
  }
}

TEST_F(ChartTest, EveryLimitOfTheTunnelServerIsASettingOfTheValues) {
  auto expected = flags_of_groups("tunnel-server", {"Tunnel:", "Limits:"});
  // Those that have chart values of their own.
  for (const auto* own : {"tunnel.listen-address", "tunnel.port", "tunnel.tls-certificate-file",
                          "tunnel.tls-key-file", "tunnel.client-ca-file", "tunnel.require-tls",
                          "tunnel.links", "tunnel.servers"}) {
    EXPECT_EQ(expected.erase(own), 1U) << own;
  }
  const auto schema = json::parse(read_file(chart_folder() / "values.schema.json"));
  std::set<std::string> config;
  const auto& settings =
      schema.at("/properties/tunnel-server/properties/config/properties"_json_pointer);
  for (const auto& [name, form] : settings.items()) config.insert(name);
  EXPECT_EQ(config, expected);
  for (const auto& name : expected) {
    EXPECT_THAT(read_file(chart_folder() / "values.yaml"), HasSubstr(name));
    EXPECT_THAT(kTunnelServerConfig, Contains(testing::StartsWith(name + "="))) << "is tried";
  }
}

TEST_F(ChartTest, TheTunnelServersDrainEndsBeforeTheKill) {
  for (const int grace : {1, 10, 60, 3600}) {
    const auto objects = helm_.render(
        with_tunnel_server({"terminationGracePeriodSeconds=" + std::to_string(grace)}));
    const auto& set = object(objects, "StatefulSet", "tunnel-server");
    const auto environment = resolve_env(objects, container(set).at("env"));
    EXPECT_LE(std::stoi(environment.at("DRAIN_DELAY").value()) +
                  std::stoi(environment.at("DRAIN_TIMEOUT").value()),
              pod_spec(set).at("terminationGracePeriodSeconds"));
  }
}

TEST_F(ChartTest, EverySettingOfTheRoutesHasOnePlaceInTheValues) {
  auto expected = flags_of_groups("request-router", {"Routes:", "Webhooks:", "Limits:"});
  ASSERT_THAT(expected, Contains("webhook-rate"));
  // Settings with chart values of their own, and the pod's namespace.
  const auto objects = helm_.render({"-f", values_file("minimal.yaml")});
  std::istringstream routes(object(objects, "ConfigMap", "internal-router-config")
                                .at("/data/routes.yaml"_json_pointer)
                                .get<std::string>());
  for (std::string line; std::getline(routes, line);) {
    if (line.starts_with("-")) continue;
    EXPECT_EQ(expected.erase(line.substr(0, line.find(':'))), 1U) << line;
  }
  EXPECT_EQ(expected.erase("namespace"), 1U);
  EXPECT_EQ(expected.erase("trusted-proxy-names"), 1U) << "the tunnel-client's pods";

  const auto schema = json::parse(read_file(chart_folder() / "values.schema.json"));
  std::set<std::string> config;
  const auto& settings =
      schema.at("/properties/internal-router/properties/config/properties"_json_pointer);
  for (const auto& [name, form] : settings.items()) config.insert(name);
  EXPECT_EQ(config, expected);
  for (const auto& name : expected) {
    EXPECT_THAT(read_file(chart_folder() / "values.yaml"), HasSubstr(name));
    EXPECT_THAT(everything(), Contains(HasSubstr("config." + name + "="))) << "is tried";
  }
}

TEST_F(ChartTest, TheLedgerLiesOnAVolumeOfItsOwn) {
  for (auto arguments :
       {std::vector<std::string>{"-f", values_file("minimal.yaml")}, everything()}) {
    const auto objects = helm_.render(arguments);
    for (const auto& reporter : kReporters) {
      const auto& set = object(objects, "StatefulSet", reporter);
      const auto environment = resolve_env(objects, container(set).at("env"));
      const fs::path file = environment.at("LEDGER_FILE").value();
      const json mount{{"name", "ledger"}, {"mountPath", file.parent_path().string()}};
      EXPECT_THAT(container(set).at("volumeMounts"), Contains(mount));
      int volumes = 0;
      for (const auto& volume : pod_spec(set).value("volumes", json::array())) {
        if (volume.at("name") == "ledger") volumes += volume.at("emptyDir").contains("sizeLimit");
      }
      for (const auto& claim : set.at("spec").value("volumeClaimTemplates", json::array())) {
        volumes += claim.at("/metadata/name"_json_pointer) == "ledger";
      }
      EXPECT_EQ(volumes, 1);
      EXPECT_TRUE(pod_spec(set).at("securityContext").contains("fsGroup"));
    }
  }
}

TEST_F(ChartTest, TheDrainEndsBeforeTheKill) {
  for (const int grace : {1, 10, 30, 600}) {
    const auto text = "terminationGracePeriodSeconds=" + std::to_string(grace);
    const auto objects =
        helm_.render({"-f", values_file("minimal.yaml"), "--set", "global.event-reporters." + text,
                      "--set", "internal-router." + text, "--set", "app-proxy." + text, "--set",
                      "app-proxy.enabled=true"});
    for (const auto& daemon : kDaemons) {
      const auto& workload = object(objects, daemon.kind, daemon.name);
      const auto environment = resolve_env(objects, container(workload).at("env"));
      int seconds = std::stoi(environment.at("DRAIN_TIMEOUT").value());
      if (environment.contains("DRAIN_DELAY")) {
        seconds += std::stoi(environment.at("DRAIN_DELAY").value());
      }
      EXPECT_LE(seconds, pod_spec(workload).at("terminationGracePeriodSeconds"));
    }
  }
}

TEST_F(ChartTest, ChangesAChecksumExactlyWhenWhatThePodReadsChanges) {
  const std::vector<std::string> minimal{"-f", values_file("minimal.yaml")};
  const auto with = [&](const std::string& set) {
    auto arguments = minimal;
    arguments.insert(arguments.end(), {"--set", set});
    return helm_.render(arguments);
  };
  const auto before = helm_.render(minimal);

  const auto config = with("global.event-reporters.config.threadiness=7");
  EXPECT_NE(checksum(config, "config"), checksum(before, "config"));
  EXPECT_EQ(checksum(config, "codefresh-cm"), checksum(before, "codefresh-cm"));

  const auto url = with("global.codefresh.url=https://other.example.com");
  EXPECT_EQ(checksum(url, "config"), checksum(before, "config"));
  EXPECT_NE(checksum(url, "codefresh-cm"), checksum(before, "codefresh-cm"));

  const auto ca = with(
      "global.codefresh.tls.caCerts.secret.create=true,"
      "global.codefresh.tls.caCerts.secret.content=pem");
  EXPECT_NE(checksum(ca, "codefresh-tls-certs"), checksum(before, "codefresh-tls-certs"));

  const auto own = with("event-reporters.cluster-event-reporter.config.threadiness=7");
  EXPECT_EQ(object(own, "StatefulSet", "runtime-event-reporter"),
            object(before, "StatefulSet", "runtime-event-reporter"));
  EXPECT_NE(object(own, "StatefulSet", "cluster-event-reporter"),
            object(before, "StatefulSet", "cluster-event-reporter"));

  const auto ingress = with("global.runtime.ingressUrl=https://a.example.com");
  EXPECT_NE(object(ingress, "ConfigMap", "codefresh-cm"),
            object(before, "ConfigMap", "codefresh-cm"));
  EXPECT_EQ(object(ingress, "StatefulSet", "runtime-event-reporter"),
            object(before, "StatefulSet", "runtime-event-reporter"));

  // app-proxy registers the runtime with its address when it starts.
  const std::string enabled = "app-proxy.enabled=true,";
  const auto proxy = with(enabled + "global.runtime.name=demo");
  for (const std::string set :
       {"global.runtime.ingressUrl=https://a.example.com",
        "global.codefresh.url=https://cp.example.com/base", "global.runtime.cluster=https://k"}) {
    const auto changed = with(enabled + set);
    EXPECT_NE(object(changed, "Deployment", "cap-app-proxy"),
              object(proxy, "Deployment", "cap-app-proxy"))
        << set;
  }
  const auto reporter = with(enabled + "global.event-reporters.config.threadiness=7");
  EXPECT_EQ(object(reporter, "Deployment", "cap-app-proxy"),
            object(proxy, "Deployment", "cap-app-proxy"));

  // The router reloads changes while it runs.
  const auto routes = with("internal-router.webhooks.allowedNamespaces={argo}");
  EXPECT_NE(object(routes, "ConfigMap", "internal-router-config"),
            object(before, "ConfigMap", "internal-router-config"));
  EXPECT_EQ(object(routes, "Deployment", kRouter), object(before, "Deployment", kRouter));

  const auto unrelated = with("global.event-reporters.serviceAccount.annotations.a=b");
  EXPECT_EQ(object(unrelated, "StatefulSet", "runtime-event-reporter"),
            object(before, "StatefulSet", "runtime-event-reporter"));
}

// Kind and name of every object.
std::set<std::string> identities(const std::vector<json>& objects) {
  std::set<std::string> all;
  for (const auto& one : objects) {
    all.insert(one.at("apiVersion").get<std::string>() + " " + one.at("kind").get<std::string>() +
               " " + one.at("metadata").at("name").get<std::string>());
  }
  return all;
}

// The paths of all fields of a value, without the names in maps that belong to the user.
void collect_shape(const json& value, const std::string& path, std::set<std::string>& shape) {
  static const std::set<std::string> free_maps{"data", "stringData", "annotations", "labels",
                                               "nodeSelector"};
  shape.insert(path);
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      if (free_maps.contains(key)) {
        shape.insert(path + "/" + key);
      } else {
        collect_shape(inner, path + "/" + key, shape);
      }
    }
  } else if (value.is_array()) {
    for (const auto& inner : value) collect_shape(inner, path + "/-", shape);
  }
}

std::set<std::string> shape_of(const std::vector<json>& objects) {
  std::set<std::string> shape;
  for (const auto& one : objects) {
    collect_shape(one,
                  one.at("kind").get<std::string>() +
                      one.at("/metadata/name"_json_pointer).get<std::string>(),
                  shape);
  }
  return shape;
}

TEST_F(ChartTest, AC43_HostileValuesChangeTextAndNothingElse) {
  // Each place is set to each of these. The harmless rendering sets the same places to one word.
  const std::vector<std::string> hostile{"\"",
                                         "'",
                                         "a\nkind: Secret\n---\nkind: Pod\n",
                                         "{{ .Values }}",
                                         "{{ fail \"x\" }}",
                                         "a: b",
                                         "- x",
                                         "&a *a",
                                         "!!binary aGk=",
                                         "? x",
                                         "# x",
                                         "[1, {",
                                         "}",
                                         "|\n  x",
                                         "> x",
                                         "%YAML 1.1",
                                         "--- x",
                                         "... ",
                                         "\\",
                                         "\\\"",
                                         "\t",
                                         " leading and trailing ",
                                         "yes",
                                         "null",
                                         "~",
                                         "0777",
                                         "1e3",
                                         "0x10",
                                         "\x07\x1b[31m",
                                         "\xc2\x85\xe2\x80\xa8\xe2\x80\xa9",
                                         "\xef\xbb\xbf",
                                         "é",
                                         std::string(900, '{'),
                                         "$(CODEFRESH_TOKEN)",
                                         "`id`",
                                         ""};
  const auto values_with = [](const std::string& text) {
    json values = {
        {"global",
         {{"noProxy", "x" + text},
          {"nodeSelector", {{"k" + text, text}}},
          {"codefresh",
           {{"tls",
             {{"caCerts",
               {{"secret",
                 {{"create", true},
                  {"content", "x" + text},
                  {"annotations", {{"k" + text, text}}}}}}}}}}},
          {"integrations",
           {{"argo-cd", {{"server", {{"auth", {{"type", "token"}, {"token", "x" + text}}}}}}}}},
          {"event-reporters",
           {{"extraArgs", {"x" + text}},
            {"podAnnotations", {{"k" + text, text}}},
            {"env", {{"NAME" + text, text}}},
            {"config", {{"k" + text, text}}},
            {"serviceAccount", {{"annotations", {{"k" + text, text}}}}}}}}},
        {"internal-router",
         {{"extraArgs", {"x" + text}},
          {"podAnnotations", {{"k" + text, text}}},
          {"podLabels", {{"k" + text, text}}},
          {"env", {{"NAME" + text, text}}},
          {"config", {{"workflows-ca-file", text}}},
          {"serviceAccount", {{"annotations", {{"k" + text, text}}}}}}}};
    const json annotated{{"annotations", {{"k" + text, text}}}};
    json ingress = annotated;
    ingress["enabled"] = true;
    ingress["labels"] = {{"k" + text, text}};
    values["tunnel-server"] = {
        {"enabled", true},
        {"subdomainHost", "tunnels.example.com"},
        {"auth", {{"token", {{"secretKeyRef", {{"name", "t"}, {"key", "t"}}}}}}},
        {"clients", {{"hosts", {"a.example.com"}}, {"service", annotated}, {"ingress", ingress}}},
        {"users", {{"service", annotated}, {"ingress", ingress}}},
        {"extraArgs", {"x" + text}},
        {"podAnnotations", {{"k" + text, text}}},
        {"podLabels", {{"k" + text, text}}},
        {"env", {{"NAME" + text, text}}},
        {"serviceAccount", annotated}};
    values["app-proxy"] = {{"enabled", true},
                           {"extraArgs", {"x" + text}},
                           {"podAnnotations", {{"k" + text, text}}},
                           {"podLabels", {{"k" + text, text}}},
                           {"env", {{"NAME" + text, text}}},
                           {"config", {{"k" + text, text}}},
                           {"serviceAccount", annotated}};
    values["global"]["runtime"] = {{"ingress",
                                    {{"enabled", true},
                                     {"hosts", {"a.example.com"}},
                                     {"annotations", {{"k" + text, text}}},
                                     {"labels", {{"k" + text, text}}}}}};
    return values;
  };
  TempDir folder;
  const auto render = [&](const std::string& text) {
    // Escaped, because the reader takes some characters for line ends even inside a string.
    write_file(folder / "values.json", values_with(text).dump(-1, ' ', true));
    return helm_.render({"-f", values_file("minimal.yaml"), "-f", folder / "values.json"});
  };
  const auto harmless = render("word");
  const auto expected_objects = identities(harmless);
  const auto expected_shape = shape_of(harmless);
  ASSERT_THAT(expected_objects, Contains("v1 Secret gitops-runtime-argo-cd-token"));

  for (const auto& text : hostile) {
    SCOPED_TRACE(json(text).dump());
    const auto objects = render(text);
    EXPECT_EQ(identities(objects), expected_objects);
    EXPECT_EQ(shape_of(objects), expected_shape);
    EXPECT_EQ(object(objects, "ConfigMap", "runtime-event-reporter-cmd-params-cm")
                  .at("data")
                  .at("k" + text),
              text);
    EXPECT_EQ(
        object(objects, "Secret", "gitops-runtime-argo-cd-token").at("stringData").at("token"),
        "x" + text);
    EXPECT_EQ(object(objects, "Secret", "codefresh-tls-certs").at("stringData").at("ca-bundle.crt"),
              "x" + text);
    auto daemons = kDaemons;
    daemons.push_back({"StatefulSet", "tunnel-server", "tunnel-server"});
    for (const auto& daemon : daemons) {
      const auto& env = container(object(objects, daemon.kind, daemon.name)).at("env");
      const auto is_named = [](const json& variable) {
        const auto name = variable.at("name").get<std::string>();
        return name.starts_with("NAME") && name != "NAMESPACE";
      };
      EXPECT_EQ(std::ranges::count_if(env, is_named), 1) << daemon.name;
    }
    const auto& file = object(objects, "ConfigMap", "internal-router-config").at("data");
    const auto routes = parse_manifests(file.at("routes.yaml"));
    ASSERT_TRUE(routes.has_value());
    ASSERT_EQ(routes->size(), 1U);
    EXPECT_EQ(routes->front().at("workflows-ca-file"), text);
    EXPECT_EQ(routes->front().size(), 8U);
  }
}

TEST_F(ChartTest, AC43_RefusesHostileNamesAndReferences) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"global.runtime.name", "a\"b"},
      {"global.codefresh.url", "https://x y"},
      {"global.codefresh.url", "https://user:secret@x"},
      {"global.codefresh.url", "file:///etc/passwd"},
      {"global.imageRegistry", "reg.example.com/x@sha256:y"},
      {"global.event-reporters.image.repository", "a b"},
      {"global.event-reporters.image.tag", "latest\nx"},
      {"global.event-reporters.serviceAccount.name", "../x"},
      {"global.codefresh.tls.caCerts.secretKeyRef.key", "../../etc/passwd"},
      {"global.codefresh.tls.caCerts.secret.key", "a/b"},
      {"global.integrations.argo-cd.server.svc", "evil.example.com/?x="},
      {"global.integrations.argo-cd.server.rootpath", "/x?y=z"},
      {"argo-cd.fullnameOverride", "evil.example.com#"},
      {"argo-workflows.fullnameOverride", "evil.example.com:1/"},
      {"argo-workflows.server.name", "a b"},
      {"app-proxy.config.cors", "https://a.example.com b"},
      {"app-proxy.image-enrichment.serviceAccount.name", "../x"},
      {"app-proxy.image-enrichment.config.concurrencyCmName", "a\nb"},
      {"app-proxy.image-enrichment.config.concurrencyCmKey", "a/b"},
      {"app-proxy.image-enrichment.config.images.reportImage.tag", "latest\nx"},
      {"global.runtime.ingress.hosts[0]", "a.example.com/x"},
      {"global.runtime.ingress.className", "a\nb"},
      {"global.runtime.httpRoute.hostnames[0]", "a b"},
      {"global.runtime.ingressUrl", "javascript:alert(1)"},
      {"internal-router.fullnameOverride", "a.b"},
      {"internal-router.clusterDomain", "cluster.local/x"},
      {"internal-router.routing.app-proxy.internalUrl", "http://user:secret@x"},
      {"internal-router.routing.workflows.internalUrl", "file:///etc/passwd"},
      {"internal-router.trustedProxies[0]", "all"},
      {"internal-router.webhooks.allowedNamespaces[0]", "../x"},
      {"internal-router.webhooks.secretName", "../x"},
      {"internal-router.webhooks.signatures[0].key", "../../etc/passwd"},
      {"internal-router.webhooks.signatures[0].eventSource", "a/b"}};
  // The other keys of a signature, which must be there.
  const std::string signature = "internal-router.webhooks.signatures[0].";
  std::vector<std::string> whole;
  for (const auto* set : {"namespace=a", "eventSource=b", "kind=github", "key=k"}) {
    whole.insert(whole.end(), {"--set", signature + set});
  }
  for (const auto& [key, value] : cases) {
    std::vector<std::string> arguments{"template", "rt", chart_folder(), "-f",
                                       values_file("minimal.yaml")};
    if (key.starts_with(signature)) arguments.insert(arguments.end(), whole.begin(), whole.end());
    arguments.insert(arguments.end(), {"--set-string", key + "=" + value});
    const auto result = helm_.run(arguments);
    EXPECT_NE(result.exit_code, 0) << key << "=" << value;
    EXPECT_THAT(result.err, HasSubstr(key + ": ")) << value;
    EXPECT_THAT(result.err, testing::ContainsRegex("is not (an?|the) ")) << key << "=" << value;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST_F(ChartTest, AC44_DefaultPodsMeetTheRestrictedStandard) {
  int pods = 0;
  auto with_tunnels = with_tunnel_server();
  with_tunnels.insert(with_tunnels.end(), {"--set", "global.codefresh.accountId=acc", "--set",
                                           "app-proxy.enabled=true"});
  for (const auto& one : helm_.render(with_tunnels)) {
    if (!one.contains("/spec/template/spec"_json_pointer)) continue;
    ++pods;
    const auto& pod = pod_spec(one);
    for (const auto* field : {"hostNetwork", "hostPID", "hostIPC"})
      EXPECT_FALSE(pod.contains(field));
    EXPECT_EQ(pod.at("/securityContext/runAsNonRoot"_json_pointer), true);
    EXPECT_EQ(pod.at("/securityContext/seccompProfile/type"_json_pointer), "RuntimeDefault");
    EXPECT_FALSE(pod.contains("initContainers"));
    for (const auto& one_container : pod.at("containers")) {
      const auto& context = one_container.at("securityContext");
      EXPECT_EQ(context.at("allowPrivilegeEscalation"), false);
      EXPECT_EQ(context.at("readOnlyRootFilesystem"), true);
      EXPECT_EQ(context.at("capabilities"), json({{"drop", {"ALL"}}}));
      EXPECT_FALSE(context.contains("privileged"));
      EXPECT_TRUE(one_container.at("resources").contains("requests"));
      for (const auto& port : one_container.at("ports")) EXPECT_FALSE(port.contains("hostPort"));
    }
  }
  EXPECT_EQ(pods, 6);
}

TEST_F(ChartTest, AC44_GrantsNothingByWildcard) {
  int rules = 0;
  int all_secrets = 0;
  for (const auto& arguments :
       {std::vector<std::string>{"-f", values_file("minimal.yaml")}, everything()}) {
    for (const auto& one : helm_.render(arguments)) {
      for (const auto& rule : one.value("rules", json::array())) {
        ++rules;
        EXPECT_THAT(rule.dump(), Not(HasSubstr("*")));
        const bool secrets = rule.at("resources").dump().find("secrets") != std::string::npos;
        if (secrets && rule.contains("resourceNames")) {
          EXPECT_EQ(rule.at("verbs"), json({"get"}));
          EXPECT_EQ(rule.at("resourceNames").size(), 1U);
        } else if (secrets) {
          ++all_secrets;
          EXPECT_EQ(one.at("kind"), "Role");
          const bool app_proxy = one.at("/metadata/name"_json_pointer) == kAppProxy;
          EXPECT_TRUE(app_proxy ||
                      one.at("/metadata/name"_json_pointer) == "cluster-event-reporter");
          EXPECT_EQ(rule.at("verbs"), app_proxy
                                          ? json({"create", "delete", "get", "list", "update"})
                                          : json({"list", "watch"}));
        }
        const bool leases = rule.at("resources").dump().find("leases") != std::string::npos;
        if (leases && rule.at("verbs").dump().find("update") != std::string::npos) {
          EXPECT_EQ(rule.at("resourceNames").size(), arguments.size() == 2 ? 1U : 4U);
        }
      }
    }
  }
  EXPECT_GE(rules, 14);
  EXPECT_EQ(all_secrets, 2) << "only with managed clusters and with app-proxy";
}

TEST_F(ChartTest, AC44_TheRouterHasNoRightAndNoToken) {
  for (const auto& arguments :
       {std::vector<std::string>{"-f", values_file("minimal.yaml")}, everything()}) {
    const auto objects = helm_.render(arguments);
    const auto& pod = pod_spec(object(objects, "Deployment", kRouter));
    EXPECT_EQ(pod.at("automountServiceAccountToken"), false);
    const std::string account = pod.at("serviceAccountName");
    EXPECT_EQ(object(objects, "ServiceAccount", account).at("automountServiceAccountToken"), false);
    for (const auto& one : objects) {
      for (const auto& subject : one.value("subjects", json::array())) {
        EXPECT_NE(subject.at("name"), account) << one.at("metadata").at("name");
      }
    }
    // The admin port must not be reachable from outside: neither by the router's Service, which an
    // Ingress names, nor by one that has an address there.
    for (const auto& one : objects) {
      if (one.at("kind") != "Service" || one.at("spec").value("clusterIP", "") == "None") continue;
      const bool inside = one.at("/spec/type"_json_pointer) == "ClusterIP" &&
                          one.at("/metadata/name"_json_pointer) != kRouter;
      const auto ports = one.at("spec").at("ports").dump();
      if (!inside) EXPECT_THAT(ports, Not(HasSubstr("metrics"))) << one.at("metadata");
    }
  }
}

TEST_F(ChartTest, AC44_PutsSecretsIntoSecretsOnly) {
  for (const auto* type : {"token", "password"}) {
    auto arguments = everything();
    const std::string auth = "global.integrations.argo-cd.server.auth.";
    arguments.insert(arguments.end(),
                     {"--set", auth + "type=" + type, "--set", auth + "password=canary-password"});
    int secrets = 0;
    for (const auto& one : helm_.render(arguments)) {
      if (one.at("kind") == "Secret") {
        ++secrets;
        continue;
      }
      EXPECT_THAT(one.dump(), Not(HasSubstr("canary"))) << one.at("kind");
    }
    EXPECT_EQ(secrets, 3);
  }
}

}  // namespace
}  // namespace gitops::test
