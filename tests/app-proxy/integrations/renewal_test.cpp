// Tokens of logins at a Git host end, and are renewed.
#include <chrono>
#include <vector>

#include <gmock/gmock.h>

#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/integrations/integrations_fixture.hpp"
#include "k8s-client/resource.hpp"
#include "support/log_capture.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::FakeGitHost;
using test::soon;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kLifetime = 1h;

// Registers the token of a login of kUser, as the callback does.
Task<Result<Integration>> log_in(IntegrationsFixture& fixture) {
  const auto root = fixture.host.api_root();
  const auto app = co_await fixture.oauth.app_for(root, soon());
  if (!app) co_return std::unexpected(app.error());
  const auto verifier = oauth::new_verifier();
  const auto back = fixture.oauth.redirect_uri(root.kind)->to_string();
  const auto sent_back =
      fixture.host.authorize(oauth::authorize_url(root.kind, *app, back, "state", verifier));
  const auto code = sent_back.substr(sent_back.find("code=") + 5);
  auto grant = co_await fixture.oauth.exchange(root.kind, *app, code, verifier, soon());
  if (!grant) co_return std::unexpected(grant.error());
  GitAccess access{.token = std::move(grant->access_token),
                   .username = std::string(oauth::git_username(root.kind))};
  GitIntegrations::Renewal renewal{.refresh_token = std::move(grant->refresh_token),
                                   .lifetime = grant->lifetime};
  co_return co_await fixture.integrations.register_login(kUser, "", std::move(access),
                                                         std::move(renewal), soon());
}

void with_login(const std::function<Task<>(IntegrationsFixture&)>& body,
                ProviderKind kind = ProviderKind::github) {
  with_integrations(
      [&](IntegrationsFixture& fixture) -> Task<> {
        fixture.host.set_oauth({.lifetime = kLifetime});
        // Bitbucket Server tells a token's permissions by a repository that it may write.
        fixture.host.add_repository(fixture.host.organisation(), "shop");
        fixture.cluster.put_secret({"default", "oauth"},
                                   {{"url", fixture.host.url().to_string()},
                                    {"clientId", "client-1"},
                                    {"clientSecret", "canary-client-secret"}},
                                   {{"codefresh_io_entity", "git-pat-obtainer-sec"}});
        CO_ASSERT_OK(co_await fixture.add());
        CO_ASSERT_OK(co_await log_in(fixture));
        co_await body(fixture);
      },
      kind);
}

std::string token_of(const Result<GitAccount>& account) {
  return account ? std::string(account->access.token.reveal()) : account.error().message;
}

TEST(Renewal, EveryProviderGivesTheNextToken) {
  for (const auto kind : {ProviderKind::github, ProviderKind::gitlab,
                          ProviderKind::bitbucket_server, ProviderKind::gitea}) {
    with_login(
        [&](IntegrationsFixture& fixture) -> Task<> {
          const auto first = token_of(co_await fixture.integrations.open(kUser, "", soon()));
          co_await sleep_for(kLifetime - 6min);
          EXPECT_EQ(token_of(co_await fixture.integrations.open(kUser, "", soon())), first);
          co_await sleep_for(2min);
          const auto next = co_await fixture.integrations.open(kUser, "", soon());
          CO_ASSERT_OK(next);
          EXPECT_NE(token_of(next), first);
          CO_ASSERT_OK(co_await next->provider->who_am_i(next->access, soon()));
          EXPECT_EQ(next->access.username, kind == ProviderKind::gitlab ? "oauth2" : "");
          // The one after that, by the refresh token that came with it.
          co_await sleep_for(kLifetime);
          const auto third = co_await fixture.integrations.open(kUser, "", soon());
          CO_ASSERT_OK(third);
          EXPECT_NE(token_of(third), token_of(next));
        },
        kind);
  }
}

