// Integrations with other tools by the running app-proxy: sealed with a key of Sealed Secrets, and shared by the
// runtimes of an account. Doubles of the control plane, of API servers and of GitHub; Git's own server.
#include <gmock/gmock.h>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "e2e/app_proxy_integrations_harness.hpp"
#include "e2e/git_harness.hpp"
#include "k8s-client/resource.hpp"
#include "support/git_server.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using namespace nlohmann::literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = GitHarness::Answer;

constexpr auto kBob = AppProxyHarness::kBob;

// Of the id "key-1", by a part of its SHA-256.
const std::string kSharedSecret =
    "codefresh-sealing-key-" + hex_encode(bytes_of(sha256("key-1"))).substr(0, 16);
constexpr const char* kControllersLabel = "sealedsecrets.bitnami.com/sealed-secrets-key";

// The repository "config" of a real Git server is the account's, which has the runtimes "prod" and "staging".
struct ToolWorld {
  explicit ToolWorld(GitWorld& w, const Executor& executor) : world(w), other(executor) {
    git.create_repository("config");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    auto& accounts = world.base.platform.accounts();
    accounts.add({.id = "acc-1",
                  .name = "acme",
                  .admins = {"u-ann"},
                  .git_provider = {},
                  .shared_config_repo = git.url("config")});
    accounts.add(kStaging,
                 FakeAccounts::Runtime{
                     .name = "staging", .account_id = "acc-1", .runtime_namespace = "gitops"});
    EXPECT_TRUE(other.start());
    write_file(folder / "other", other.kubeconfig());
  }

  // A key as the controller makes it.
  RsaCertificate put_key(FakeKubeApi& cluster, const std::string& name) {
    auto key = make_rsa_certificate();
    cluster.put(k8s::resources::kSecrets, {{"apiVersion", "v1"},
                                           {"kind", "Secret"},
                                           {"type", "kubernetes.io/tls"},
                                           {"metadata",
                                            {{"name", name},
                                             {"namespace", "default"},
                                             {"creationTimestamp", "2026-01-01T00:00:00Z"},
                                             {"labels", {{kControllersLabel, "active"}}}}},
                                           {"data",
                                            {{"tls.crt", base64_encode(key.certificate)},
                                             {"tls.key", base64_encode(key.private_key)}}}});
    return key;
  }

  [[nodiscard]] Environment sharing() const {
    return {{"REPOS_DIR", (folder / "clones").string()},
            {"SHARE_SEALING_KEY", "true"},
            {"GIT_USERNAME", FakeGitHost::kLogin},
            {"GIT_PASSWORD", FakeGitHost::kToken}};
  }
  void start_prod(Environment more) {
    more.insert({"REPOS_DIR", (folder / "clones").string()});
    world.start(std::move(more));
  }
  void start_staging() {
    auto more = sharing();
    more.insert_or_assign("REPOS_DIR", (folder / "clones-of-staging").string());
    more.insert({{"RUNTIME_NAME", "staging"},
                 {"RUNTIME_TOKEN", kStaging},
                 {"KUBECONFIG", (folder / "other").string()}});
    world.start(std::move(more));
  }
  Task<> register_ann() {
    co_await world.base.account_known();
    EXPECT_EQ((co_await world.add()).code(), "");
    EXPECT_EQ((co_await world.register_user(kAnn, {{"token", FakeGitHost::kToken}})).code(), "");
  }
  // Waits until the sealing key's entry has this state, and a message that begins so.
  Task<bool> until_key(std::string state, std::string message) {
    const auto deadline = deadline_after(30s);
    while (Clock::now() < deadline) {
      const auto page = world.base.daemon->status();
      if (page.state("sealing key") == state && page.message("sealing key").starts_with(message)) {
        co_return true;
      }
      co_await sleep_for(20ms);
    }
    ADD_FAILURE() << "no " << message << " in " << world.base.daemon->status();
    co_return false;
  }

