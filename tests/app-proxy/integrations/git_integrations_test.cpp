#include "app-proxy/integrations/git_integrations.hpp"

#include <gmock/gmock.h>

#include "app-proxy/integrations/integrations_fixture.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/kube_failure.hpp"
#include "support/log_capture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using test::FakeGitHost;
using test::soon;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GitIntegrations, AnAdministratorAddsAndUsersRegister) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    const auto registered = co_await fixture.register_user(kUser, FakeGitHost::kToken);
    CO_ASSERT_OK(registered);
    CO_ASSERT_EQ(registered->users.size(), 1U);
    EXPECT_EQ(registered->users[0].user_id, kUser.user_id);
    EXPECT_EQ(registered->users[0].login, "dana");
    const auto account = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_OK(account);
    EXPECT_EQ(account->access.token.reveal(), FakeGitHost::kToken);
    EXPECT_EQ(account->mail, "dana@example.test");
    const auto none = co_await fixture.integrations.open(kAdmin, "", soon());
    CO_ASSERT_TRUE(!none);
    EXPECT_EQ(none.error().subcode, integration_errors::kNoToken);
    const auto left = co_await fixture.integrations.deregister_user(kUser, "", soon());
    CO_ASSERT_OK(left);
    EXPECT_TRUE(left->users.empty());
    CO_ASSERT_OK(co_await fixture.integrations.deregister_user(kUser, "", soon()));
    CO_ASSERT_OK(co_await fixture.integrations.remove(kAdmin, "", soon()));
    const auto gone = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_OK(gone);
    EXPECT_FALSE(gone->has_value());
  });
}

TEST(GitIntegrations, ATokenInUseIsReadOnceASecond) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    const auto reads = [&] { return fixture.cluster.count("GET"); };
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
    const auto before = reads();
    for (int i = 0; i < 20; ++i)
      CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
    EXPECT_EQ(reads(), before);
    co_await sleep_for(std::chrono::seconds(2));
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
    EXPECT_EQ(reads(), before + 1);
    CO_ASSERT_OK(co_await fixture.integrations.deregister_user(kUser, "", soon()));
    EXPECT_FALSE(co_await fixture.integrations.open(kUser, "", soon()))
        << "as this replica wrote it";
  });
}

TEST(GitIntegrations, ARefusalIsNotToldFromWhatAnotherReplicaMayHaveChanged) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    EXPECT_FALSE(co_await fixture.integrations.open(kUser, "", soon()));
    IntegrationStore other_store(fixture.kube, "default");
    GitIntegrations other(other_store, fixture.seal, fixture.hosts, {});
    CO_ASSERT_OK(
        co_await other.register_user(kUser, "", GitAccess{Secret(FakeGitHost::kToken)}, soon()));
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
  });
}

// [AC-28]
TEST(GitIntegrations, AC28_TokensAreStoredSealedAndStandNowhereElse) {
  test::LogCapture log;
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    const auto wrong = co_await fixture.register_user(kAdmin, "canary-token-0123456789");
    CO_ASSERT_TRUE(!wrong);
    EXPECT_EQ(wrong.error().subcode, git_errors::kTokenRejected);
    EXPECT_THAT(wrong.error().message, Not(HasSubstr("canary")));
    const auto secret =
        fixture.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc"});
    CO_ASSERT_TRUE(secret.has_value());
    for (const auto& [key, value] : (*secret)["data"].items()) {
      EXPECT_THAT(base64_decode(value.get<std::string>()).value(),
                  Not(HasSubstr(FakeGitHost::kToken)));
    }
    EXPECT_THAT(fixture.metrics.expose(), Not(HasSubstr(FakeGitHost::kToken)));
  });
  EXPECT_THAT(log.text(), Not(HasSubstr(FakeGitHost::kToken)));
  EXPECT_THAT(log.text(), Not(HasSubstr("canary")));
}