TEST(Renewal, HappensOnceForAllWhoWait) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    co_await sleep_for(kLifetime);
    fixture.host.forget_requests();
    std::vector<std::string> tokens;
    TaskGroup users(co_await asio::this_coro::executor);
    for (int i = 0; i < 10; ++i) {
      users.spawn("user", [&]() -> Task<> {
        tokens.push_back(token_of(co_await fixture.integrations.open(kUser, "", soon())));
      });
    }
    co_await users.join();
    EXPECT_EQ(fixture.host.count("POST", "/login/oauth/access_token"), 1U);
    CO_ASSERT_EQ(tokens.size(), 10U);
    EXPECT_THAT(tokens, testing::Each(tokens.front()));
  });
}

void expect_refusal(ProviderKind kind) {
  with_login(
      [](IntegrationsFixture& fixture) -> Task<> {
        std::vector<TokenState> told;
        fixture.integrations.on_transition([&](const GitIntegrations::Transition& transition) {
          told.push_back(transition.state);
        });
        fixture.host.forget_logins();
        co_await sleep_for(kLifetime);
        const auto opened = co_await fixture.integrations.open(kUser, "", soon());
        CO_ASSERT_TRUE(!opened);
        EXPECT_EQ(opened.error().subcode, integration_errors::kInvalidToken);
        EXPECT_THAT(told, testing::ElementsAre(TokenState::invalid));
        const auto stored = co_await fixture.integrations.get(kUser, "", soon());
        CO_ASSERT_OK(stored);
        EXPECT_EQ((*stored)->find(kUser.user_id)->state, TokenState::invalid);
        EXPECT_TRUE((*stored)->find(kUser.user_id)->refresh.text.empty());
        // A new login helps.
        CO_ASSERT_OK(co_await log_in(fixture));
        CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
      },
      kind);
}

TEST(Renewal, ARefusalMakesTheTokenInvalid) {
  for (const auto kind : {ProviderKind::github, ProviderKind::gitlab,
                          ProviderKind::bitbucket_server, ProviderKind::gitea}) {
    expect_refusal(kind);
  }
}

TEST(Renewal, AHostThatDoesNotAnswerChangesNothing) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    const auto first = token_of(co_await fixture.integrations.open(kUser, "", soon()));
    co_await sleep_for(kLifetime - 4min);
    // It still counts.
    fixture.host.fail_next(100, 503, {}, "/login/oauth");
    EXPECT_EQ(token_of(co_await fixture.integrations.open(kUser, "", soon())), first);
    const auto asked = fixture.host.count("POST", "/login/oauth");
    EXPECT_EQ(token_of(co_await fixture.integrations.open(kUser, "", soon())), first);
    EXPECT_EQ(fixture.host.count("POST", "/login/oauth"), asked) << "not asked again at once";
    co_await sleep_for(5min);
    const auto late = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().subcode, git_errors::kUnreachable);
    const auto stored = co_await fixture.integrations.get(kUser, "", soon());
    CO_ASSERT_OK(stored);
    EXPECT_EQ((*stored)->find(kUser.user_id)->state, TokenState::valid);
    fixture.host.end_faults();
    co_await sleep_for(1min);
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
  });
}

// The host has taken the refresh token, and the API server stores nothing for a while.
TEST(Renewal, ATokenThatCouldNotBeStoredIsStoredLater) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    const auto first = token_of(co_await fixture.integrations.open(kUser, "", soon()));
    co_await sleep_for(kLifetime);
    fixture.host.forget_requests();
    fixture.cluster.set_access(
        [](const test::FakeKubeApi::Access& access) { return access.verb != "update"; });
    EXPECT_FALSE(co_await fixture.integrations.open(kUser, "", soon()));
    co_await fixture.renewals.join();
    co_await sleep_for(1min);
    EXPECT_FALSE(co_await fixture.integrations.open(kUser, "", soon()));
    co_await fixture.renewals.join();
    fixture.cluster.set_access({});
    co_await sleep_for(1min);
    const auto next = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_OK(next);
    EXPECT_NE(token_of(next), first);
    EXPECT_EQ(fixture.host.count("POST", "/login/oauth/access_token"), 1U);
    CO_ASSERT_OK(co_await next->provider->who_am_i(next->access, soon()));
    // The one after that, by the refresh token that came with it.
    co_await sleep_for(kLifetime);
    const auto third = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_OK(third);
    EXPECT_NE(token_of(third), token_of(next));
  });
}

