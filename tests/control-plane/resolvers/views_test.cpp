#include <gmock/gmock.h>

#include "control-plane/resolvers/graphql_fixture.hpp"
#include "control-plane/views/seed.hpp"

// What the public clients ask, against what reporters told.
namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

// Documents of the public SDK.
constexpr const char* kGitSources =
    "query GitSources($runtime: String) { gitSources(runtime: $runtime) { edges { node { metadata "
    "{ name } self { path repoURL status { syncStatus healthStatus } } } } } }";
constexpr const char* kWorkflows =
    "query Workflows($filters: WorkflowsFilterArgs) { workflows(filters: $filters) { edges { node "
    "{ metadata { uid name namespace runtime } projects spec { entrypoint templates { name } "
    "workflowTemplateRef { name namespace } } status { phase progress nodes { type name } } "
    "pipeline { metadata { name namespace } } } } } }";
constexpr const char* kWorkflow =
    "query Workflow($uid: String!) { workflow(uid: $uid) { metadata { uid name namespace runtime } "
    "projects spec { entrypoint templates { name } workflowTemplateRef { name namespace } } status "
    "{ phase progress nodes { type name } } pipeline { metadata { name namespace } } } }";
constexpr const char* kPipelines =
    "query Pipelines($filters: PipelinesFilterArgs) { pipelines(filters: $filters) { edges { node "
    "{ metadata { name namespace runtime } self { healthStatus syncStatus version } projects spec "
    "{ trigger } } } } }";
// What app-proxy and a step of a pipeline ask.
constexpr const char* kApplications =
    "query($filters: ApplicationsFilterArgs, $pagination: SlicePaginationArgs) { response: "
    "applications(filters: $filters, pagination: $pagination) { edges { node { metadata { name "
    "namespace runtime account } syncStatus healthStatus errors { title level lastSeen } status { "
    "revision historyId } } } pageInfo { startCursor endCursor hasNextPage hasPrevPage } } }";

struct ViewsFixture {
  explicit ViewsFixture(GraphqlFixture& on) : graphql(on) {}

  Task<> send(std::string body, std::string runtime = "prod") {
    auto stored = co_await graphql.accounts.database.with_writer(
        AccountsFixture::soon(),
        [this, body = std::move(body),
         runtime = std::move(runtime)](store::Connection& db) -> Result<std::int64_t> {
          return seeder.store(db, graphql.sample.acme.number, body, runtime);
        });
    must(std::move(stored));
  }
  Task<Json> ask(std::string query, Json variables = Json::object()) {
    auto response = co_await graphql.ask(graphql.sample.bob_key, std::move(query), variables);
    EXPECT_FALSE(response.contains("errors")) << response["errors"];
    co_return response["data"];
  }

  GraphqlFixture& graphql;
  Seeder seeder{store::Engine::sqlite};
};

void with_views(const std::function<Task<>(ViewsFixture&)>& body) {
  with_graphql([&](GraphqlFixture& graphql) -> Task<> {
    ViewsFixture fixture(graphql);
    co_await body(fixture);
  });
}

std::vector<std::string> node_names(const Json& slice) {
  std::vector<std::string> found;
  for (const auto& edge : slice["edges"]) found.push_back(edge["node"]["metadata"]["name"]);
  return found;
}

Json git_source(const std::string& name) {
  auto application = application_of(name);
  application["metadata"]["labels"] = {{"codefresh.io/entity", "git-source"}};
  return application;
}

TEST(ViewFields, GitSourcesAreListedByRuntime) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    co_await fixture.send(app_event(git_source("team-a")));
    co_await fixture.send(app_event(git_source("team-b")), "stage");
    co_await fixture.send(app_event(application_of("shop")));
    auto data = co_await fixture.ask(kGitSources, {{"runtime", "prod"}});
    EXPECT_THAT(node_names(data["gitSources"]), ElementsAre("team-a"));
    EXPECT_EQ(data["gitSources"]["edges"][0]["node"]["self"]["path"], "apps/team-a");
    data = co_await fixture.ask(kGitSources, {{"runtime", ""}});
    EXPECT_THAT(node_names(data["gitSources"]), ElementsAre("team-a", "team-b"));
  });
}

