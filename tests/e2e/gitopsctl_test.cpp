#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/gitopsctl_harness.hpp"
#include "support/test_certs.hpp"
#include "test_http/raw_http.hpp"

// The real gitopsctl between doubles of Kubernetes, Argo CD and the control plane.
namespace gitops::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

FakeKubeApi::Options with_tls(const Certificate& certificate) {
  FakeKubeApi::Options options{.token = "canary-kube-token"};
  options.server.tls.emplace();
  options.server.tls->certificate_file = certificate.cert_file;
  options.server.tls->key_file = certificate.key_file;
  return options;
}

// The rows of a report with this group and, if given, this name.
std::vector<json> rows(const json& report, const std::string& group, const std::string& name = {}) {
  std::vector<json> found;
  for (const json& row : report.value("rows", json::array())) {
    if (row["group"] == group && (name.empty() || row["name"] == name)) found.push_back(row);
  }
  return found;
}

json row(const json& report, const std::string& group, const std::string& name) {
  const auto found = rows(report, group, name);
  EXPECT_EQ(found.size(), 1U) << group << ' ' << name << " in " << report.dump(2);
  return found.empty() ? json::object() : found[0];
}

MATCHER_P(IsStatus, status, "") {
  return arg.value("status", "") == status;
}
MATCHER_P(IsReason, reason, "") {
  return arg.value("reason", "") == reason;
}

TEST(GitopsctlCheck, AllIsWell) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 0);
    EXPECT_EQ(report["status"], "ok");
    EXPECT_EQ(row(report, "kubernetes", "API server")["version"], "v1.36.3");
    EXPECT_THAT(row(report, "argocd", "argocd-server")["version"], StartsWith("v3.2"));
    EXPECT_EQ(row(report, "control_plane", "token")["message"], "accepted, of account double");
    EXPECT_THAT(rows(report, "rights"), Each(IsStatus("ok")));
    EXPECT_GE(rows(report, "rights", "cluster-event-reporter").size(), 4U);
    EXPECT_GT(harness.kube.count("POST", "selfsubjectaccessreviews"), 15U);
    EXPECT_EQ(harness.platform.reports().size(), 0U) << "a check reports nothing";

    const auto text = co_await harness.call({"check"});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.out, HasSubstr("  ok         API server   v1.36.3, "));
    EXPECT_THAT(text.out, HasSubstr("Rights  of double, in namespace default\n"));
    EXPECT_THAT(text.out, Not(HasSubstr("failed")));
    EXPECT_THAT(text.out, Not(HasSubstr("hint")));
  });
}

TEST(GitopsctlCheck, MissingPermissionsAreNamed) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.kube.set_access([](const FakeKubeApi::Access& access) {
      const bool watches_everywhere = access.verb == "watch" && access.ns.empty();
      return !watches_everywhere && access.name != "argocd-cm";
    });
    const auto report = co_await harness.call_json({"check", "-n", "gitops"});
    EXPECT_EQ(harness.exit_code, 1);
    EXPECT_EQ(report["status"], "failed");
    int failed = 0;
    for (const json& right : rows(report, "rights")) {
      const auto subject = right["subject"].get<std::string>();
      if (subject.contains("watch") && subject.ends_with("in all namespaces")) {
        ++failed;
        EXPECT_EQ(right["message"], "not allowed to watch");
        EXPECT_THAT(right["hint"], HasSubstr("a ClusterRole grants it"));
      } else if (subject == "get configmaps argocd-cm in namespace gitops") {
        ++failed;
        EXPECT_EQ(right["message"], "not allowed");
        EXPECT_THAT(right["hint"], HasSubstr("a Role in namespace gitops grants it"));
      } else {
        EXPECT_THAT(right, IsStatus("ok"));
      }
    }
    EXPECT_EQ(failed, 5);
    const auto confined =
        co_await harness.call_json({"check", "--single-namespace", "--timeout=20s"});
    EXPECT_EQ(confined["totals"]["failed"], 1);
  });
}

TEST(GitopsctlCheck, AFailedReadIsNotKnownAndNeverMissing) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.kube.fail_next(1000, 503, {}, "selfsubjectaccessreviews");
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 3);
    EXPECT_EQ(report["status"], "not_known");
    EXPECT_THAT(rows(report, "rights"),
                Each(AllOf(IsStatus("not_known"), IsReason("unavailable"))));
    const auto text = co_await harness.call({"check"});
    EXPECT_THAT(text.out, Not(HasSubstr("not allowed")));
  });
}

