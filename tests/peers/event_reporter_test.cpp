#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peers/reporter_bed.hpp"
#include "peers/reporter_scenes.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The event-reporter with Argo CD 3; event_reporter_argocd2_test.cpp has it with Argo CD 2.
namespace gitops::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using namespace nlohmann::literals;

constexpr const char* kNamespace = ReporterBed::kNamespace;
constexpr const char* kPlatformToken = ReporterBed::kPlatformToken;

TEST(EventReporterPeers, RunsAsTheChartInstallsIt) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, [](ReporterBed& reporter_bed) -> Task<> {
    co_await reporter_bed.start();
    const auto& environment = reporter_bed.workload->environment();
    const auto token = reporter_bed.workload->local("/app/config/codefresh-token/token");
    EXPECT_THAT(reporter_bed.workload->argv(),
                ElementsAre("event-reporter", "--codefresh-token-file", token.string()));
    EXPECT_EQ(read_file(token), kPlatformToken);
    EXPECT_THAT(environment,
                AllOf(Contains(Pair("REPORTER_MODE", "app")),
                      Contains(Pair("POD_NAME", "runtime-event-reporter-0")),
                      Contains(Pair("POD_NAMESPACE", kNamespace)),
                      Contains(Pair("CODEFRESH_URL", reporter_bed.platform.url().to_string())),
                      Contains(Pair("THREADINESS", "100")),
                      Contains(Pair("ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"))));
    const std::string bundle = "/app/config/codefresh-tls-certs/ca-bundle.crt";
    EXPECT_EQ(environment.at("CODEFRESH_SSL_CERT_PATH"),
              reporter_bed.workload->local(bundle).string());
    const auto ledger = reporter_bed.workload->local("/var/lib/event-reporter/ledger.db");
    EXPECT_EQ(environment.at("LEDGER_FILE"), ledger.string());
    EXPECT_TRUE(std::filesystem::is_regular_file(ledger));

    // The process has that environment and no other.
    std::map<std::string, std::string> found;
    std::istringstream stream(
        read_file("/proc/" + std::to_string(reporter_bed.reporter->process().pid()) + "/environ"));
    for (std::string entry; std::getline(stream, entry, '\0');) {
      const auto name = entry.substr(0, entry.find('='));
      if (!name.ends_with("SAN_OPTIONS")) found[name] = entry.substr(name.size() + 1);
    }
    EXPECT_EQ(found, environment);

    // It is the chart's service account, which may read little.
    const auto as_the_pod = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {Helm::program("kubectl"), "--kubeconfig",
                                           reporter_bed.workload->kubeconfig().string(), "auth"});
      return run_command(arguments);
    };
    EXPECT_THAT(as_the_pod({"whoami"}).out,
                HasSubstr("system:serviceaccount:argocd:runtime-event-reporter"));
    EXPECT_EQ(as_the_pod({"can-i", "list", "applications.argoproj.io"}).out, "yes\n");
    EXPECT_EQ(as_the_pod({"can-i", "list", "secrets"}).out, "no\n");

    EXPECT_EQ(reporter_bed.reporter->get("/healthz").status, 200);
    EXPECT_EQ(reporter_bed.reporter->get_main("/healthz").status, 200);
    for (const auto& secret : {std::string(kPlatformToken), reporter_bed.argocd_token(),
                               read_file(reporter_bed.workload->local(
                                   "/var/run/secrets/kubernetes.io/serviceaccount/token"))}) {
      EXPECT_THAT(reporter_bed.reporter->log(), Not(HasSubstr(secret)));
    }
  });
}

