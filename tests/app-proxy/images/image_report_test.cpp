#include "app-proxy/images/image_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

std::string deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(), 9),
            Z_OK);
  out.resize(size);
  return base64_encode(out);
}

std::string value(const ImageReport& report, const char* name) {
  const auto found = report.environment.find(name);
  return found == report.environment.end() ? "-" : std::string(found->second.reveal());
}

// What the reporter of a pipeline sends, in the plain form and in the compressed one.
const std::string kPlain =
    "CF_IMAGE=registry.example.test%2Fshop%3A1.0&CF_RUNTIME_NAME=prod&CF_GIT_PROVIDER=github&"
    "CF_GIT_REPO=acme%2Fshop&CF_GIT_BRANCH=main&CF_GITHUB_TOKEN=canary-git&"
    "CF_REGISTRY_PASSWORD=canary+registry&CF_JIRA_HOST_URL=https%3A%2F%2Fjira.example.test&"
    "CF_WORKFLOW_NAME=build&CF_UNKNOWN=x&PATH=%2Fbin&CF_LD_PRELOAD=%2Fevil.so";

TEST(ImageReport, BothFormsOfTheReporterAreRead) {
  for (const bool is_compressed : {false, true}) {
    const std::string dockerfile = "FROM scratch\nCOPY a b\n";
    const std::string content = is_compressed ? deflated(dockerfile) : base64_encode(dockerfile);
    const std::string query = kPlain + "&CF_DOCKERFILE_CONTENT=" + percent_encode(content);
    const auto report =
        parse_image_report(is_compressed ? "data=" + percent_encode(deflated(query)) : query);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->image, "registry.example.test/shop:1.0");
    EXPECT_EQ(value(*report, "IMAGE_NAME"), report->image);
    EXPECT_EQ(value(*report, "REPO"), "acme/shop");
    EXPECT_EQ(value(*report, "GITHUB_TOKEN"), "canary-git");
    EXPECT_EQ(value(*report, "REGISTRY_PASSWORD"), "canary registry");
    EXPECT_EQ(value(*report, "DOCKERFILE_CONTENT"), base64_encode(dockerfile));
    EXPECT_TRUE(report->has_git);
    EXPECT_TRUE(report->has_jira);
    // Nothing else reaches the tasks.
    for (const char* name : {"UNKNOWN", "PATH", "LD_PRELOAD", "RUNTIME_NAME", "CF_IMAGE"}) {
      EXPECT_EQ(value(*report, name), "-") << name;
    }
    EXPECT_EQ(report->environment.size(), 9U);
  }
}

TEST(ImageReport, CredentialsStandInTheSecretAlone) {
  const auto report = parse_image_report(kPlain);
  ASSERT_TRUE(report);
  ImageReportOptions options{.own_namespace = "runtime", .control_plane_url = "https://cp.test"};
  const auto text = image_report_workflow(options, *report, "image-report-1");
  EXPECT_THAT(text, Not(HasSubstr("canary")));
  const auto workflow = Json::parse(text);
  const auto& spec = workflow["spec"];
  EXPECT_EQ(spec["serviceAccountName"], "codefresh-image-enrichment-sa");
  EXPECT_EQ(spec["synchronization"]["semaphore"]["configMapKeyRef"]["key"], "imageReportExecutor");
  EXPECT_EQ(spec["podGC"]["strategy"], "OnWorkflowCompletion");
  EXPECT_EQ(spec["ttlStrategy"]["secondsAfterCompletion"], 86'400);
  EXPECT_EQ(spec["activeDeadlineSeconds"], 900);
  std::vector<std::string> names;
  for (const auto& one : spec["templates"]) names.push_back(one["name"]);
  EXPECT_THAT(names, testing::ElementsAre("report-image-info", "git-info", "jira-info", "main"));
  EXPECT_EQ(spec["templates"][0]["container"]["envFrom"][0]["secretRef"]["name"], "image-report-1");
  const auto secret = Json::parse(
      image_report_secret(options, *report, Secret("canary-key"), "image-report-1", "uid-1")
          .reveal());
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  EXPECT_EQ(base64_decode(secret["data"]["CF_API_KEY"].get<std::string>()).value(), "canary-key");
  EXPECT_EQ(base64_decode(secret["data"]["REPO"].get<std::string>()).value(), "acme/shop");

  const auto bare = parse_image_report("CF_IMAGE=a");
  ASSERT_TRUE(bare);
  EXPECT_EQ(Json::parse(image_report_workflow(options, *bare, "x"))["spec"]["templates"].size(),
            2U);
}

// AC-07: what inflates to more than a report needs is refused before it is there.
TEST(ImageReport, AC07_DeflateBombsAreRefused) {
  const auto code = [](const std::string& query) {
    const auto report = parse_image_report(query);
    return report ? ErrorCode::internal : report.error().code;
  };
  const std::string bomb = deflated(std::string(50'000'000, 'a'));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(code("data=" + percent_encode(bomb)), ErrorCode::too_large);
  EXPECT_EQ(code("data=" + percent_encode(deflated("CF_IMAGE=a&CF_DOCKERFILE_CONTENT=" +
                                                   percent_encode(bomb)))),
            ErrorCode::too_large);
  EXPECT_EQ(code("CF_IMAGE=" + std::string(300'000, 'a')), ErrorCode::too_large);
  const std::string one = deflated("CF_IMAGE=a");
  EXPECT_EQ(code("data=" + percent_encode(one)), ErrorCode::internal);
  EXPECT_EQ(code("data=" + percent_encode(one.substr(0, 8))), ErrorCode::invalid_argument);
  // A form inside of a form is not followed.
  EXPECT_EQ(code("data=" + percent_encode(deflated("data=" + percent_encode(one)))),
            ErrorCode::invalid_argument);
  std::string many = "CF_IMAGE=a";
  for (int i = 0; i < 300; ++i) many += "&a" + std::to_string(i) + "=1";
  for (const std::string& query :
       {std::string("data=%%%"), std::string("data=AAAA"), std::string("CF_IMAGE=%zz"),
        std::string("CF_IMAGE=a&CF_IMAGE=b"), std::string("CF_IMAGE=a%00b"),
        std::string("CF_IMAGE=a%20b"), std::string("CF_IMAGE="), std::string("x=1"),
        std::string("CF_IMAGE=a&CF_DOCKERFILE_CONTENT=%25"), many}) {
    EXPECT_EQ(code(query), ErrorCode::invalid_argument) << query.substr(0, 60);
  }
}

TEST(ImageReport, TheStateOfTheWorkflow) {
  EXPECT_FALSE(image_report_state("{}").is_over());
  EXPECT_FALSE(image_report_state("[").is_over());
  EXPECT_FALSE(image_report_state(R"({"status":{"phase":"Running"}})").is_over());
  EXPECT_TRUE(image_report_state(R"({"status":{"phase":"Succeeded"}})").is_success());
  const auto failed = image_report_state(
      R"({"status":{"phase":"Failed","message":"child failed","nodes":{"a":{"outputs":{"parameters":[{"name":"exit_error","value":"no such image"}]}}}}})");
  EXPECT_TRUE(failed.is_over());
  EXPECT_FALSE(failed.is_success());
  EXPECT_EQ(failed.message, "no such image");
  EXPECT_THAT(image_report_catalogue(), HasSubstr(R"("displayName":"CF_IMAGE")"));
}

}  // namespace
}  // namespace gitops::app_proxy