  // The document of the public client.
  Task<Answer> apply(const char* user, Json input) {
    return world.ask(user,
                     "mutation IntegrationFlow($input: IntegrationFlowInput!) { "
                     "applyIntegration(input: $input) }",
                     {{"input", std::move(input)}});
  }
  static Json input(const char* operation, Json runtimes, const char* token = "canary-jira") {
    return {{"metadata",
             {{"name", "my-jira"},
              {"type", "issue.jira"},
              {"isAllRuntimes", runtimes.empty()},
              {"runtimes", runtimes},
              {"enabledIntegrationConsumers", {"JIRA_WRITE_BACK"}}}},
            {"operation", operation},
            {"providerInfo", R"({"host_url":"https://jira.example.test"})"},
            {"secureData", Json{{"api_token", token}}.dump()},
            {"options", {{"skipTestConnection", true}}}};
  }
  static Json answer(bool changed) {
    return {{"data", {{"applyIntegration", {{"changed", changed}}}}}};
  }

  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string git_line(const std::vector<std::string>& args) const {
    auto result = git.git("config", args);
    EXPECT_TRUE(result.ok()) << result.err;
    while (result.out.ends_with('\n')) result.out.pop_back();
    return result.out;
  }
  // The credential in a file, as the controller unseals it.
  [[nodiscard]] std::string unsealed(const std::string& path, const RsaCertificate& key,
                                     const std::string& label) const {
    const auto objects = parse_manifests(file(path));
    if (!objects || objects->size() != 1) return "no object in " + path;
    const auto sealed = base64_decode(
        objects->front().value("/spec/encryptedData/api_token"_json_pointer, std::string("?")));
    return sealed ? unseal_value(key.private_key, *sealed, label).value_or("not unsealed")
                  : "no base64";
  }

  GitWorld& world;
  FakeKubeApi other;  // of the runtime "staging"
  GitServer git;
  TempDir folder;
};

void in_tool_world(const std::function<Task<>(ToolWorld&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_world([&](GitWorld& world) -> Task<> {
    ToolWorld tools(world, co_await asio::this_coro::executor);
    co_await body(tools);
    co_await tools.other.stop();
  });
}

constexpr const char* kFolder = "resources/runtimes/prod/integrations/my-jira";

TEST(AppProxyIntegrations, OfThisRuntimeAreSealedWithTheKeyOfItsController) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    w.start_prod({});
    co_await w.register_ann();
    const auto create = ToolHarness::input("CREATE", {"prod"});
    const auto without_key = co_await w.apply(kAnn, create);
    EXPECT_EQ(without_key.code(), "SEALING_KEY_MISSING") << without_key.body;
    const auto key = w.put_key(w.world.cluster, "sealed-secrets-keyx7k2p");

    const auto created = co_await w.apply(kAnn, create);
    EXPECT_EQ(created.json, ToolHarness::answer(true)) << created.body;
    EXPECT_EQ(w.git_line({"log", "-1", "--format=%an|%B", "main"}),
              "Dana Example|Create integration my-jira\n\nRequested by Ann through runtime prod.");
    EXPECT_THAT(w.file(std::string(kFolder) + "/config.yaml"),
                HasSubstr("host_url: https://jira.example.test\n"));
    const auto sealed = std::string(kFolder) + "/sealed-secret.yaml";
    const std::string label = "default/codefresh-integration-my-jira";
    EXPECT_EQ(w.unsealed(sealed, key, label), "canary-jira");
    EXPECT_THAT(w.git_line({"log", "-p", "main"}), Not(HasSubstr("canary-jira")));

    // Again, as after an answer that was lost; with another credential it is another one.
    EXPECT_EQ((co_await w.apply(kAnn, create)).json, ToolHarness::answer(false));
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("CREATE", {"prod"}, "canary-new"))).code(),
              "INTEGRATION_EXISTS");
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "1");
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("UPDATE", {"prod"}, "canary-new"))).json,
              ToolHarness::answer(true));
    EXPECT_EQ(w.unsealed(sealed, key, label), "canary-new");

    // Others have no key, and nothing is shared here.
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("UPDATE", Json::array()))).code(),
              "SEALING_KEY_MISSING");
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("UPDATE", {"nobodys"}))).code(),
              "NOT_FOUND");
    EXPECT_EQ((co_await w.apply(kBob, create)).code(), "FORBIDDEN");

    const auto remove = ToolHarness::input("DELETE", {"prod"});
    EXPECT_EQ((co_await w.apply(kAnn, remove)).json, ToolHarness::answer(true));
    EXPECT_EQ((co_await w.apply(kAnn, remove)).json, ToolHarness::answer(false));
    EXPECT_THAT(w.git_line({"ls-tree", "-r", "--name-only", "main"}), Not(HasSubstr("my-jira")));
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "3");

    // No credential stands in the audit stream; play_in() looks for canaries in all of the log.
    const auto audit = w.world.base.audit();
    CO_ASSERT_TRUE(!audit.empty());
    EXPECT_EQ(audit.back().value("action", ""), "applyIntegration");
    EXPECT_THAT(audit.back().dump(), HasSubstr("my-jira"));
    EXPECT_TRUE(w.world.base.platform.accounts().sealing_keys().empty());
  });
}

