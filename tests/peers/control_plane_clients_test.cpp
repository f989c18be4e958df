// The public Go SDK, in the version of the public command line and in the newest one, and our own control plane on both
// engines: each operation that the SDK has for the platform is decoded, and its requests are those of
// client_requests.txt, byte for byte.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "contract/client_rules.hpp"
#include "contract/populated_control_plane.hpp"
#include "peers/go_sdk_operations.hpp"
#include "peers/peer_programs.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

struct Sdk {
  const char* peer;
  const char* program;
};
constexpr Sdk kNewest{.peer = "go-sdk", .program = "go-sdk-client"};
constexpr Sdk kOfCommandLine{.peer = "go-sdk-1.4.14", .program = "go-sdk-client-1.4.14"};

// The SDK and the engine: PostgreSQL or SQLite.
struct GoSdkAtControlPlane : testing::TestWithParam<std::tuple<Sdk, bool>> {
  void SetUp() override {
    if (!std::filesystem::exists(program())) {
      GTEST_SKIP() << "peers: " << sdk().peer << " is not built (./dev peers " << sdk().peer << ")";
    }
  }
  [[nodiscard]] static const Sdk& sdk() { return std::get<0>(GetParam()); }
  [[nodiscard]] static bool is_on_postgres() { return std::get<1>(GetParam()); }
  [[nodiscard]] static std::string program() { return peer_program(sdk().program); }

  CommandResult run(PopulatedControlPlane& at, const std::string& key, const std::string& command,
                    const std::string& arguments = {}, const std::string& runtime = "prod") {
    std::vector<std::string> argv{program(), at.program().url(), runtime, command};
    if (!arguments.empty()) argv.push_back(arguments);
    return run_command(argv, {{"CF_API_KEY", key}, {"CF_REQUESTS", recorded()}});
  }
  // The bodies of the requests, a line each.
  [[nodiscard]] std::string recorded() const { return (folder_ / "requests").string(); }

 private:
  TempDir folder_;
};