TEST(GitopsctlCheck, RefusedCredentialsAreToldApartFromPeersThatAreAway) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.kube.set_token("canary-new-kube-token");
    harness.argocd.set_token("canary.new.token");
    harness.platform.set_token("canary-new-platform-token");
    const auto refused = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 1);
    EXPECT_THAT(row(refused, "kubernetes", "API server"), IsStatus("ok"));
    EXPECT_THAT(row(refused, "kubernetes", "credentials"),
                AllOf(IsStatus("failed"), IsReason("unauthenticated")));
    EXPECT_THAT(rows(refused, "rights"), Each(AllOf(IsStatus("not_known"), IsReason("skipped"))));
    EXPECT_THAT(row(refused, "argocd", "argocd-server"), IsStatus("ok"));
    const auto argocd_token = row(refused, "argocd", "token");
    EXPECT_THAT(argocd_token, AllOf(IsStatus("failed"), IsReason("unauthenticated")));
    EXPECT_THAT(argocd_token["message"], HasSubstr("invalid session")) << "what Argo CD says";
    EXPECT_THAT(row(refused, "control_plane", "control plane"), IsStatus("ok"));
    EXPECT_THAT(row(refused, "control_plane", "token"),
                AllOf(IsStatus("failed"), IsReason("unauthenticated")));

    co_await harness.stop();
    const auto away = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 1);
    for (const auto& [group, name] :
         {std::pair{"kubernetes", "API server"}, std::pair{"argocd", "argocd-server"},
          std::pair{"control_plane", "control plane"}}) {
      EXPECT_THAT(row(away, group, name), AllOf(IsStatus("failed"), IsReason("unavailable")));
    }
    for (const auto& [group, name] :
         {std::pair{"kubernetes", "credentials"}, std::pair{"argocd", "token"},
          std::pair{"control_plane", "token"}}) {
      EXPECT_THAT(row(away, group, name), AllOf(IsStatus("not_known"), IsReason("skipped")));
    }
  });
}

TEST(GitopsctlCheck, AWeakTokenOfArgoCdIsNamed) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.argocd.set_may_get_applications(false);
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 1);
    EXPECT_THAT(row(report, "argocd", "token"), AllOf(IsStatus("failed"), IsReason("denied")));
  });
}

TEST(GitopsctlCheck, WhatIsNotConfiguredIsNotKnown) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    for (const char* name : {"ARGOCD_SERVER", "CODEFRESH_URL"}) {
      harness.environment[name] = std::nullopt;
    }
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 3);
    EXPECT_THAT(rows(report, "argocd"), Each(IsReason("not_configured")));
    EXPECT_THAT(rows(report, "control_plane"), Each(IsReason("not_configured")));

    harness.environment["ARGOCD_SERVER"] = harness.argocd.url().to_string();
    harness.environment["ARGOCD_TOKEN"] = std::nullopt;
    harness.environment["CODEFRESH_URL"] = harness.platform.url().to_string();
    harness.environment["CODEFRESH_TOKEN"] = std::nullopt;
    const auto without_tokens = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 3);
    EXPECT_THAT(row(without_tokens, "argocd", "argocd-server"), IsStatus("ok"));
    EXPECT_THAT(row(without_tokens, "argocd", "token"), IsReason("not_configured"));
    EXPECT_THAT(row(without_tokens, "control_plane", "control plane"), IsStatus("ok"));
    EXPECT_THAT(row(without_tokens, "control_plane", "token"), IsReason("not_configured"));
  });
}

TEST(GitopsctlCheck, AWrongKubeconfigIsNamedAndTheOtherPeersAreChecked) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    const auto report =
        co_await harness.call_json({"check", "--kubeconfig", harness.folder / "missing"});
    EXPECT_EQ(harness.exit_code, 1);
    const auto kubeconfig = row(report, "kubernetes", "kubeconfig");
    EXPECT_THAT(kubeconfig, IsStatus("failed"));
    EXPECT_THAT(kubeconfig["message"], HasSubstr((harness.folder / "missing").string()));
    EXPECT_THAT(rows(report, "rights"), Each(IsReason("skipped")));
    EXPECT_THAT(row(report, "argocd", "token"), IsStatus("ok"));
  });
}

TEST(GitopsctlCheck, CredentialsThatCannotBeObtainedAreNoFaultOfTheServer) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    for (const std::string user :
         {"exec: {apiVersion: client.authentication.k8s.io/v1, command: /missing/program, "
          "interactiveMode: Never}",
          "tokenFile: /missing/token"}) {
      auto text = harness.kube.kubeconfig();
      const std::string token = "token: \"canary-kube-token\"";
      text.replace(text.find(token), token.size(), user);
      write_file(harness.folder / "kubeconfig", text);
      const auto report = co_await harness.call_json({"check"});
      EXPECT_EQ(harness.exit_code, 1);
      EXPECT_THAT(row(report, "kubernetes", "API server"), IsReason("skipped"));
      const auto credentials = row(report, "kubernetes", "credentials");
      EXPECT_THAT(credentials, IsStatus("failed"));
      EXPECT_THAT(credentials["message"], HasSubstr("/missing/"));
      EXPECT_THAT(rows(report, "rights"), Each(IsReason("skipped")));
    }
    EXPECT_EQ(harness.kube.requests().size(), 0U);
  });
}

