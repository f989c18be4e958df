#include "k8s-client/config.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/core/encoding.hpp"
#include "support/process.hpp"

namespace gitops::k8s {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

// A kubeconfig with one context "main" whose cluster and user have these lines.
std::string one_context(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
         "contexts: [{name: main, context: {cluster: c, user: u, namespace: shop}}]\n"
         "clusters:\n- name: c\n  cluster:\n    server: https://api.example:6443\n" +
         cluster + "users:\n- name: u\n  user:\n" + user;
}

Result<ClusterConfig> parse(const std::string& text, ExecPolicy exec = ExecPolicy::refuse) {
  return kubeconfig_from_text({{"/home/me/.kube/config", text}}, "", exec);
}

std::string mistake(const std::string& text, ExecPolicy exec = ExecPolicy::refuse) {
  const auto config = parse(text, exec);
  return config ? "accepted" : config.error().message;
}

TEST(Kubeconfig, ResolvesTheCurrentContext) {
  const auto config =
      parse(one_context("    certificate-authority-data: " + base64_encode("-----CA") +
                            "\n    tls-server-name: inner\n    proxy-url: http://proxy:3128\n",
                        "    token: s3cret\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.host, "api.example");
  EXPECT_EQ(config->server.port, 6443);
  EXPECT_EQ(config->tls.ca_pem, "-----CA");
  EXPECT_EQ(config->tls.ca_file, "");
  EXPECT_EQ(config->tls.server_name, "inner");
  EXPECT_FALSE(config->tls.insecure_skip_verify);
  ASSERT_TRUE(config->proxy);
  EXPECT_EQ(config->proxy->host, "proxy");
  EXPECT_EQ(config->default_namespace, "shop");
  EXPECT_EQ(config->token.reveal(), "s3cret");
}

TEST(Kubeconfig, ReadsJson) {
  const auto config = parse(R"({"kind":"Config","apiVersion":"v1","current-context":"a",
    "contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],
    "clusters":[{"name":"c","cluster":{"server":"https://[::1]:6443","insecure-skip-tls-verify":true}}],
    "users":[{"name":"u","user":{"username":"me","password":"p:w"}}],"preferences":{}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.host, "::1");
  EXPECT_TRUE(config->tls.insecure_skip_verify);
  EXPECT_EQ(config->username, "me");
  EXPECT_EQ(config->password.reveal(), "p:w");
  EXPECT_EQ(config->default_namespace, "default");
}

TEST(Kubeconfig, ContextWithoutUserIsAnonymous) {
  const auto config = parse(
      "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://x'}}]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->token.empty());
  EXPECT_FALSE(config->exec);
}

TEST(Kubeconfig, ResolvesRelativePathsAgainstTheirOwnFile) {
  const auto config =
      parse(one_context("    certificate-authority: pki/ca.crt\n",
                        "    client-certificate: ../c.crt\n    client-key: /abs/c.key\n"
                        "    tokenFile: token\n    token: ignored\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->tls.ca_file, "/home/me/.kube/pki/ca.crt");
  EXPECT_EQ(config->tls.certificate_file, "/home/me/c.crt");
  EXPECT_EQ(config->tls.key_file, "/abs/c.key");
  EXPECT_EQ(config->token_file, "/home/me/.kube/token");
  EXPECT_TRUE(config->token.empty()) << "the file wins over the text beside it";
}

TEST(Kubeconfig, DecodesInlineClientCertificates) {
  const auto config =
      parse(one_context("", "    client-certificate-data: " + base64_encode("CERT") +
                                "\n    client-key-data: " + base64_encode("KEY") + "\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->tls.certificate_pem, "CERT");
  EXPECT_EQ(config->tls.key_pem.reveal(), "KEY");
}

TEST(Kubeconfig, FirstFileWinsForEachEntryAndForTheContext) {
  const KubeconfigText first{"/one/config",
                             "current-context: a\n"
                             "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"
                             "contexts: [{name: a, context: {cluster: c, user: u}}]\n"};
  const KubeconfigText second{
      "/two/config",
      "current-context: b\n"
      "clusters: [{name: c, cluster: {server: 'https://second', tls-server-name: second}},"
      " {name: d, cluster: {server: 'https://d'}}]\n"
      "contexts: [{name: a, context: {cluster: d}}, {name: b, context: {cluster: d}}]\n"
      "users: [{name: u, user: {tokenFile: token}}]\n"};
  const auto config = kubeconfig_from_text({first, second}, "", ExecPolicy::refuse);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.host, "first");
  EXPECT_EQ(config->tls.server_name, "") << "entries of two files are not mixed";
  EXPECT_EQ(config->token_file, "/two/token");

  const auto other = kubeconfig_from_text({first, second}, "b", ExecPolicy::refuse);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->server.host, "d");
}

TEST(Kubeconfig, AnEmptyFirstFileLeavesTheRest) {
  const auto config = kubeconfig_from_text({{"/a", ""}, {"/b", one_context("", "    token: t\n")}},
                                           "", ExecPolicy::refuse);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->token.reveal(), "t");
}

TEST(Kubeconfig, NamesFileAndLineOfEachMistake) {
  const std::string text = mistake(
      "current-context: main\n"
      "contexts: [{name: main, context: {cluster: c, user: u}}]\n"
      "clusters:\n"
      "- name: c\n"
      "  cluster:\n"
      "    server: 'ftp://x'\n"
      "    insecure-skip-tls-verify: maybe\n"
      "users:\n"
      "- name: u\n"
      "  user:\n"
      "    token: [a]\n"
      "    client-key-data: '***'\n");
  EXPECT_THAT(text, HasSubstr("/home/me/.kube/config:6: server is not an https:// or http:// URL"));
  EXPECT_THAT(text, HasSubstr("config:7: insecure-skip-tls-verify must be true or false"));
  EXPECT_THAT(text, HasSubstr("config:11: token must be a text"));
  EXPECT_THAT(text, HasSubstr("config:12: client-key-data is not base64"));
}

TEST(Kubeconfig, RefusesContradictions) {
  const std::string ca = "    certificate-authority: ca.crt\n";
  const std::string data = "    certificate-authority-data: " + base64_encode("x") + "\n";
  EXPECT_THAT(mistake(one_context(ca + data, "    token: t\n")), HasSubstr("both set"));
  EXPECT_THAT(mistake(one_context(ca + "    insecure-skip-tls-verify: true\n", "    token: t\n")),
              HasSubstr("insecure-skip-tls-verify and a certificate authority are both set"));
  EXPECT_THAT(mistake(one_context("", "    token: t\n    username: me\n")),
              HasSubstr("more than one of token, username and exec"));
  EXPECT_THAT(mistake(one_context("", "    client-certificate: c\n")),
              HasSubstr("client-certificate without client-key"));
  EXPECT_THAT(mistake(one_context("", "    client-key: c\n")),
              HasSubstr("client-key without client-certificate"));
  EXPECT_THAT(mistake(one_context("", "    password: c\n")),
              HasSubstr("password without username"));
}

TEST(Kubeconfig, RefusesWhatItCannotHonour) {
  EXPECT_THAT(mistake(one_context("", "    auth-provider: {name: gcp}\n")),
              HasSubstr("auth-provider is no longer supported by Kubernetes"));
  EXPECT_THAT(mistake(one_context("", "    token: t\n    as: admin\n")),
              HasSubstr("as (impersonation) is not supported"));
  for (const char* proxy : {"ftp://x:1", "socks4://x:1", "x:1"}) {
    EXPECT_THAT(
        mistake(one_context("    proxy-url: " + std::string(proxy) + "\n", "    token: t\n")),
        HasSubstr("proxy-url is not an http://, https://, socks5:// or socks5h:// URL"));
  }
}

TEST(Kubeconfig, NamesUndefinedEntries) {
  EXPECT_THAT(
      mistake("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"),
      AllOf(HasSubstr("config:2: cluster 'c' is not defined"),
            HasSubstr("config:2: user 'u' is not defined")));
  EXPECT_THAT(mistake("contexts: []\n"), HasSubstr("no current-context"));
  EXPECT_THAT(mistake("current-context: b\n"), HasSubstr("no context named 'b'"));
  EXPECT_THAT(mistake("current-context: a\ncontexts: [{name: a}]\n"),
              HasSubstr("config:2: context without a cluster"));
  EXPECT_THAT(mistake("current-context: a\ncontexts: [{name: a, context: {cluster: \"\"}}]\n"),
              HasSubstr("config:2: context without a cluster"));
  EXPECT_THAT(mistake("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
                      "clusters: [{name: c}]\n"),
              HasSubstr("config:3: server is missing"));
  EXPECT_THAT(mistake("clusters: [{name: c}, {name: c}]\n"), HasSubstr("two entries named 'c'"));
  EXPECT_THAT(mistake("clusters: [{cluster: {}}]\n"), HasSubstr("clusters entry without a name"));
}

TEST(Kubeconfig, RefusesWhatIsNoKubeconfig) {
  EXPECT_THAT(mistake("kind: Pod\n"), HasSubstr("config:1: kind is not Config"));
  EXPECT_THAT(mistake("apiVersion: v2\n"), HasSubstr("apiVersion is not v1"));
  EXPECT_THAT(mistake("just text"), HasSubstr("config:1: expected a mapping"));
  EXPECT_THAT(mistake("a: [b\nc: d"), HasSubstr("not readable as YAML"));
  EXPECT_THAT(mistake("clusters: 5\n"), HasSubstr("clusters must be a list"));
  EXPECT_THAT(mistake("clusters: [5]\n"), HasSubstr("expected a mapping"));
  EXPECT_THAT(mistake("clusters: [{name: \"a\\0b\"}]\n"), HasSubstr("NUL"));
  EXPECT_THAT(mistake(std::string(2 * 1024 * 1024, ' ')), HasSubstr("larger than 1 MiB"));
}

TEST(Kubeconfig, SurvivesDeepAndMultipliedInput) {
  EXPECT_THAT(mistake(std::string(500'000, '[')), HasSubstr("not readable as YAML"));
  EXPECT_NE(mistake(std::string(100'000, '{') + "a"), "accepted");
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char name = 'b'; name <= 'z'; ++name) {
    const char before = static_cast<char>(name - 1);
    bomb += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 9; ++i) bomb += std::string(i > 0 ? "," : "") + "*" + before;
    bomb += "]\n";
  }
  EXPECT_THAT(mistake(bomb + "clusters: *z\nusers: *z\ncontexts: *z\n"),
              HasSubstr("expected a mapping"));
  std::string wide = "k: &k {name: n";
  for (int i = 0; i < 1000; ++i) wide += ", k" + std::to_string(i) + ": v";
  wide += "}\nclusters: [*k";
  for (int i = 0; i < 9000; ++i) wide += ",*k";
  EXPECT_THAT(mistake(wide + "]\n"), HasSubstr("too many keys"));
}

TEST(Kubeconfig, ListsAtMostTwentyMistakes) {
  std::string text = "clusters:\n";
  for (int i = 0; i < 1000; ++i) text += "- cluster: {}\n";
  EXPECT_LT(mistake(text).size(), 20 * 100U);
}

TEST(Kubeconfig, AC28_NeverShowsACredential) {
  const std::string canary = "CANARY-3f9a";
  for (const std::string& user : {
           "    token: \"" + canary + "\\n\"\n",
           "    token: " + canary + "\n    username: me\n    password: " + canary + "\n",
           "    client-key-data: '!" + canary + "'\n",
           "    token: " + canary + "\n    token: {" + canary + "\n",
           "    exec: {command: x, args: [" + canary + "], env: [{name: T, value: " + canary +
               "}]}\n",
       }) {
    const std::string text = mistake(one_context("", user));
    EXPECT_THAT(text, Not(HasSubstr(canary))) << user;
    EXPECT_NE(text, "accepted") << user;
  }
  const std::string text = mistake(
      one_context("    proxy-url: 'socks5://me:" + canary + "@x:99999'\n", "    token: t\n"));
  EXPECT_THAT(text, Not(HasSubstr(canary)));
  EXPECT_NE(text, "accepted");
}

TEST(Kubeconfig, TakesSocksProxies) {
  for (const std::string scheme : {"socks5", "socks5h"}) {
    const auto config =
        parse(one_context("    proxy-url: " + scheme + "://jump\n", "    token: t\n"));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->proxy->scheme, scheme);
    EXPECT_EQ(config->proxy->port, 1080);
  }
}

TEST(Kubeconfig, TakesProxiesThatAreReachedByTls) {
  const auto config = parse(one_context("    proxy-url: https://jump\n", "    token: t\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->proxy->scheme, "https");
  EXPECT_EQ(config->proxy->port, 443);
}

TEST(Kubeconfig, AC30_RefusesProgramsUnlessAllowed) {
  const std::string text = one_context("",
                                       "    exec:\n"
                                       "      apiVersion: client.authentication.k8s.io/v1\n"
                                       "      command: ./bin/login\n"
                                       "      args: [get-token, --json]\n"
                                       "      env: [{name: ACCOUNT, value: shop}]\n"
                                       "      provideClusterInfo: true\n"
                                       "      interactiveMode: IfAvailable\n");
  EXPECT_THAT(mistake(text), HasSubstr("exec names a program to run, which was not allowed"));

  const auto config = parse(text, ExecPolicy::allow);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->exec);
  EXPECT_EQ(config->exec->api_version, "client.authentication.k8s.io/v1");
  EXPECT_EQ(config->exec->command, "/home/me/.kube/bin/login");
  EXPECT_THAT(config->exec->arguments, ElementsAre("get-token", "--json"));
  EXPECT_THAT(config->exec->environment, ElementsAre(testing::Pair("ACCOUNT", "shop")));
  EXPECT_TRUE(config->exec->provide_cluster_info);
}

TEST(Kubeconfig, ReadsWhatAPluginIsToldOfItsCluster) {
  const std::string exec =
      "    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, installHint: 'get x',\n"
      "      provideClusterInfo: true}\n";
  const std::string extensions =
      "    extensions:\n"
      "    - name: somebody.else/settings\n      extension: {a: 1}\n"
      "    - name: client.authentication.k8s.io/exec\n"
      "      extension: {audience: shop, quoted: '7', n: 7, f: 1.5, yes: true, none: ~, l: [a]}\n";
  const auto config = parse(one_context(extensions, exec), ExecPolicy::allow);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->exec->install_hint, "get x");
  EXPECT_EQ(config->exec->cluster_settings,
            R"({"audience":"shop","f":1.5,"l":["a"],"n":7,"none":null,"quoted":"7","yes":true})");

  std::string deep = "x";
  for (int i = 0; i < 60; ++i) deep = "[" + deep + "]";
  EXPECT_THAT(mistake(one_context("    extensions: [{name: client.authentication.k8s.io/exec,\n"
                                  "      extension: " +
                                      deep + "}]\n",
                                  exec),
                      ExecPolicy::allow),
              HasSubstr("extension is too large or nested too deeply"));
}

TEST(Kubeconfig, ChecksExecEntries) {
  const std::string v1 = "apiVersion: client.authentication.k8s.io/v1";
  const auto exec = [](const std::string& inner) {
    return mistake(one_context("", "    exec: {" + inner + "}\n"), ExecPolicy::allow);
  };
  EXPECT_THAT(exec("command: x"), HasSubstr("apiVersion must be client.authentication.k8s.io/v1"));
  EXPECT_THAT(exec("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"),
              HasSubstr("apiVersion must be"));
  EXPECT_THAT(exec(v1), HasSubstr("command is missing"));
  EXPECT_THAT(exec(v1 + ", command: x, args: [[a]]"), HasSubstr("args must be a list of texts"));
  EXPECT_THAT(exec(v1 + ", command: x, env: [{value: a}]"), HasSubstr("env entry without"));
  EXPECT_EQ(exec(v1 + ", command: x"), "accepted");
  EXPECT_EQ(exec(v1 + ", command: x, interactiveMode: Never"), "accepted");
  EXPECT_EQ(exec(v1 + ", command: x, interactiveMode: IfAvailable"), "accepted");
  EXPECT_THAT(exec(v1 + ", command: x, interactiveMode: Always"),
              HasSubstr("interactiveMode is Always: the program wants to ask a person"));
  EXPECT_THAT(exec(v1 + ", command: x, interactiveMode: Sometimes"),
              HasSubstr("interactiveMode must be Never, IfAvailable or Always"));
}

TEST(Kubeconfig, ReadsFilesAndSkipsMissingOnes) {
  const test::TempDir folder;
  write(folder / "config", one_context("", "    token: t\n"));
  const std::string there = folder / "config";
  const std::string missing = folder / "missing";
  EXPECT_TRUE(kubeconfig({missing, there}, "", ExecPolicy::refuse));

  const auto single = kubeconfig({missing}, "", ExecPolicy::refuse);
  ASSERT_FALSE(single);
  EXPECT_EQ(single.error().code, ErrorCode::not_found);
  EXPECT_THAT(single.error().message, HasSubstr(missing));

  const auto none = kubeconfig({missing, missing + "2"}, "", ExecPolicy::refuse);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);

  const auto is_folder = kubeconfig({folder.path().string()}, "", ExecPolicy::refuse);
  ASSERT_FALSE(is_folder);
  EXPECT_THAT(is_folder.error().message, HasSubstr("is not a file"));
}

TEST(Kubeconfig, RefusesAPipeWithoutWaitingOnIt) {
  const test::TempDir folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(kubeconfig({pipe}, "", ExecPolicy::refuse));
}

TEST(ClusterConfig, LooksInTheUsualOrder) {
  const test::TempDir folder;
  const auto with_server = [](const std::string& host) {
    return "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
           "clusters: [{name: c, cluster: {server: 'https://" +
           host + "'}}]\n";
  };
  write(folder / "flag", with_server("flag"));
  write(folder / "variable", with_server("variable"));
  write(folder / "home/.kube/config", with_server("home"));
  std::map<std::string, std::string> environment{
      {"HOME", folder / "home"},
      {"KUBECONFIG", ":" + (folder / "missing").string() + ":" + (folder / "variable").string()}};
  const auto host = [&](const std::string& path) {
    const auto config = load_cluster_config(path, "", environment, ExecPolicy::refuse);
    return config ? config->server.host : config.error().message;
  };
  EXPECT_EQ(host(folder / "flag"), "flag");
  EXPECT_EQ(host(""), "variable");
  environment.erase("KUBECONFIG");
  EXPECT_EQ(host(""), "home");
  environment["HOME"] = folder / "nobody";
  EXPECT_THAT(host(""), HasSubstr("no cluster is configured"));
}

TEST(ClusterConfig, GivesProgramsOnlyTheirSurroundings) {
  const test::TempDir folder;
  write(folder / "config",
        one_context("",
                    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: x,\n"
                    "      env: [{name: HOME, value: /mine}]}\n"));
  const auto config = load_cluster_config(
      folder / "config", "", {{"PATH", "/bin"}, {"HOME", "/root"}, {"CODEFRESH_TOKEN", "secret"}},
      ExecPolicy::allow);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->exec->environment,
              ElementsAre(testing::Pair("HOME", "/mine"), testing::Pair("PATH", "/bin")));
}

TEST(ClusterConfig, GivesProgramsOfAPersonTheWholeEnvironment) {
  const test::TempDir folder;
  write(folder / "config",
        one_context("",
                    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws,\n"
                    "      env: [{name: AWS_PROFILE, value: shop}]}\n"));
  const auto config = load_cluster_config(
      folder / "config", "", {{"PATH", "/bin"}, {"AWS_PROFILE", "other"}, {"AWS_REGION", "eu"}},
      ExecPolicy::allow_inheriting);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->exec->environment,
              ElementsAre(testing::Pair("AWS_PROFILE", "shop"), testing::Pair("AWS_REGION", "eu"),
                          testing::Pair("PATH", "/bin")));
}

TEST(ClusterConfig, ReadsTheServiceAccountOfThePod) {
  const test::TempDir folder;
  write(folder / "token", "t");
  write(folder / "ca.crt", "ca");
  write(folder / "namespace", "shop\n");
  const auto config = in_cluster_config(
      {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}},
      folder.path().string());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.host, "fd00::1");
  EXPECT_TRUE(config->server.is_tls());
  EXPECT_EQ(config->token_file, folder / "token");
  EXPECT_EQ(config->tls.ca_file, folder / "ca.crt");
  EXPECT_EQ(config->default_namespace, "shop");
}

TEST(ClusterConfig, SaysWhatAPodLacks) {
  const test::TempDir folder;
  const std::map<std::string, std::string> pod{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                               {"KUBERNETES_SERVICE_PORT", "443"}};
  const auto outside = in_cluster_config({}, folder.path().string());
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message, HasSubstr("not running in a pod"));
  const auto unmounted = in_cluster_config(pod, folder.path().string());
  ASSERT_FALSE(unmounted);
  EXPECT_THAT(unmounted.error().message, HasSubstr("token"));
}

}  // namespace
}  // namespace gitops::k8s