// A login in the meantime counts.
TEST(Renewal, ATokenThatCouldNotBeStoredReplacesNoNewerLogin) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    co_await sleep_for(kLifetime);
    fixture.cluster.set_access(
        [](const test::FakeKubeApi::Access& access) { return access.verb != "update"; });
    EXPECT_FALSE(co_await fixture.integrations.open(kUser, "", soon()));
    co_await fixture.renewals.join();
    fixture.cluster.set_access({});
    CO_ASSERT_OK(co_await log_in(fixture));
    const auto login = token_of(co_await fixture.integrations.open(kUser, "", soon()));
    co_await sleep_for(kLifetime);
    const auto next = co_await fixture.integrations.open(kUser, "", soon());
    CO_ASSERT_OK(next);
    EXPECT_NE(token_of(next), login);
    CO_ASSERT_OK(co_await next->provider->who_am_i(next->access, soon()));
  });
}

// Another replica was faster: the host refuses the refresh token, and the next token is stored already.
TEST(Renewal, WhatAnotherReplicaRenewedIsUsed) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    IntegrationStore other_store(fixture.kube, "default");
    GitIntegrations other(other_store, fixture.seal, fixture.hosts,
                          {.plain_http = PlainHttp::insecure_allowed});
    other.renew_with(fixture.oauth, fixture.renewals);
    co_await sleep_for(kLifetime);
    std::vector<std::string> tokens;
    TaskGroup users(co_await asio::this_coro::executor);
    for (auto* replica : {&fixture.integrations, &other}) {
      users.spawn("user", [&tokens, replica]() -> Task<> {
        tokens.push_back(token_of(co_await replica->open(kUser, "", soon())));
      });
    }
    co_await users.join();
    CO_ASSERT_EQ(tokens.size(), 2U);
    EXPECT_EQ(tokens[0], tokens[1]);
    co_await fixture.renewals.join();
  });
}

// As after the host had blocked the user for a while.
TEST(Renewal, MakesARefusedTokenValidAgain) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    std::vector<TokenState> told;
    fixture.integrations.on_transition(
        [&](const GitIntegrations::Transition& transition) { told.push_back(transition.state); });
    const auto refuse = [](Integration& there) -> Result<bool> {
      there.find(kUser.user_id)->state = TokenState::invalid;
      return true;
    };
    CO_ASSERT_OK(co_await fixture.store.apply("default", "acc", refuse, soon()));
    co_await sleep_for(kLifetime);
    CO_ASSERT_OK(co_await fixture.integrations.open(kUser, "", soon()));
    const auto stored = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(stored);
    EXPECT_EQ(stored->find(kUser.user_id)->state, TokenState::valid);
    EXPECT_THAT(told, testing::ElementsAre(TokenState::valid));
  });
}

TEST(Renewal, ATokenThatTheUserMakesEndsTheLogin) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    co_await sleep_for(2 * kLifetime);
    EXPECT_EQ(token_of(co_await fixture.integrations.open(kUser, "", soon())), FakeGitHost::kToken);
  });
}

// A check seals it again after a rotation of the runtime's token, while the host is still asked.
TEST(Renewal, IsStoredInPlaceOfATokenThatWasSealedAgain) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    const auto first = token_of(co_await fixture.integrations.open(kUser, "", soon()));
    co_await sleep_for(kLifetime);
    fixture.host.forget_requests();
    fixture.host.delay_answers(1s, "/login/oauth");
    std::string next;
    TaskGroup users(co_await asio::this_coro::executor);
    users.spawn("user", [&]() -> Task<> {
      next = token_of(co_await fixture.integrations.open(kUser, "", soon()));
    });
    EXPECT_TRUE(co_await test::eventually(
        [&] { return fixture.host.count("POST", "/login/oauth") == 1; }, "the renewal"));
    fixture.seal.use(Secret("rotated"), Secret("iv"));
    const auto seal_again = [&](Integration& there) -> Result<bool> {
      auto* token = there.find(kUser.user_id);
      const auto owner = owner_of(there, kUser.user_id);
      for (SealedToken* part : {&token->sealed, &token->refresh}) {
        *part = fixture.seal.seal(owner, fixture.seal.open(owner, *part).value()).value();
      }
      return true;
    };
    CO_ASSERT_OK(co_await fixture.store.apply("default", "acc", seal_again, soon()));
    co_await users.join();
    EXPECT_NE(next, first);
    const auto stored = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(stored);
    const auto kept =
        fixture.seal.open(owner_of(*stored, kUser.user_id), stored->find(kUser.user_id)->sealed);
    CO_ASSERT_OK(kept);
    EXPECT_EQ(kept->reveal(), next);
  });
}

