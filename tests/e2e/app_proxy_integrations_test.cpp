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

constexpr const char* kFolder = "resources/runtimes/prod/integrations/my-jira";

TEST(AppProxyIntegrations, OfThisRuntimeAreSealedWithTheKeyOfItsController) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    w.start_prod({});
    co_await w.register_ann();
    const auto create = ToolHarness::input("CREATE", {"prod"});
    const auto without_key = co_await w.apply(kAnn, create);
    EXPECT_EQ(without_key.code(), "SEALING_KEY_MISSING") << without_key.body;
    const auto key = w.put_key(w.harness.cluster, "sealed-secrets-keyx7k2p");

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
    EXPECT_THAT((co_await w.harness.base.audited("applyIntegration")).dump(), HasSubstr("my-jira"));
    EXPECT_TRUE(w.harness.base.platform.accounts().sealing_keys().empty());
  });
}

TEST(AppProxyIntegrations, OfAllRuntimesAreSealedWithTheKeyThatTheyShare) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    const auto key = w.put_key(w.harness.cluster, "sealed-secrets-keyx7k2p");
    const auto others_own = w.put_key(w.other, "sealed-secrets-key9d4fs");
    auto& saved = w.harness.base.platform.accounts().sealing_keys();
    // The first runtime gives its key, once, however often it starts.
    for (int starts = 0; starts < 2; ++starts) {
      w.start_prod(w.sharing());
      CO_ASSERT_TRUE(co_await w.key_becomes("ok", "shared"));
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
    CO_ASSERT_TRUE(co_await w.key_becomes("ok", "shared"));
    EXPECT_EQ(saved.size(), 1U);
    const auto taken = w.other.find(k8s::resources::kSecrets, {"default", kSharedSecret});
    CO_ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->at("metadata").at("labels").at(kControllersLabel), "active");
    EXPECT_EQ(base64_decode(taken->at("data").value("tls.key", "")), key.private_key);
    EXPECT_THAT(w.harness.logs(), Not(HasSubstr(saved[0].substr(0, 100))));
  });
}

// A Git host answers so for a token that it does not know, too.
TEST(AppProxyIntegrations, ARepositoryThatIsNotShownGetsNoKeyOfThisRuntime) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    (void)w.put_key(w.harness.cluster, "sealed-secrets-keyx7k2p");
    const auto place = w.git.folder() / "repos/config.git";
    const auto away = w.git.folder() / "repos/away.git";
    std::filesystem::rename(place, away);
    w.start_prod(w.sharing());
    EXPECT_TRUE(co_await w.key_becomes("failed", "the shared configuration repository: "));
    const auto& saved = w.harness.base.platform.accounts().sealing_keys();
    EXPECT_TRUE(saved.empty()) << "another runtime may have shared one";
    EXPECT_FALSE(w.harness.cluster.find(k8s::resources::kSecrets, {"default", kSharedSecret}));
    std::filesystem::rename(away, place);
    EXPECT_TRUE(co_await w.key_becomes("ok", "shared"));
    EXPECT_EQ(saved.size(), 1U);
  });
}

TEST(AppProxyIntegrations, AKeyWhoseSecretIsRefusedAtFirstIsGivenOnce) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    (void)w.put_key(w.harness.cluster, "sealed-secrets-keyx7k2p");
    w.harness.cluster.set_access([](const FakeKubeApi::Access& access) {
      return access.resource != "secrets" || access.verb != "create";
    });
    w.start_prod(w.sharing());
    EXPECT_TRUE(co_await w.key_becomes("failed", "Secret codefresh-sealing-key-"));
    w.harness.cluster.set_access({});
    EXPECT_TRUE(co_await w.key_becomes("ok", "shared"));
    EXPECT_EQ(w.harness.base.platform.accounts().sealing_keys().size(), 1U);
    EXPECT_TRUE(w.harness.cluster.find(k8s::resources::kSecrets, {"default", kSharedSecret}));
  });
}

// Who may write to the repository cannot make runtimes seal with a key of their own.
TEST(AppProxyIntegrations, ACertificateOfAnotherKeyIsRefused) {
  in_tool_harness([](ToolHarness& w) -> Task<> {
    (void)w.put_key(w.other, "sealed-secrets-key9d4fs");
    w.harness.base.platform.accounts().sealing_keys() = {
        base64_encode(make_rsa_certificate().private_key)};
    const Json file{{"kind", "ConfigMap"},
                    {"data", {{"id", "key-1"}, {"tls.crt", make_rsa_certificate().certificate}}}};
    w.git.commit(
        "config",
        {{"resources/all-runtimes-all-clusters/integrations/sealing-key.yaml", file.dump()}},
        "somebody");
    w.start_staging();
    EXPECT_TRUE(co_await w.key_becomes(
        "failed", "the certificate in the shared configuration repository is not that of"));
    co_await w.register_ann();
    auto input = ToolHarness::input("CREATE", Json::array());
    EXPECT_EQ((co_await w.apply(kAnn, input)).code(), "SEALING_KEY_MISSING");
    EXPECT_FALSE(w.other.find(k8s::resources::kSecrets, {"default", kSharedSecret}));
  });
}

}  // namespace
}  // namespace gitops::test