TEST(EventReporterPeers, TheLedgerOutlivesTheContainer) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, [](ReporterBed& reporter_bed) -> Task<> {
    co_await reporter_bed.start();
    const auto app = reporter_bed.make_repository("remembered");
    const auto commit =
        co_await reporter_bed.commit(app, {{"settings.yaml", settings_map("blue")}}, "one");
    co_await reporter_bed.create(app);
    co_await reporter_bed.sync(app, commit.id);
    CO_ASSERT_TRUE(co_await reporter_bed.settled(app, commit.id));

    CO_ASSERT_EQ(co_await reporter_bed.reporter->stop(), 0);
    const auto seen = reporter_bed.platform.reports().size();
    reporter_bed.start_reporter();
    CO_ASSERT_TRUE(co_await reporter_bed.reporter->wait_for_readyz("ready\n"));
    co_await reporter_bed.aside([&] {
      reporter_bed.bed.cluster().kubectl_ok({"-n", kNamespace, "label", "applications.argoproj.io",
                                             app.name, "--overwrite", "team=after"});
    });
    const auto* relabelled = co_await reporter_bed.platform.wait_for(
        [&](const FakePlatform::Report& report) {
          return report.name() == app.name &&
                 report.object.value("/metadata/labels/team"_json_pointer, "") == "after";
        },
        soon(kEventLimit), seen);
    CO_ASSERT_TRUE(relabelled != nullptr);
    CO_ASSERT_TRUE(co_await reporter_bed.quiet());
    EXPECT_THAT(reporter_bed.platform.find("ConfigMap", "settings", seen), IsEmpty());
  });
}

TEST(EventReporterPeers, HoldsTheLeasesOfItsShardsWithThePermissionsOfTheChart) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, [](ReporterBed& reporter_bed) -> Task<> {
    reporter_bed.replicas = 2;
    co_await reporter_bed.start();
    // Nobody runs the other pod's program, so this one stands in for it.
    const auto held = [&](std::string shard) -> Task<bool> {
      const auto deadline = soon(kEventLimit);
      while (Clock::now() < deadline) {
        const auto holder = co_await reporter_bed.aside([&reporter_bed, shard] {
          return reporter_bed.bed.cluster()
              .kubectl({"-n", kNamespace, "get", "lease", "event-reporter-app-" + shard, "-o",
                        "jsonpath={.spec.holderIdentity}"})
              .out;
        });
        if (!holder.empty()) co_return true;
        co_await sleep_for(std::chrono::milliseconds(200));
      }
      co_return false;
    };
    CO_ASSERT_TRUE(co_await held("0"));
    CO_ASSERT_TRUE(co_await held("1"));
    EXPECT_THAT(reporter_bed.reporter->log(), Not(HasSubstr("forbidden")));
    CO_ASSERT_EQ(co_await reporter_bed.reporter->stop(), 0);
    for (const auto* shard : {"0", "1"}) {
      const auto name = std::string("event-reporter-app-") + shard;
      const auto lease = co_await reporter_bed.live(kNamespace, "lease", name);
      EXPECT_EQ(lease.at("spec").value("holderIdentity", ""), "") << name;
    }
    reporter_bed.bed.cluster().kubectl_ok(
        {"-n", kNamespace, "delete", "lease", "event-reporter-app-0", "event-reporter-app-1"});
  });
}

TEST(EventReporterPeers, SaysWhichRightItLacksAndRecovers) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, [](ReporterBed& reporter_bed) -> Task<> {
    CO_ASSERT_OK(reporter_bed.platform.start());
    reporter_bed.install();
    reporter_bed.bed.cluster().kubectl_ok(
        {"delete", "clusterrolebinding", "argocd-runtime-event-reporter"});
    reporter_bed.start_reporter();
    CO_ASSERT_TRUE(co_await reporter_bed.reporter->wait_for_readyz("403 Forbidden"));
    EXPECT_THAT(reporter_bed.reporter->last_readyz(),
                AllOf(HasSubstr("applications: "),
                      HasSubstr("system:serviceaccount:argocd:runtime-event-reporter")));
    reporter_bed.helm();
    CO_ASSERT_TRUE(co_await reporter_bed.reporter->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporterPeers, AnApplicationAndItsResourcesAreReported) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, reports_an_application_and_its_resources);
}

TEST(EventReporterPeers, ACommitIsReported) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, reports_a_commit);
}

TEST(EventReporterPeers, WhatIsRemovedIsReportedAsGone) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, reports_what_is_removed);
}

TEST(EventReporterPeers, AnApplicationRemovedAloneIsReported) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, reports_an_application_removed_alone);
}

TEST(EventReporterPeers, ArgoCdIsReadTwicePerEvent) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(ArgoCdRelease::v3_2, reads_argocd_twice_per_event);
}

}  // namespace
}  // namespace gitops::test