TEST(ViewFields, ApplicationsAreFilteredAndPaged) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    for (const auto* name : {"a", "b", "c"}) {
      auto application = application_of(name);
      application["metadata"]["annotations"] = {{"codefresh.io/app-group", name}};
      co_await fixture.send(app_event(application));
    }
    auto data =
        co_await fixture.ask(kApplications, {{"pagination", {{"first", 2}, {"after", ""}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("a", "b"));
    EXPECT_EQ(data["response"]["pageInfo"]["hasNextPage"], true);
    data = co_await fixture.ask(
        kApplications, {{"pagination", {{"after", data["response"]["pageInfo"]["endCursor"]}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("c"));
    data = co_await fixture.ask(kApplications, {{"filters", {{"appGroups", {"b", "x"}}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("b"));
    data = co_await fixture.ask(kApplications,
                                {{"filters", {{"inactive", true}, {"includeComponents", true}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre());
    const auto bad = co_await fixture.graphql.ask(fixture.graphql.sample.bob_key, kApplications,
                                                  {{"pagination", {{"after", "nonsense"}}}});
    EXPECT_TRUE(bad.contains("errors"));
  });
}

TEST(ViewFields, OtherAccountsSeeNothing) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    co_await fixture.send(app_event(application_of("shop")));
    constexpr const char* kOne =
        "{application(runtime: \"prod\", namespace: \"argocd\", name: \"shop\"){metadata{name "
        "cluster namespace} specSource{repoURL targetRevision path} syncPolicy}}";
    const auto own = co_await fixture.ask(kOne);
    EXPECT_EQ(own["application"]["specSource"]["targetRevision"], "main");
    EXPECT_EQ(own["application"]["syncPolicy"], "Manual");
    const auto foreign = co_await fixture.graphql.ask(fixture.graphql.sample.eve_key, kOne);
    EXPECT_FALSE(foreign.contains("errors"));
    EXPECT_TRUE(foreign["data"]["application"].is_null());
    const auto list = co_await fixture.graphql.ask(fixture.graphql.sample.eve_key, kApplications);
    EXPECT_EQ(list["data"]["response"]["edges"], Json::array());
  });
}

TEST(ViewFields, WorkflowsAreFoundByUidAlsoWhenTheyAreGone) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    auto workflow = object_of("argoproj.io/v1alpha1", "Workflow", "ci", "build");
    workflow["spec"] = {{"entrypoint", "main"}, {"templates", {{{"name", "main"}}}}};
    workflow["status"] = {{"phase", "Succeeded"}, {"progress", "1/1"}};
    co_await fixture.send(resource_event(workflow));
    const Json any{{"filters", {{"project", ""}, {"runtime", ""}, {"namespace", ""}}}};
    auto data = co_await fixture.ask(kWorkflows, any);
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre("build"));
    data = co_await fixture.ask(kWorkflows, {{"filters", {{"statuses", {"Failed"}}}}});
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre());
    co_await fixture.send(resource_event(workflow, true));
    data = co_await fixture.ask(kWorkflows, any);
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre());
    data = co_await fixture.ask(kWorkflow, {{"uid", "uid-build"}});
    EXPECT_EQ(data["workflow"]["status"]["phase"], "Succeeded");
    EXPECT_TRUE(data["workflow"]["spec"]["templates"].is_null());
    data = co_await fixture.ask(kWorkflow, {{"uid", "none"}});
    EXPECT_TRUE(data["workflow"].is_null());
  });
}

TEST(ViewFields, PipelinesAreSensors) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    for (const auto* name : {"push", "tag"}) {
      auto sensor = object_of("argoproj.io/v1alpha1", "Sensor", "ci", name);
      sensor["spec"]["triggers"] = {{{"template", {{"name", "build"}}}}};
      co_await fixture.send(app_event(sensor, managed_by("team-a")));
    }
    const auto filters = [](const char* name) {
      return Json{
          {"filters", {{"project", ""}, {"runtime", "prod"}, {"namespace", "ci"}, {"name", name}}}};
    };
    auto data = co_await fixture.ask(kPipelines, filters(""));
    EXPECT_THAT(node_names(data["pipelines"]), ElementsAre("push", "tag"));
    EXPECT_EQ(data["pipelines"]["edges"][0]["node"]["spec"]["trigger"], "build");
    data = co_await fixture.ask(kPipelines, filters("tag"));
    EXPECT_THAT(node_names(data["pipelines"]), ElementsAre("tag"));
  });
}