// As the plugins of cloud providers: the profile is in a variable of the person's own.
TEST(GitopsctlCheck, ExecPluginsSeeTheWholeEnvironment) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    auto text = harness.kube.kubeconfig();
    const std::string token = "token: \"canary-kube-token\"";
    text.replace(text.find(token), token.size(),
                 "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
                 "command: " +
                     (harness.folder / "plugin").string() + "}");
    write_file(harness.folder / "kubeconfig", text);
    write_file(harness.folder / "plugin",
               "#!/bin/sh\n[ \"$CLOUD_PROFILE\" = prod ] || { echo 'no profile' >&2; exit 4; }\n"
               "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
               "\"ExecCredential\",\"status\":{\"token\":\"canary-kube-token\"}}'\n");
    std::filesystem::permissions(harness.folder / "plugin", std::filesystem::perms::owner_all);

    const auto without = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 1);
    const auto refused = row(without, "kubernetes", "credentials");
    EXPECT_THAT(refused, IsStatus("failed"));
    EXPECT_THAT(refused["message"], HasSubstr("plugin: ended with exit code 4 (no profile)"));
    EXPECT_THAT(row(without, "kubernetes", "API server"), IsReason("skipped"));

    harness.environment["CLOUD_PROFILE"] = "prod";
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 0);
    EXPECT_EQ(row(report, "kubernetes", "credentials")["message"], "accepted as double");
  });
}

TEST(GitopsctlCheck, ServersThatNobodyVouchesForAreNotTrusted) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    CertificateAuthority authority;
    const auto executor = co_await asio::this_coro::executor;
    FakeKubeApi secure(
        executor, with_tls(authority.issue(
                      {.common_name = "kube", .organization = {}, .alt_names = {"127.0.0.1"}})));
    CO_ASSERT_OK(secure.start());
    write_file(harness.folder / "kubeconfig", secure.kubeconfig());
    const auto report = co_await harness.call_json({"check"});
    EXPECT_EQ(harness.exit_code, 1);
    EXPECT_THAT(row(report, "kubernetes", "API server"),
                AllOf(IsStatus("failed"), IsReason("tls")));
    EXPECT_EQ(secure.requests().size(), 0U);
    co_await secure.stop();
  });
}

TEST(GitopsctlCheck, APeerThatDoesNotAnswerCostsTheTimeoutAndNoMore) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.argocd.delay_answers(std::chrono::hours(1));
    const auto report = co_await harness.call_json({"check", "--timeout=3s"});
    EXPECT_EQ(harness.exit_code, 1);
    EXPECT_THAT(row(report, "argocd", "argocd-server"),
                AllOf(IsStatus("failed"), IsReason("timeout")));
    EXPECT_THAT(row(report, "argocd", "token"), IsReason("skipped"));
    EXPECT_THAT(rows(report, "control_plane"), Each(IsStatus("ok")));
    harness.argocd.end_faults();
  });
}

TEST(GitopsctlCheck, AnInterruptEndsItWhileItWaits) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.kube.delay_answers(std::chrono::hours(1));
    Process process({.argv = {std::string(GITOPS_BIN_DIR) + "/gitopsctl", "check"},
                     .env = harness.environment,
                     .log_file = harness.folder / "log"});
    const Deadline deadline = deadline_after(kTimeLimit);
    CO_ASSERT_TRUE(co_await harness.kube.wait_until(
        [&] { return !harness.kube.requests().empty(); }, deadline));
    process.signal(SIGINT);
    while (process.running() && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(process.wait(std::chrono::milliseconds(0)), 130);
    EXPECT_EQ(read_file(harness.folder / "log"), "");
    harness.kube.end_faults();
  });
}

TEST(GitopsctlCheck, LogLinesAreWrittenOnRequestAndHoldNoSecret) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    EXPECT_EQ((co_await harness.call({"check"})).err, "");
    co_await harness.call({"check", "--verbose"});  // call() checks for the secrets
  });
}

TEST(GitopsctlVersion, TellsTheClustersToo) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    const auto report = co_await harness.call_json({"version"});
    EXPECT_EQ(harness.exit_code, 0);
    EXPECT_EQ(report["schema"], "gitopsctl/version/v1");
    EXPECT_EQ(report["kubernetes"]["version"], "v1.36.3");
    const auto text = co_await harness.call({"version"});
    EXPECT_THAT(text.out, AllOf(StartsWith("gitopsctl   "), HasSubstr("\nKubernetes  v1.36.3  ")));

    co_await harness.kube.stop();
    const auto alone = co_await harness.call_json({"version"});
    EXPECT_EQ(harness.exit_code, 0) << "its own version is known";
    EXPECT_EQ(alone["gitopsctl"], report["gitopsctl"]);
    EXPECT_EQ(alone["kubernetes"]["reason"], "unavailable");
  });
}