// [AC-34]
TEST(GitIntegrations, AC34_HiddenAndUnknownAreNotToldApart) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add("hidden", SharingPolicy::account_admins));
    const auto word = [](std::string message, const std::string& name) {
      for (std::size_t at = 0; (at = message.find(name)) != std::string::npos;) {
        message.replace(at, name.size(), "NAME");
      }
      return message;
    };
    for (const auto& name : {std::string("hidden"), std::string("absent")}) {
      const auto got = co_await fixture.integrations.get(kUser, name, soon());
      CO_ASSERT_OK(got);
      EXPECT_FALSE(got->has_value());
    }
    const auto hidden = co_await fixture.integrations.open(kUser, "hidden", soon());
    const auto absent = co_await fixture.integrations.open(kUser, "absent", soon());
    CO_ASSERT_TRUE(!hidden && !absent);
    EXPECT_EQ(word(hidden.error().message, "hidden"), word(absent.error().message, "absent"));
    EXPECT_EQ(hidden.error().code, absent.error().code);
    EXPECT_EQ(hidden.error().subcode, absent.error().subcode);
    EXPECT_EQ(hidden.error().http_status, absent.error().http_status);
    const auto to_hidden = co_await fixture.register_user(kUser, FakeGitHost::kToken, "hidden");
    const auto to_absent = co_await fixture.register_user(kUser, FakeGitHost::kToken, "absent");
    CO_ASSERT_TRUE(!to_hidden && !to_absent);
    EXPECT_EQ(word(to_hidden.error().message, "hidden"), word(to_absent.error().message, "absent"));
    EXPECT_EQ(fixture.host.requests().size(), 0U) << "the host is not asked for either";
    const auto from_hidden = co_await fixture.integrations.deregister_user(kUser, "hidden", soon());
    const auto from_absent = co_await fixture.integrations.deregister_user(kUser, "absent", soon());
    CO_ASSERT_TRUE(!from_hidden && !from_absent);
    EXPECT_EQ(word(from_hidden.error().message, "hidden"),
              word(from_absent.error().message, "absent"));
    const auto list = co_await fixture.integrations.list(kUser, soon());
    CO_ASSERT_OK(list);
    EXPECT_TRUE(list->empty());
    const auto all = co_await fixture.integrations.list(kAdmin, soon());
    CO_ASSERT_OK(all);
    EXPECT_EQ(all->size(), 1U);
    const auto other_account =
        co_await fixture.integrations.list({"x", "other-account", true}, soon());
    CO_ASSERT_OK(other_account);
    EXPECT_TRUE(other_account->empty());
  });
}

TEST(GitIntegrations, ATokenWithoutThePermissionsIsNotStored) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    const auto refused = co_await fixture.register_user(kUser, FakeGitHost::kReader);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().subcode, git_errors::kTokenLacksRight);
    EXPECT_THAT(refused.error().message, HasSubstr("repo"));
    const auto got = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_OK(got);
    EXPECT_TRUE((*got)->users.empty());
    GitIntegrations lenient(
        fixture.store, fixture.seal, fixture.hosts,
        {.skip_permissions_validation = true, .plain_http = PlainHttp::insecure_allowed});
    CO_ASSERT_OK(co_await lenient.register_user(kUser, "", {Secret(FakeGitHost::kReader)}, soon()));
  });
}

TEST(GitIntegrations, ATokenThatCannotBeDecryptedIsMarkedAndAskedForAgain) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    CO_ASSERT_OK(co_await fixture.register_user(kAdmin, FakeGitHost::kToken));
    // A reinstallation: another runtime token.
    fixture.seal = TokenSeal();
    fixture.seal.use(Secret("another-runtime-token"), Secret("iv"));
    const auto opened = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_TRUE(!opened);
    EXPECT_EQ(opened.error().subcode, integration_errors::kInvalidToken);
    EXPECT_THAT(opened.error().message, HasSubstr("register a new one"));
    const auto got = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_OK(got);
    EXPECT_EQ((*got)->find(kUser.user_id)->state, TokenState::invalid);
    EXPECT_EQ((*got)->find(kAdmin.user_id)->state, TokenState::valid) << "not asked yet";
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
  });
}

TEST(GitIntegrations, AnEditThatMovesTheHostAsksForNewTokens) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    const auto same =
        co_await fixture.integrations.edit(kAdmin, "", "", SharingPolicy::all_users, soon());
    CO_ASSERT_OK(same);
    EXPECT_EQ(same->users[0].state, TokenState::valid);
    const auto moved = co_await fixture.integrations.edit(
        kAdmin, "", "https://elsewhere.example.test", SharingPolicy::all_users, soon());
    CO_ASSERT_OK(moved);
    EXPECT_EQ(moved->users[0].state, TokenState::invalid);
    const auto opened = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_TRUE(!opened);
    EXPECT_EQ(opened.error().subcode, integration_errors::kInvalidToken);
  });
}

TEST(GitIntegrations, OnlyAdministratorsNameOtherHosts) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    const auto root = fixture.host.api_root().text();
    const auto validate = [&](Actor actor) {
      return fixture.integrations.validate(std::move(actor), "GITHUB", root,
                                           {Secret(FakeGitHost::kToken)}, TokenUse::runtime,
                                           soon());
    };
    const auto refused = co_await validate(kUser);
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(fixture.host.requests().empty());
    CO_ASSERT_OK(co_await validate(kAdmin));
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await validate(kUser));
  });
}

TEST(GitIntegrations, NamesAreGivenOnceAndUnknownOnesAreErrors) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    const auto again = co_await fixture.add();
    CO_ASSERT_TRUE(!again);
    EXPECT_EQ(again.error().subcode, integration_errors::kExists);
    const auto edited =
        co_await fixture.integrations.edit(kAdmin, "absent", "", SharingPolicy::all_users, soon());
    CO_ASSERT_TRUE(!edited);
    EXPECT_EQ(edited.error().subcode, integration_errors::kUnknown);
    const auto removed = co_await fixture.integrations.remove(kAdmin, "absent", soon());
    CO_ASSERT_TRUE(!removed);
    EXPECT_EQ(removed.error().subcode, integration_errors::kUnknown);
  });
}

