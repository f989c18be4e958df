#pragma once

#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "e2e/app_proxy_harness.hpp"
#include "peers/peer_programs.hpp"

namespace gitops::test {

/// Runs a program while the doubles on the loop go on.
inline Task<CommandResult> run_beside(std::vector<std::string> argv, Environment environment) {
  auto running = std::async(std::launch::async, [argv = std::move(argv), environment] {
    return run_command(argv, environment);
  });
  while (running.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    co_await sleep_for(std::chrono::milliseconds(5));
  }
  co_return running.get();
}

/// The public Go SDK, as a program that runs one operation of the harness's app-proxy.
struct GoSdk {
  static std::optional<std::string> missing() {
    if (std::filesystem::exists(peer_program("go-sdk-client"))) return std::nullopt;
    return "go-sdk is not built (./dev peers go-sdk)";
  }
  /// All methods that the SDK has for an app-proxy, as "GitSource.Create".
  static std::vector<std::string> methods() {
    const auto result = run_command({peer_program("go-sdk-client"), "--methods"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto names = nlohmann::json::parse(result.out, nullptr, false);
    return names.is_array() ? names.get<std::vector<std::string>>() : std::vector<std::string>();
  }
  static Task<CommandResult> run(AppProxyHarness& harness, std::string token, std::string operation,
                                 std::string arguments = {}) {
    harness.platform.accounts().set_ingress_host("prod", harness.daemon->url());
    std::vector<std::string> argv{peer_program("go-sdk-client"), harness.platform.url().to_string(),
                                  "prod", std::move(operation)};
    if (!arguments.empty()) argv.push_back(std::move(arguments));
    co_return co_await run_beside(std::move(argv), {{"CF_API_KEY", std::move(token)}});
  }
  /// Its result; a failure of the test when it reports an error.
  static Task<nlohmann::json> ok(AppProxyHarness& harness, std::string token, std::string operation,
                                 std::string arguments = {}) {
    const auto result = co_await run(harness, std::move(token), operation, std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << operation << ": " << result.err;
    co_return nlohmann::json::parse(result.out, nullptr, false);
  }
};

}  // namespace gitops::test
