#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "doubles/event_checks.hpp"
#include "doubles/fake_argocd.hpp"
#include "e2e/reporter_harness.hpp"
#include "support/git_server.hpp"
#include "support/wait.hpp"
#include "support/yaml_manifests.hpp"

// The real event-reporter between doubles of Kubernetes, Argo CD and the control plane.
namespace gitops::test {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// A Git repository in a folder, committed to by the git program.
class Repository {
 public:
  Repository() { git({"init", "--quiet", "--initial-branch=main"}); }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }
  std::string commit(const FileChanges& changes, const std::string& message) {
    for (const auto& [name, content] : changes) {
      if (content) {
        write_file(folder_ / name, *content);
      } else {
        std::filesystem::remove(folder_ / name);
      }
    }
    git({"add", "--all"});
    git({"commit", "--quiet", "--message", message});
    return git({"rev-parse", "HEAD"});
  }

  std::string git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "git");
    auto environment = isolated_git_environment(folder_.path());
    for (const auto* who : {"GIT_AUTHOR_", "GIT_COMMITTER_"}) {
      environment[std::string(who) + "NAME"] = "Dana Levi";
      environment[std::string(who) + "EMAIL"] = "dana@example.com";
    }
    return run_or_throw(arguments, environment, {}, std::chrono::seconds(20), folder_.path());
  }

 private:
  TempDir folder_;
};

std::string deployment(int replicas) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: " +
         std::to_string(replicas) +
         "\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: "
         "web}}\n"
         "    spec: {containers: [{name: web, image: 'example.com/web:1'}]}\n";
}

std::string config_map(const std::string& name) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  k: v\n";
}

TEST(EventReporter, ACommitBecomesEvents) {
  play([](ReporterHarness& harness) -> Task<> {
    const auto started = utc_now();
    Repository repository;
    const auto first = repository.commit({{"web.yaml", deployment(2)},
                                          {"one.yaml", config_map("one")},
                                          {"two.yaml", config_map("two")}},
                                         "two replicas");
    co_await harness.start();
    CO_ASSERT_OK(co_await harness.argocd.create_app(
        {.name = "guestbook", .repo_url = repository.path(), .destination_namespace = "shop"}));
    CO_ASSERT_OK(co_await harness.argocd.sync("guestbook"));
    const auto* synced = co_await harness.platform.wait_for(
        [](const FakePlatform::Report& report) {
          return report.kind() == "Deployment" && report.source("syncStatus") == "Synced";
        },
        soon());
    CO_ASSERT_TRUE(synced != nullptr);
    EXPECT_EQ(synced->source("revision"), first);
    CO_ASSERT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::seconds(1), soon()));
    EXPECT_EQ(harness.platform.reports()[0].kind(), "Application");
    for (const auto* name : {"web", "one", "two"}) {
      EXPECT_THAT(harness.platform.find("", name), Not(IsEmpty())) << name;
    }

    // The replica count changes.
    auto seen = harness.platform.reports().size();
    const auto second = repository.commit({{"web.yaml", deployment(3)}}, "three replicas");
    CO_ASSERT_OK(co_await harness.argocd.sync("guestbook"));
    const auto* scaled = co_await harness.platform.wait_for(
        [&](const FakePlatform::Report& report) {
          return report.kind() == "Deployment" && report.source("syncStatus") == "Synced" &&
                 report.source("revision") == second;
        },
        soon(), seen);
    CO_ASSERT_TRUE(scaled != nullptr);
    CO_ASSERT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::seconds(1), soon()));
    const auto app = *harness.kube.find(k8s::resources::kApplications, {"argocd", "guestbook"});
    const ApplicationFacts facts{
        .application = app,
        .tree = {{"nodes", json::array({{{"group", "apps"},
                                         {"kind", "Deployment"},
                                         {"namespace", "shop"},
                                         {"name", "web"},
                                         {"health", {{"status", "Healthy"}}}}})}},
        .commit =
            CommitFacts::read([&](auto arguments) { return repository.git(arguments); }, second),
        .not_before = started};
    EXPECT_EQ(facts.commit.message, "three replicas");
    expect_application_event(*harness.platform.find("Application", "guestbook", seen).back(),
                             facts);
    expect_resource_event(*harness.platform.find("Deployment", "web", seen).back(), facts,
                          desired_state(parse_manifests(deployment(3)).value().at(0), app),
                          *harness.kube.find(k8s::resources::kDeployments, {"shop", "web"}));
    for (const auto* name : {"one", "two"}) {
      EXPECT_THAT(harness.platform.find("ConfigMap", name, seen), IsEmpty()) << name;
    }

    // A resource is removed from Git.
    seen = harness.platform.reports().size();
    repository.commit({{"two.yaml", std::nullopt}}, "one is enough");
    CO_ASSERT_OK(co_await harness.argocd.sync("guestbook"));
    const auto* gone = co_await harness.platform.wait_for(
        [](const FakePlatform::Report& report) {
          return report.name() == "two" && report.source("actualManifest").empty() &&
                 report.source("desiredManifest").empty();
        },
        soon(), seen);
    CO_ASSERT_TRUE(gone != nullptr);

    // The application is deleted, with its resources.
    CO_ASSERT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::seconds(1), soon()));
    seen = harness.platform.reports().size();
    CO_ASSERT_OK(harness.argocd.delete_app("guestbook"));
    for (const auto* name : {"guestbook", "web", "one"}) {
      const auto* deleted = co_await harness.platform.wait_for(
          [&](const FakePlatform::Report& report) {
            return report.name() == name && report.source("actualManifest").empty();
          },
          soon(), seen);
      EXPECT_NE(deleted, nullptr) << name;
    }
    EXPECT_THAT(harness.platform.refused(), IsEmpty());
    EXPECT_EQ(harness.platform.reports()[0].headers.find("User-Agent"),
              "gitops-event-reporter/1.2.3");
  });
}