TEST(Renewal, BackgroundWorkRenewsAndSealsAgain) {
  test::LogCapture log;
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    co_await sleep_for(kLifetime);
    const auto before = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(before);
    co_await fixture.integrations.check(*before, kUser.user_id, soon());
    const auto after = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(after);
    EXPECT_NE(after->find(kUser.user_id)->sealed, before->find(kUser.user_id)->sealed);
    EXPECT_EQ(after->find(kUser.user_id)->state, TokenState::valid);
    // The runtime's token rotates.
    fixture.seal.use(Secret("rotated"), Secret("iv"));
    co_await fixture.integrations.check(*after, kUser.user_id, soon());
    const auto rotated = co_await fixture.store.get("default", "acc", soon());
    CO_ASSERT_OK(rotated);
    EXPECT_TRUE(fixture.seal.is_current(rotated->find(kUser.user_id)->sealed));
    EXPECT_TRUE(fixture.seal.is_current(rotated->find(kUser.user_id)->refresh));
    // AC-28: nothing of it is readable in the Secret.
    const auto secret =
        fixture.cluster.find(k8s::resources::kSecrets, {"default", "git-default-acc"});
    CO_ASSERT_TRUE(secret.has_value());
    for (const auto& [key, value] : (*secret)["data"].items()) {
      EXPECT_THAT(base64_decode(value.get<std::string>()).value(), Not(HasSubstr("canary")));
    }
  });
  EXPECT_THAT(log.text(), Not(HasSubstr("canary")));
}

TEST(Oauth, AHostWithoutAnApplicationIsToldWithWhatToMake) {
  with_integrations([](IntegrationsFixture& fixture) -> Task<> {
    CO_ASSERT_OK(co_await fixture.add());
    const auto none = co_await fixture.oauth.app_for(fixture.host.api_root(), soon());
    CO_ASSERT_TRUE(!none);
    EXPECT_EQ(none.error().code, ErrorCode::not_found);
    EXPECT_THAT(none.error().message, HasSubstr("codefresh_io_entity=git-pat-obtainer-sec"));
    // One of another host, and one that is broken.
    fixture.cluster.put_secret(
        {"default", "other"},
        {{"url", "https://other.example.test"}, {"clientId", "a"}, {"clientSecret", "b"}},
        {{"codefresh_io_entity", "git-pat-obtainer-sec"}});
    fixture.cluster.put_secret({"default", "broken"}, {{"url", fixture.host.url().to_string()}},
                               {{"codefresh_io_entity", "git-pat-obtainer-sec"}});
    EXPECT_FALSE(co_await fixture.oauth.app_for(fixture.host.api_root(), soon()));
  });
}

// The host of the Secret's URL gets the client's secret, and nobody to whom it leads on.
TEST(Oauth, ARedirectOfTheHostIsNotFollowed) {
  with_login([](IntegrationsFixture& fixture) -> Task<> {
    const auto app = co_await fixture.oauth.app_for(fixture.host.api_root(), soon());
    CO_ASSERT_OK(app);
    for (const int status : {302, 307, 200}) {
      fixture.host.forget_requests();
      fixture.host.fail_next(1, status, {}, "/login/oauth");  // 200: a page
      const auto grant =
          co_await fixture.oauth.exchange(ProviderKind::github, *app, "code", "verifier", soon());
      CO_ASSERT_TRUE(!grant);
      EXPECT_EQ(grant.error().code, ErrorCode::protocol) << status;
      EXPECT_EQ(fixture.host.requests().size(), 1U);
    }
  });
}

}  // namespace
}  // namespace gitops::app_proxy
