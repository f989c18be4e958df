#include "app-proxy/images/report_credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using Texts = std::map<std::string, std::string>;

StoredIntegration stored(const char* type, const Texts& info, const Texts& credentials = {}) {
  const Json config_map{
      {"metadata", {{"name", "x"}, {"labels", {{"io.codefresh.integration-type", type}}}}},
      {"data", info}};
  Json data = Json::object();
  for (const auto& [key, value] : credentials) data[key] = base64_encode(value);
  return stored_integration("x", config_map.dump(), Json{{"data", data}}.dump());
}

ImageReport sent(const std::string& query) {
  auto report = parse_image_report("CF_IMAGE=a&" + query);
  EXPECT_TRUE(report) << report.error().message;
  return report.value_or(ImageReport());
}

Texts environment(const ImageReport& report) {
  Texts texts;
  for (const auto& [name, value] : report.environment) {
    if (name != "IMAGE_NAME") texts.emplace(name, value.reveal());
  }
  return texts;
}

TEST(ReportCredentials, NamesOfIntegrationsAreReadAndGivenToNoTask) {
  const auto report = sent(
      "CF_CONTAINER_REGISTRY_INTEGRATION=hub&CF_ISSUE_TRACKING_INTEGRATION=jira&"
      "CF_JIRA_INTEGRATION=older&CF_GIT_INTEGRATION=default&CF_INSECURE=true");
  EXPECT_EQ(report.registry_integration, "hub");
  EXPECT_EQ(report.git_integration, "default");
  EXPECT_EQ(report.jira_integration, "jira");
  EXPECT_TRUE(report.has_jira);
  EXPECT_EQ(environment(report), Texts());
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_THAT(report.warnings[0], HasSubstr("CF_INSECURE"));
  EXPECT_EQ(sent("CF_JIRA_INTEGRATION=older").jira_integration, "older");
}

TEST(ReportCredentials, EachRegistryHasItsVariables) {
  struct Case {
    const char* type;
    Texts info;
    Texts credentials;
    Texts wanted;
  };
  const Case cases[] = {
      {"registry.ecr",
       {{"region", "eu-west-1"}, {"role_arn", "arn:aws:iam::1:role/r"}},
       {},
       {{"AWS_REGION", "eu-west-1"}, {"AWS_ROLE", "arn:aws:iam::1:role/r"}}},
      {"registry.ecr",
       {{"region", "eu-west-1"}, {"accessKeyId", "AK"}},
       {{"secret_access_key", "s"}},
       {{"AWS_REGION", "eu-west-1"}, {"AWS_ACCESS_KEY", "AK"}, {"AWS_SECRET_KEY", "s"}}},
      {"registry.docker-hub",
       {{"username", "u"}},
       {{"password", "p"}},
       {{"DOCKERHUB_USERNAME", "u"}, {"DOCKERHUB_PASSWORD", "p"}}},
      {"registry.quay",
       {{"domain", "https://quay.io/"}, {"username", "u"}},
       {{"password", "p"}},
       {{"REGISTRY_DOMAIN", "quay.io"}, {"REGISTRY_USERNAME", "u"}, {"REGISTRY_PASSWORD", "p"}}},
      {"registry.gar",
       {{"domain", "europe-docker.pkg.dev"}},
       {{"json_key", "{}"}},
       {{"GOOGLE_REGISTRY_HOST", "europe-docker.pkg.dev"}, {"GOOGLE_JSON_KEY", "{}"}}}};
  for (const auto& each : cases) {
    ImageReport report = sent("");
    const auto used = use_registry(report, stored(each.type, each.info, each.credentials));
    ASSERT_TRUE(used) << each.type << ": " << used.error().message;
    EXPECT_EQ(environment(report), each.wanted) << each.type;
  }
}

