#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/encoding.hpp"
#include "peers/peer_cluster.hpp"
#include "peers/reporter_bed.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

// The event-reporter while the programs around it fail, are slow, or are restored from a backup.
namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::Lt;

constexpr const char* kNamespace = ReporterBed::kNamespace;
constexpr auto kLimit = 300s;
constexpr const char* kOwnCluster = "https://kubernetes.default.svc";

// An Application that nobody syncs until a test asks for it.
json application(const ReporterBed::App& repository, const std::string& name,
                 const std::string& revision = "main", const std::string& server = kOwnCluster) {
  return {{"metadata", {{"name", name}, {"namespace", kNamespace}}},
          {"spec",
           {{"project", "default"},
            {"destination", {{"server", server}, {"namespace", repository.name}}},
            {"source",
             {{"repoURL", repository.repo_url}, {"path", "."}, {"targetRevision", revision}}}}}};
}

std::string application_path(const std::string& name) {
  return "/apis/argoproj.io/v1alpha1/namespaces/" + std::string(kNamespace) + "/applications/" +
         name;
}

// Writes a value into the label `change`, which is one more state to report.
void change(const ReporterBed& reporter_bed, const std::string& name, const std::string& value) {
  const json patch = {{"metadata", {{"labels", {{"change", value}}}}}};
  const auto reply = reporter_bed.bed.cluster().request(
      "PATCH", application_path(name), patch.dump(), "application/merge-patch+json");
  if (!reply.ok()) throw std::runtime_error("patch " + name + ": " + reply.body);
}

void remove(const ReporterBed& reporter_bed, const std::string& name) {
  const auto reply = reporter_bed.bed.cluster().request("DELETE", application_path(name));
  if (!reply.ok()) throw std::runtime_error("delete " + name + ": " + reply.body);
}

json read(const ReporterBed& reporter_bed, const std::string& name) {
  return json::parse(reporter_bed.bed.cluster().request("GET", application_path(name)).body);
}

auto is_application(std::string name) {
  return [name = std::move(name)](const FakePlatform::Report& report) {
    return report.kind() == "Application" && report.name() == name;
  };
}

auto has_change(std::string name, std::string value) {
  return [is = is_application(std::move(name)),
          value = std::move(value)](const FakePlatform::Report& report) {
    return is(report) && report.object.value("/metadata/labels/change"_json_pointer, "") == value;
  };
}

bool is_gone(const FakePlatform::Report& report) {
  return report.source("desiredManifest").empty() && report.source("actualManifest").empty();
}

// A repository with this commit, and its namespace.
Task<ReporterBed::App> make_source(ReporterBed& reporter_bed, std::string name, FileChanges files) {
  const auto app = reporter_bed.make_repository(name);
  co_await reporter_bed.commit(app, std::move(files), "one");
  co_await reporter_bed.aside([&reporter_bed, app] {
    reporter_bed.bed.cluster().create_namespace(app.name);
    reporter_bed.bed.argocd().add_repository(reporter_bed.bed.git(), app.name);
  });
  co_return app;
}

Task<> create(ReporterBed& reporter_bed, std::vector<json> applications) {
  co_await reporter_bed.aside([&reporter_bed, applications = std::move(applications)] {
    for (const auto& one : applications) reporter_bed.bed.argocd().create_application(one.dump());
  });
}

// A proxy in the way may answer 400 to everything. No such answer acknowledges an event.
TEST(ReporterFaultsPeers, NothingIsLostWhileEverythingIsRefused) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(
      ArgoCdRelease::v3_2,
      [](ReporterBed& reporter_bed) -> Task<> {
        co_await reporter_bed.start();
        const auto source = co_await make_source(reporter_bed, "refused",
                                                 {{"settings.yaml", settings_map("blue")}});
        std::vector<std::string> names;
        std::vector<json> applications;
        for (std::size_t i = 0; i < 10; ++i) {
          names.push_back("refused-" + std::to_string(i));
          applications.push_back(application(source, names.back()));
        }
        co_await create(reporter_bed, std::move(applications));
        for (const auto& name : names) {
          CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(is_application(name),
                                                                 soon(kEventLimit)) != nullptr);
        }
        CO_ASSERT_TRUE(co_await reporter_bed.quiet());
        const auto first = reporter_bed.platform.reports().size();

        reporter_bed.platform.fail_next(1'000'000, 400);
        for (std::size_t i = 0; i < 50; ++i) {
          co_await reporter_bed.aside([&reporter_bed, &names, i] {
            change(reporter_bed, names.at(i % 5), std::to_string(i));
            if (i % 10 == 9) remove(reporter_bed, names.at(5 + i / 10));
          });
          co_await sleep_for(1200ms);
        }
        EXPECT_EQ(reporter_bed.platform.reports().size(), first);
        reporter_bed.platform.end_faults();
        const auto deadline = soon(kEventLimit);
        for (std::size_t i = 0; i < 5; ++i) {
          EXPECT_NE(co_await reporter_bed.platform.wait_for(
                        has_change(names.at(i), std::to_string(45 + i)), deadline, first),
                    nullptr)
              << names.at(i);
          EXPECT_NE(co_await reporter_bed.platform.wait_for(
                        [is = is_application(names.at(5 + i))](const FakePlatform::Report& report) {
                          return is(report) && is_gone(report);
                        },
                        deadline, first),
                    nullptr)
              << names.at(5 + i);
        }
      },
      kLimit);
}

