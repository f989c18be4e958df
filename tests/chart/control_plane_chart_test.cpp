// The chart of the control plane, as a real helm renders it and a real API server takes it.

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "chart/needs.hpp"
#include "chart/pod_files.hpp"
#include "peers/peer_cluster.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace nlohmann::literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kMonitoring = "monitoring.coreos.com/v1";

fs::path chart() {
  return fs::path(GITOPS_SOURCE_DIR) / "charts/gitops-control-plane";
}

// The files of values of the chart's tests, and none.
std::vector<std::string> value_sets() {
  std::vector<std::string> sets{""};
  for (const auto& entry : fs::directory_iterator(chart() / "tests/values")) {
    sets.push_back(entry.path());
  }
  return sets;
}

Given given() {
  return {.images = {"control-plane:0.1.0", "tunnel-server:0.1.0"},
          .secrets = {"database/password", "first-start/password", "master-key/key",
                      "control-plane-tls/tls.crt", "control-plane-tls/tls.key", "plugin/token",
                      "tunnel-api/token", "tunnel-ca/ca.pem", "sso-corp/secret",
                      "sso-google/secret", "sso-ca/ca.pem"},
          .accounts = {"default"}};
}

bool has_null(const json& value) {
  if (value.is_null()) return true;
  if (!value.is_structured()) return false;
  return std::ranges::any_of(value, has_null);
}

struct ControlPlaneChart : testing::Test {
  Helm helm;
  void SetUp() override {
    if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  }
  CommandResult run(const std::string& values, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"template",       "cp",       chart(), "-n", "gitops",
                                       "--api-versions", kMonitoring};
    if (!values.empty()) arguments.insert(arguments.end(), {"-f", values});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return helm.run(arguments);
  }
  std::vector<json> render(const std::string& values, std::vector<std::string> more = {}) const {
    const auto rendered = run(values, std::move(more));
    EXPECT_TRUE(rendered.ok()) << values << ": " << rendered.err;
    return parse_manifests(rendered.out).value();
  }
};