// AC-02, AC-28: a host or an unsafe way that the client names would be given the runtime's credentials.
TEST(ReportCredentials, AC28_NothingOfTheClientStaysBesideThem) {
  ImageReport report = sent(
      "CF_REGISTRY_DOMAIN=evil.test&CF_REGISTRY_INSECURE=true&CF_AWS_REGION=x&CF_DOCKER_CONFIG=y&"
      "CF_JIRA_HOST_URL=https://evil.test&CF_JIRA_CONTEXT=z&CF_JIRA_SERVER_PAT=p&"
      "CF_JIRA_MESSAGE=CR-1&CF_GIT_REPO=a/b&CF_GITHUB_API_HOST_URL=https://evil.test&"
      "CF_GITHUB_API_PATH_PREFIX=/x&CF_BITBUCKET_HOST_URL=https://evil.test");
  ASSERT_TRUE(
      use_registry(report, stored("registry.quay", {{"domain", "quay.io"}, {"username", "u"}},
                                  {{"password", "canary"}})));
  ASSERT_TRUE(use_issue_tracker(
      report, stored("issue.jira", {{"host_url", "https://jira.test"}, {"email", "a@b.test"}},
                     {{"api_token", "canary"}})));
  ASSERT_TRUE(use_git_host(report, {.provider = "GITHUB",
                                    .api_url = "https://ghe.test/api/v3",
                                    .username = "robot",
                                    .token = Secret("canary")}));
  EXPECT_EQ(environment(report), (Texts{{"REGISTRY_DOMAIN", "quay.io"},
                                        {"REGISTRY_USERNAME", "u"},
                                        {"REGISTRY_PASSWORD", "canary"},
                                        {"JIRA_HOST_URL", "https://jira.test"},
                                        {"JIRA_EMAIL", "a@b.test"},
                                        {"JIRA_API_TOKEN", "canary"},
                                        {"JIRA_MESSAGE", "CR-1"},
                                        {"REPO", "a/b"},
                                        {"GIT_PROVIDER", "github"},
                                        {"GITHUB_API_HOST_URL", "https://ghe.test"},
                                        {"GITHUB_API_PATH_PREFIX", "/api/v3"},
                                        {"GITHUB_TOKEN", "canary"}}));
  ImageReport issues = sent("CF_JIRA_HOST_URL=https://evil.test&CF_JIRA_API_TOKEN=t");
  use_issue_tracker_of_control_plane(issues, "my-jira");
  EXPECT_EQ(environment(issues), (Texts{{"JIRA_CONTEXT", "my-jira"}}));
}

TEST(ReportCredentials, WhatDoesNotSufficeSaysWhatIsMissing) {
  const auto registry = [](const StoredIntegration& integration) {
    ImageReport report = sent("");
    const auto used = use_registry(report, integration);
    return used ? std::string("used") : used.error().message;
  };
  EXPECT_THAT(registry(stored("issue.jira", {})), HasSubstr("is no registry"));
  EXPECT_THAT(registry(stored("registry.ecr", {{"region", "x"}})), HasSubstr("neither a role"));
  EXPECT_THAT(registry(stored("registry.quay", {{"domain", "q"}, {"username", "u"}})),
              HasSubstr("Secret codefresh-integration-x"));
  EXPECT_THAT(registry(stored_integration("x", "[", "")), HasSubstr("is no registry"));
  ImageReport report = sent("");
  const auto jira = use_issue_tracker(report, stored("issue.jira", {{"host_url", "https://j"}}));
  ASSERT_FALSE(jira);
  EXPECT_THAT(jira.error().message, HasSubstr("has no token"));
  EXPECT_FALSE(use_issue_tracker(report, stored("registry.quay", {})));
}

TEST(ReportCredentials, OfGitHostsInTheWordsOfTheTask) {
  const auto use = [](const char* provider, const char* url, const std::string& query = "") {
    ImageReport report = sent(query);
    const auto used = use_git_host(
        report, {.provider = provider, .api_url = url, .username = "robot", .token = Secret("t")});
    return used ? environment(report) : Texts{{"error", used.error().message}};
  };
  EXPECT_EQ(use("GITHUB", "https://api.github.com"),
            (Texts{{"GIT_PROVIDER", "github"},
                   {"GITHUB_API_HOST_URL", "https://api.github.com"},
                   {"GITHUB_TOKEN", "t"}}));
  EXPECT_EQ(use("GITLAB", "https://git.test/api/v4"),
            (Texts{{"GIT_PROVIDER", "gitlab"},
                   {"GITLAB_HOST_URL", "https://git.test"},
                   {"GITLAB_TOKEN", "t"}}));
  EXPECT_EQ(use("BITBUCKET", "https://api.bitbucket.org/2.0"),
            (Texts{{"GIT_PROVIDER", "bitbucket"},
                   {"BITBUCKET_HOST_URL", "https://api.bitbucket.org/2.0"},
                   {"BITBUCKET_USERNAME", "robot"},
                   {"BITBUCKET_PASSWORD", "t"}}));
  EXPECT_EQ(use("BITBUCKET_SERVER", "https://bb.test/rest/api/1.0",
                "CF_GIT_PROVIDER=bitbucket-server")["BITBUCKET_HOST_URL"],
            "https://bb.test");
  EXPECT_THAT(use("GITHUB", "https://api.github.com", "CF_GIT_PROVIDER=gitlab")["error"],
              HasSubstr("of the kind github"));
  EXPECT_THAT(use("GITHUB", "https://gitea.test/api/v1")["error"], HasSubstr("no commits"));
  EXPECT_THAT(use("GERRIT", "https://g.test")["error"], HasSubstr("no commits"));
  EXPECT_TRUE(has_git_credentials(sent("CF_GITLAB_TOKEN=t")));
  EXPECT_FALSE(has_git_credentials(sent("CF_GIT_PROVIDER=github&CF_GIT_REPO=a/b")));
}

}  // namespace
}  // namespace gitops::app_proxy