// Without the manifests of Git and without the cluster, Argo CD lists no resources. That does not
// mean that they were deleted.
TEST(ReporterFaultsPeers, AComparisonThatFailedTellsNoDeletion) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(
      ArgoCdRelease::v3_2,
      [](ReporterBed& reporter_bed) -> Task<> {
        PeerCluster managed;
        managed.create_namespace("compared");
        co_await reporter_bed.start();
        const auto source = co_await make_source(
            reporter_bed, "compared",
            {{"settings.yaml", settings_map("blue")}, {"web.yaml", deployment(1)}});
        const json config = {
            {"bearerToken", managed.admin_token()},
            {"tlsClientConfig", {{"caData", base64_encode(read_file(managed.ca_file()))}}}};
        reporter_bed.bed.cluster().apply(
            json({{"apiVersion", "v1"},
                  {"kind", "Secret"},
                  {"metadata",
                   {{"name", "cluster-compared"},
                    {"namespace", kNamespace},
                    {"labels", {{"argocd.argoproj.io/secret-type", "cluster"}}}}},
                  {"stringData",
                   {{"name", "far"}, {"server", managed.server_url()}, {"config", config.dump()}}}})
                .dump());
        co_await create(reporter_bed,
                        {application(source, "compared", "main", managed.server_url())});
        co_await reporter_bed.aside([&reporter_bed] {
          reporter_bed.bed.argocd().sync("compared");
          EXPECT_TRUE(reporter_bed.bed.argocd().wait_for("compared", "Synced", "Healthy", 60s));
        });
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(
                           [](const FakePlatform::Report& report) {
                             return report.kind() == "Deployment" && !is_gone(report);
                           },
                           soon(kEventLimit)) != nullptr);
        CO_ASSERT_TRUE(co_await reporter_bed.quiet());
        const auto first = reporter_bed.platform.reports().size();

        reporter_bed.bed.argocd().process("argocd-repo-server").kill();
        managed.stop_api_server(PeerCluster::Stop::kill);
        reporter_bed.bed.argocd().restart("argocd-application-controller");
        co_await reporter_bed.aside([&reporter_bed] {
          reporter_bed.bed.cluster().kubectl_ok({"-n", kNamespace, "annotate",
                                                 "applications.argoproj.io", "compared",
                                                 "argocd.argoproj.io/refresh=hard"});
          require_until(
              [&reporter_bed] {
                const auto app = read(reporter_bed, "compared");
                return app.value("/status/resources"_json_pointer, json::array()).empty() &&
                       app.value("/status/conditions"_json_pointer, json())
                           .dump()
                           .contains("ComparisonError");
              },
              60s, "an Application without resources and with a ComparisonError");
        });
        // A report of that very state: the label is written after it.
        co_await reporter_bed.aside(
            [&reporter_bed] { change(reporter_bed, "compared", "while-unknown"); });
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(
                           has_change("compared", "while-unknown"), soon(kEventLimit), first) !=
                       nullptr);
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_until_quiet(1s, soon(kEventLimit)));
        for (const auto* kind : {"Deployment", "ConfigMap"}) {
          for (const auto* report : reporter_bed.platform.find(kind, "", first)) {
            EXPECT_FALSE(is_gone(*report)) << kind;
          }
        }

        // After recovery the truth is reported: the ConfigMap leaves Git and the cluster.
        const auto second = reporter_bed.platform.reports().size();
        reporter_bed.bed.argocd().restart("argocd-repo-server");
        managed.start_api_server();
        co_await reporter_bed.commit(source, {{"settings.yaml", std::nullopt}}, "without settings");
        co_await reporter_bed.aside([&reporter_bed] {
          require_until(
              [&reporter_bed] {
                const auto& argocd = reporter_bed.bed.argocd();
                return argocd.request("GET", "/api/v1/applications/compared?refresh=hard").ok() &&
                       argocd
                           .request("POST", "/api/v1/applications/compared/sync",
                                    R"({"prune":true})")
                           .ok();
              },
              60s, "a sync after the recovery", 500ms);
        });
        EXPECT_NE(co_await reporter_bed.platform.wait_for(
                      [](const FakePlatform::Report& report) {
                        return report.kind() == "ConfigMap" && is_gone(report);
                      },
                      soon(kEventLimit), second),
                  nullptr);
      },
      kLimit);
}

