#include "event-reporter/config.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.hpp"

namespace gitops::reporter {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Loaded {
  Config config;
  std::vector<std::string> mistakes;
};

Loaded load(const std::map<std::string, std::string>& environment,
            const std::vector<std::string>& arguments = {}) {
  Loaded loaded;
  ConfigReader reader("event-reporter", "test");
  bind(reader, loaded.config);
  loaded.mistakes = reader.load(arguments, environment).mistakes;
  return loaded;
}

TEST(Config, DefaultsAreThoseOfTheExistingProgram) {
  const auto [config, mistakes] = load({});
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(config.queue_size, 1000);
  EXPECT_EQ(config.max_retries, 5);
  EXPECT_EQ(config.resource_workers, 10);
  EXPECT_EQ(config.argocd_server, "argo-cd-server:80");
  EXPECT_EQ(config.platform_url, "https://g.codefresh.io");
  EXPECT_EQ(config.listen_port, 8088);
  EXPECT_FALSE(config.argocd_insecure);
  EXPECT_FALSE(config.platform_insecure);
}

TEST(Config, ReadsTheEnvironmentOfTheExistingChart) {
  const auto [config, mistakes] = load({{"REPORTER_MODE", "app"},
                                        {"BINARY_NAME", "event-reporter"},
                                        {"APP_QUEUE_SIZE", "50"},
                                        {"MAX_APP_RETRIES", "3"},
                                        {"THREADINESS", "100"},
                                        {"RESOURCE_THREADINESS", "7"},
                                        {"EVENT_REPORTER_REPLICAS", "3"},
                                        {"EVENT_REPORTER_SHARD", "2"},
                                        {"SHARDING_ALGORITHM", "legacy"},
                                        {"IS_NAMESPACED_RUNTIME", "true"},
                                        {"ARGOCD_APPLICATION_NAMESPACES", "team-a, team-*"},
                                        {"ARGOCD_SERVER", "argocd.example.com:8443"},
                                        {"ARGOCD_SERVER_ROOTPATH", "/argo"},
                                        {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"},
                                        {"ARGO_CD_TOKEN_SECRET_KEY", "token"},
                                        {"REPO_SERVER", "ignored:8081"},
                                        {"CODEFRESH_URL", "https://platform.example.com/"},
                                        {"CODEFRESH_TOKEN", "canary"},
                                        {"CODEFRESH_TLS_INSECURE", "true"},
                                        {"CODEFRESH_SSL_CERT_PATH", "/certs/ca.crt"},
                                        {"RUNTIME_VERSION", "0.1.2"},
                                        {"LISTEN_ADDRESS", "127.0.0.1"},
                                        {"INSECURE", "true"},
                                        {"REDIS_SERVER", "ignored:6379"}});
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(config.queue_size, 50);
  EXPECT_EQ(config.max_retries, 3);
  EXPECT_EQ(config.workers, 100);
  EXPECT_EQ(config.resource_workers, 7);
  EXPECT_EQ(config.replicas, 3);
  EXPECT_EQ(config.shard, 2);
  EXPECT_THAT(config.application_namespaces, ElementsAre("team-a", "team-*"));
  EXPECT_EQ(config.argocd_server, "argocd.example.com:8443");
  EXPECT_EQ(config.argocd_root_path, "/argo");
  EXPECT_EQ(config.argocd_token_secret, "argocd-token");
  EXPECT_EQ(config.platform_url, "https://platform.example.com/");
  EXPECT_EQ(config.platform_token.reveal(), "canary");
  EXPECT_TRUE(config.platform_insecure);
  EXPECT_EQ(config.platform_ca_file, "/certs/ca.crt");
  EXPECT_EQ(config.version, "0.1.2");
  EXPECT_EQ(config.listen_address, "127.0.0.1");
  EXPECT_FALSE(config.argocd_insecure) << "INSECURE of the existing program verifies nothing less";
}

TEST(Config, ModeResourceReportsAllKindsUnlessTold) {
  const auto [config, mistakes] = load({{"REPORTER_MODE", "resource"}});
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(config.mode, Config::Mode::resource);
  EXPECT_THAT(config.kinds, IsEmpty());
  EXPECT_FALSE(config.all_replicasets);
  EXPECT_FALSE(config.managed_clusters) << "it takes the right to read Secrets";
  const auto [some, none] = load({{"REPORTER_MODE", "resource"},
                                  {"REPORT_KINDS", "rollouts,workflows"},
                                  {"REPORT_ALL_REPLICASETS", "true"},
                                  {"REPORT_MANAGED_CLUSTERS", "true"},
                                  {"WORKFLOW_NAMESPACES", "ci-*"}});
  EXPECT_THAT(none, IsEmpty());
  EXPECT_THAT(some.kinds, ElementsAre("rollouts", "workflows"));
  EXPECT_THAT(some.workflow_namespaces, ElementsAre("ci-*"));
  EXPECT_TRUE(some.all_replicasets);
  EXPECT_TRUE(some.managed_clusters);
}

TEST(Config, KnowsTheOlderNames) {
  const auto [config, mistakes] = load({{"EVENT_REPORTER_APPLICATION_SERVER", "old:80"},
                                        {"EVENT_REPORTER_SHARDING_ALGORITHM", "legacy"},
                                        {"EVENT_REPORTER_LISTEN_ADDRESS", "::1"},
                                        {"ARGOCD_TOKEN", "canary"}});
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(config.argocd_server, "old:80");
  EXPECT_EQ(config.listen_address, "::1");
  EXPECT_EQ(config.argocd_token.reveal(), "canary");
}

TEST(Config, TokenFilesAreNamedNotRead) {
  const test::TempDir folder;
  const auto path = (folder / "token").string();
  std::ofstream(path) << "canary\n";
  const auto [config, mistakes] =
      load({}, {"--codefresh-token-file", path, "--argocd-token-file=" + path});
  EXPECT_THAT(mistakes, IsEmpty());
  EXPECT_EQ(config.platform_token_file, path);
  EXPECT_EQ(config.argocd_token_file, path);
  EXPECT_TRUE(config.platform_token.empty());
}

TEST(Config, EveryMistakeIsTold) {
  const auto of = [](const std::map<std::string, std::string>& environment) {
    return load(environment).mistakes;
  };
  EXPECT_THAT(of({{"REPORT_KINDS", "rollouts, pods"}}),
              ElementsAre(AllOf(HasSubstr("\"pods\""), HasSubstr("analysisruns"))));
  EXPECT_THAT(of({{"WORKFLOW_NAMESPACES", "/(team/"}}), SizeIs(1));
  EXPECT_THAT(of({{"WORKFLOW_NAMESPACES", "team"}, {"IS_NAMESPACED_RUNTIME", "true"}}), SizeIs(1));
  EXPECT_THAT(of({{"REPORTER_MODE", "both"}, {"APP_QUEUE_SIZE", "0"}, {"THREADINESS", "many"}}),
              SizeIs(3));
  const auto rules = of({{"ARGOCD_SERVER", "ftp://x"},
                         {"CODEFRESH_URL", "not a url"},
                         {"SHARDING_ALGORITHM", "rendezvous"},
                         {"ARGOCD_APPLICATION_NAMESPACES", "/(team/"},
                         {"EVENT_REPORTER_REPLICAS", "3"},
                         {"EVENT_REPORTER_SHARD", "3"},
                         {"ARGOCD_TOKEN", "canary"},
                         {"ARGO_CD_PASSWORD", "canary"},
                         {"ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"}});
  EXPECT_THAT(rules, SizeIs(7));
  EXPECT_THAT(rules, Contains(HasSubstr("a token for argocd-server is given, too")));
  EXPECT_THAT(rules, Contains(StartsWith("environment ARGOCD_SERVER: ")));
  EXPECT_THAT(rules, Contains(StartsWith("environment CODEFRESH_URL: ")));
  EXPECT_THAT(rules, Contains("environment SHARDING_ALGORITHM: only legacy is known"));
  EXPECT_THAT(rules, Contains(StartsWith("environment ARGOCD_APPLICATION_NAMESPACES: ")));
  EXPECT_THAT(rules, Contains(HasSubstr("shard 3 does not exist")));
  EXPECT_THAT(rules, Contains(HasSubstr("more than once")));
  EXPECT_THAT(of({{"CODEFRESH_URL", "ftp://x"}, {"THREADINESS", "many"}}), SizeIs(2));
  EXPECT_THAT(rules, ::testing::Not(Contains(HasSubstr("canary"))));
}

}  // namespace
}  // namespace gitops::reporter
