#include <array>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "control-plane/resolvers/graphql_bench.hpp"
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
constexpr const char* kComponents =
    "query Components($runtime: String!) { components(runtime: $runtime) { edges { node { metadata "
    "{ name runtime } version self { status { syncStatus healthStatus } errors { ...on SyncError { "
    "title message suggestion level } } } } } } }";
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
constexpr const char* kReleases =
    "query($filters: GitopsReleaseFilterArgs, $sort: GitopsReleaseSortArg) { gitopsReleases("
    "filters: $filters, sort: $sort, pagination: {first: 20}) { edges { node { current "
    "argoHistoryId applicationMetadata { name } toState { services { name images { image tag } } "
    "rollouts { name phase isComplete } } transition { services { name } } application { status { "
    "syncStatus healthStatus } issues { key } committers { userName } } } } pageInfo { endCursor "
    "hasNextPage } } }";

// Where a null makes a public client fail, panic, or drop the whole list: the one table of these fields that come from
// views. A path goes through the elements of lists.
struct NeverNull {
  const char* document;
  std::vector<const char*> path;
};
const std::array<NeverNull, 15> kNeverNull{{
    {kGitSources, {"gitSources", "edges", "node", "metadata", "name"}},
    {kGitSources, {"gitSources", "edges", "node", "self", "status", "syncStatus"}},
    {kComponents, {"components", "edges", "node", "self", "status", "syncStatus"}},
    {kWorkflows, {"workflows", "edges", "node", "metadata", "uid"}},
    {kWorkflows, {"workflows", "edges", "node", "status", "phase"}},
    {kPipelines, {"pipelines", "edges", "node", "metadata", "namespace"}},
    {kComponents, {"components", "edges", "node", "version"}},
    {kWorkflows, {"workflows", "edges", "node", "metadata", "namespace"}},
    {kWorkflows, {"workflows", "edges", "node", "status", "nodes", "type"}},
    {kWorkflows, {"workflows", "edges", "node", "status", "nodes", "name"}},
    {kPipelines, {"pipelines", "edges", "node", "self", "syncStatus"}},
    {kPipelines, {"pipelines", "edges", "node", "spec", "trigger"}},
    {kApplications, {"response", "edges", "node", "syncStatus"}},
    {kApplications, {"response", "edges", "node", "errors", "level"}},
    {kReleases, {"gitopsReleases", "edges", "node", "application", "status", "syncStatus"}},
}};

// Counts the values at a path; each null on the way is a failure.
std::size_t count_values(const Json& at, std::span<const char* const> path) {
  EXPECT_FALSE(at.is_null()) << "before " << (path.empty() ? "the end" : path.front());
  if (at.is_array()) {
    std::size_t found = 0;
    for (const auto& item : at) found += count_values(item, path);
    return found;
  }
  if (path.empty()) return 1;
  if (!at.is_object()) return 0;
  return count_values(at.value(path.front(), Json()), path.subspan(1));
}

struct ViewsBench {
  explicit ViewsBench(GraphqlBench& on) : graphql(on) {}