// Forty applications whose commits cannot be read, and one that needs no commit: it is reported as
// if it were alone.
TEST(ReporterFaultsPeers, SlowApplicationsDoNotDelayAHealthyOne) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(
      ArgoCdRelease::v3_2,
      [](ReporterBed& reporter_bed) -> Task<> {
        constexpr int kSlow = 40;
        reporter_bed.settings["threadiness"] = "16";
        co_await reporter_bed.start();
        const auto source =
            co_await make_source(reporter_bed, "paced", {{"settings.yaml", settings_map("blue")}});
        co_await create(reporter_bed, {application(source, "quick")});
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(
                           [](const FakePlatform::Report& report) {
                             return is_application("quick")(report) &&
                                    report.object.contains("/status/sync/revision"_json_pointer);
                           },
                           soon(kEventLimit)) != nullptr);

        // Nothing is gathered while the control plane is away, so the commits stay unread.
        reporter_bed.platform.fail_next(1'000'000, 503);
        std::vector<json> slow;
        for (int i = 0; i < kSlow; ++i) {
          const auto commit = co_await reporter_bed.commit(
              source, {{"settings.yaml", settings_map(std::to_string(i))}}, std::to_string(i));
          slow.push_back(application(source, "slow-" + std::to_string(i), commit.id));
        }
        co_await create(reporter_bed, std::move(slow));
        co_await reporter_bed.aside([&reporter_bed] {
          require_until(
              [&reporter_bed] {
                for (int i = 0; i < kSlow; ++i) {
                  const auto app = read(reporter_bed, "slow-" + std::to_string(i));
                  if (app.value("/status/sync/revision"_json_pointer, "").empty()) return false;
                }
                return true;
              },
              60s, "the comparison of all applications", 500ms);
        });
        const auto first = reporter_bed.platform.reports().size();
        reporter_bed.bed.argocd().process("argocd-repo-server").signal(SIGSTOP);
        reporter_bed.platform.end_faults();
        CO_ASSERT_TRUE(
            co_await reporter_bed.reporter->wait_for_log("the control plane takes events again"));

        std::vector<Clock::duration> delays;
        for (int i = 0; i < 100; ++i) {
          const auto value = std::to_string(i);
          const auto begin = Clock::now();
          co_await reporter_bed.aside(
              [&reporter_bed, value] { change(reporter_bed, "quick", value); });
          CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(
                             has_change("quick", value), soon(kEventLimit), first) != nullptr);
          delays.push_back(Clock::now() - begin);
        }
        reporter_bed.bed.argocd().process("argocd-repo-server").signal(SIGCONT);
        std::ranges::sort(delays);
        EXPECT_THAT(delays.at(98), Lt(1s)) << "the 99th of 100 delays";
        for (int i = 0; i < kSlow; ++i) {
          const auto name = "slow-" + std::to_string(i);
          EXPECT_NE(co_await reporter_bed.platform.wait_for(is_application(name), soon(kEventLimit),
                                                            first),
                    nullptr)
              << name;
        }
      },
      kLimit);
}

// After the restore the cluster gives out revisions that were seen before, for other states. The
// last test, since Argo CD keeps what it knew of the lost states.
TEST(ReporterFaultsPeers, ChangesAfterARestoreOfEtcdAreReported) {
  GITOPS_REQUIRE_PEER(ReporterBed);
  play(
      ArgoCdRelease::v3_2,
      [](ReporterBed& reporter_bed) -> Task<> {
        co_await reporter_bed.start();
        const auto source = co_await make_source(reporter_bed, "restored",
                                                 {{"settings.yaml", settings_map("blue")}});
        co_await create(reporter_bed, {application(source, "restored")});
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(is_application("restored"),
                                                               soon(kEventLimit)) != nullptr);
        CO_ASSERT_TRUE(co_await reporter_bed.quiet());
        reporter_bed.bed.cluster().back_up_etcd();
        for (int i = 0; i < 20; ++i) {
          co_await reporter_bed.aside(
              [&reporter_bed, i] { change(reporter_bed, "restored", std::to_string(i)); });
        }
        CO_ASSERT_TRUE(co_await reporter_bed.platform.wait_for(has_change("restored", "19"),
                                                               soon(kEventLimit)) != nullptr);
        const auto first = reporter_bed.platform.reports().size();
        reporter_bed.bed.cluster().restore_etcd();
        for (int i = 0; i < 3; ++i) {
          const auto value = "after-" + std::to_string(i);
          co_await reporter_bed.aside(
              [&reporter_bed, value] { change(reporter_bed, "restored", value); });
          EXPECT_NE(co_await reporter_bed.platform.wait_for(has_change("restored", value),
                                                            soon(kEventLimit), first),
                    nullptr)
              << value;
        }
      },
      kLimit);
}

}  // namespace
}  // namespace gitops::test
