#include "event-reporter/payload.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A golden case holds readable objects where the wire has JSON text: manifests, and the decoded
// "object". These helpers translate.
json read_case(const std::string& name) {
  std::ifstream file(std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/golden" / (name + ".json"));
  EXPECT_TRUE(file) << name;
  return json::parse(file);
}

std::string managed_answer(const json& items) {
  json out = json::array();
  for (const auto& item : items) {
    json entry = item;
    entry["targetState"] = item.at("target").dump();
    entry["liveState"] = item.at("live").dump();
    entry.erase("target");
    entry.erase("live");
    out.push_back(std::move(entry));
  }
  return json{{"items", std::move(out)}}.dump();
}

std::optional<std::vector<Revision>> revisions(const json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<Revision> out;
  for (const auto& entry : list) {
    out.push_back({entry.at("revision"),
                   entry.contains("metadata") ? entry.at("metadata").dump() : std::string{}});
  }
  return out;
}

AppMaterial app_material(const json& input) {
  AppMaterial material;
  material.application = input.at("application").dump();
  if (input.contains("managed")) material.managed = managed_answer(input["managed"]);
  if (input.contains("revisions")) {
    material.sync_revisions = revisions(input["revisions"].value("sync", json()));
    material.change_revisions = revisions(input["revisions"].value("change", json()));
  }
  return material;
}

TrackingSettings tracking(const json& input) {
  TrackingSettings settings;
  settings.argocd_namespace = "argocd";
  if (input.contains("settings")) {
    settings.method = input["settings"].value("method", settings.method);
    settings.installation_id = input["settings"].value("installationId", "");
  }
  return settings;
}

Result<Report> report_of(const json& input) {
  Material material;
  material.app = app_material(input);
  if (input.contains("tree")) material.tree = input["tree"].dump();
  if (input.contains("parent")) material.parent = app_material(input["parent"]);
  material.gone = input.value("gone", false);
  return Report::read(std::move(material), tracking(input));
}

json readable(const std::string& body) {
  auto data = json::parse(body).at("data");
  const auto object = base64_decode(data.at("object").get<std::string>());
  EXPECT_TRUE(object);
  data["object"] = json::parse(*object);
  for (const auto* key : {"desiredManifest", "actualManifest"}) {
    auto& manifest = data["source"][key];
    if (manifest != "") manifest = json::parse(manifest.get<std::string>());
  }
  // The one annotation that is JSON text itself.
  for (auto* object_json : {&data["object"], &data["source"]["actualManifest"]}) {
    const json::json_pointer at("/metadata/annotations/app.meta.revisions-metadata");
    if (object_json->is_object() && object_json->contains(at)) {
      (*object_json)[at] = json::parse((*object_json)[at].get<std::string>());
    }
  }
  return data;
}

// "SAME" stands for the input's status, "SAME AS OBJECT" for the event's own object (of a child:
// for the input application).
json filled(json expected, const json& input) {
  if (expected["object"].value("status", json()) == "SAME") {
    expected["object"]["status"] = input["application"]["status"];
  }
  if (expected["source"]["actualManifest"] == "SAME AS OBJECT") {
    expected["source"]["actualManifest"] =
        input.contains("parent") ? input["application"] : expected["object"];
  }
  return expected;
}

void expect_same(const json& expected, const json& actual, const std::string& what) {
  EXPECT_EQ(expected, actual) << what << ", difference:\n" << json::diff(expected, actual).dump(1);
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, EventsAreAsDocumented) {
  const auto input = read_case(GetParam());
  const auto now = *parse_rfc3339(input.at("now").get<std::string>());
  const auto report = report_of(input);
  ASSERT_TRUE(report) << report.error().message;
  const auto& expected = input.at("expected");
  if (expected.contains("application")) {
    expect_same(filled(expected["application"], input), readable(report->application_event(now)),
                "application");
  }
  json resources = json::object();
  for (std::size_t i = 0; i < report->resources().size(); ++i) {
    resources[report->resources()[i].id.to_string()] = readable(report->resource_event(i, now));
  }
  if (expected.contains("resources")) {
    for (const auto& [id, event] : resources.items()) {
      ASSERT_TRUE(expected["resources"].contains(id)) << "unexpected event of " << id;
      expect_same(expected["resources"][id], event, id);
    }
    EXPECT_EQ(resources.size(), expected["resources"].size());
  }
  for (const auto& [id, event] : expected.value("gone", json::object()).items()) {
    expect_same(event, readable(report->gone_event(ResourceId::parse(id), now)), id);
  }
}

INSTANTIATE_TEST_SUITE_P(Payload, Golden,
                         ::testing::Values("resource", "root-application", "child-application",
                                           "application-in-deletion", "unusual-resources"),
                         [](const auto& test) {
                           auto name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

json small_case() {
  return read_case("resource");
}

std::string resource_body(const json& input) {
  const auto report = report_of(input);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return report->resource_event(0, *parse_rfc3339("2026-03-04T09:15:27.412Z"));
}

TEST(Payload, ManifestsTravelAsTheTextThatWasReceived) {
  auto input = small_case();
  const std::string odd = R"({"kind":"Deployment",  "apiVersion":"apps/v1","n":1.50,"e":1e2 })";
  Material material;
  material.app.application = input["application"].dump();
  material.app.managed = json{{"items",
                               {{{"group", "apps"},
                                 {"kind", "Deployment"},
                                 {"namespace", "demo"},
                                 {"name", "guestbook-ui"},
                                 {"targetState", odd},
                                 {"liveState", odd}}}}}
                             .dump();
  const auto report = Report::read(std::move(material), {});
  ASSERT_TRUE(report);
  const auto body = json::parse(report->resource_event(0, WallTime{}));
  EXPECT_EQ(body["data"]["source"]["desiredManifest"], odd);
  EXPECT_EQ(body["data"]["source"]["actualManifest"], odd);
  EXPECT_EQ(*base64_decode(body["data"]["object"].get<std::string>()), odd);
}

TEST(Payload, EscapesLikeGoDoes) {
  auto input = small_case();
  input["revisions"]["sync"][0]["metadata"]["message"] = "a<b> & \xe2\x80\xa8 \"q\" \\ \t";
  const auto body = resource_body(input);
  EXPECT_THAT(body, HasSubstr(R"("commitMessage":"a\u003cb\u003e \u0026 \u2028 \"q\" \\ \t")"));
  EXPECT_THAT(body, Not(HasSubstr("<")));
}

TEST(Payload, FieldsComeInTheDocumentedOrder) {
  const auto body = resource_body(small_case());
  std::size_t at = 0;
  for (const auto* key : {"{\"data\":{\"timestamp\":\"2026-03-04T09:15:27.412Z\"",
                          "\"object\":",
                          "\"source\":{",
                          "\"desiredManifest\":",
                          "\"actualManifest\":",
                          "\"gitManifest\":",
                          "\"repoURL\":",
                          "\"path\":",
                          "\"revision\":",
                          "\"commitMessage\":",
                          "\"commitAuthor\":",
                          "\"commitDate\":",
                          "\"appName\":",
                          "\"appLabels\":",
                          "\"syncStatus\":",
                          "\"syncStartedAt\":",
                          "\"syncFinishedAt\":",
                          "\"healthStatus\":",
                          "\"healthMessage\":",
                          "\"cluster\":",
                          "\"historyId\":",
                          "\"operationSyncRevision\":",
                          "\"appUID\":",
                          "\"appNamespace\":",
                          "\"appInstanceLabelKey\":",
                          "\"trackingMethod\":",
                          "\"errors\":",
                          "\"appVersions\":{}}}"}) {
    at = body.find(key, at);
    ASSERT_NE(at, std::string::npos) << key;
  }
}

TEST(Payload, TimesAreUtcWholeSeconds) {
  auto input = small_case();
  input["application"]["status"]["operationState"]["startedAt"] = "2026-03-04T11:13:40.999+02:00";
  EXPECT_THAT(resource_body(input), HasSubstr(R"("syncStartedAt":"2026-03-04T09:13:40Z")"));
}

TEST(Payload, WithoutAnOperationTheSyncStartedNow) {
  auto input = small_case();
  input["application"]["status"].erase("operationState");
  const auto body = resource_body(input);
  EXPECT_THAT(body, HasSubstr(R"("syncStartedAt":"2026-03-04T09:15:27Z")"));
  EXPECT_THAT(body, Not(HasSubstr("syncFinishedAt")));
}

TEST(Payload, ADigestIgnoresTimesAndCommits) {
  const auto input = small_case();
  const auto digest = [](const json& of) { return report_of(of)->resources()[0].digest; };
  const auto before = digest(input);
  auto changed = input;
  changed["application"]["status"]["operationState"]["startedAt"] = "2026-05-05T00:00:00Z";
  changed["application"]["status"]["operationState"]["finishedAt"] = "2026-05-05T00:00:01Z";
  changed["application"]["status"]["history"][0]["revision"] = "another";
  changed["application"]["status"]["history"][0]["id"] = 8;
  changed["application"]["status"]["sync"]["revision"] = "another";
  changed["application"]["metadata"]["resourceVersion"] = "999999";
  changed["revisions"]["sync"][0]["metadata"]["message"] = "another";
  changed["tree"]["nodes"][1]["createdAt"] = "2026-05-05T00:00:00Z";
  EXPECT_EQ(digest(changed), before);

  for (const auto& [pointer, value] : std::vector<std::pair<std::string, json>>{
           {"/managed/0/live/spec/replicas", 9},
           {"/managed/0/target/spec/replicas", 9},
           {"/application/status/resources/0/status", "OutOfSync"},
           {"/application/metadata/uid", "other"},
           {"/application/metadata/deletionTimestamp", "2026-05-05T00:00:00Z"},
           {"/tree/nodes/0/health/status", "Healthy"},
           {"/tree/nodes/1/health/message", "other"}}) {
    changed = input;
    changed[json::json_pointer(pointer)] = value;
    EXPECT_NE(digest(changed), before) << pointer;
  }
}

TEST(Payload, WithoutManagedResourcesNothingIsKnownOfResources) {
  auto input = small_case();
  input.erase("managed");
  const auto report = report_of(input);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->resources_known());
  EXPECT_TRUE(report->resources().empty());
}

TEST(Payload, ATreeThatGoesInCirclesEnds) {
  auto input = small_case();
  input["tree"]["nodes"][0]["parentRefs"] = json::array({input["tree"]["nodes"][1]});
  EXPECT_THAT(resource_body(input), HasSubstr("Back-off pulling image"));
}

TEST(Payload, AC28_UnmaskedSecretsAreMasked) {
  const std::string secret =
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","annotations":{)"
      R"("kubectl.kubernetes.io/last-applied-configuration":)"
      R"("{\"kind\":\"Secret\",\"data\":{\"a\":\"Y2FuYXJ5LTE=\"}}"}},)"
      R"("data":{"a":"Y2FuYXJ5LTE=","b":"+++++","c":""},"stringData":{"d":"canary-2","n":7}})";
  const auto masked = json::parse(mask_secret(secret));
  EXPECT_EQ(masked["data"], (json{{"a", "++++++++"}, {"b", "+++++"}, {"c", ""}}));
  EXPECT_EQ(masked["stringData"], (json{{"d", "++++++++"}, {"n", "++++++++"}}));
  EXPECT_THAT(masked.dump(), Not(HasSubstr("Y2FuYXJ5")));
  EXPECT_THAT(masked.dump(), Not(HasSubstr("canary")));
  EXPECT_EQ(masked["metadata"]["name"], "s");

  const std::string broken = R"({"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{)"
                             R"("kubectl.kubernetes.io/last-applied-configuration":"canary"}}})";
  EXPECT_THAT(mask_secret(broken), Not(HasSubstr("canary")));

  for (const std::string other :
       {R"({"apiVersion":"v1","kind":"ConfigMap","data":{"a":"x"}})",
        R"({"apiVersion":"other/v1","kind":"Secret","data":{"a":"x"}})",
        R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})",
        R"({"apiVersion":"v1","kind":"Secret","data":null,"stringData":{}})", ""}) {
    EXPECT_EQ(mask_secret(other), other);
  }
}

