#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "doubles/fake_platform.hpp"
#include "support/play.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"
#include "support/run_on.hpp"

namespace gitops::test {

inline constexpr auto kLimit = std::chrono::seconds(90);
inline constexpr auto kTimeLimit = std::chrono::seconds(60);

// The doubles, and settings that point to them.
class GitopsctlHarness {
 public:
  explicit GitopsctlHarness(const Executor& executor)
      : kube(executor, {.token = "canary-kube-token"}),
        argocd(executor, kube, {.token = "canary.argocd.token"}),
        platform(executor, {.token = "canary-platform-token"}) {}

  Task<> start() {
    CO_ASSERT_OK(kube.start());
    CO_ASSERT_OK(argocd.start());
    CO_ASSERT_OK(platform.start());
    write_file(folder / "kubeconfig", kube.kubeconfig());
    // Variables of the test's own environment.
    for (const char* name :
         {"HOME", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "GITOPS_CONFIG",
          "KUBERNETES_SERVICE_HOST", "ARGOCD_AUTH_TOKEN", "ARGOCD_SERVER_ROOTPATH",
          "ARGOCD_CA_FILE", "ARGOCD_INSECURE", "CODEFRESH_SSL_CERT_PATH", "CODEFRESH_TLS_INSECURE",
          "IS_NAMESPACED_RUNTIME", "REPORT_MANAGED_CLUSTERS", "EVENT_REPORTER_REPLICAS",
          "ARGO_CD_TOKEN_SECRET_NAME"}) {
      environment[name] = std::nullopt;
    }
    environment["KUBECONFIG"] = folder / "kubeconfig";
    environment["ARGOCD_SERVER"] = argocd.url().to_string();
    environment["ARGOCD_TOKEN"] = "canary.argocd.token";
    environment["CODEFRESH_URL"] = platform.url().to_string();
    environment["CODEFRESH_TOKEN"] = "canary-platform-token";
  }
  Task<> stop() {
    co_await kube.stop();
    co_await argocd.stop();
    co_await platform.stop();
  }

  // Runs the program to its end while the loop serves the doubles.
  Task<CommandResult> call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    auto result =
        co_await run_on(pool_, [&] { return run_command(arguments, environment, {}, kTimeLimit); });
    EXPECT_THAT(result.out + result.err, ::testing::Not(::testing::HasSubstr("canary")));
    co_return result;
  }
  Task<nlohmann::json> call_json(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const auto result = co_await call(std::move(arguments));
    const auto report = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << result.out << result.err;
    EXPECT_EQ(result.err, "");
    exit_code = result.exit_code;
    co_return report;
  }

  FakeKubeApi kube;
  FakeArgoCd argocd;
  FakePlatform platform;
  TempDir folder{"gitopsctl"};
  Environment environment;
  int exit_code = -1;  // of the last call_json()

 private:
  asio::thread_pool pool_{1};
};

inline void on_harness(const std::function<Task<>(GitopsctlHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        GitopsctlHarness harness(co_await asio::this_coro::executor);
        co_await play_in(harness, [&](GitopsctlHarness&) -> Task<> {
          co_await harness.start();
          co_await body(harness);
        });
      },
      kLimit);
}

}  // namespace gitops::test