TEST(EventReporter, AnApplicationDeletedWithoutFinalizerIsReported) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.put_app("plain", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("plain", 1));
    CO_ASSERT_TRUE(harness.kube.remove(k8s::resources::kApplications, {"argocd", "plain"}));
    CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(4, soon()));
    EXPECT_THAT(harness.events(2), ElementsAre("Application plain gone", "ConfigMap plain-c gone"));
  });
}

TEST(EventReporter, ArgoCdIsReadTwicePerEvent) {
  play([](ReporterHarness& harness) -> Task<> {
    Repository small;
    Repository big;
    FileChanges five;
    FileChanges hundred;
    for (int i = 0; i < 100; ++i) {
      const auto name = "c-" + std::to_string(i);
      hundred[name + ".yaml"] = config_map("big-" + name);
      if (i < 5) five[name + ".yaml"] = config_map("small-" + name);
    }
    small.commit(five, "five");
    big.commit(hundred, "a hundred");
    co_await harness.start();
    for (const auto& [name, repository, count] :
         {std::tuple{"small", &small, 5}, std::tuple{"big", &big, 100}}) {
      const auto before = harness.argocd.reads();
      const auto seen = harness.platform.reports().size();
      CO_ASSERT_OK(co_await harness.argocd.create_app(
          {.name = name, .repo_url = repository->path(), .destination_namespace = "shop"}));
      CO_ASSERT_TRUE(co_await harness.platform.wait_for_count(
          seen + static_cast<std::size_t>(count) + 1, soon()));
      // Long enough for the last state on a busy machine; what comes later would count for the next.
      CO_ASSERT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::seconds(2), soon()));
      const auto after = harness.argocd.reads();
      // Once for each state that is looked at, however many resources there are: its first, its
      // last, and one between them. States may have the same content for the platform, which is
      // then told once. States that a newer one supersedes need no managed resources.
      const auto reads = after.tree - before.tree;
      const auto reports = harness.platform.find("Application", name, seen).size();
      EXPECT_GE(reports, 1U) << name;
      EXPECT_GE(reads, reports) << name;
      EXPECT_LE(reads, 3U) << name;
      EXPECT_GE(after.managed - before.managed, 1U) << name;
      EXPECT_LE(after.managed - before.managed, reads) << name;
      EXPECT_EQ(after.revisions - before.revisions, 1U) << name << ": a commit not seen before";
    }
  });
}