TEST(AppProxyIntegrations, OfAllRuntimesAreSealedWithTheKeyThatTheyShare) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    const auto key = w.put_key(w.world.cluster, "sealed-secrets-keyx7k2p");
    const auto others_own = w.put_key(w.other, "sealed-secrets-key9d4fs");
    auto& saved = w.world.base.platform.accounts().sealing_keys();
    // The first runtime gives its key, once, however often it starts.
    for (int starts = 0; starts < 2; ++starts) {
      w.start_prod(w.sharing());
      CO_ASSERT_TRUE(co_await w.until_key("ok", "shared"));
      CO_ASSERT_EQ(saved.size(), 1U);
      EXPECT_EQ(base64_decode(saved[0]), key.private_key);
      EXPECT_EQ(w.git_line({"log", "--grep=Share the sealing key", "--format=%an|%s", "main"}),
                "GitOps runtime prod|Share the sealing key of runtime prod");
    }
    const auto shared = w.file("resources/all-runtimes-all-clusters/integrations/sealing-key.yaml");
    EXPECT_THAT(shared, HasSubstr("id: key-1\n"));
    EXPECT_THAT(shared, Not(HasSubstr("PRIVATE")));

    co_await w.register_ann();
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("CREATE", {"staging"}))).json,
              ToolHarness::answer(true));
    EXPECT_EQ(w.unsealed("resources/runtimes/staging/integrations/my-jira/sealed-secret.yaml", key,
                         "gitops/codefresh-integration-my-jira"),
              "canary-jira");
    EXPECT_EQ((co_await w.apply(kAnn, ToolHarness::input("UPDATE", Json::array()))).json,
              ToolHarness::answer(true));
    const std::string everywhere =
        "resources/all-runtimes-all-clusters/integrations/my-jira/sealed-secret.yaml";
    EXPECT_EQ(w.unsealed(everywhere, key, ""), "canary-jira");
    EXPECT_EQ(w.file("resources/runtimes/staging/integrations/my-jira/config.yaml"), "");

    // The other runtime takes the key, and gives none of its own.
    w.start_staging();
    CO_ASSERT_TRUE(co_await w.until_key("ok", "shared"));
    EXPECT_EQ(saved.size(), 1U);
    const auto taken = w.other.find(k8s::resources::kSecrets, {"default", kSharedSecret});
    CO_ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->at("metadata").at("labels").at(kControllersLabel), "active");
    EXPECT_EQ(base64_decode(taken->at("data").value("tls.key", "")), key.private_key);
    EXPECT_THAT(w.world.logs(), Not(HasSubstr(saved[0].substr(0, 100))));
  });
}

// Who may write to the repository cannot make runtimes seal with a key of their own.
TEST(AppProxyIntegrations, ACertificateOfAnotherKeyIsRefused) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    (void)w.put_key(w.other, "sealed-secrets-key9d4fs");
    w.world.base.platform.accounts().sealing_keys() = {
        base64_encode(make_rsa_certificate().private_key)};
    const Json file{{"kind", "ConfigMap"},
                    {"data", {{"id", "key-1"}, {"tls.crt", make_rsa_certificate().certificate}}}};
    w.git.commit(
        "config",
        {{"resources/all-runtimes-all-clusters/integrations/sealing-key.yaml", file.dump()}},
        "somebody");
    w.start_staging();
    EXPECT_TRUE(co_await w.until_key(
        "failed", "the certificate in the shared configuration repository is not that of"));
    co_await w.register_ann();
    auto input = ToolHarness::input("CREATE", Json::array());
    EXPECT_EQ((co_await w.apply(kAnn, input)).code(), "SEALING_KEY_MISSING");
    EXPECT_FALSE(w.other.find(k8s::resources::kSecrets, {"default", kSharedSecret}));
  });
}

}  // namespace
}  // namespace gitops::test
