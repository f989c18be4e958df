#include "contract/control_plane_contract.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_platform.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

struct FakePlatformContract : testing::TestWithParam<ControlPlaneCase> {};

TEST_P(FakePlatformContract, Holds) {
  run_coro([]() -> Task<> {
    FakePlatform platform(co_await asio::this_coro::executor);
    CO_ASSERT_OK(platform.start());
    const ControlPlanePeer peer{.url = platform.url(),
                                .account = "acc-1",
                                .runtime = "prod",
                                .runtime_token = "runtime.1",
                                .admin = "u-ann",
                                .admin_token = "ann.1",
                                .user = "u-bob",
                                .user_token = "bob.1",
                                .team = "t-1",
                                .stranger_token = "eve.1",
                                .git_sources = 70};
    auto& accounts = platform.accounts();
    accounts.add({.id = peer.account, .name = "acme", .admins = {peer.admin}});
    accounts.add({.id = "acc-2", .name = "other"});
    accounts.add(peer.runtime_token,
                 FakeAccounts::Runtime{.name = peer.runtime, .account_id = peer.account});
    accounts.add(peer.admin_token, FakeAccounts::User{.id = peer.admin,
                                                      .name = "Ann",
                                                      .email = "ann@example.test",
                                                      .account_id = peer.account});
    accounts.add(peer.user_token,
                 FakeAccounts::User{.id = peer.user, .name = "Bob", .account_id = peer.account});
    accounts.add(peer.stranger_token,
                 FakeAccounts::User{.id = "u-eve", .name = "Eve", .account_id = "acc-2"});
    for (std::size_t i = 0; i < peer.git_sources; ++i) {
      const auto name = "source-" + std::to_string(i);
      accounts.add(FakeAccounts::GitSource{
          .name = name,
          .runtime = peer.runtime,
          .repository_url = "https://git.example.test/acme/" + name + ".git"});
    }
    accounts.set_team(peer.team, {peer.user});
    accounts.set_rules(nlohmann::json::parse(R"([{"id": "r-1", "accountId": "acc-1",
      "entityType": "gitopsApplications", "teams": ["t-1"], "tags": [], "actions": ["SYNC"],
      "attributes": [{"name": "LABEL", "key": "team", "value": "a"},
                     {"name": "CLUSTER", "value": "c1"}]}])"));
    const auto run = GetParam().run;
    co_await run(peer);
    co_await platform.stop();
  });
}

INSTANTIATE_TEST_SUITE_P(ControlPlane, FakePlatformContract,
                         testing::ValuesIn(control_plane_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