  Task<> send(std::string body, std::string runtime = "prod") {
    auto stored = co_await graphql.accounts.database.with_writer(
        AccountsBench::soon(),
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

  GraphqlBench& graphql;
  Seeder seeder{store::Engine::sqlite};
};

void with_views(const std::function<Task<>(ViewsBench&)>& body) {
  with_graphql([&](GraphqlBench& graphql) -> Task<> {
    ViewsBench bench(graphql);
    co_await body(bench);
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
  with_views([](ViewsBench& bench) -> Task<> {
    co_await bench.send(app_event(git_source("team-a")));
    co_await bench.send(app_event(git_source("team-b")), "stage");
    co_await bench.send(app_event(application_of("shop")));
    auto data = co_await bench.ask(kGitSources, {{"runtime", "prod"}});
    EXPECT_THAT(node_names(data["gitSources"]), ElementsAre("team-a"));
    EXPECT_EQ(data["gitSources"]["edges"][0]["node"]["self"]["path"], "apps/team-a");
    data = co_await bench.ask(kGitSources, {{"runtime", ""}});
    EXPECT_THAT(node_names(data["gitSources"]), ElementsAre("team-a", "team-b"));
  });
}

TEST(ViewFields, ApplicationsAreFilteredAndPaged) {
  with_views([](ViewsBench& bench) -> Task<> {
    for (const auto* name : {"a", "b", "c"}) {
      auto application = application_of(name);
      application["metadata"]["annotations"] = {{"codefresh.io/app-group", name}};
      co_await bench.send(app_event(application));
    }
    auto data = co_await bench.ask(kApplications, {{"pagination", {{"first", 2}, {"after", ""}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("a", "b"));
    EXPECT_EQ(data["response"]["pageInfo"]["hasNextPage"], true);
    data = co_await bench.ask(
        kApplications, {{"pagination", {{"after", data["response"]["pageInfo"]["endCursor"]}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("c"));
    data = co_await bench.ask(kApplications, {{"filters", {{"appGroups", {"b", "x"}}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre("b"));
    data = co_await bench.ask(kApplications,
                              {{"filters", {{"inactive", true}, {"includeComponents", true}}}});
    EXPECT_THAT(node_names(data["response"]), ElementsAre());
    const auto bad = co_await bench.graphql.ask(bench.graphql.sample.bob_key, kApplications,
                                                {{"pagination", {{"after", "nonsense"}}}});
    EXPECT_TRUE(bad.contains("errors"));
  });
}

TEST(ViewFields, OtherAccountsSeeNothing) {
  with_views([](ViewsBench& bench) -> Task<> {
    co_await bench.send(app_event(application_of("shop")));
    constexpr const char* kOne =
        "{application(runtime: \"prod\", namespace: \"argocd\", name: \"shop\"){metadata{name "
        "cluster namespace} specSource{repoURL targetRevision path} syncPolicy}}";
    const auto own = co_await bench.ask(kOne);
    EXPECT_EQ(own["application"]["specSource"]["targetRevision"], "main");
    EXPECT_EQ(own["application"]["syncPolicy"], "Manual");
    const auto foreign = co_await bench.graphql.ask(bench.graphql.sample.eve_key, kOne);
    EXPECT_FALSE(foreign.contains("errors"));
    EXPECT_TRUE(foreign["data"]["application"].is_null());
    const auto list = co_await bench.graphql.ask(bench.graphql.sample.eve_key, kApplications);
    EXPECT_EQ(list["data"]["response"]["edges"], Json::array());
  });
}

TEST(ViewFields, WorkflowsAreFoundByUidAlsoWhenTheyAreGone) {
  with_views([](ViewsBench& bench) -> Task<> {
    auto workflow = object_of("argoproj.io/v1alpha1", "Workflow", "ci", "build");
    workflow["spec"] = {{"entrypoint", "main"}, {"templates", {{{"name", "main"}}}}};
    workflow["status"] = {{"phase", "Succeeded"}, {"progress", "1/1"}};
    co_await bench.send(resource_event(workflow));
    const Json any{{"filters", {{"project", ""}, {"runtime", ""}, {"namespace", ""}}}};
    auto data = co_await bench.ask(kWorkflows, any);
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre("build"));
    data = co_await bench.ask(kWorkflows, {{"filters", {{"statuses", {"Failed"}}}}});
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre());
    co_await bench.send(resource_event(workflow, true));
    data = co_await bench.ask(kWorkflows, any);
    EXPECT_THAT(node_names(data["workflows"]), ElementsAre());
    data = co_await bench.ask(kWorkflow, {{"uid", "uid-build"}});
    EXPECT_EQ(data["workflow"]["status"]["phase"], "Succeeded");
    EXPECT_TRUE(data["workflow"]["spec"]["templates"].is_null());
    data = co_await bench.ask(kWorkflow, {{"uid", "none"}});
    EXPECT_TRUE(data["workflow"].is_null());
  });
}

TEST(ViewFields, ImagesAreReportedAndAnnotated) {
  with_views([](ViewsBench& bench) -> Task<> {
    const Json image{{"id", "sha256:1"}, {"created", "t"}, {"imageName", "quay.io/acme/web:2"}};
    auto data = co_await bench.ask(
        "mutation($imageBinary: ImageBinaryInput!){createImageBinary(imageBinary: $imageBinary){id "
        "imageName workflowName imageDomain imageRegistryDomains accountId lastUpdate}}",
        {{"imageBinary", image}});
    EXPECT_EQ(data["createImageBinary"]["id"], "sha256:1");
    EXPECT_EQ(data["createImageBinary"]["imageDomain"], "QUAY");
    data = co_await bench.ask(
        "mutation($p: ImageBinaryPatchInput!, $n: String){patchImageBinary(imagePatch: $p, "
        "imageName: $n){imageName commit}}",
        {{"p", {{"commit", "c0ffee"}}}, {"n", "quay.io/acme/web:2"}});
    EXPECT_EQ(data["patchImageBinary"]["commit"], "c0ffee");
    data = co_await bench.ask(
        "mutation($r: ImageRegistryInput!){createImageRegistry(imageRegistry: $r){binaryId "
        "repoDigest}}",
        {{"r",
          {{"binaryId", "sha256:1"},
           {"created", "t"},
           {"imageName", "quay.io/acme/web:2"},
           {"repoDigest", "d"}}}});
    EXPECT_EQ(data["createImageRegistry"]["repoDigest"], "d");
    data = co_await bench.ask(
        "mutation($l: ImageLayersInput!){createImageLayers(imageLayers: $l){accountId created "
        "image layerDigests layers{created instruction size args}}}",
        {{"l",
          {{"image", "sha256:1"},
           {"layerDigests", {"a"}},
           {"layers", {{{"created", "t"}, {"instruction", "COPY"}, {"size", 1}}}}}}});
    EXPECT_EQ(data["createImageLayers"]["layers"][0]["instruction"], "COPY");
    data = co_await bench.ask(
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
    co_await bench.send(app_event(shop));
    data = co_await bench.ask(kReleases, {{"filters", {{"name", "shop"}}},
                                          {"sort", {{"field", "historyId"}, {"order", "desc"}}}});
    const auto& node = data["gitopsReleases"]["edges"][0]["node"];
    EXPECT_EQ(node["current"], true);
    EXPECT_EQ(node["application"]["issues"][0]["key"], "SHOP-1");
    EXPECT_EQ(node["toState"]["services"][0]["images"][0]["tag"], "2");
  });
}

TEST(ViewFields, WhatIsNotBuiltYetIsEmpty) {
  with_views([](ViewsBench& bench) -> Task<> {
    const auto data = co_await bench.ask(
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

// An object of which parts are missing, empty, or of another type.
class RandomObjects {
 public:
  explicit RandomObjects(std::mt19937& random) : random_(random) {}

  std::string event() {
    const auto name = "n" + std::to_string(below(8));
    switch (below(5)) {
      case 0:
        return app_event(damaged(application(name)), source());
      case 1: {
        auto owner = git_source(name);
        owner["metadata"]["labels"]["codefresh.io/entity"] =
            below(2) == 0 ? "git-source" : "runtime";
        return app_event(damaged(owner), source());
      }
      case 2:
        return app_event(damaged(object_of("apps/v1", "Deployment", "gitops", name)),
                         managed_by("n" + std::to_string(below(8))));
      case 3:
        return app_event(damaged(sensor(name)), managed_by("n0"));
      default:
        return resource_event(damaged(workflow(name)), below(9) == 0);
    }
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  const char* word() {
    static constexpr std::array<const char*, 10> kWords{
        "Synced",   "OutOfSync", "Healthy", "Running", "Succeeded",
        "nonsense", "",          "Unknown", "Error",   "DEGRADED"};
    return kWords[static_cast<std::size_t>(below(10))];
  }
  Json source() {
    if (below(3) == 0) return managed_by("n1");
    return {{"syncStatus", word()}, {"healthStatus", word()}, {"historyId", below(3)}};
  }
  Json application(const std::string& name) {
    auto object = application_of(name);
    object["status"]["sync"]["status"] = word();
    object["status"]["health"]["status"] = word();
    object["status"]["history"] = {{{"id", below(4)}, {"revision", word()}}};
    object["status"]["operationState"] = {{"phase", word()}, {"startedAt", word()}};
    object["status"]["resources"] = {{{"kind", "Rollout"}, {"group", "argoproj.io"}}};
    object["status"]["summary"]["images"] = {word(), "a/b:c"};
    return object;
  }
  Json sensor(const std::string& name) {
    auto object = object_of("argoproj.io/v1alpha1", "Sensor", "ci", name);
    object["spec"]["triggers"] = {{{"template", {{"name", word()}}}}};
    return object;
  }
  Json workflow(const std::string& name) {
    auto object = object_of("argoproj.io/v1alpha1", "Workflow", "ci", name);
    object["metadata"]["labels"] = {{"events.argoproj.io/sensor", word()}};
    object["spec"] = {{"entrypoint", "m"},
                      {"templates", {{{"name", "m"}}}},
                      {"workflowTemplateRef", {{"name", word()}}}};
    object["status"] = {{"phase", word()},
                        {"nodes", {{"x", {{"type", "Pod"}, {"phase", word()}}}}}};
    return object;
  }
  // Removes or replaces some members below spec, status and metadata; what identifies the object stays.
  Json damaged(Json object) {
    for (const auto* part : {"spec", "status"}) {
      if (object.contains(part)) damage(object[part]);
    }
    auto& metadata = object["metadata"];
    for (const auto* part : {"uid", "namespace", "creationTimestamp", "labels", "annotations"}) {
      if (below(8) == 0) metadata.erase(part);
    }
    if (below(12) == 0) metadata["labels"] = 7;
    return object;
  }
  void damage(Json& at) {
    if (below(10) == 0) {
      static const std::array<Json, 6> kOthers{Json(),        Json(7),        Json("text"),
                                               Json::array(), Json::object(), Json(9.5e30)};
      at = kOthers[static_cast<std::size_t>(below(6))];
      return;
    }
    if (!at.is_structured()) return;
    for (auto& member : at) damage(member);
  }

  std::mt19937& random_;
};

TEST(ViewFields, NoNullLeavesThatBreaksAClient) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  with_views([&](ViewsBench& bench) -> Task<> {
    RandomObjects objects(random);
    std::set<const char*> documents;
    for (const auto& [document, path] : kNeverNull) documents.insert(document);
    std::size_t values = 0;
    for (int round = 0; round < 20; ++round) {
      for (int event = 0; event < 20; ++event) {
        co_await bench.send(objects.event(), event % 3 == 0 ? "stage" : "prod");
      }
      for (const auto* document : documents) {
        const auto data = co_await bench.ask(document, std::string_view(document) == kComponents
                                                           ? Json{{"runtime", ""}}
                                                           : Json::object());
        for (const auto& [of, path] : kNeverNull) {
          if (of == document) values += count_values(data, path);
        }
      }
      if (testing::Test::HasFailure()) co_return;
    }
    EXPECT_GT(values, 1'000U) << "the table was compared with something";
  });
}

}  // namespace
}  // namespace gitops::control_plane_server