TEST(ControlPlaneChartValues, AreDocumentedAndDescribedInTheSchema) {
  const auto script = fs::path(GITOPS_SOURCE_DIR) / "tests/chart/control_plane_values.py";
  const auto result = run_command({"python3", script, "--check"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(ControlPlaneChart, EveryPodHasWhatItNeeds) {
  for (const auto& values : value_sets()) {
    SCOPED_TRACE(values);
    const auto lint = values.empty() ? helm.run({"lint", "--strict", chart()})
                                     : helm.run({"lint", "--strict", chart(), "-f", values});
    EXPECT_TRUE(lint.ok()) << lint.out;
    EXPECT_THAT(unmet_needs(render(values), given()), IsEmpty());
  }
}

TEST_F(ControlPlaneChart, TheProgramsAcceptTheirConfiguration) {
  for (const auto& values : value_sets()) {
    SCOPED_TRACE(values);
    const auto objects = render(values);
    for (const auto& one : objects) {
      if (one.at("kind") != "Deployment") continue;
      PodFiles pod(objects, one.at("/metadata/name"_json_pointer));
      pod.command.push_back("--check-config");
      const auto checked = run_command(pod.command, pod.environment);
      EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
    }
  }
}

TEST_F(ControlPlaneChart, AFileOfSqliteHasOnePodAtATime) {
  const auto sqlite = object(render(""), "Deployment", "control-plane");
  EXPECT_EQ(sqlite.at("/spec/strategy/type"_json_pointer), "Recreate");
  EXPECT_EQ(sqlite.at("/spec/template/spec/volumes/0/persistentVolumeClaim/claimName"_json_pointer),
            "control-plane");
  const auto several = run("", {"--set", "replicaCount=2"});
  EXPECT_FALSE(several.ok());
  EXPECT_THAT(several.err, HasSubstr("several pods need database.postgres.url"));
  const auto postgres =
      object(render(chart() / "tests/values/postgres.yaml"), "Deployment", "control-plane");
  EXPECT_EQ(postgres.at("/spec/strategy/rollingUpdate/maxUnavailable"_json_pointer), 0);
  EXPECT_THAT(postgres.dump(), Not(HasSubstr("/var/lib/control-plane")));
}

// The address of PostgreSQL may name several hosts, each with a port of its own.
TEST_F(ControlPlaneChart, EveryHostOfPostgresMayBeReached) {
  const auto objects = render(
      "", {"--set", "networkPolicy.enabled=true", "--set-string",
           "database.postgres.url=postgresql://cp@a:5433\\,b\\,[::1]:6000/cp?sslmode=require"});
  const auto egress =
      object(objects, "NetworkPolicy", "control-plane").at("spec").at("egress").dump();
  for (const char* port : {"5433", "5432", "6000"}) EXPECT_THAT(egress, HasSubstr(port));
}

// The daemon itself reads the files of the identity providers.
TEST_F(ControlPlaneChart, IdentityProvidersAreFilesThatTheDaemonTakes) {
  const auto objects = render(chart() / "tests/values/postgres.yaml");
  const auto files = object(objects, "ConfigMap", "control-plane-sso").at("data");
  ASSERT_EQ(files.size(), 2U);
  const TempDir folder;
  write_file(folder / "secret", "secret");
  std::string paths;
  for (const auto& [name, content] : files.items()) {
    // The Secrets are elsewhere here.
    const auto text = std::regex_replace(content.get<std::string>(),
                                         std::regex("/app/config/sso-[a-z]+-(secret|ca)/[^ \n]*"),
                                         (folder / "secret").string());
    EXPECT_NE(text, content.get<std::string>());
    write_file(folder / name, text);
    paths += (paths.empty() ? "" : ",") + (folder / name).string();
  }
  const auto checked =
      run_command({fs::path(GITOPS_BIN_DIR) / "control-plane", "--check-config",
                   "--public-url=https://gitops.example.com", "--sso.providers=" + paths});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  const auto pod = object(objects, "Deployment", "control-plane").dump();
  EXPECT_THAT(pod, HasSubstr("/app/config/sso/corp.yaml,/app/config/sso/google.yaml"));
  EXPECT_THAT(pod, HasSubstr("checksum/sso"));
  EXPECT_THAT(object(objects, "NetworkPolicy", "control-plane").dump(), HasSubstr("8443"));
}

TEST_F(ControlPlaneChart, ATunnelServerBesideItAsksItAndTakesItsBans) {
  const auto rendered = render(chart() / "tests/values/tunnels.yaml");
  const auto variables = [&](const std::string& name) {
    std::map<std::string, json> found;
    const auto pod = object(rendered, "Deployment", name);
    for (const auto& one : pod.at("/spec/template/spec/containers/0/env"_json_pointer)) {
      found[one.at("name")] = one;
    }
    return found;
  };
  const auto server = variables("tunnel-server");
  EXPECT_EQ(server.at("PLUGIN_URL").at("value"),
            "http://control-plane.gitops.svc:80/tunnel-plugin/$(PLUGIN_TOKEN)");
  EXPECT_EQ(server.at("PLUGIN_TOKEN").at("/valueFrom/secretKeyRef/name"_json_pointer), "plugin");
  EXPECT_EQ(server.at("SUBDOMAIN_HOST").at("value"), "tunnels.example.com");
  EXPECT_EQ(server.at("TUNNEL_MAX_CLIENTS").at("value"), "100");
  EXPECT_EQ(variables("control-plane").at("TUNNEL_API_URLS").at("value"),
            "http://tunnel-server-admin.gitops.svc:8089");
  const auto users = object(rendered, "Ingress", "tunnel-server");
  EXPECT_EQ(users.at("/spec/rules/0/host"_json_pointer), "*.tunnels.example.com");
  // The policy of the control plane lets the plugin's requests in.
  EXPECT_THAT(object(rendered, "NetworkPolicy", "control-plane").at("spec").at("ingress").dump(),
              HasSubstr("tunnel-server"));
}

// The digest of the control plane's image is that of no other repository.
TEST_F(ControlPlaneChart, ATunnelServerBesideItHasAnImageOfItsOwn) {
  const auto digest = "sha256:" + std::string(64, 'a');
  const auto other = "sha256:" + std::string(64, 'b');
  const auto image = [&](const std::string& more) {
    const auto objects =
        render(chart() / "tests/values/tunnels.yaml", {"--set", "image.digest=" + digest + more});
    return object(objects, "Deployment", "tunnel-server")
        .at("/spec/template/spec/containers/0/image"_json_pointer)
        .get<std::string>();
  };
  const std::string one =
      ",image.repository=gitops-runtime,tunnel.server.image.repository=gitops-runtime";
  EXPECT_EQ(image(""), "tunnel-server:0.1.0");
  EXPECT_EQ(image(",tunnel.server.image.digest=" + other), "tunnel-server@" + other);
  EXPECT_EQ(image(one), "gitops-runtime@" + digest);
  EXPECT_EQ(image(one + ",tunnel.server.image.tag=x"), "gitops-runtime:x");
}

// A variable of a flag need not be called as the flag.
TEST_F(ControlPlaneChart, EachFlagInConfigIsTheVariableThatTheProgramReads) {
  const auto objects =
      render(chart() / "tests/values/tunnels.yaml",
             {"--set-json", R"(config={"admin-address": "127.0.0.9", "database.readers": 7})",
              "--set-json", R"(tunnel.server.config={"admin-address": "127.0.0.9"})"});
  const auto pod = [&](const std::string& name) {
    return object(objects, "Deployment", name)
        .at("/spec/template/spec/containers/0/env"_json_pointer)
        .dump();
  };
  for (const auto* name : {"control-plane", "tunnel-server"}) {
    EXPECT_THAT(pod(name), HasSubstr(R"("METRICS_LISTEN_ADDRESS","value":"127.0.0.9")")) << name;
  }
  EXPECT_THAT(pod("control-plane"), HasSubstr(R"("DATABASE_READERS","value":"7")"));
}

TEST_F(ControlPlaneChart, ATunnelServerBesideItMaySendTraces) {
  const auto objects =
      render(chart() / "tests/values/tunnels.yaml",
             {"--set", "tracing.endpoint=http://otel-collector.observability:4318"});
  for (const auto* name : {"control-plane", "tunnel-server"}) {
    const auto egress = object(objects, "NetworkPolicy", name).at("spec").at("egress").dump();
    EXPECT_THAT(egress, HasSubstr("4318")) << name;
  }
}

TEST_F(ControlPlaneChart, ANullWithinAMapTakesAwayWhatTheChartHasThere) {
  const TempDir folder;
  write_file(folder / "values.yaml", R"(
resources: {requests: {cpu: null}, limits: {memory: null, cpu: 2}}
securityContext: {readOnlyRootFilesystem: null}
podLabels: {tier: null}
tolerations: [{key: a, operator: Exists, effect: null}]
imagePullSecrets: [null]
)");
  const auto pod = object(render(folder / "values.yaml"), "Deployment", "control-plane")
                       .at("/spec/template"_json_pointer);
  EXPECT_FALSE(has_null(pod)) << pod.dump();
  const auto& container = pod.at("/spec/containers/0"_json_pointer);
  EXPECT_EQ(container.at("resources"),
            json::parse(R"({"requests":{"memory":"64Mi"},"limits":{"cpu":2}})"));
  EXPECT_FALSE(container.at("securityContext").contains("readOnlyRootFilesystem"));
  EXPECT_FALSE(pod.at("spec").contains("imagePullSecrets"));
}

// OpenShift refuses a group that it did not choose.
TEST_F(ControlPlaneChart, OpenShiftChoosesTheGroupOfTheVolume) {
  const auto context = [&](std::vector<std::string> more) {
    const auto objects = render(chart() / "tests/values/tunnels.yaml", std::move(more));
    return object(objects, "Deployment", "control-plane")
        .at("/spec/template/spec/securityContext"_json_pointer);
  };
  EXPECT_EQ(context({}).at("fsGroup"), 65532);
  EXPECT_EQ(context({"--set", "podSecurityContext.fsGroup=7"}).at("fsGroup"), 7);
  const std::vector<std::string> openshift{"--api-versions", "security.openshift.io/v1"};
  EXPECT_FALSE(context(openshift).contains("fsGroup"));
  EXPECT_EQ(context(openshift).at("runAsNonRoot"), true);
}

TEST_F(ControlPlaneChart, PullSecretsAreNamesOrMaps) {
  const auto objects = render(chart() / "tests/values/tunnels.yaml",
                              {"--set", "imagePullSecrets[0]=a,imagePullSecrets[1].name=b"});
  for (const auto* name : {"control-plane", "tunnel-server"}) {
    EXPECT_EQ(
        object(objects, "Deployment", name).at("/spec/template/spec/imagePullSecrets"_json_pointer),
        json::parse(R"([{"name":"a"},{"name":"b"}])"));
  }
}

// In a chart of charts, Helm and the other charts have keys of their own.
TEST_F(ControlPlaneChart, LeavesKeysOfHelmAndOfOtherChartsToThem) {
  const auto alone = render("");
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(render("", {"--set", "enabled=true,tags.planes=true,global.domain=example.com", "--set",
                        "global.image.repository=other,global.imagePullSecrets[0]=other"}),
            alone);
}

TEST_F(ControlPlaneChart, HasEachLabelOnce) {
  const auto objects =
      render(chart() / "tests/values/tunnels.yaml",
             {"--set", "commonLabels.team=a,commonLabels.cost=7,ingress.labels.team=b", "--set",
              "commonLabels.app\\.kubernetes\\.io/name=other", "--set",
              "podLabels.app\\.kubernetes\\.io/name=other", "--set",
              "httpRoute.enabled=true,httpRoute.labels.team=c", "--set",
              "httpRoute.parentRefs[0].name=gateway", "--set",
              "serviceMonitor.enabled=true,serviceMonitor.labels.team=d", "--set",
              "prometheusRule.enabled=true,prometheusRule.labels.team=e"});
  const auto labels = [&](const std::string& kind) {
    return object(objects, kind, "control-plane").at("/metadata/labels"_json_pointer);
  };
  const std::map<std::string, std::string> teams{{"Deployment", "a"},     {"Ingress", "b"},
                                                 {"HTTPRoute", "c"},      {"ServiceMonitor", "d"},
                                                 {"PrometheusRule", "e"}, {"Service", "a"}};
  for (const auto& [kind, team] : teams) {
    EXPECT_EQ(labels(kind).at("team"), team) << kind;
    EXPECT_EQ(labels(kind).at("cost"), "7") << kind;
    EXPECT_EQ(labels(kind).at("app.kubernetes.io/name"), "control-plane") << kind;
  }
  EXPECT_EQ(object(objects, "Deployment", "control-plane")
                .at("/spec/template/metadata/labels"_json_pointer)
                .at("app.kubernetes.io/name"),
            "control-plane");
}

// A name of a volume ends with a letter or a digit.
TEST_F(ControlPlaneChart, EveryNameOfAProviderMakesVolumesThatKubernetesTakes) {
  const auto objects = render(chart() / "tests/values/postgres.yaml",
                              {"--set", "sso.providers[0].name=-" + std::string(38, 'a') + "-"});
  const std::regex label("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");
  for (const auto& volume : object(objects, "Deployment", "control-plane")
                                .at("/spec/template/spec/volumes"_json_pointer)) {
    EXPECT_TRUE(std::regex_match(volume.at("name").get<std::string>(), label)) << volume;
  }
}

TEST_F(ControlPlaneChart, PassesItsUnitTests) {
  const auto result = run_command({Helm::program("helm-unittest"), "--strict", chart()},
                                  {{"HOME", "/nonexistent"}}, {}, std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Test Suites:"));
}

// The keys of the schema, as helm's --set names them.
void find_keys(const json& node, const std::string& path, std::vector<std::string>& keys) {
  if (!node.contains("properties")) return;
  for (const auto& [name, child] : node.at("properties").items()) {
    if (path.empty() && (name == "global" || name == "enabled" || name == "tags")) continue;
    const auto here = path.empty() ? name : path + "." + name;
    keys.push_back(here);
    if (child.contains("properties") && child.at("properties").contains("key")) continue;
    if (name == "config") continue;  // names of flags
    find_keys(child, here, keys);
  }
}

TEST_F(ControlPlaneChart, RendersWithoutAnyOfItsKeys) {
  std::vector<std::string> keys;
  find_keys(json::parse(read_file(chart() / "values.schema.json")), "", keys);
  ASSERT_GE(keys.size(), 90U);
  for (const auto& key : keys) {
    const auto rendered = run(chart() / "tests/values/postgres.yaml", {"--set", key + "=null"});
    if (!rendered.ok()) {
      EXPECT_THAT(rendered.err, HasSubstr("the values of gitops-control-plane have")) << key;
      continue;
    }
    for (const auto& one : parse_manifests(rendered.out).value()) {
      EXPECT_FALSE(has_null(one)) << key << ": " << one.dump();
    }
  }
}

TEST_F(ControlPlaneChart, WrongValuesAreNamed) {
  const std::multimap<std::string, std::string> wrong{
      {"nope=1", "nope"},
      {"ingress.enabled=true", "ingress.hosts is required"},
      {"httpRoute.enabled=true", "httpRoute.parentRefs is required"},
      {"database.postgres.url=postgresql://a:b@c/d", "the password does not belong"},
      {"masterKey.secretKeyRef.name=x", "masterKey.secretKeyRef needs name and key"},
      {"tunnel.api.urls={https://x}", "tunnel.api.token.secretKeyRef is required"},
      {"tracing.headers.secretKeyRef.name=x", "tracing.headers.secretKeyRef needs name and key"},
      {"serviceAccount.create=false", "serviceAccount.name is required"},
      {"config.max-conections=1", "max-conections"},
      {"config.port=9090", "port"},
      {"tunnel.server.config.max-clients=1", "max-clients"},
      {"env.A.valueFrom.secretRef.name=x", "env.A: a map must be valueFrom"},
      {"env.A={x}", "env.A must be a value"},
      {"commonLabels.a=12345678901234567", "has lost digits"},
      {"sso.providers[0].clientId=123", "sso.providers[0].clientId: 123 is no text"},
      {"sso.providers[0].teams={7}", "sso.providers[0].teams: 7 is no text"},
      {"sso.providers[0].name=a,sso.providers[1].name=a", "sso.providers[1].name: a stands there"},
      {"sso.providers[0].name=Corp", "sso.providers[0].name has"},
      {"sso.providers[0].name=corp", "publicUrl is required"},
      {"sso.providers[0].issuer=https://x", "sso.providers[0] needs issuer and clientId"},
      {"sso.providers[0].clientId=x", "sso.providers[0].clientSecretKeyRef needs name and key"},
      {"sso.providers[0].caSecretKeyRef.name=x", "sso.providers[0].caSecretKeyRef needs"},
      {"sso.providers[0].client-id=x", "there is no key client-id"},
      {"sso.providers={x}", "sso.providers[0] is no map"},
      {"tunnel.server.enabled=true", "tunnel.domain is required with tunnel.server"},
      {"tunnel.server.enabled=true", "tunnel.pluginToken.secretKeyRef is required"},
      {"tunnel.server.enabled=true", "tunnel.api.token.secretKeyRef is required"},
      {"tunnel.server.enabled=true,tls.secretName=x", "leave tls.secretName empty"},
      {"tunnel.server.enabled=true,tunnel.server.clients.ingress.enabled=true",
       "tunnel.server.clients.host is required"},
      {"service.type=Anything", "/service/type"},
      {"publicUrl=gitops.example.com", "/publicUrl"}};
  for (const auto& [value, named] : wrong) {
    const auto rendered = run("", {"--set", value});
    EXPECT_FALSE(rendered.ok()) << value;
    EXPECT_THAT(rendered.err, HasSubstr(named)) << value;
  }
}

TEST_F(ControlPlaneChart, IsInstalledOnARealServerInARestrictedNamespace) {
  if (const auto lacking = PeerCluster::missing()) GTEST_SKIP() << "peers: " << *lacking;
  PeerCluster cluster;
  cluster.apply(
      read_file(fs::path(GITOPS_SOURCE_DIR) / "tests/peers/gateway-api/httproute-crd.yaml"));
  require_until(
      [&] { return cluster.request("GET", "/apis/gateway.networking.k8s.io/v1/httproutes").ok(); },
      std::chrono::seconds(60), "HTTPRoutes to be served");
  int number = 0;
  for (const auto& values : value_sets()) {
    SCOPED_TRACE(values);
    const auto ns = "cp-" + std::to_string(++number);
    cluster.create_namespace(ns, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                  {"pod-security.kubernetes.io/warn", "restricted"}});
    std::vector<std::string> arguments{"install", "cp", chart(), "-n", ns, "--wait=false"};
    if (!values.empty()) arguments.insert(arguments.end(), {"-f", values});
    const auto installed = helm.run(arguments, cluster.kubeconfig());
    EXPECT_TRUE(installed.ok()) << installed.err;
    EXPECT_THAT(installed.err, Not(HasSubstr("arning")));
    EXPECT_THAT(installed.out, HasSubstr("rollout status deployment/control-plane"));
    arguments.front() = "upgrade";
    EXPECT_TRUE(helm.run(arguments, cluster.kubeconfig()).ok());
    const auto pods = [&] {
      const auto all = json::parse(cluster.kubectl_ok({"-n", ns, "get", "pods", "-o", "json"}));
      return all.at("items").size();
    };
    EXPECT_TRUE(wait_until([&] { return pods() > 0; }, std::chrono::seconds(60), "a pod"));
    EXPECT_TRUE(helm.run({"uninstall", "cp", "-n", ns}, cluster.kubeconfig()).ok());
    const bool keeps_claim = values.empty();
    EXPECT_EQ(cluster.kubectl({"-n", ns, "get", "pvc", "control-plane"}).ok(), keeps_claim);
  }
}

TEST_F(ControlPlaneChart, StandsBesideARuntimeThatReportsToIt) {
  if (const auto lacking = PeerCluster::missing()) GTEST_SKIP() << "peers: " << *lacking;
  PeerCluster cluster;
  const auto install = [&](const std::string& ns, const fs::path& from,
                           std::vector<std::string> more) {
    cluster.create_namespace(ns, {{"pod-security.kubernetes.io/enforce", "restricted"},
                                  {"pod-security.kubernetes.io/warn", "restricted"}});
    for (const auto* secret : {"codefresh-token", "argocd-token"}) {
      cluster.kubectl_ok(
          {"-n", ns, "create", "secret", "generic", secret, "--from-literal=token=x"});
    }
    more.insert(more.begin(), {"install", "one", from, "-n", ns, "--wait=false"});
    const auto installed = helm.run(more, cluster.kubeconfig());
    EXPECT_TRUE(installed.ok()) << installed.err;
    EXPECT_THAT(installed.err, Not(HasSubstr("arning")));
  };
  install("plane", chart(), {"-f", chart() / "tests/values/ephemeral.yaml"});
  install("runtime", chart_folder(),
          {"-f", values_file("minimal.yaml"), "--set",
           "global.codefresh.url=http://control-plane.plane.svc,app-proxy.enabled=true,"
           "global.codefresh.accountId=0123456789abcdef01234567"});
  // The URL is a Service with a port that the pods of the control plane have.
  const auto get = [&](const std::string& ns, const std::string& kind, const std::string& name) {
    return json::parse(cluster.kubectl_ok({"-n", ns, "get", kind, name, "-o", "json"}));
  };
  EXPECT_EQ(get("plane", "service", "control-plane").at("/spec/ports/0/port"_json_pointer), 80);
  EXPECT_THAT(get("runtime", "configmap", "codefresh-cm").dump(),
              HasSubstr("http://control-plane.plane.svc"));
  const auto is_ready = [&](const std::string& ns, const std::string& name) {
    return wait_until(
        [&] {
          return get(ns, "deployment", name).value("/status/readyReplicas"_json_pointer, 0) == 1;
        },
        std::chrono::seconds(60), name + " to be ready");
  };
  EXPECT_TRUE(is_ready("plane", "control-plane"));
  EXPECT_TRUE(is_ready("runtime", "cap-app-proxy"));
  // Each goes without the other.
  EXPECT_TRUE(helm.run({"uninstall", "one", "-n", "runtime"}, cluster.kubeconfig()).ok());
  EXPECT_TRUE(is_ready("plane", "control-plane"));
}

}  // namespace
}  // namespace gitops::test
