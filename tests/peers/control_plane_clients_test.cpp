// The public Go SDK and our own control plane, on both engines: what the SDK asks of a platform is decoded, also after the
// program was killed.
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "peers/go_sdk.hpp"
#include "support/postgres_server.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kGitSource = R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Application",
  "metadata":{"name":"prod-source","namespace":"argocd","uid":"u1",
    "labels":{"codefresh.io/entity":"git-source"}},
  "spec":{"source":{"repoURL":"https://git.example.test/a.git","path":"apps"},
    "destination":{"server":"https://kubernetes.default.svc","namespace":"argocd"}},
  "status":{"sync":{"status":"Synced","revision":"c0ffee"},"health":{"status":"Healthy"}}})";

// "Sqlite" or "Postgres".
struct GoSdkAtControlPlane : testing::TestWithParam<std::string> {
  // The result of an operation; a failure of the test when the SDK reports an error.
  Json run(const std::string& operation, const std::string& arguments = {}) {
    std::vector<std::string> argv{peer_program("go-sdk-client"), program.url(), "prod", operation};
    if (!arguments.empty()) argv.push_back(arguments);
    const auto result = run_command(argv, {{"CF_API_KEY", key}});
    EXPECT_EQ(result.exit_code, 0) << operation << ": " << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  ControlPlaneProcess program{GetParam() == "Postgres" ? PostgresServer::shared().new_database()
                                                       : std::string()};
  std::string key;
};

TEST_P(GoSdkAtControlPlane, DecodesWhatItAsks) {
  GITOPS_REQUIRE_PEER(GoSdk);
  program.add_account("acme");
  const auto ann = program.add_user("ann", "acme", {"--admin"});
  key = program.create_key("ann", "acme");
  program.start();
  const auto me = run("me");
  EXPECT_EQ(me["id"], ann);
  EXPECT_EQ(me["activeAccount"]["name"], "acme");
  EXPECT_EQ(me["activeAccount"]["admins"], Json::array({ann}));
  EXPECT_EQ(run("runtimes"), Json::array());

  const auto created = run("create-runtime", Json{{"runtimeName", "prod"},
                                                  {"cluster", "https://kubernetes.default.svc"},
                                                  {"runtimeVersion", "0.1.0"},
                                                  {"componentNames", Json::array()}}
                                                 .dump());
  const auto token = created["newAccessToken"].get<std::string>();
  EXPECT_EQ(program.post_application(token, kGitSource, 1'000'000).status, 200);
  program.kill();
  program.start();

  const auto runtime = run("runtime");
  EXPECT_EQ(runtime["metadata"]["name"], "prod");
  EXPECT_EQ(runtime["installationType"], "HELM");
  EXPECT_EQ(run("runtimes").size(), 1U);
  const auto sources = run("git-sources");
  ASSERT_EQ(sources.size(), 1U) << sources;
  EXPECT_EQ(sources[0]["metadata"]["name"], "prod-source");
  EXPECT_EQ(sources[0]["self"]["repoURL"], "https://git.example.test/a.git");
}

INSTANTIATE_TEST_SUITE_P(Engines, GoSdkAtControlPlane, testing::Values("Sqlite", "Postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gitops::test