TEST(EventReporter, ARestartReportsWhatIsThere) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
    harness.put_app("web", 2);
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    EXPECT_EQ(harness.daemon->get_main("/healthz").status, 200);
    EXPECT_EQ(harness.daemon->get_main("/nothing").status, 404);
  });
}

// -- bad input --

TEST(EventReporter, AC24_AC25_MalformedApplicationsAreSetAsideWhileOthersGoOn) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    const auto& applications = k8s::resources::kApplications;
    harness.kube.refuse_streaming_lists(true);  // they have no such item
    harness.kube.add_list_item(applications, R"({"metadata":{"name":7,"namespace":"argocd"}})");
    harness.put_app("first", 1);
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.wait_for_content("first", 1));

    std::string deep =
        R"({"type":"ADDED","object":{"metadata":{"name":"deep","namespace":"argocd",)"
        R"("uid":"u","resourceVersion":"9"},"spec":)";
    for (int i = 0; i < 5000; ++i) deep += "[";
    for (int i = 0; i < 5000; ++i) deep += "]";
    deep += "}}\n";
    const std::string big = R"({"type":"ADDED","object":{"metadata":{"name":"big","namespace":)"
                            R"("argocd","uid":"u","resourceVersion":"9"},"spec":")" +
                            std::string(8'500'000, 'x') + "\"}}\n";
    for (const std::string& line : std::initializer_list<std::string>{
             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"cut\n",
             "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":[],\"namespace\":7}}}\n",
             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\xfe\",\"namespace\":"
             "\"argocd\",\"uid\":\"u\",\"resourceVersion\":\"9\"}}}\n",
             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"name\":\"b\","
             "\"namespace\":\"argocd\",\"uid\":\"u\",\"resourceVersion\":\"9\"}}}\n",
             "{\"type\":\"ADDED\",\"object\":null}\n", "nonsense\n", deep, big}) {
      harness.kube.send_on_watches(applications, line);
    }
    harness.put_app("second", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("second", 1));
    harness.put_app("first", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("first", 2));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    const auto metrics = harness.daemon->get("/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("gitops_event_reporter_watch_quarantined_total{resource="
                                   "\"applications\"} 9\n"));
    // Those without a name are logged once a minute together.
    const auto log = harness.daemon->log();
    for (const auto* reason :
         {R"("object":"argocd/a","reason":"metadata.name appears twice")",
          R"("object":"argocd/deep","reason":"nested deeper than 256")",
          R"("object":"argocd/big","reason":")", R"("reason":"invalid UTF-8")"}) {
      EXPECT_THAT(log, HasSubstr(reason));
    }
  });
}

