// What only the leader of several replicas does, and that the next leader goes on with it at once.
#include <gmock/gmock.h>

#include "app-proxy/integrations/git_permissions.hpp"
#include "app-proxy/integrations/integrations_fixture.hpp"
#include "app-proxy/integrations/validity_check.hpp"
#include "support/status_page.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::FakeGitHost;

// One question and one Git source.
void expect_one_known(const StatusEntry& entry) {
  const test::StatusPage status({entry});
  EXPECT_EQ(status.state(entry.name), "ok") << status;
  EXPECT_EQ(status.count(entry.name, "known"), 1) << status;
  EXPECT_EQ(status.count(entry.name, "known_of"), 1) << status;
  EXPECT_EQ(status.count(entry.name, "git_sources"), 1) << status;
}

// A user's token at the host.
void with_token(const std::function<Task<>(IntegrationsFixture&)>& body) {
  with_integrations([&](IntegrationsFixture& fixture) -> Task<> {
    fixture.host.add_repository("acme", "shop");
    CO_ASSERT_OK(co_await fixture.add());
    CO_ASSERT_OK(co_await fixture.register_user(kUser, FakeGitHost::kToken));
    co_await body(fixture);
  });
}

TEST(LeaderOnly, AsksHostsWhetherTheyAcceptTokens) {
  with_token([](IntegrationsFixture& fixture) -> Task<> {
    auto& leadership = fixture.leadership;
    leadership.set(false);
    const auto asked = [&, before = fixture.host.requests().size()] {
      return fixture.host.requests().size() - before;
    };
    ValidityCheck check(fixture.integrations, leadership, {.period = 1min});
    TaskGroup group(co_await asio::this_coro::executor);
    check.start(group);
    co_await sleep_for(1h);
    EXPECT_EQ(asked(), 0U);
    leadership.set(true);
    co_await sleep_for(2min);
    EXPECT_GT(asked(), 0U);
    // One that does not lead any more stops in the middle of its round.
    leadership.set(false);
    const auto last = asked();
    co_await sleep_for(1h);
    EXPECT_EQ(asked(), last);
    group.cancel();
    co_await group.join();
  });
}

TEST(LeaderOnly, ReportsGitPermissions) {
  with_token([](IntegrationsFixture& fixture) -> Task<> {
    auto& leadership = fixture.leadership;
    leadership.set(false);
    std::vector<KnownGitSource> sources{
        {.account_id = "acc",
         .name = "shop",
         .source_namespace = "runtime",
         .repository_url = "https://" + fixture.host.api_root().url.host + "/acme/shop.git",
         .permissions = {}}};
    std::size_t reports = 0;
    GitPermissions permissions(
        fixture.integrations, leadership, [](Deadline) -> Task<Result<bool>> { co_return true; },
        [&](Deadline) -> Task<Result<std::vector<KnownGitSource>>> { co_return sources; },
        [&](const KnownGitSource& source, Deadline) -> Task<Result<void>> {
          sources[0].permissions = source.permissions;
          ++reports;
          co_return Result<void>();
        },
        {});
    const auto asked = [&, before = fixture.host.requests().size()] {
      return fixture.host.requests().size() - before;
    };
    TaskGroup group(co_await asio::this_coro::executor);
    permissions.start(group);
    co_await sleep_for(1h);
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(permissions.status().state, StatusState::standby);
    EXPECT_EQ(permissions.status().message, "another replica checks them");
    leadership.set(true);
    co_await sleep_for(5s);
    EXPECT_EQ(asked(), 1U);
    EXPECT_EQ(reports, 1U);
    expect_one_known(permissions.status());
    // What the leader before has found out is not asked again.
    leadership.set(false);
    co_await sleep_for(5s);
    leadership.set(true);
    co_await sleep_for(5s);
    EXPECT_EQ(asked(), 1U);
    EXPECT_EQ(reports, 1U);
    expect_one_known(permissions.status());
    group.cancel();
    co_await group.join();
  });
}

}  // namespace
}  // namespace gitops::app_proxy