TEST(GitIntegrations, ASecretOfAnotherProgramIsTakenOver) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    fixture.cluster.put_secret(
        {"default", "git-default-acc"}, {{"unknown-layout", "x"}},
        {{"io.codefresh.integration-type", "git"}, {"io.codefresh.integration-name", "default"}});
    const auto listed = co_await fixture.integrations.list(kAdmin, soon());
    CO_ASSERT_OK(listed);
    EXPECT_TRUE(listed->empty()) << "it cannot be read, and hides nothing else";
    CO_ASSERT_OK(co_await fixture.add("other"));
    CO_ASSERT_OK(co_await fixture.add());
    const auto after = co_await fixture.integrations.list(kAdmin, soon());
    CO_ASSERT_OK(after);
    EXPECT_EQ(after->size(), 2U);
    const auto secret =
        fixture.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc"});
    EXPECT_TRUE((*secret)["data"].contains("unknown-layout"));
  });
}

TEST(GitIntegrations, ParallelRegistrationsAreAllKept) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    TaskGroup group(co_await asio::this_coro::executor);
    for (int i = 0; i < 8; ++i) {
      group.spawn("register", [&fixture, i]() -> Task<> {
        const Actor actor{"user-" + std::to_string(i), "acc", false};
        CO_ASSERT_OK(co_await fixture.register_user(actor, FakeGitHost::kToken));
      });
    }
    co_await group.join();
    const auto got = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_OK(got);
    EXPECT_EQ((*got)->users.size(), 8U);
    EXPECT_GT(fixture.cluster.count("PUT"), 8U) << "there were conflicts";
  });
}

TEST(GitIntegrations, AnApiServerThatFailsIsAnError) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    fixture.cluster.fail_next(1, 503);
    const auto got = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_TRUE(!got);
    EXPECT_EQ(got.error().code, ErrorCode::unavailable) << "not known is not unknown";
    fixture.cluster.fail_next(1, 503);
    CO_ASSERT_TRUE(!co_await fixture.integrations.list(kUser, soon()));
  });
}

// As after a way back to an older version, which would make the default integration once more.
TEST(GitIntegrations, TokensInASecretThatCannotBeReadAreLeft) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    const k8s::ObjectKey key{"default", "git-default-acc"};
    auto secret = fixture.cluster.find(k8s::resources::kSecrets, key);
    CO_ASSERT_TRUE(secret.has_value());
    (*secret)["data"]["integration"] = base64_encode(R"({"version":9})");
    fixture.cluster.put(k8s::resources::kSecrets, *secret);
    const auto data = secret->at("data");
    EXPECT_EQ(data.size(), 2U);
    (void)co_await fixture.integrations.ensure_default("acc", fixture.provider,
                                                       fixture.host.api_root().text(), soon());
    const auto added = co_await fixture.add();
    CO_ASSERT_TRUE(!added);
    EXPECT_EQ(added.error().subcode, integration_errors::kExists);
    EXPECT_THAT(added.error().message, HasSubstr("has tokens of users"));
    secret = fixture.cluster.find(k8s::resources::kSecrets, key);
    CO_ASSERT_TRUE(secret.has_value());
    EXPECT_EQ(secret->at("data"), data);
    CO_ASSERT_OK(co_await fixture.integrations.remove(kAdmin, "", soon()));
    CO_ASSERT_OK(co_await fixture.add());
  });
}

// As a balancer has it, or a tunnel, whose API server is away.
TEST(GitIntegrations, A404OfAnIntermediaryIsNoMissingIntegration) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    const auto executor = co_await asio::this_coro::executor;
    http::Server balancer(executor, {.address = "127.0.0.1"},
                          [](http::Exchange& exchange) -> Task<> {
                            (void)co_await exchange.reply(test::page_not_found());
                          });
    EXPECT_TRUE(balancer.listen());
    auto config = fixture.cluster.cluster_config();
    config.server.port = balancer.port();
    k8s::Client behind(executor, fixture.resolver, std::move(config), {}, "test");
    IntegrationStore store(behind, "default");
    GitIntegrations integrations(store, fixture.seal, fixture.hosts,
                                 {.plain_http = PlainHttp::insecure_allowed});
    const auto got = co_await integrations.get(kUser, "", soon());
    CO_ASSERT_TRUE(!got);
    EXPECT_EQ(got.error().code, ErrorCode::unavailable) << got.error().message;
    const auto removed = co_await integrations.remove(kAdmin, "", soon());
    CO_ASSERT_TRUE(!removed);
    EXPECT_EQ(removed.error().code, ErrorCode::unavailable) << removed.error().message;
    co_await balancer.stop(Clock::now());
  });
}

}  // namespace
}  // namespace gitops::app_proxy