TEST(EventReporter, AWrongConfigurationPrintsEveryMistake) {
  const auto result = run_command(
      {std::string(GITOPS_BIN_DIR) + "/event-reporter"},
      {{"REPORTER_MODE", "both"}, {"APP_QUEUE_SIZE", "none"}, {"CODEFRESH_TOKEN", "canary"}});
  EXPECT_THAT(result.err, HasSubstr("REPORTER_MODE"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("APP_QUEUE_SIZE"));
  const auto rules = run_command({std::string(GITOPS_BIN_DIR) + "/event-reporter"},
                                 {{"REPORTER_MODE", "resource"},
                                  {"REPORT_KINDS", "rollouts,pods"},
                                  {"EVENT_REPORTER_REPLICAS", "3"},
                                  {"EVENT_REPORTER_SHARD", "7"},
                                  {"CODEFRESH_URL", "platform"},
                                  {"ARGOCD_SERVER", "argo cd"},
                                  {"CODEFRESH_TOKEN", "canary"}});
  EXPECT_EQ(rules.exit_code, 2);
  for (const auto* part : {"REPORT_KINDS", "pods", "shard 7", "CODEFRESH_URL", "ARGOCD_SERVER"}) {
    EXPECT_THAT(rules.err, HasSubstr(part));
  }
  EXPECT_THAT(rules.err + result.err, Not(HasSubstr("canary")));
}

TEST(EventReporter, AnUnreachableApiServerIsToldAndRecovers) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    co_await harness.kube.stop();
    harness.start_daemon();
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("applications"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("refused"));
    CO_ASSERT_OK(harness.kube.start());
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporter, AnUnreachableArgoCdIsToldAndRecovers) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    co_await harness.argocd.stop();
    harness.start_daemon();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("argocd"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("refused"));
    CO_ASSERT_OK(harness.argocd.start());
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporter, AnUnreachablePlatformIsToldAndRecovers) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    co_await harness.platform.stop();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("platform"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("refused"));
    CO_ASSERT_OK(harness.platform.start());
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

// The daemon rejects a peer's certificate until it trusts the issuing authority.
void play_untrusted(Tls tls, const std::string& check) {
  play(tls, [check](ReporterHarness& harness) -> Task<> {
    write_file(harness.folder / "ca.crt", read_file(harness.stranger.ca_file()));
    co_await harness.start_doubles();
    harness.start_daemon();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_log("certificate"));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("certificate"));
    EXPECT_THAT(harness.daemon->last_readyz(), HasSubstr(check + ": "));
    EXPECT_THAT(harness.events(), IsEmpty());
    write_file(harness.folder / "ca.crt", read_file(harness.authority.ca_file()));
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporter, AnUntrustedApiServerIsToldAndRecovers) {
  play_untrusted({.kubernetes = true}, "applications");
}
TEST(EventReporter, AnUntrustedArgoCdIsToldAndRecovers) {
  play_untrusted({.argocd = true}, "argocd");
}
TEST(EventReporter, AnUntrustedPlatformIsToldAndRecovers) {
  play_untrusted({.platform = true}, "platform");
}

TEST(EventReporter, ARotatedPlatformTokenIsPickedUp) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    harness.platform.set_token("another-canary-token");
    write_file(harness.folder / "platform-token", "another-canary-token\n");
    harness.put_app("web", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    EXPECT_THAT(harness.daemon->log(), Not(HasSubstr("canary")));
  });
}

// Argo CD is in the namespace argocd, as its Applications are; the runtime has one of its own.
TEST(EventReporter, AnArgoCdInAnotherNamespaceHasItsApplicationsReported) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.kube.put_secret({"gitops", "argocd-token"}, {{"token", kArgoCdToken}});
    harness.start_daemon({{"POD_NAMESPACE", "gitops"},
                          {"ARGOCD_NAMESPACE", "argocd"},
                          {"ARGOCD_APPLICATION_NAMESPACES", "gitops"}});
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
  });
}

TEST(EventReporter, APasswordIsAsGoodAsATokenForArgoCd) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.start_daemon(
        {{"ARGO_CD_TOKEN_SECRET_NAME", std::nullopt}, {"ARGO_CD_PASSWORD", "argocd-password"}});
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    // The session expires.
    harness.argocd.set_token("another.canary.token");
    harness.put_app("web", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    EXPECT_EQ(harness.argocd.count("POST", "/api/v1/session"), 2U);
    EXPECT_THAT(harness.daemon->log(),
                Not(AnyOf(HasSubstr("canary"), HasSubstr("argocd-password"))));
  });
}

TEST(EventReporter, AWrongPasswordIsTriedOnceAndTold) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.put_app("web", 1);
    harness.start_daemon(
        {{"ARGO_CD_TOKEN_SECRET_NAME", std::nullopt}, {"ARGO_CD_PASSWORD", "canary-password"}});
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("Invalid username or password"));
    // Several attempts to report, but only one to log in.
    const auto give_up = soon();
    while (harness.argocd.reads().total() < 6 && Clock::now() < give_up) {
      co_await sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_GE(harness.argocd.reads().total(), 6U);
    EXPECT_EQ(harness.argocd.count("POST", "/api/v1/session"), 1U);
    EXPECT_THAT(harness.daemon->log(), Not(HasSubstr("canary")));
  });
}