TEST(Payload, AC24_MalformedInputIsAnErrorNotACrash) {
  const auto good = small_case();
  for (const auto* text :
       {"", "null", "[]", "{", "{\"metadata\":{}}", "{\"metadata\":{\"name\":1}}",
        "{\"metadata\":[]}", "\xff", "{\"metadata\":{\"name\":\"\xff\"}}"}) {
    Material material;
    material.app.application = text;
    EXPECT_FALSE(Report::read(std::move(material), {})) << text;
    EXPECT_FALSE(questions_about(text, {})) << text;
  }
  for (const auto* text : {"", "null", "{\"items\":", "[]"}) {
    Material material;
    material.app.application = good["application"].dump();
    material.app.managed = text;
    EXPECT_FALSE(Report::read(std::move(material), {})) << text;
    material.app.application = good["application"].dump();
    material.app.managed.reset();
    material.tree = text;
    EXPECT_FALSE(Report::read(std::move(material), {})) << text;
  }
}

TEST(Payload, AC25_WrongTypesAnywhereAreTakenAsAbsent) {
  const auto good = read_case("root-application");
  const auto now = WallTime{};
  for (const auto* place : {"/application/metadata/labels",
                            "/application/metadata/annotations",
                            "/application/metadata/uid",
                            "/application/spec",
                            "/application/spec/source",
                            "/application/spec/destination",
                            "/application/status",
                            "/application/status/sync",
                            "/application/status/health",
                            "/application/status/conditions",
                            "/application/status/conditions/0",
                            "/application/status/resources",
                            "/application/status/resources/0",
                            "/application/status/resources/0/name",
                            "/application/status/history",
                            "/application/status/history/0",
                            "/application/status/operationState",
                            "/application/status/operationState/syncResult",
                            "/tree/nodes",
                            "/tree/nodes/0",
                            "/tree/nodes/0/health",
                            "/tree/nodes/0/parentRefs"}) {
    for (const json& value : {json(), json(7), json("text"), json::array({1, "x", nullptr}),
                              json{{"k", 1}}, json(true)}) {
      auto input = good;
      input[json::json_pointer(place)] = value;
      const auto report = report_of(input);
      ASSERT_TRUE(report) << place << " " << value;
      EXPECT_TRUE(json::accept(report->application_event(now))) << place << " " << value;
      for (std::size_t i = 0; i < report->resources().size(); ++i) {
        EXPECT_TRUE(json::accept(report->resource_event(i, now))) << place << " " << value;
      }
    }
  }
}

