// The bundle of `gitopsctl diag` between doubles. Canaries stand wherever it reads: in the kubeconfig, tokens, Secrets,
// environments, annotations, ConfigMaps, flags, logs, events and pages. None may be in the bundle.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/http/gzip.hpp"
#include "e2e/gitopsctl_harness.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const k8s::Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
const k8s::Resource kEvents{"", "v1", "events", "Event", true};

json chart_labels() {
  return {{"app.kubernetes.io/name", "reporter"},
          {"app.kubernetes.io/instance", "rt"},
          {"app.kubernetes.io/part-of", "gitops-runtime"}};
}

json metadata(const std::string& name, json labels) {
  return {{"name", name},
          {"namespace", "gitops"},
          {"labels", std::move(labels)},
          {"annotations",
           {{"note", "canary-annotation"},
            {"kubectl.kubernetes.io/last-applied-configuration", "{\"x\":\"canary-applied\"}"}}}};
}

json container() {
  return {{"name", "reporter"},
          {"image", "registry.example/reporter:0.2.0"},
          {"ports", {{{"name", "metrics"}, {"containerPort", 8087}}}},
          {"args", {"--token", "canary-argument", "--password=canary-flag"}},
          {"env",
           {{{"name", "LOG_LEVEL"}, {"value", "debug"}},
            {{"name", "CODEFRESH_URL"}, {"value", "https://u:canary-url@cp.example"}},
            {{"name", "FAVOURITE"}, {"value", "canary-environment"}},
            {{"name", "TOKEN"},
             {"valueFrom", {{"secretKeyRef", {{"name", "user-token"}, {"key", "token"}}}}}}}}};
}

// A runtime of one pod that has restarted, with canaries in all its objects.
void install(FakeKubeApi& kube) {
  const json selected{{"app.kubernetes.io/name", "reporter"}, {"app.kubernetes.io/instance", "rt"}};
  kube.put(kStatefulSets, {{"metadata", metadata("reporter", chart_labels())},
                           {"spec",
                            {{"selector", {{"matchLabels", selected}}},
                             {"template", {{"spec", {{"containers", {container()}}}}}}}}});
  kube.put(k8s::resources::kPods,
           {{"metadata", metadata("reporter-0", selected)},
            {"spec", {{"containers", {container()}}}},
            {"status", {{"containerStatuses", {{{"name", "reporter"}, {"restartCount", 2}}}}}}});
  kube.put(k8s::resources::kPods, {{"metadata", metadata("stranger-0", {{"app", "stranger"}})},
                                   {"spec", {{"containers", {container()}}}}});
  kube.put(k8s::resources::kConfigMaps,
           {{"metadata", metadata("reporter", chart_labels())},
            {"data",
             {{"password", "canary-data"},
              {"config.yaml", "url: https://a.example\napi-token: canary-yaml\nlevel: info\n"}}}});
  kube.put(k8s::resources::kLeases, {{"metadata", metadata("event-reporter-app-0", json::object())},
                                     {"spec", {{"holderIdentity", "reporter-0"}}}});
  kube.put(kEvents, {{"metadata", metadata("reporter-0.1", json::object())},
                     {"involvedObject", {{"kind", "Pod"}, {"name", "reporter-0"}}},
                     {"message", "Back-off pulling https://me:canary-event@registry.example"}});
  kube.put_secret({.ns = "gitops", .name = "user-token"},
                  {{"token", "canary-secret-value"}, {"user", "canary-person"}});
  kube.append_pod_log(
      "level=info password=canary-log\n"
      "Authorization: Bearer canary-header-1\n"
      "it said canary-secret-value, which no mark shows, and " +
      base64_encode("canary-secret-value") +
      "\n{\"msg\":\"x\",\"apiKey\":\"canary-json\"}\n"
      "a last line that is kept\n");
  kube.set_pod_page("/statusz?format=json",
                    R"({"status":"ok","parts":[{"name":"x","token":"canary-statusz"}]})");
  kube.set_pod_page("/metrics", "gitops_up 1\ngitops_x{url=\"http://a:canary-metric@b\"} 1\n");
}

// Every byte of the archive, decompressed.
std::string unpacked(const std::string& path) {
  auto tar = http::gzip_decompress(read_file(path), std::size_t{64} * 1024 * 1024);
  EXPECT_TRUE(tar) << path;
  return tar ? std::move(*tar) : std::string();
}

std::string file_in(const std::string& path, const std::string& name) {
  const auto folder = std::filesystem::path(path).filename().string();
  const auto all = run_or_throw({"tar", "-tzf", path});
  for (std::size_t begin = 0; begin < all.size();) {
    const auto end = all.find('\n', begin);
    const auto entry = all.substr(begin, end - begin);
    if (entry.ends_with("/" + name)) return run_command({"tar", "-xzOf", path, entry}, {}).out;
    begin = end + 1;
  }
  ADD_FAILURE() << name << " is not among\n" << all;
  return {};
}