// A login without a password is refused, and after a refusal the next one is minutes later.
TEST(EventReporter, ThePasswordForArgoCdMayComeLater) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.put_app("web", 1);
    const auto file = harness.folder / "argocd-password";
    harness.start_daemon({{"ARGO_CD_TOKEN_SECRET_NAME", std::nullopt}},
                         {"--argocd-password-file", file.string()});
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz(file.string()));
    EXPECT_EQ(harness.argocd.count("POST", "/api/v1/session"), 0U);
    write_file(file, "argocd-password");
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    harness.put_app("web", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    EXPECT_EQ(harness.argocd.count("POST", "/api/v1/session"), 1U);
  });
}

TEST(EventReporter, NothingIsGatheredWhileTheControlPlaneIsAway) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    const auto before = harness.argocd.reads().total();
    // Long enough for several attempts at the application's own pace.
    harness.platform.fail_next(1, 503, std::chrono::seconds(3));
    harness.put_app("web", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    // Two reads for the failed attempt and two for the probe of the half-open circuit breaker.
    EXPECT_EQ(harness.argocd.reads().total() - before, 4U) << harness.daemon->log();
  });
}

// An event that the control plane refuses while it takes others is shown, and is sent again on
// command.
TEST(EventReporter, ARefusedEventIsShownAndSentAgainOnCommand) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.platform.refuse_events(
        [](const FakePlatform::Report& report) { return report.name() == "poisoned" ? 422 : 0; });
    harness.put_app("poisoned", 1);
    // Acknowledgements of others show that it is the event and not the way.
    const auto deadline = soon();
    for (int i = 1; harness.daemon->status().count("refused events", "count") != 1; ++i) {
      CO_ASSERT_TRUE(Clock::now() < deadline) << harness.daemon->status();
      harness.put_app("web", i);
      CO_ASSERT_TRUE(co_await harness.wait_for_content("web", i));
    }
    EXPECT_THAT(harness.daemon->get("/journal?object=argocd/poisoned").body, HasSubstr("422"));
    EXPECT_THAT(harness.daemon->get("/metrics").body,
                HasSubstr("gitops_event_reporter_refused_events 1"));

    harness.platform.refuse_events(nullptr);
    EXPECT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::milliseconds(500), soon()));
    EXPECT_THAT(harness.platform.find("Application", "poisoned"), IsEmpty());
    const auto log = harness.daemon->log();
    const std::string port = "\"admin_port\":";
    const auto at = log.find(port) + port.size();
    const auto retried =
        http_call({.method = "POST",
                   .url = "http://127.0.0.1:" + log.substr(at, log.find_first_of(",}", at) - at) +
                          "/refused/retry"});
    EXPECT_EQ(retried.status, 200);
    EXPECT_EQ(retried.body, "{\"events\":1}\n");
    EXPECT_NE(
        co_await harness.platform.wait_for(
            [](const FakePlatform::Report& report) { return report.name() == "poisoned"; }, soon()),
        nullptr);
    EXPECT_TRUE(co_await harness.platform.wait_until_quiet(std::chrono::milliseconds(500), soon()));
    EXPECT_FALSE(harness.daemon->status().has("refused events"));
  });
}

