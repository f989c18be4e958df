// The operations of public clients beside the SDK and the command line, against the real control plane on both engines:
// the operator of promotions, image tasks, steps of pipelines, Terraform and an assistant.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "contract/populated_control_plane.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

struct ControlPlaneOtherClients : PopulatedControlPlaneTest {
  // Sends a document, and returns `data` of a response without errors.
  static Json ask(const std::string& token, const std::string& query,
                  const Json& variables = Json::object()) {
    const auto reply = bed().program().graphql(token, query, variables.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto response = Json::parse(reply.body, nullptr, false);
    EXPECT_FALSE(response.contains("errors")) << reply.body;
    return response.is_object() ? response.value("data", Json()) : Json();
  }
  static std::string first_team() {
    const auto reply = http_call({.url = bed().program().url() + "/api/team",
                                  .headers = {"Authorization: " + bed().admin_key}});
    return Json::parse(reply.body).at(0).at("_id").get<std::string>();
  }
};

TEST_P(ControlPlaneOtherClients, TheOperatorOfPromotionsHasNothingToDo) {
  EXPECT_EQ(
      ask(bed().prod_token,
          "query { productReleaseTasks { type labels commitInfo { sha committer date message } "
          "appNamespace appName repoUrl branch path postActionOnly preAction actionUrl "
          "actionBody postAction workflowNamespace workflowName } }"),
      (Json{{"productReleaseTasks", Json::array()}}));
  EXPECT_EQ(ask(bed().prod_token,
                "query { productReleaseRunHooksTasks { type labels workflowTemplateName "
                "workflowNamespace workflowName parameters } }"),
            (Json{{"productReleaseRunHooksTasks", Json::array()}}));
  EXPECT_EQ(ask(bed().prod_token,
                "query { productReleaseCommitStatuses { sha repoURL status description context "
                "targetUrl } }"),
            (Json{{"productReleaseCommitStatuses", Json::array()}}));
}

TEST_P(ControlPlaneOtherClients, ImageTasksReportWithTheKeyOfAUser) {
  const Json image{{"id", "sha256:1"},
                   {"created", "2026-03-04T09:00:00Z"},
                   {"imageName", "quay.io/acme/web:2"},
                   {"size", 12345678901.0},
                   {"author", {{"username", "ann"}}},
                   {"workflowName", "build"}};
  EXPECT_EQ(
      ask(bed().bob_key,
          "mutation($imageBinary: ImageBinaryInput!){createImageBinary(imageBinary: "
          "$imageBinary){id imageName workflowName}}",
          {{"imageBinary", image}}),
      (Json{
          {"createImageBinary",
           {{"id", "sha256:1"}, {"imageName", "quay.io/acme/web:2"}, {"workflowName", "build"}}}}));
  const auto layers =
      ask(bed().bob_key,
          "mutation($imageLayers: ImageLayersInput!){createImageLayers("
          "imageLayers: $imageLayers){accountId created image layerDigests "
          "layers{created instruction size args}}}",
          {{"imageLayers",
            {{"image", "sha256:1"},
             {"created", "2026-03-04T09:00:00Z"},
             {"layerDigests", {"sha256:a"}},
             {"layers", {{{"instruction", "COPY"}, {"size", 1}, {"args", "."}}}}}}});
  EXPECT_EQ(layers["createImageLayers"]["accountId"], bed().account_id);
  for (const bool is_list : {false, true}) {
    const auto registry = ask(bed().bob_key,
                              "mutation($imageRegistry: ImageRegistryInput!){createImageRegistry("
                              "imageRegistry: $imageRegistry){binaryId repoDigest}}",
                              {{"imageRegistry",
                                {{"binaryId", "sha256:1"},
                                 {"created", "2026-03-04T09:00:00Z"},
                                 {"imageName", "quay.io/acme/web:2"},
                                 {"repoDigest", "sha256:r"},
                                 {"architecture", "arm64"},
                                 {"manifestList", is_list}}}});
    EXPECT_EQ(registry["createImageRegistry"]["binaryId"], "sha256:1");
  }
  const auto patched = ask(bed().bob_key,
                           "mutation($imagePatch: ImageBinaryPatchInput!, $imageName: String){"
                           "patchImageBinary(imagePatch: $imagePatch, imageName: $imageName){"
                           "imageName}}",
                           {{"imagePatch", {{"commit", "c0ffee"}, {"gitProvider", "github"}}},
                            {"imageName", "quay.io/acme/web:2"}});
  EXPECT_EQ(patched["patchImageBinary"]["imageName"], "quay.io/acme/web:2");
  const Json annotation{{"logicEntityId", {{"id", "quay.io/acme/web:2"}}}, {"entityType", "image"}};
  auto pull_request = annotation;
  pull_request.update(Json{{"key", "#github#acme/web#7"},
                           {"type", "pr"},
                           {"pullRequestValue",
                            {{"id", "7"},
                             {"url", "https://git.example.test/acme/web/pull/7"},
                             {"title", "t"},
                             {"committers", {{{"userName", "ann"}, {"avatar", nullptr}}}},
                             {"commits", {{{"sha", "c0ffee"}, {"userName", "ann"}}}}}}});
  auto issue = annotation;
  issue.update(Json{
      {"key", "SHOP-1"},
      {"type", "issue"},
      {"issueValue", {{"url", "u"}, {"title", "t"}, {"assignee", nullptr}, {"status", "Open"}}}});
  for (const auto& one : {pull_request, issue}) {
    ask(bed().bob_key,
        "mutation($annotation: AnnotationArgs!){saveAnnotation(annotation: $annotation)}",
        {{"annotation", one}});
  }
}

TEST_P(ControlPlaneOtherClients, StepsOfPipelinesFollowAnApplication) {
  EXPECT_EQ(ask(bed().bob_key,
                "query($runtime: String!){runtime(name: $runtime){metadata{name namespace} "
                "ingressHost}}",
                {{"runtime", "prod"}})["runtime"]["metadata"],
            (Json{{"name", "prod"}, {"namespace", "gitops"}}));
  EXPECT_EQ(ask(bed().bob_key,
                "query($runtime: String!, $name: String!, $namespace: String){application("
                "runtime: $runtime, name: $name, namespace: $namespace){metadata{runtime name "
                "namespace cluster} healthStatus syncStatus syncPolicy}}",
                {{"runtime", "prod"}, {"name", "shop"}, {"namespace", "argocd"}})["application"],
            (Json{{"metadata",
                   {{"runtime", "prod"},
                    {"name", "shop"},
                    {"namespace", "argocd"},
                    {"cluster", "https://kubernetes.default.svc"}}},
                  {"healthStatus", "PROGRESSING"},
                  {"syncStatus", "OUT_OF_SYNC"},
                  {"syncPolicy", "Manual"}}));
  const auto releases =
      ask(bed().bob_key,
          "query($pagination: SlicePaginationArgs, $filters: GitopsReleaseFilterArgs, $sort: "
          "GitopsReleaseSortArg){gitopsReleases(pagination: $pagination, filters: $filters, sort: "
          "$sort){edges{node{current argoHistoryId application{status{syncStatus healthStatus}}}} "
          "pageInfo{startCursor endCursor hasNextPage hasPrevPage}}}",
          {{"pagination", {{"first", 20}}},
           {"filters", {{"namespace", "argocd"}, {"runtime", "prod"}, {"name", "shop"}}},
           {"sort", {{"field", "historyId"}, {"order", "desc"}}}});
  EXPECT_EQ(releases["gitopsReleases"]["edges"], Json::array());
  EXPECT_EQ(ask(bed().bob_key,
                "query($runtime: String!, $appNamespace: String!, $appName: String!, $commitSHA: "
                "String!, $rollout: String!, $stepIndex: Int!){rolloutStepStatus(runtime: $runtime,"
                " appNamespace: $appNamespace, appName: $appName, commitSHA: $commitSHA, rollout: "
                "$rollout, stepIndex: $stepIndex){status}}",
                {{"runtime", "prod"},
                 {"appNamespace", "not relevant"},
                 {"appName", "shop"},
                 {"commitSHA", "c0ffee"},
                 {"rollout", "web"},
                 {"stepIndex", 0}}),
            (Json{{"rolloutStepStatus", nullptr}}));
}

TEST_P(ControlPlaneOtherClients, TerraformMakesAndRemovesARule) {
  const auto team = first_team();
  const std::string fields =
      "{id accountId entityType teams tags actions attributes{name key value}}";
  const auto made = ask(bed().admin_key,
                        "mutation($accountId: String!, $createAbacRuleInput: CreateAbacRuleInput!){"
                        "createAbacRule(accountId: $accountId, createAbacRuleInput: "
                        "$createAbacRuleInput)" +
                            fields + "}",
                        {{"accountId", ""},
                         {"createAbacRuleInput",
                          {{"entityType", "gitopsApplications"},
                           {"teams", {team}},
                           {"tags", {"*"}},
                           {"actions", {"SYNC", "REFRESH"}},
                           {"attributes", Json::array()}}}})["createAbacRule"];
  EXPECT_EQ(made["accountId"], bed().account_id);
  const Json of{{"accountId", ""}, {"id", made["id"]}};
  EXPECT_EQ(ask(bed().admin_key,
                "query($accountId: String!, $id: ID!){abacRule(accountId: $accountId, id: $id)" +
                    fields + "}",
                of)["abacRule"],
            made);
  const auto list = ask(bed().admin_key,
                        "query($accountId: String!, $entityType: AbacEntityValues!){abacRules("
                        "accountId: $accountId, entityType: $entityType)" +
                            fields + "}",
                        {{"accountId", ""}, {"entityType", "gitopsApplications"}});
  EXPECT_EQ(list["abacRules"], Json::array({made}));
  EXPECT_EQ(ask(bed().admin_key,
                "mutation($accountId: String!, $id: ID!){removeAbacRule(accountId: $accountId, id: "
                "$id)" +
                    fields + "}",
                of)["removeAbacRule"],
            made);
}

TEST_P(ControlPlaneOtherClients, AnAssistantSelectsTwoFieldsAtOnce) {
  const auto data = ask(bed().bob_key,
                        "{me{id name avatarUrl registerDate isAdmin email accounts{id name admins "
                        "systemType}} plan{segment}}");
  EXPECT_EQ(data["me"]["name"], "bob");
  EXPECT_TRUE(data["me"]["registerDate"].is_string());
  EXPECT_EQ(data["me"]["accounts"][0]["admins"], Json::array({bed().admin_id}));
  EXPECT_TRUE(data.contains("plan"));
}

INSTANTIATE_TEST_SUITE_P(Engines, ControlPlaneOtherClients, testing::Bool(),
                         [](const auto& info) { return info.param ? "Postgres" : "Sqlite"; });

}  // namespace
}  // namespace gitops::test