TEST(GitopsctlWebhooks, ShowsWhatTheRouterKeepsAndWhatItLost) {
  const RecordingUpstream router("router", [](const RecordedRequest& request, RawSocket& socket) {
    if (request.target() != "/webhooks") return RecordingUpstream::reply(socket, "", "", "404 No");
    return RecordingUpstream::reply(socket, R"({"kept":2,"bytes":900,"oldest_seconds":41,
          "sources":[{"namespace":"argo","event_source":"github","kept":2,"bytes":900,
                      "reachable":false,"last_error":"connection refused"}],
          "lost":[{"time":"2026-03-04T09:15:27Z","namespace":"argo","event_source":"gitlab",
                   "request_id":"id-7","reason":"expired"}]})");
  });
  const auto url = "--router-url=http://127.0.0.1:" + std::to_string(router.port());
  on_harness([&](GitopsctlHarness& harness) -> Task<> {
    const auto text = co_await harness.call({"webhook", "list", url});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, StartsWith("2 webhooks are kept, 900 bytes, the oldest for 41 s\n"));
    EXPECT_THAT(text.out, HasSubstr("  argo/github  2 kept  not reachable  connection refused\n"));
    EXPECT_THAT(text.out, HasSubstr("  2026-03-04T09:15:27Z  argo/gitlab  expired  id-7\n"));
    const auto page = co_await harness.call_json({"webhook", "list", url});
    EXPECT_EQ(page["kept"], 2);
    EXPECT_EQ((co_await harness.call({"webhooks", url})).out, text.out) << "its earlier name";
    const auto other = co_await harness.call(
        {"webhook", "list", "--router-url=" + harness.argocd.url().to_string()});
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_THAT(other.err, HasSubstr("is not the admin port of a request-router"));
  });
}

TEST(GitopsctlWebhooks, AreTriedOnRequest) {
  const RecordingUpstream router("router", [](const RecordedRequest& request, RawSocket& socket) {
    if (!request.head.starts_with("POST /webhooks/redeliver")) {
      return RecordingUpstream::reply(socket, "", "", "404 No");
    }
    if (request.target().ends_with("other")) {
      return RecordingUpstream::reply(socket, R"({"sources":[]})");
    }
    return RecordingUpstream::reply(socket, R"({"sources":[
        {"namespace":"argo","event_source":"github","kept":2,"attempt":"now"},
        {"namespace":"argo","event_source":"gitlab","kept":1,"attempt":"too_soon"},
        {"namespace":"argo","event_source":"gitea","kept":1,"attempt":"not_waiting"}]})");
  });
  const auto url = "--router-url=http://127.0.0.1:" + std::to_string(router.port());
  on_harness([&](GitopsctlHarness& harness) -> Task<> {
    const auto all = co_await harness.call({"webhook", "redeliver", url});
    EXPECT_EQ(all.exit_code, 0) << all.err;
    EXPECT_THAT(all.out, HasSubstr("argo/github  2 kept  tried now\n"));
    EXPECT_THAT(all.out, HasSubstr("argo/gitlab  1 kept  not again: tried less than a second ago"));
    EXPECT_THAT(all.out, HasSubstr("argo/gitea   1 kept  no webhook waits for a later attempt"));
    const auto page = co_await harness.call_json({"webhook", "redeliver", "argo/github", url});
    EXPECT_EQ(page["sources"][0]["attempt"], "now");
    EXPECT_EQ(router.requests().back().target(), "/webhooks/redeliver?event_source=argo%2Fgithub");
    const auto other = co_await harness.call({"webhook", "redeliver", "other", url});
    EXPECT_EQ(other.exit_code, 4);
    EXPECT_THAT(other.err, HasSubstr("no webhooks are kept for event source other"));
    EXPECT_EQ((co_await harness.call({"webhook", "redeliver", "--router-url=http://127.0.0.1:1"}))
                  .exit_code,
              3);
  });
}

TEST(Gitopsctl, CompletionKnowsItsCommands) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    for (const char* shell : {"bash", "zsh"}) {
      const auto script = co_await harness.call({"completion", shell});
      EXPECT_EQ(script.exit_code, 0);
      EXPECT_THAT(script.out, AllOf(HasSubstr("--control-plane-token-file"), HasSubstr("version"),
                                    HasSubstr("--argocd-server")));
    }
  });
}

}  // namespace
}  // namespace gitops::test
