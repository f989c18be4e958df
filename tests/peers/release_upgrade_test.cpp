// Two releases of `./dev release`, one after the other and back again, by helm upgrade and helm rollback on a real API
// server. The pods run the programs of the release's image; objects change, users ask and Git hosts send webhooks meanwhile.
#include <iostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chart/helm.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/release_upgrade_bed.hpp"
#include "support/play.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

using ::testing::IsEmpty;

constexpr auto kTestLimit = std::chrono::seconds(480);

// The version after, of the same length.
std::string next(std::string version) {
  version.back() = version.back() == '9' ? '8' : static_cast<char>(version.back() + 1);
  return version;
}

Task<> upgrade_and_roll_back(ReleaseUpgradeBed& bed, const ReleaseFolder& older,
                             const ReleaseFolder& newer) {
  CO_ASSERT_OK(bed.base.platform.start());
  co_await bed.base.aside([&] {
    bed.base.provide_volumes(2);
    bed.base.make_platform_secret();
    bed.make_argocd_secret();
    bed.install(older);
  });
  co_await bed.replace_all();
  bed.expect_version(older.version());
  bed.base.start_stream();
  bed.start_requests();
  co_await bed.base.wait_for_steps(20);
  co_await bed.wait_for_requests(20);

  for (const bool is_rollback : {false, true}) {
    co_await bed.base.aside([&] {
      bed.hold_pods();
      if (is_rollback) {
        bed.rollback();
      } else {
        bed.install(newer);
      }
    });
    const auto before = bed.base.changes.steps();
    co_await bed.replace_all();
    bed.expect_version(is_rollback ? older.version() : newer.version());
    EXPECT_GT(bed.base.changes.steps(), before) << "objects change meanwhile";
    co_await bed.base.wait_for_steps(20);
    co_await bed.wait_for_requests(20);
  }

  co_await bed.base.stop_stream();
  co_await bed.stop_requests();
  EXPECT_THAT(bed.users->failures(), IsEmpty());
  EXPECT_THAT(bed.hosts->failures(), IsEmpty());
  EXPECT_EQ(bed.lost_webhooks(), 0U);
  co_await bed.base.wait_until_nothing_is_lost();
  EXPECT_THAT(bed.base.lost(), IsEmpty());
  EXPECT_THAT(bed.base.platform.refused(), IsEmpty());
  std::cout << older.version() << " to " << newer.version()
            << " and back: " << bed.base.changes.steps() << " changes of "
            << bed.base.changes.expected().size() << " objects, " << bed.base.lost().size()
            << " lost; " << bed.users->sent() << " requests, " << bed.users->failures().size()
            << " failed; " << bed.hosts->sent() << " webhooks, " << bed.hosts->failures().size()
            << " failed, " << bed.lost_webhooks() << " lost\n";
}

TEST(ReleaseUpgrade, FailsNoRequestAndLosesNoEventThereAndBack) {
  GITOPS_REQUIRE_PEERS();
  if (const auto lacking = Helm::missing()) GTEST_SKIP() << "peers: " << *lacking;
  for (const auto& lacking : {PeerRollouts::missing(), PeerWorkflows::missing()}) {
    if (lacking) GTEST_SKIP() << "peers: " << *lacking;
  }
  const auto version = ReleaseFolder::own_version();
  const ReleaseFolder older(version);
  const ReleaseFolder newer(next(version));
  auto& peers = peer_bed();
  run_coro(
      [&]() -> Task<> {
        ReleaseUpgradeBed bed(peers, {&older, &newer}, co_await asio::this_coro::executor);
        co_await play_in(bed, [&](ReleaseUpgradeBed& the_bed) -> Task<> {
          co_await upgrade_and_roll_back(the_bed, older, newer);
        });
      },
      kTestLimit);
}

}  // namespace
}  // namespace gitops::test