TEST_P(GoSdkAtControlPlane, DecodesEveryOperation) {
  PopulatedControlPlane bed(is_on_postgres());
  auto operations = sdk_queries(bed);
  std::ranges::move(sdk_mutations(), std::back_inserter(operations));
  std::set<std::string> methods;
  std::string sent;
  for (const auto& operation : operations) {
    SCOPED_TRACE(operation.command);
    methods.insert(operation.method);
    sent += client_request(operation.request) + "\n";
    const auto result = run(bed, operation.is_of_runtime ? bed.prod_token : bed.admin_key,
                            operation.command, operation.arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_has(Json::parse(result.out, nullptr, false), operation.expected, operation.command);
  }
  EXPECT_EQ(read_file(recorded()), sent);
  // A method of the SDK without an operation above fails the test.
  const auto list = Json::parse(run_or_throw({program(), "--platform-methods"}));
  EXPECT_EQ(methods, list.get<std::set<std::string>>());
}

TEST_P(GoSdkAtControlPlane, DecodesTheSameAfterAKill) {
  auto& bed = shared_control_plane(is_on_postgres());
  bed.program().kill();
  bed.program().start();
  for (const auto& operation : sdk_queries(bed)) {
    const auto result = run(bed, bed.admin_key, operation.command, operation.arguments);
    EXPECT_EQ(result.exit_code, 0) << operation.command << result.err;
    expect_has(Json::parse(result.out, nullptr, false), operation.expected, operation.command);
  }
}

TEST_P(GoSdkAtControlPlane, WhatIsAbsentIsNull) {
  auto& bed = shared_control_plane(is_on_postgres());
  for (const auto& [key, runtime] : {std::pair(bed.admin_key, "none"), {bed.eve_key, "prod"}}) {
    const auto absent = run(bed, key, "runtime", {}, runtime);
    EXPECT_EQ(absent.exit_code, 1);
    EXPECT_THAT(absent.err, HasSubstr("runtime '" + std::string(runtime) + "' does not exist"));
  }
  EXPECT_EQ(run(bed, bed.admin_key, "workflow", "none").out, "null\n");
  EXPECT_EQ(run(bed, bed.admin_key, "pipeline", R"({"name":"none"})").out, "null\n");
  // All of it belongs to another account.
  EXPECT_EQ(run(bed, bed.eve_key, "workflow", "uid-build").out, "null\n");
  EXPECT_EQ(run(bed, bed.eve_key, "pipeline", R"({"name":"push","namespace":"ci"})").out, "null\n");
  for (const auto& [command, arguments] : {std::pair("runtimes", ""),
                                           {"clusters", ""},
                                           {"clusters", "prod"},
                                           {"components", ""},
                                           {"git-sources", ""},
                                           {"workflows", "{}"},
                                           {"pipelines", "{}"}}) {
    EXPECT_EQ(run(bed, bed.eve_key, command, arguments).out, "[]\n") << command;
  }
  const auto deleted = run(bed, bed.eve_key, "delete-runtime");
  EXPECT_EQ(deleted.exit_code, 1);
  EXPECT_THAT(deleted.err, HasSubstr("runtime prod does not exist"));
}

// The hook of the chart that validates values asks with the token of the runtime.
TEST_P(GoSdkAtControlPlane, TheTokenOfARuntimeIsTakenForAUsersKey) {
  auto& bed = shared_control_plane(is_on_postgres());
  const auto me = run(bed, bed.prod_token, "me");
  EXPECT_EQ(me.exit_code, 0) << me.err;
  expect_has(Json::parse(me.out, nullptr, false),
             {{"id", ""}, {"activeAccount", {{"id", bed.account_id}, {"name", "default"}}}}, "me");
  const auto runtime = run(bed, bed.prod_token, "runtime");
  EXPECT_EQ(runtime.exit_code, 0) << runtime.err;
  expect_has(Json::parse(runtime.out, nullptr, false), runtime_prod(), "runtime");
}

TEST_P(GoSdkAtControlPlane, RefusalsAreShownInOneLine) {
  auto& bed = shared_control_plane(is_on_postgres());
  for (const auto* command : {"me", "runtimes", "user"}) {
    const auto result = run(bed, "nobody.0000", command);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err,
                HasSubstr("API error: 401 Unauthorized: {\"code\":\"unauthenticated\",\"message\":"
                          "\"Unauthorized: Invalid token.\"}\n"))
        << command;
  }
  const auto refused = run(bed, bed.bob_key, "delete-runtime");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("API error: 403 Forbidden: {\"code\":\"forbidden\",\"message\":"
                        "\"deleteRuntime: only an administrator of the account may do "
                        "this\"}\n"));
}

TEST_P(GoSdkAtControlPlane, TheLoginOfTheCommandLineFindsItsAccount) {
  auto& bed = shared_control_plane(is_on_postgres());
  const auto user = Json::parse(run(bed, bed.admin_key, "user").out);
  expect_has(user,
             {{"user",
               {{"_id", bed.admin_id},
                {"userName", "admin"},
                {"activeAccountName", "default"},
                {"account", {{{"name", "default"}, {"_id", bed.account_id}}}}}},
              {"activeAccount", {{"name", "default"}, {"_id", bed.account_id}}}},
             "user");
  const auto keys = Json::parse(run(bed, bed.admin_key, "keys").out);
  expect_has(keys, {{{"name", "cli"}, {"subject", {{"type", "user"}, {"ref", bed.admin_id}}}}},
             "keys");
  // Tokens of build runners belong to another product.
  const auto runner = run(bed, bed.admin_key, "create-key", "runner");
  EXPECT_EQ(runner.exit_code, 1);
  EXPECT_THAT(runner.err, HasSubstr("API error: 4"));
}

INSTANTIATE_TEST_SUITE_P(Versions, GoSdkAtControlPlane,
                         testing::Combine(testing::Values(kNewest, kOfCommandLine),
                                          testing::Bool()),
                         [](const auto& info) {
                           const bool is_newest =
                               std::string_view(std::get<0>(info.param).peer) == kNewest.peer;
                           return std::string(is_newest ? "Newest" : "CommandLine") +
                                  (std::get<1>(info.param) ? "Postgres" : "Sqlite");
                         });

}  // namespace
}  // namespace gitops::test