// -- questions --

json app_with(const json& metadata) {
  auto app = small_case()["application"];
  app["metadata"].merge_patch(metadata);
  return app;
}

std::optional<std::string> parent(const json& app, TrackingSettings settings) {
  settings.argocd_namespace = "argocd";
  const auto questions = questions_about(app.dump(), settings);
  EXPECT_TRUE(questions);
  if (!questions->parent) return std::nullopt;
  return questions->parent->to_string();
}

TEST(Questions, ParentComesFromTheTrackingMark) {
  const auto by_label = app_with({{"labels", {{"app.kubernetes.io/instance", "apps"}}}});
  const auto by_annotation = app_with(
      {{"annotations",
        {{"argocd.argoproj.io/tracking-id", "apps:argoproj.io/Application:argocd/guestbook"}}}});
  EXPECT_EQ(parent(by_label, {.method = "label"}), "argocd/apps");
  EXPECT_EQ(parent(by_label, {.method = "annotation"}), std::nullopt);
  EXPECT_EQ(parent(by_annotation, {.method = "annotation"}), "argocd/apps");
  EXPECT_EQ(parent(by_annotation, {.method = "annotation+label"}), "argocd/apps");
  EXPECT_EQ(parent(by_annotation, {.method = "label"}), std::nullopt);
  EXPECT_EQ(parent(app_with(json::object()), {.method = "annotation"}), std::nullopt);
}

