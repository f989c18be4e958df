#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "common/core/encoding.hpp"
#include "gitopsctl/action_bed.hpp"
#include "peers/peer_bed.hpp"
#include "support/socks_proxy.hpp"

// gitopsctl on a real API server and a real Argo CD.
namespace gitops::test {
namespace {

using nlohmann::json;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kNamespace = "gitops";  // that the chart is rendered for

// The Roles of the chart, their bindings and their ServiceAccounts, on the cluster.
void install_permissions(PeerCluster& cluster) {
  static const bool installed = [&] {
    cluster.create_namespace(kNamespace);
    for (json object : Helm().render({"-f", values_file("minimal.yaml")})) {
      const std::string kind = object["kind"];
      if (kind != "ServiceAccount" && !kind.starts_with("Role") &&
          !kind.starts_with("ClusterRole")) {
        continue;
      }
      if (!kind.starts_with("ClusterRole")) object["metadata"]["namespace"] = kNamespace;
      cluster.apply(object.dump());
    }
    return true;
  }();
  static_cast<void>(installed);
}

// A kubeconfig for the bed's API server; `user` and `cluster` are members in YAML's flow form.
std::filesystem::path kubeconfig_with(const std::string& name, const std::string& user,
                                      const std::string& cluster = {}) {
  const PeerCluster& server = peer_bed().cluster();
  const auto file = server.folder() / ("kubeconfig-" + name);
  write_file(file,
             "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
             "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
             "clusters: [{name: k, cluster: {server: '" +
                 server.server_url() + "', certificate-authority: '" + server.ca_file().string() +
                 "'" + (cluster.empty() ? "" : ", " + cluster) + "}}]\nusers: [{name: u, user: {" +
                 user + "}}]\n");
  return file;
}

// A token of the ServiceAccount `default` that ends at this time, signed with the cluster's key:
// the API server itself issues none for less than ten minutes.
std::string token_until(std::time_t expires) {
  const PeerCluster& cluster = peer_bed().cluster();
  const std::string uid =
      cluster.kubectl_ok({"get", "serviceaccount", "default", "--namespace=default",
                          "--output=jsonpath={.metadata.uid}"});
  const std::string issuer = "https://kubernetes.default.svc";
  const json claims{
      {"iss", issuer},
      {"aud", {issuer}},
      {"sub", "system:serviceaccount:default:default"},
      {"iat", expires - 7200},
      {"nbf", expires - 7200},
      {"exp", expires},
      {"kubernetes.io",
       {{"namespace", "default"}, {"serviceaccount", {{"name", "default"}, {"uid", uid}}}}}};
  const std::string text =
      base64url_encode(R"({"alg":"RS256","typ":"JWT"})") + "." + base64url_encode(claims.dump());
  const auto signature = run_command(
      {"openssl", "dgst", "-sha256", "-sign", (cluster.folder() / "service-accounts.key").string()},
      {}, text);
  if (!signature.ok()) throw std::runtime_error("openssl: " + signature.err);
  return text + "." + base64url_encode(signature.out);
}

struct Ran {
  int exit_code = -1;
  json report;
  std::string text;
};

class GitopsctlPeers : public testing::Test {
 protected:
  void SetUp() override { GITOPS_REQUIRE_PEERS(); }

  static Ran check(const std::filesystem::path& kubeconfig, const std::string& argocd_token,
                   const Environment& more = {}) {
    PeerBed& bed = peer_bed();
    Environment environment{
        {"KUBECONFIG", kubeconfig.string()}, {"ARGOCD_SERVER", bed.argocd().url()},
        {"ARGOCD_TOKEN", argocd_token},      {"CODEFRESH_URL", std::nullopt},
        {"HTTP_PROXY", std::nullopt},        {"http_proxy", std::nullopt},
        {"HTTPS_PROXY", std::nullopt},       {"https_proxy", std::nullopt}};
    for (const auto& [name, value] : more) environment[name] = value;
    const auto result = run_command(
        {std::string(GITOPS_BIN_DIR) + "/gitopsctl", "check", "-n", kNamespace, "-o", "json"},
        environment);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, Not(HasSubstr(argocd_token)));
    return {.exit_code = result.exit_code,
            .report = json::parse(result.out, nullptr, false),
            .text = result.out};
  }