// The one test of the whole text; the others compare its entries.
TEST(EventReporter, ItsStatusAsTextHasALineForEachPart) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    harness.put_app("web", 1);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 1));
    CO_ASSERT_TRUE(co_await harness.daemon->wait_until_caught_up());
    const testing::Matcher<const std::string&> is_idle = testing::MatchesRegex(
        "event-reporter [0-9.]+\n"
        "up [0-9hms]+\n"
        "ready\n"
        "\n"
        "shards: all, no leases\n"
        "applications: 1\n"
        "queue: 0 of 1000 waiting, 0 in work, 0 overdue\n"
        "slow: [0-9]+ objects, 0 of 8 workers for them in use\n"
        "oldest unacknowledged change: 0s\n"
        "control plane: takes events, 0 of [0-9]+ under way\n"
        "last acknowledgement: 20[0-9T:-]+Z\n"
        "ledger: 1 applications, in memory only\n");
    auto text = harness.daemon->get("/statusz").body;
    const auto deadline = soon();
    while (!is_idle.Matches(text) && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(20));
      text = harness.daemon->get("/statusz").body;
    }
    EXPECT_THAT(text, is_idle);
  });
}

TEST(EventReporter, TheEndDoesNotWaitForArgoCd) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start_doubles();
    harness.start_daemon({{"DRAIN_TIMEOUT", "10m"}});
    CO_ASSERT_TRUE(co_await harness.daemon->wait_for_readyz("ready\n"));
    harness.argocd.delay_answers(std::chrono::minutes(10), "resource-tree");
    harness.put_app("web", 1);
    const auto deadline = soon();
    while (harness.argocd.count("GET", "resource-tree") == 0) {
      CO_ASSERT_TRUE(Clock::now() < deadline);
      co_await sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(co_await harness.daemon->stop(), 0);
  });
}

TEST(EventReporter, AC28_NoSecretLeavesTheDaemon) {
  play([](ReporterHarness& harness) -> Task<> {
    co_await harness.start();
    // A Secret that Argo CD did not mask.
    harness.put_app("web", 1);
    const json secret = {{"apiVersion", "v1"},
                         {"kind", "Secret"},
                         {"metadata", {{"name", "web-c"}, {"namespace", "shop"}}},
                         {"data", {{"password", base64_encode(std::string("canary-secret"))}}},
                         {"stringData", {{"plain", "canary-plain"}}}};
    auto app = *harness.kube.find(k8s::resources::kApplications, {"argocd", "web"});
    app["metadata"]["name"] = "secretive";
    app["metadata"]["uid"] = "uid-secretive";
    app["status"]["resources"][0]["kind"] = "Secret";
    harness.argocd.set_tree("secretive", {{"nodes", json::array()}});
    harness.argocd.set_managed_resources("secretive",
                                         json::array({{{"kind", "Secret"},
                                                       {"namespace", "shop"},
                                                       {"name", "web-c"},
                                                       {"targetState", secret.dump()},
                                                       {"liveState", secret.dump()}}}));
    harness.kube.put(k8s::resources::kApplications, app);
    const auto* report = co_await harness.platform.wait_for(
        [](const FakePlatform::Report& candidate) { return candidate.kind() == "Secret"; }, soon());
    CO_ASSERT_TRUE(report != nullptr);
    // Every peer refuses requests for a while, so that errors are logged.
    harness.kube.fail_next(3, 500);
    harness.argocd.fail_next(2, 401);
    harness.platform.fail_next(1, 500);
    harness.kube.cut_watches();
    harness.put_app("web", 2);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 2));
    harness.platform.fail_next(1, 401);
    harness.put_app("web", 3);
    CO_ASSERT_TRUE(co_await harness.wait_for_content("web", 3));

    std::string outputs = harness.daemon->log() + harness.daemon->command_line();
    for (const auto* path : {"/metrics", "/statusz", kStatusPath, "/readyz", "/healthz"}) {
      outputs += harness.daemon->get(path).body;
    }
    for (const auto& event : harness.platform.reports())
      outputs += event.data.dump() + event.object.dump();
    for (const std::string& canary :
         {std::string("canary"), base64_encode(std::string("canary-secret"))}) {
      EXPECT_THAT(outputs, Not(HasSubstr(canary)));
    }
    EXPECT_THAT(outputs, HasSubstr("++++++++"));
  });
}

}  // namespace
}  // namespace gitops::test