TEST(Questions, ParentMayLiveInAnotherNamespace) {
  const auto app = app_with({{"labels", {{"app.kubernetes.io/instance", "team_apps"}}}});
  EXPECT_EQ(parent(app, {.method = "label"}), "team/apps");
}

TEST(Questions, AMarkOfAnotherInstallationIsNotOurs) {
  const json annotations = {{"argocd.argoproj.io/tracking-id", "apps:a/B:c/d"},
                            {"argocd.argoproj.io/installation-id", "east"}};
  const auto app = app_with({{"annotations", annotations}});
  EXPECT_EQ(parent(app, {.method = "annotation", .installation_id = "east"}), "argocd/apps");
  EXPECT_EQ(parent(app, {.method = "annotation", .installation_id = "west"}), std::nullopt);
}

TEST(Questions, AnApplicationIsNotItsOwnParent) {
  const auto app = app_with(
      {{"namespace", "argocd"}, {"labels", {{"app.kubernetes.io/instance", "guestbook"}}}});
  EXPECT_EQ(parent(app, {.method = "label"}), std::nullopt);
}

TEST(Questions, RevisionsComeFromTheLastOperationThenTheNextThenTheStatus) {
  auto app = small_case()["application"];
  app["status"]["operationState"]["operation"]["sync"] = {{"revision", "last"}};
  app["operation"]["sync"] = {{"revision", "next"}};
  app["status"]["sync"]["revision"] = "status";
  const auto first = [&app] {
    const auto questions = questions_about(app.dump(), {});
    return questions->sync_revisions.empty() ? "" : questions->sync_revisions[0].revision;
  };
  EXPECT_EQ(first(), "last");
  app["status"].erase("operationState");
  EXPECT_EQ(first(), "next");
  app.erase("operation");
  EXPECT_EQ(first(), "status");
  app["status"].erase("sync");
  EXPECT_EQ(first(), "");
}