TEST(ViewFields, ImagesAreReportedAndAnnotated) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    const Json image{{"id", "sha256:1"}, {"created", "t"}, {"imageName", "quay.io/acme/web:2"}};
    auto data = co_await fixture.ask(
        "mutation($imageBinary: ImageBinaryInput!){createImageBinary(imageBinary: $imageBinary){id "
        "imageName workflowName imageDomain imageRegistryDomains accountId lastUpdate}}",
        {{"imageBinary", image}});
    EXPECT_EQ(data["createImageBinary"]["id"], "sha256:1");
    EXPECT_EQ(data["createImageBinary"]["imageDomain"], "QUAY");
    data = co_await fixture.ask(
        "mutation($p: ImageBinaryPatchInput!, $n: String){patchImageBinary(imagePatch: $p, "
        "imageName: $n){imageName commit}}",
        {{"p", {{"commit", "c0ffee"}}}, {"n", "quay.io/acme/web:2"}});
    EXPECT_EQ(data["patchImageBinary"]["commit"], "c0ffee");
    data = co_await fixture.ask(
        "mutation($r: ImageRegistryInput!){createImageRegistry(imageRegistry: $r){binaryId "
        "repoDigest}}",
        {{"r",
          {{"binaryId", "sha256:1"},
           {"created", "t"},
           {"imageName", "quay.io/acme/web:2"},
           {"repoDigest", "d"}}}});
    EXPECT_EQ(data["createImageRegistry"]["repoDigest"], "d");
    data = co_await fixture.ask(
        "mutation($l: ImageLayersInput!){createImageLayers(imageLayers: $l){accountId created "
        "image layerDigests layers{created instruction size args}}}",
        {{"l",
          {{"image", "sha256:1"},
           {"layerDigests", {"a"}},
           {"layers", {{{"created", "t"}, {"instruction", "COPY"}, {"size", 1}}}}}}});
    EXPECT_EQ(data["createImageLayers"]["layers"][0]["instruction"], "COPY");
    data = co_await fixture.ask(
        "mutation($a: AnnotationArgs!){saveAnnotation(annotation: $a)}",
        {{"a",
          {{"logicEntityId", {{"id", "quay.io/acme/web:2"}}},
           {"entityType", "image"},
           {"key", "SHOP-1"},
           {"type", "issue"},
           {"issueValue", {{"url", "u"}, {"title", "t"}, {"status", "Open"}}}}}});
    EXPECT_EQ(data["saveAnnotation"], true);
    auto shop = application_of("shop");
    shop["status"]["history"] = {{{"id", 1}, {"revision", "a"}}};
    shop["status"]["summary"]["images"] = Json::array({"quay.io/acme/web:2"});
    co_await fixture.send(app_event(shop));
    data = co_await fixture.ask(kReleases, {{"filters", {{"name", "shop"}}},
                                            {"sort", {{"field", "historyId"}, {"order", "desc"}}}});
    const auto& node = data["gitopsReleases"]["edges"][0]["node"];
    EXPECT_EQ(node["current"], true);
    EXPECT_EQ(node["application"]["issues"][0]["key"], "SHOP-1");
    EXPECT_EQ(node["toState"]["services"][0]["images"][0]["tag"], "2");
  });
}

TEST(ViewFields, WhatIsNotBuiltYetIsEmpty) {
  with_views([](ViewsFixture& fixture) -> Task<> {
    const auto data = co_await fixture.ask(
        "{promotions(pagination: {first: 20}){edges{node{__typename}} pageInfo{endCursor "
        "hasNextPage}} productReleases(productName: \"p\"){edges{node{releaseId}}} "
        "productReleaseTasks{type} productReleaseRunHooksTasks{type} "
        "productReleaseCommitStatuses{sha} productComponentsList{name} "
        "promotionTemplate(runtime: \"r\", namespace: \"n\", name: \"x\"){promotion{glob}} "
        "rolloutStepStatus(runtime: \"r\", appNamespace: \"not relevant\", appName: \"a\", "
        "commitSHA: \"c\", rollout: \"w\", stepIndex: 0){status}}");
    EXPECT_EQ(data["promotions"]["edges"], Json::array());
    EXPECT_EQ(data["promotions"]["pageInfo"]["hasNextPage"], false);
    EXPECT_EQ(data["productReleaseTasks"], Json::array());
    EXPECT_EQ(data["productComponentsList"], Json::array());
    EXPECT_TRUE(data["promotionTemplate"].is_null());
    EXPECT_TRUE(data["rolloutStepStatus"].is_null());
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
