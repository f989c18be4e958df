// A release beside a stock Argo CD: installed by the real helm into a real API server, with every daemon
// run from the root of its image, with the environment, mounts and ServiceAccount of its pod. The
// API server's audit log tells which permissions were used. The control plane and the Git host are doubles.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "e2e/git_harness.hpp"
#include "peers/installed_release_bed.hpp"
#include "peers/peer_bed.hpp"
#include "peers/peer_rollouts.hpp"
#include "peers/peer_workflows.hpp"
#include "peers/permission_audit.hpp"
#include "peers/rendered_workload.hpp"
#include "support/play.hpp"
#include "support/run_on.hpp"
#include "support/yaml_manifests.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using namespace nlohmann::literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kLimit = std::chrono::seconds(380);

TEST(InstalledRelease, DoesItsWorkFromItsImagesWithNoRightToSpare) {
  GITOPS_REQUIRE_PEER(Programs);
  AuditedCluster bed;
  const TempDir folder;
  const auto image = make_image(folder);
  make_objects(bed);
  const auto before = objects(bed.cluster());
  run_coro(
      [&]() -> Task<> {
        InstalledReleaseBed installed_release_bed(bed, image, co_await asio::this_coro::executor);
        co_await play_in(installed_release_bed, [&](InstalledReleaseBed&) -> Task<> {
          const auto works = [&](std::string turn) -> Task<> {
            co_await installed_release_bed.start_pods();
            co_await installed_release_bed.an_event_arrives(turn);
            co_await installed_release_bed.a_webhook_arrives();
            co_await installed_release_bed.graphql_answers();
          };
          co_await installed_release_bed.aside([&] { installed_release_bed.helm(20); });
          co_await works("installed");
          EXPECT_EQ(installed_release_bed.threadiness(kApps), "20");
          co_await installed_release_bed.git_integrations_work();
          co_await installed_release_bed.logs_are_read();

          co_await installed_release_bed.aside([&] { installed_release_bed.helm(30); });
          co_await works("upgraded");
          EXPECT_EQ(installed_release_bed.threadiness(kApps), "30");

          co_await installed_release_bed.aside(
              [&] { installed_release_bed.command({"rollback", "rt", "1"}); });
          co_await works("rolled-back");
          EXPECT_EQ(installed_release_bed.threadiness(kApps), "20");
          EXPECT_THAT(installed_release_bed.platform().refused(), IsEmpty());

          co_await installed_release_bed.stop_pods();
          co_await installed_release_bed.aside([&] {
            const auto manifests =
                parse_manifests(installed_release_bed.command({"get", "manifest", "rt"}));
            if (!manifests) throw std::runtime_error(manifests.error().message);
            const auto granted = permissions_granted(*manifests, kNamespace);
            const auto used = bed.audit().used(kNamespace);
            expect_each_used(granted, used);
            expect_each_granted(used, granted);
            EXPECT_THAT(bed.audit().refused(kNamespace), IsEmpty());

            installed_release_bed.command({"uninstall", "rt", "--wait"});
            auto stays = objects(bed.cluster());
            EXPECT_TRUE(stays.contains("secret/git-default-acc-1"));
            EXPECT_TRUE(stays.contains("lease.coordination.k8s.io/event-reporter-app-0"));
            run_or_throw(
                {"bash", "-euo", "pipefail", "-c", removal_of_the_rest()},
                {{"KUBECONFIG", bed.cluster().kubeconfig()},
                 {"PATH", Helm::program("kubectl").parent_path().string() + ":/usr/bin:/bin"}});
            auto rest = before;
            rest.erase("secret/codefresh-token");
            rest.erase("secret/argocd-token");
            EXPECT_EQ(objects(bed.cluster()), rest);
          });
        });
      },
      kLimit);
}

}  // namespace
}  // namespace gitops::test