TEST(GitopsctlDiag, TheBundleHasEverythingButSecrets) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    install(harness.kube);
    harness.environment["MY_PASSWORD"] = "canary-own-environment";
    harness.environment["HTTPS_PROXY"] = "http://me:canary-proxy@127.0.0.1:1";
    const std::string path = harness.folder / "bundle.tar.gz";
    const auto result = co_await harness.call({"diag", "-n", "gitops", "--output", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const auto bytes = unpacked(path);
    EXPECT_THAT(bytes, Not(HasSubstr("canary")));
    EXPECT_THAT(bytes, Not(HasSubstr(base64_encode("canary-secret").substr(0, 14))));

    EXPECT_EQ(result.out.substr(0, result.out.find("\nWritten to")), file_in(path, "CONTENTS.txt"));
    EXPECT_THAT(file_in(path, "log-reporter.txt"), HasSubstr("a last line that is kept"));
    EXPECT_THAT(file_in(path, "log-reporter-previous.txt"), HasSubstr("a last line"));
    EXPECT_THAT(file_in(path, "metrics.txt"), HasSubstr("gitops_up 1"));
    EXPECT_EQ(json::parse(file_in(path, "statusz.json"))["status"], "ok");
    const auto secrets = json::parse(file_in(path, "secrets.json"));
    EXPECT_EQ(secrets[0]["keys"], json({"token", "user"}));
    EXPECT_THAT(file_in(path, "configmaps.json"), HasSubstr("level: info"));
    EXPECT_THAT(file_in(path, "pods.json"),
                AllOf(HasSubstr("reporter-0"), HasSubstr("debug"), Not(HasSubstr("stranger"))));
    EXPECT_THAT(file_in(path, "events.json"), HasSubstr("Back-off pulling"));
    EXPECT_EQ(json::parse(file_in(path, "leases.json"))[0]["spec"]["holderIdentity"], "reporter-0");
    EXPECT_EQ(json::parse(file_in(path, "versions.json"))["API server"], "v1.36.3");
    EXPECT_EQ(json::parse(file_in(path, "check.json"))["status"], "ok");
    const auto around = json::parse(file_in(path, "surroundings.json"));
    EXPECT_THAT(around.dump(), AllOf(HasSubstr("agrees with ours"), HasSubstr("\"proxies\"")));
    for (const char* name : {"deployments.json", "statefulsets.json", "settings.json"}) {
      EXPECT_TRUE(json::accept(file_in(path, name))) << name;
    }
    EXPECT_EQ(harness.platform.reports().size(), 0U);
    const auto again = co_await harness.call({"diag", "-n", "gitops", "--output", path});
    EXPECT_EQ(again.exit_code, 2) << "a file that exists is not replaced";
  });
}

TEST(GitopsctlDiag, WhatCannotBeReadIsNotKnown) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    install(harness.kube);
    harness.kube.set_access([](const FakeKubeApi::Access& access) {
      return access.resource != "secrets" && access.resource != "events" &&
             access.subresource != "proxy";
    });
    const std::string path = harness.folder / "bundle.tar.gz";
    const auto result = co_await harness.call({"diag", "-n", "gitops", "--output", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(
        result.out,
        AllOf(HasSubstr("\nNot known\n"), HasSubstr("  keys of Secret user-token: "),
              HasSubstr("  events of the runtime: "), HasSubstr("  metrics of reporter-0: "),
              HasSubstr("  state of reporter-0: "), HasSubstr("forbidden")));
    EXPECT_THAT(file_in(path, "log-reporter.txt"), HasSubstr("a last line"));
  });
}

TEST(GitopsctlDiag, ALogWhoseEndCannotBeReadIsKept) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    install(harness.kube);
    const json selected{{"app.kubernetes.io/name", "reporter"},
                        {"app.kubernetes.io/instance", "rt"}};
    auto about = metadata("reporter-0", selected);
    about["annotations"]["fake.test/cut-log"] = "true";
    harness.kube.put(k8s::resources::kPods,
                     {{"metadata", about}, {"spec", {{"containers", {container()}}}}});
    const std::string path = harness.folder / "bundle.tar.gz";
    const auto result = co_await harness.call({"diag", "-n", "gitops", "--output", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(file_in(path, "log-reporter.txt"),
                AllOf(HasSubstr("a last line that is kept\n[the end could not be read: "),
                      Not(HasSubstr("canary"))));
  });
}

TEST(GitopsctlDiag, NeedsNeitherAClusterNorAControlPlane) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    harness.environment["KUBECONFIG"] = harness.folder / "none";
    for (const char* name : {"ARGOCD_SERVER", "ARGOCD_TOKEN", "CODEFRESH_URL", "CODEFRESH_TOKEN"}) {
      harness.environment[name] = std::nullopt;
    }
    const std::string path = harness.folder / "bundle.tar.gz";
    const auto result = co_await harness.call({"diag", "--output", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("\nLeft out\n"), HasSubstr("  the cluster: "),
                                  HasSubstr("  the control plane: ")));
    EXPECT_EQ(json::parse(file_in(path, "check.json"))["status"], "failed");
  });
}

TEST(GitopsctlDiag, AFolderThatThereIsNotIsNamedBeforeAnythingIsRead) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    install(harness.kube);
    harness.kube.delay_answers(std::chrono::hours(1));
    const std::string folder = harness.folder / "none";
    const auto result = co_await harness.call({"diag", "--output", folder + "/bundle.tar.gz"});
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(folder + ": No such file or directory; --output names"));
    harness.kube.end_faults();
  });
}

TEST(GitopsctlDiag, PeersThatAreAwayDoNotDelayItBeyondItsLimit) {
  on_harness([](GitopsctlHarness& harness) -> Task<> {
    install(harness.kube);
    harness.kube.delay_answers(std::chrono::hours(1));
    const std::string path = harness.folder / "bundle.tar.gz";
    const auto begin = Clock::now();
    const auto result = co_await harness.call(
        {"diag", "-n", "gitops", "--timeout=4s", "--request-timeout=1s", "--output", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
    EXPECT_THAT(result.out, AllOf(HasSubstr("  pods of the runtime: "),
                                  HasSubstr("  deployments of the runtime: ")));
    harness.kube.end_faults();
  });
}

}  // namespace
}  // namespace gitops::test