TEST(Questions, HelmSourcesAreNotAsked) {
  auto app = small_case()["application"];
  app["spec"].erase("source");
  app["spec"]["sources"] = {{{"repoURL", "https://charts"}, {"chart", "nginx"}},
                            {{"repoURL", "https://git"}, {"path", "."}}};
  app["status"]["operationState"]["operation"]["sync"] = {{"revisions", {"1.2.3", "abc"}}};
  const auto questions = questions_about(app.dump(), {});
  ASSERT_TRUE(questions);
  ASSERT_EQ(questions->sync_revisions.size(), 2U);
  EXPECT_FALSE(questions->sync_revisions[0].ask);
  EXPECT_TRUE(questions->sync_revisions[1].ask);
  EXPECT_EQ(questions->sync_revisions[1].source_index, 1);
  EXPECT_EQ(questions->sync_revisions[1].repo_url, "https://git");
}

TEST(ResourceId, ReadsBackWhatItWrote) {
  for (const ResourceId& id : {ResourceId{"apps", "v1", "Deployment", "ns", "n"},
                               ResourceId{"", "v1", "Namespace", "", "n"},
                               ResourceId{"rbac", "v1", "Role", "ns", "system:x"}}) {
    EXPECT_EQ(ResourceId::parse(id.to_string()), id);
  }
  EXPECT_EQ(ResourceId::parse("nonsense").kind, "");
}

}  // namespace
}  // namespace gitops::reporter