  // The statuses of the rows of a group with this name, or with any.
  static std::vector<std::string> statuses(const Ran& run, const std::string& group,
                                           const std::string& name = {}) {
    std::vector<std::string> found;
    for (const json& row : run.report["rows"]) {
      if (row["group"] == group && (name.empty() || row["name"] == name)) {
        found.push_back(row["status"]);
      }
    }
    EXPECT_FALSE(found.empty()) << group << ' ' << name << " in " << run.text;
    return found;
  }
  static json row(const Ran& run, const std::string& group, const std::string& name) {
    for (const json& row : run.report["rows"]) {
      if (row["group"] == group && row["name"] == name) return row;
    }
    ADD_FAILURE() << group << ' ' << name << " in " << run.text;
    return json::object();
  }
};

TEST_F(GitopsctlPeers, AdministratorsMayDoEverything) {
  PeerBed& bed = peer_bed();
  const Ran run = check(bed.cluster().kubeconfig(), bed.argocd().token());
  EXPECT_EQ(run.exit_code, 3) << "no control plane was given: " << run.text;
  EXPECT_EQ(run.report["totals"]["failed"], 0) << run.text;
  EXPECT_THAT(row(run, "kubernetes", "API server")["version"], StartsWith("v1."));
  EXPECT_THAT(statuses(run, "kubernetes"), Each("ok"));
  EXPECT_THAT(statuses(run, "rights"), Each("ok"));
  EXPECT_THAT(row(run, "argocd", "argocd-server")["version"], StartsWith("v3.2"));
  EXPECT_EQ(row(run, "argocd", "token")["status"], "ok") << run.text;
}

TEST_F(GitopsctlPeers, ADaemonHasThePermissionsOfItsRolesAndNoOthers) {
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  PeerBed& bed = peer_bed();
  install_permissions(bed.cluster());
  const auto as = [&](const std::string& account) {
    const auto token = bed.cluster().service_account_token(kNamespace, account);
    return check(bed.cluster().write_kubeconfig(account, token), bed.argocd().token());
  };
  const Ran reporter = as("runtime-event-reporter");
  EXPECT_EQ(reporter.exit_code, 1);
  EXPECT_EQ(row(reporter, "kubernetes", "credentials")["message"],
            "accepted as system:serviceaccount:gitops:runtime-event-reporter");
  EXPECT_THAT(statuses(reporter, "rights", "runtime-event-reporter"), Each("ok")) << reporter.text;
  EXPECT_THAT(statuses(reporter, "rights", "cluster-event-reporter"), Each("failed"))
      << reporter.text;
  const Ran other = as("default");
  EXPECT_THAT(statuses(other, "rights"), Each("failed")) << other.text;
}

TEST_F(GitopsctlPeers, RefusedCredentialsAreNamedWithWhatThePeersSay) {
  PeerBed& bed = peer_bed();
  const Ran run =
      check(bed.cluster().write_kubeconfig("nobody", "wrong"), bed.argocd().token() + "x");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(row(run, "kubernetes", "API server")["status"], "ok");
  EXPECT_EQ(row(run, "kubernetes", "credentials")["reason"], "unauthenticated");
  EXPECT_THAT(statuses(run, "rights"), Each("not_known"));
  EXPECT_EQ(row(run, "argocd", "argocd-server")["status"], "ok");
  EXPECT_EQ(row(run, "argocd", "token")["reason"], "unauthenticated") << run.text;
  EXPECT_THAT(row(run, "argocd", "token")["message"], HasSubstr("invalid session"));
}

TEST_F(GitopsctlPeers, AnExpiredTokenIsRefused) {
  const std::string argocd = peer_bed().argocd().token();
  const std::time_t now = std::time(nullptr);
  const auto run_with = [&](const std::string& name, std::time_t expires) {
    return check(kubeconfig_with(name, "token: " + token_until(expires)), argocd);
  };
  EXPECT_EQ(row(run_with("current", now + 3600), "kubernetes", "credentials")["message"],
            "accepted as system:serviceaccount:default:default");
  const Ran expired = run_with("expired", now - 3600);
  EXPECT_EQ(expired.exit_code, 1);
  EXPECT_EQ(row(expired, "kubernetes", "API server")["status"], "ok");
  const json credentials = row(expired, "kubernetes", "credentials");
  EXPECT_EQ(credentials["status"], "failed");
  EXPECT_EQ(credentials["reason"], "unauthenticated");
  EXPECT_THAT(credentials["message"], HasSubstr("401 Unauthorized"));
  EXPECT_THAT(credentials["hint"], HasSubstr("expired"));
  EXPECT_THAT(statuses(expired, "rights"), Each("not_known"));
}

TEST_F(GitopsctlPeers, AnExpiredClientCertificateIsRefused) {
  const std::string argocd = peer_bed().argocd().token();
  const auto run_with = [&](const std::string& name, int days) {
    const Certificate certificate = peer_bed().cluster().authority().issue(
        {.common_name = "jane", .organization = "system:masters", .alt_names = {}, .days = days});
    return check(
        kubeconfig_with(name, "client-certificate: '" + certificate.cert_file.string() +
                                  "', client-key: '" + certificate.key_file.string() + "'"),
        argocd);
  };
  const Ran current = run_with("certificate", 2);
  EXPECT_EQ(row(current, "kubernetes", "credentials")["message"], "accepted as jane");
  EXPECT_THAT(statuses(current, "rights"), Each("ok"));
  const Ran expired = run_with("old-certificate", 0);
  EXPECT_EQ(expired.exit_code, 1);
  EXPECT_EQ(row(expired, "kubernetes", "API server")["status"], "ok");
  const json credentials = row(expired, "kubernetes", "credentials");
  EXPECT_EQ(credentials["reason"], "unauthenticated") << expired.text;
  EXPECT_THAT(credentials["hint"], HasSubstr("expired"));
}

TEST_F(GitopsctlPeers, AnExecPluginGivesAClientCertificateAndSeesTheEnvironment) {
  PeerBed& bed = peer_bed();
  const Certificate certificate = bed.cluster().authority().issue(
      {.common_name = "jane", .organization = "system:masters", .alt_names = {}});
  const auto folder = bed.cluster().folder();
  write_file(folder / "credential.json",
             json{{"apiVersion", "client.authentication.k8s.io/v1"},
                  {"kind", "ExecCredential"},
                  {"status",
                   {{"clientCertificateData", read_file(certificate.cert_file)},
                    {"clientKeyData", read_file(certificate.key_file)}}}}
                 .dump());
  const auto kubeconfig = kubeconfig_with(
      "exec",
      "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: "
      "sh, args: [-c, 'cat \"$GITOPS_TEST_SESSION\"']}");
  const Environment session{{"GITOPS_TEST_SESSION", (folder / "credential.json").string()}};
  const Ran run = check(kubeconfig, bed.argocd().token(), session);
  EXPECT_EQ(row(run, "kubernetes", "credentials")["message"], "accepted as jane") << run.text;
  EXPECT_THAT(statuses(run, "rights"), Each("ok"));
  const Ran without = check(kubeconfig, bed.argocd().token());
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_EQ(row(without, "kubernetes", "credentials")["status"], "failed");
  EXPECT_THAT(row(without, "kubernetes", "credentials")["message"], HasSubstr("exec plugin sh"));
}

TEST_F(GitopsctlPeers, AKubeconfigMayNameASocksProxy) {
  GITOPS_REQUIRE_PEER(SocksProxy);
  PeerBed& bed = peer_bed();
  const std::string token = "token: " + bed.cluster().admin_token();
  SocksProxy proxy;
  const Ran run = check(kubeconfig_with("socks", token, "proxy-url: '" + proxy.url() + "'"),
                        bed.argocd().token());
  EXPECT_EQ(row(run, "kubernetes", "API server")["status"], "ok") << run.text;
  EXPECT_THAT(statuses(run, "rights"), Each("ok"));
  EXPECT_THAT(proxy.log(), HasSubstr("connected to 127.0.0.1:"));

  const auto refused =
      check(kubeconfig_with("socks-refused", token, "proxy-url: '" + proxy.url("jane", "x") + "'"),
            bed.argocd().token());
  EXPECT_EQ(row(refused, "kubernetes", "API server")["reason"], "unauthenticated");
  EXPECT_THAT(row(refused, "kubernetes", "API server")["hint"], HasSubstr("proxy-url"));
  EXPECT_THAT(run.text + refused.text, Not(HasSubstr(proxy.password())));

  proxy.stop();
  const Ran without = check(kubeconfig_with("socks", token, "proxy-url: '" + proxy.url() + "'"),
                            bed.argocd().token());
  EXPECT_EQ(row(without, "kubernetes", "API server")["reason"], "unavailable");
  EXPECT_THAT(row(without, "kubernetes", "API server")["message"], HasSubstr("proxy 127.0.0.1:"));
}

// The app-proxy is a double: it takes what the command sends.
TEST_F(GitopsctlPeers, AClusterIsAddedWithAnAccountThatMayDoEverythingThere) {
  PeerBed& bed = peer_bed();
  ActionBed& control_plane = action_bed();
  control_plane.answer_with("201 Created", "Content-Type: application/json\r\n", "{}");
  const auto add = [&](const std::filesystem::path& kubeconfig) {
    return run_command({std::string(GITOPS_BIN_DIR) + "/gitopsctl", "cluster", "add", "east",
                        "--runtime=prod", "--yes"},
                       {{"KUBECONFIG", kubeconfig.string()},
                        {"HTTP_PROXY", std::nullopt},
                        {"http_proxy", std::nullopt},
                        {"HTTPS_PROXY", std::nullopt},
                        {"https_proxy", std::nullopt},
                        {"CODEFRESH_URL", control_plane.program().url()},
                        {"CODEFRESH_TOKEN", control_plane.key}});
  };
  // The second time nothing is new.
  for (int i = 0; i < 2; ++i) {
    const auto result = add(bed.cluster().kubeconfig());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, StartsWith("Done: cluster prod/east is added"));
  }
  const auto posted = control_plane.app_proxy().requests();
  ASSERT_EQ(posted.size(), 2U);
  const auto text =
      base64_decode(json::parse(posted[0].body)["kubeConfig"].get<std::string>()).value();
  const auto file = bed.cluster().folder() / "kubeconfig-added";
  write_file(file, text);
  const Ran run = check(file, bed.argocd().token());
  EXPECT_EQ(row(run, "kubernetes", "credentials")["message"],
            "accepted as system:serviceaccount:kube-system:argocd-manager")
      << run.text;
  EXPECT_THAT(statuses(run, "rights"), Each("ok"));

  // A ClusterRole that somebody has restricted stays so.
  bed.cluster().kubectl_ok(
      {"patch", "clusterrole", "argocd-manager-role", "--type=merge",
       R"(--patch={"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})"});
  const auto kept = add(bed.cluster().kubeconfig());
  EXPECT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_THAT(kept.err, HasSubstr("it is kept as it is"));
  EXPECT_THAT(statuses(check(file, bed.argocd().token()), "rights"), testing::Contains("failed"));

  bed.cluster().create_namespace("add-cluster");
  const auto poor = bed.cluster().write_kubeconfig(
      "poor", bed.cluster().service_account_token("add-cluster", "default"));
  const auto refused = add(poor);
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.err, HasSubstr("403 Forbidden"));
}

}  // namespace
}  // namespace gitops::test
