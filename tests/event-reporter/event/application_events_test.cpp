#include "event-reporter/event/application_events.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "event-reporter/event/golden_case.hpp"

namespace gitops::reporter {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A golden case holds readable objects where the wire has JSON text: manifests, and the decoded
// "object". These helpers translate.
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

AppSnapshot app_snapshot(const json& input) {
  AppSnapshot snapshot{.app = AppView::parse(input.at("application").dump()).value()};
  if (input.contains("managed")) snapshot.managed = managed_answer(input["managed"]);
  if (input.contains("revisions")) {
    snapshot.sync_revisions = revisions(input["revisions"].value("sync", json()));
    snapshot.change_revisions = revisions(input["revisions"].value("change", json()));
  }
  return snapshot;
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

Result<ApplicationEvents> events_of(const json& input, DigestScope scope = DigestScope::resource) {
  Snapshot snapshot{.app = app_snapshot(input)};
  if (input.contains("tree")) snapshot.tree = input["tree"].dump();
  if (input.contains("parent")) snapshot.parent = app_snapshot(input["parent"]);
  snapshot.gone = input.value("gone", false);
  return ApplicationEvents::make(std::move(snapshot), tracking(input), scope);
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
  const auto input = golden_case(GetParam());
  const auto now = *parse_rfc3339(input.at("now").get<std::string>());
  const auto events = events_of(input);
  ASSERT_TRUE(events) << events.error().message;
  const auto& expected = input.at("expected");
  if (expected.contains("application")) {
    expect_same(filled(expected["application"], input), readable(events->application_event(now)),
                "application");
  }
  json resources = json::object();
  for (std::size_t i = 0; i < events->resources().size(); ++i) {
    resources[events->resources()[i].id.to_string()] = readable(events->resource_event(i, now));
  }
  if (expected.contains("resources")) {
    for (const auto& [id, event] : resources.items()) {
      ASSERT_TRUE(expected["resources"].contains(id)) << "unexpected event of " << id;
      expect_same(expected["resources"][id], event, id);
    }
    EXPECT_EQ(resources.size(), expected["resources"].size());
  }
  for (const auto& [id, event] : expected.value("gone", json::object()).items()) {
    expect_same(event, readable(events->gone_event(ResourceId::parse(id), now)), id);
  }
}

std::string resource_digests(const ApplicationEvents& events) {
  std::string out;
  for (const auto& resource : events.resources()) out += " " + to_hex(resource.digest, 8);
  return out;
}

// After an upgrade that changes digests everything is reported once more.
TEST_P(Golden, DigestsAreThoseOfExistingLedgers) {
  struct Digests {
    std::string application;
    std::string resources;
    std::string with_revision;  // the resources', with --resend-on-revision
  };
  const std::map<std::string, Digests> kept{
      {"resource", {"5fa79d527040bf10bed3d6c6e18cb059", " f0c3108c42777c87", " 263a6c57d172b3cd"}},
      {"root-application",
       {"9974d6156994d4385362e96092759712", " c722fbffa13af45f 32446fe3e60ecdd9 a0b55428f5054ec8",
        " d4e033aaa880e070 f90ad2009f910eaf 1918df3cb419037a"}},
      {"child-application", {"835b7d6882670ccdedd5dec97c1fe896", "", ""}},
      {"application-in-deletion",
       {"63cf545a169e3753631ac24fd8700856", " bbc55ea8d1644665", " f5065b8c1c2a1e84"}},
      {"unusual-resources",
       {"ad265759aa0cf2a9c8ca7cae3cf8c8b2",
        " 61818bff9297ca47 4f6debf60acbeab7 4bf1b5922a26ac3a ceb15b9be4205a71 20f1ecba47a77ea9"
        " 731e4b1634e98e25",
        " c22010e87947d642 fece9cdb38d07cfe 8eb3af64982cd936 c1a818c423a00dba 39828139bb2d6871"
        " 45b21b739823a951"}}};
  const auto& expected = kept.at(GetParam());
  const auto events = events_of(golden_case(GetParam()));
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(to_hex(events->application_digest()), expected.application);
  EXPECT_EQ(resource_digests(*events), expected.resources);
  EXPECT_EQ(
      resource_digests(*events_of(golden_case(GetParam()), DigestScope::resource_and_revision)),
      expected.with_revision);
}

INSTANTIATE_TEST_SUITE_P(ApplicationEvents, Golden,
                         ::testing::Values("resource", "root-application", "child-application",
                                           "application-in-deletion", "unusual-resources"),
                         [](const auto& test) {
                           auto name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

json small_case() {
  return golden_case("resource");
}

std::string resource_body(const json& input) {
  const auto events = events_of(input);
  EXPECT_TRUE(events) << (events ? "" : events.error().message);
  return events->resource_event(0, *parse_rfc3339("2026-03-04T09:15:27.412Z"));
}

TEST(ApplicationEvents, ManifestsTravelAsTheTextThatWasReceived) {
  auto input = small_case();
  const std::string odd = R"({"kind":"Deployment",  "apiVersion":"apps/v1","n":1.50,"e":1e2 })";
  input.erase("managed");
  Snapshot snapshot{.app = app_snapshot(input)};
  snapshot.app.managed = json{{"items",
                               {{{"group", "apps"},
                                 {"kind", "Deployment"},
                                 {"namespace", "demo"},
                                 {"name", "guestbook-ui"},
                                 {"targetState", odd},
                                 {"liveState", odd}}}}}
                             .dump();
  const auto events = ApplicationEvents::make(std::move(snapshot), {});
  ASSERT_TRUE(events);
  const auto body = json::parse(events->resource_event(0, WallTime{}));
  EXPECT_EQ(body["data"]["source"]["desiredManifest"], odd);
  EXPECT_EQ(body["data"]["source"]["actualManifest"], odd);
  EXPECT_EQ(*base64_decode(body["data"]["object"].get<std::string>()), odd);
}

// Without quotes around the number, which a real API server returns as it is.
TEST(ApplicationEvents, NumbersOfAnySizeTravelAsTheTextThatWasReceived) {
  const std::string number = "32000000000000000000";
  const std::string manifest = R"({"kind":"Deployment","spec":{"size":)" + number + "}}";
  auto input = small_case();
  input["application"]["spec"]["source"]["helm"]["valuesObject"]["n"] = "NUMBER";
  auto text = input["application"].dump();
  text.replace(text.find("\"NUMBER\""), 8, number);
  auto app = AppView::parse(text);
  ASSERT_TRUE(app) << app.error().message;
  Snapshot snapshot{.app = {.app = std::move(*app)}};
  snapshot.app.managed = json{{"items",
                               {{{"group", "apps"},
                                 {"kind", "Deployment"},
                                 {"namespace", "demo"},
                                 {"name", "guestbook-ui"},
                                 {"targetState", manifest},
                                 {"liveState", manifest}}}}}
                             .dump();
  const auto events = ApplicationEvents::make(std::move(snapshot), {});
  ASSERT_TRUE(events);
  const auto own = json::parse(events->application_event(WallTime{}));
  EXPECT_THAT(*base64_decode(own["data"]["object"].get<std::string>()), HasSubstr(":" + number));
  const auto source = json::parse(events->resource_event(0, WallTime{}))["data"]["source"];
  EXPECT_EQ(source["desiredManifest"], manifest);
  EXPECT_EQ(source["gitManifest"], "kind: Deployment\nspec:\n  size: " + number + "\n");
}

TEST(ApplicationEvents, AKnownFileInGitIsToldAndMakesNothingDue) {
  const std::string text = "kind: Deployment # by hand\n";
  const auto events_with = [&](json input, const std::string& files) {
    Snapshot snapshot{.app = app_snapshot(input), .tree = input["tree"].dump()};
    if (!files.empty()) {
      snapshot.git_files = std::make_shared<const GitFiles>(GitFiles::parse(files).value());
    }
    return ApplicationEvents::make(std::move(snapshot), {}).value();
  };
  const auto source = [](const ApplicationEvents& events) {
    return json::parse(events.resource_event(0, WallTime{}))["data"]["source"];
  };
  const auto file_of = [&](const std::string& kind, const std::string& group) {
    return json{{"files",
                 {{{"path", "guestbook/web.yaml"},
                   {"text", text},
                   {"objects", {{{"group", group}, {"kind", kind}, {"name", "guestbook-ui"}}}}}}}}
        .dump();
  };
  const auto without = events_with(small_case(), "");
  const auto with = events_with(small_case(), file_of("Deployment", "apps"));
  EXPECT_EQ(source(with)["path"], "guestbook/web.yaml");
  EXPECT_EQ(source(with)["gitManifest"], text);
  EXPECT_EQ(source(without)["path"], "");
  EXPECT_EQ(with.resources()[0].digest, without.resources()[0].digest);
  EXPECT_EQ(with.application_digest(), without.application_digest());
  const auto other = events_with(small_case(), file_of("Service", ""));
  EXPECT_EQ(other.resource_event(0, WallTime{}), without.resource_event(0, WallTime{}))
      << "as without the files";

  // A Secret's text is never told.
  auto secret = small_case();
  const auto renamed = [](json& entry) {
    entry["group"] = "";
    entry["kind"] = "Secret";
  };
  renamed(secret["managed"][0]);
  renamed(secret["application"]["status"]["resources"][0]);
  const auto of_secret = source(events_with(secret, file_of("Secret", "")));
  EXPECT_EQ(of_secret["path"], "guestbook/web.yaml");
  EXPECT_NE(of_secret["gitManifest"], text);
}

TEST(ApplicationEvents, EscapesLikeGoDoes) {
  auto input = small_case();
  input["revisions"]["sync"][0]["metadata"]["message"] = "a<b> & \xe2\x80\xa8 \"q\" \\ \t";
  const auto body = resource_body(input);
  EXPECT_THAT(body, HasSubstr(R"("commitMessage":"a\u003cb\u003e \u0026 \u2028 \"q\" \\ \t")"));
  EXPECT_THAT(body, Not(HasSubstr("<")));
}

TEST(ApplicationEvents, FieldsComeInTheDocumentedOrder) {
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

TEST(ApplicationEvents, TimesAreUtcWholeSeconds) {
  auto input = small_case();
  input["application"]["status"]["operationState"]["startedAt"] = "2026-03-04T11:13:40.999+02:00";
  EXPECT_THAT(resource_body(input), HasSubstr(R"("syncStartedAt":"2026-03-04T09:13:40Z")"));
}

TEST(ApplicationEvents, WithoutAnOperationTheSyncStartedNow) {
  auto input = small_case();
  input["application"]["status"].erase("operationState");
  const auto body = resource_body(input);
  EXPECT_THAT(body, HasSubstr(R"("syncStartedAt":"2026-03-04T09:15:27Z")"));
  EXPECT_THAT(body, Not(HasSubstr("syncFinishedAt")));
}

TEST(ApplicationEvents, ADigestIgnoresTimesAndCommits) {
  const auto input = small_case();
  const auto digest = [](const json& of) { return events_of(of)->resources()[0].digest; };
  const auto before = digest(input);
  auto changed = input;
  changed["application"]["status"]["operationState"]["startedAt"] = "2026-05-05T00:00:00Z";
  changed["application"]["status"]["operationState"]["finishedAt"] = "2026-05-05T00:00:01Z";
  changed["application"]["status"]["history"][0]["revision"] = "another";
  changed["application"]["status"]["history"][0]["id"] = 8;
  changed["application"]["status"]["operationState"]["operation"]["sync"]["revision"] = "another";
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

TEST(ApplicationEvents, ADigestIsAnotherUntilTheHistoryHoldsTheSyncedRevision) {
  // Argo CD calls a resource Synced before it adds to the history, where an event's revision is
  // taken from.
  auto input = small_case();
  const auto resource = [&] { return events_of(input)->resources()[0]; };
  const auto settled = resource();
  EXPECT_EQ(settled.final_digest, std::nullopt);
  input["application"]["status"]["operationState"]["operation"]["sync"]["revision"] = "next";
  EXPECT_THAT(resource_body(input), Not(HasSubstr(R"("revision":"next")")));
  const auto during = resource();
  EXPECT_NE(during.digest, settled.digest);
  EXPECT_EQ(during.final_digest, settled.digest);
  input["application"]["status"]["history"].push_back({{"id", 8}, {"revision", "next"}});
  EXPECT_THAT(resource_body(input), HasSubstr(R"("revision":"next")"));
  EXPECT_EQ(resource().digest, settled.digest);
  EXPECT_EQ(resource().final_digest, std::nullopt);
}

TEST(ApplicationEvents, WithoutManagedResourcesNothingIsKnownOfResources) {
  auto input = small_case();
  input.erase("managed");
  const auto events = events_of(input);
  ASSERT_TRUE(events);
  EXPECT_FALSE(events->resources_known());
  EXPECT_TRUE(events->resources().empty());
}

// Argo CD writes empty lists when it could read neither Git nor the cluster.
TEST(ApplicationEvents, AfterAFailedComparisonNothingFollowsFromAbsence) {
  const auto with_condition = [](const char* type) {
    auto input = small_case();
    input["application"]["status"]["conditions"] = json::array({{{"type", type}}});
    return input;
  };
  EXPECT_TRUE(events_of(small_case())->lists_every_resource());
  for (const auto* type : {"ComparisonError", "UnknownError", "InvalidSpecError"}) {
    EXPECT_FALSE(events_of(with_condition(type))->lists_every_resource()) << type;
  }
  for (const auto* type : {"SyncError", "DeletionError", "OrphanedResourceWarning"}) {
    EXPECT_TRUE(events_of(with_condition(type))->lists_every_resource()) << type;
  }
  for (const auto* answer : {"tree", "managed"}) {
    auto input = small_case();
    input.erase(answer);
    EXPECT_FALSE(events_of(input)->lists_every_resource()) << answer;
  }
}

TEST(ApplicationEvents, AfterAFailedComparisonOnlyALiveObjectIsKnown) {
  auto input = small_case();
  input["application"]["status"]["conditions"] = json::array({{{"type", "ComparisonError"}}});
  EXPECT_TRUE(events_of(input)->resources()[0].known);
  auto without_live = input;
  without_live["managed"][0]["live"] = nullptr;
  EXPECT_FALSE(events_of(without_live)->resources()[0].known);
  auto without_node = input;
  without_node["tree"]["nodes"] = json::array();
  EXPECT_FALSE(events_of(without_node)->resources()[0].known);
  // Compared, it is known to be missing.
  without_live["application"]["status"].erase("conditions");
  EXPECT_TRUE(events_of(without_live)->resources()[0].known);
  // The deletion of the application tells all that is to be told.
  without_node["application"]["metadata"]["deletionTimestamp"] = "2026-03-04T09:15:00Z";
  EXPECT_TRUE(events_of(without_node)->resources()[0].known);
}

// Argo CD 3 keeps the health out of the Application.
TEST(ApplicationEvents, WithoutATreeNoResourceIsCalledHealthy) {
  auto input = small_case();
  input.erase("tree");
  input["application"]["status"]["resources"][0]["status"] = "Synced";
  input["application"]["status"]["resources"][0].erase("health");
  EXPECT_FALSE(events_of(input)->resources()[0].known);
  EXPECT_THAT(resource_body(input), Not(HasSubstr("healthStatus")));
  // Argo CD 2 tells it in the Application.
  input["application"]["status"]["resources"][0]["health"] = {{"status", "Degraded"}};
  EXPECT_TRUE(events_of(input)->resources()[0].known);
  EXPECT_THAT(resource_body(input), HasSubstr(R"("healthStatus":"Degraded")"));
}

TEST(ApplicationEvents, TheErrorsOfAnApplicationNeedNoManagedResources) {
  auto input = golden_case("root-application");
  const auto complete = events_of(input)->application_digest();
  input.erase("managed");
  EXPECT_EQ(events_of(input)->application_digest(), complete);
}

TEST(ApplicationEvents, AnEventWithoutCommitsIsDueOnceMore) {
  Snapshot lacking{.app = app_snapshot(small_case()), .lacks_commits = true};
  Snapshot complete{.app = app_snapshot(small_case())};
  EXPECT_NE(ApplicationEvents::make(std::move(lacking), {})->application_digest(),
            ApplicationEvents::make(std::move(complete), {})->application_digest());
}

TEST(ApplicationEvents, WhatTheParentWantsIsInTheDigestOfTheChild) {
  auto input = golden_case("child-application");
  const auto item = [](const json& target) {
    return json::array({{{"group", "argoproj.io"},
                         {"kind", "Application"},
                         {"namespace", "argocd"},
                         {"name", "web"},
                         {"target", target},
                         {"live", nullptr}}});
  };
  input["application"]["metadata"]["namespace"] = "argocd";
  input["application"]["metadata"]["name"] = "web";
  input["parent"]["managed"] = item({{"replicas", 1}});
  const auto before = events_of(input)->application_digest();
  input["parent"]["managed"] = item({{"replicas", 2}});
  EXPECT_NE(events_of(input)->application_digest(), before);
}

TEST(ApplicationEvents, ARootApplicationNamesTheRepositoryOfItsMainSource) {
  auto input = golden_case("unusual-resources");
  const auto body = json::parse(events_of(input)->application_event(WallTime{}));
  EXPECT_EQ(body["data"]["source"]["repoURL"], "https://git.example.com/b.git");
}

// spec.sourceHydrator of Argo CD 2.14 and newer.
TEST(ApplicationEvents, AHydratedApplicationNamesTheRepositoryThatItIsSyncedFrom) {
  auto input = golden_case("root-application");
  auto& spec = input["application"]["spec"];
  spec.erase("source");
  spec["sourceHydrator"] = {
      {"drySource",
       {{"repoURL", "https://git.example.com/dry.git"}, {"targetRevision", "main"}, {"path", "a"}}},
      {"syncSource", {{"targetBranch", "env/prod"}, {"path", "a"}}},
      {"hydrateTo", {{"targetBranch", "env/prod-next"}}}};
  const auto repo_url = [&] {
    const auto body = json::parse(events_of(input)->application_event(WallTime{}));
    return body["data"]["source"]["repoURL"].get<std::string>();
  };
  EXPECT_EQ(repo_url(), "https://git.example.com/dry.git");
  spec["sourceHydrator"]["syncSource"]["repoURL"] = "https://git.example.com/hydrated.git";
  EXPECT_EQ(repo_url(), "https://git.example.com/hydrated.git");
}

// After an operation that asked for HEAD, and after one that was carried out at another revision.
TEST(ApplicationEvents, TheCommitIsThatOfWhatWasDone) {
  auto input = small_case();
  auto& operation = input["application"]["status"]["operationState"];
  const auto settled = events_of(input)->resources()[0].digest;
  const auto done = operation["operation"]["sync"]["revision"];
  for (const auto* asked : {"HEAD", "0000000000000000000000000000000000000000"}) {
    operation["operation"]["sync"]["revision"] = asked;
    operation["syncResult"]["revision"] = done;
    const auto events = events_of(input);
    EXPECT_EQ(events->resources()[0].final_digest, std::nullopt) << asked;
    EXPECT_EQ(events->resources()[0].digest, settled) << asked;
    const auto source = json::parse(resource_body(input))["data"]["source"];
    EXPECT_EQ(source["operationSyncRevision"], done) << asked;
    EXPECT_EQ(source["commitAuthor"], input["revisions"]["sync"][0]["metadata"]["author"]);
  }
}

// The list of sources was turned round after the sync.
TEST(ApplicationEvents, TheMainCommitIsFoundAmongTheSourcesThatWereSynced) {
  auto input = golden_case("unusual-resources");
  auto& status = input["application"]["status"];
  const json sources = {{{"repoURL", "https://git.example.com/b.git"}},
                        {{"repoURL", "https://git.example.com/a.git"}, {"ref", "values"}}};
  status["operationState"]["syncResult"]["sources"] = sources;
  status["operationState"]["syncResult"]["revisions"] = {"r2", "r1"};
  input["revisions"]["sync"] = {{{"revision", "r2"}, {"metadata", {{"author", "of b"}}}},
                                {{"revision", "r1"}, {"metadata", {{"author", "of a"}}}}};
  const auto source = json::parse(resource_body(input))["data"]["source"];
  EXPECT_EQ(source["operationSyncRevision"], "r2");
  EXPECT_EQ(source["commitAuthor"], "of b");
}

TEST(ApplicationEvents, AnUnknownCommitIsNullBesideOthers) {
  Snapshot snapshot{.app = app_snapshot(small_case())};
  snapshot.app.sync_revisions =
      std::vector<Revision>{{.revision = "aaa", .metadata = R"({"author":"A"})"},
                            {.revision = "1.2.3", .metadata = {}},
                            {.revision = "bbb", .metadata = {}, .is_unknown = true}};
  const auto events = ApplicationEvents::make(std::move(snapshot), {});
  ASSERT_TRUE(events);
  const auto body = readable(events->application_event(WallTime{}));
  EXPECT_EQ(
      body["object"]["metadata"]["annotations"]["app.meta.revisions-metadata"]["syncRevisions"],
      json::parse(R"([{"revision":"aaa","metadata":{"author":"A"}},{"revision":"1.2.3"},
                      {"revision":"bbb","metadata":null}])"));
}

// JSON, but of something else than Argo CD.
TEST(ApplicationEvents, AnswersOfAnotherShapeAreNotKnown) {
  for (const auto* text : {R"({"error":"unauthorized"})", R"({"nodes":7,"items":{}})"}) {
    Snapshot snapshot{.app = app_snapshot(small_case()), .tree = text};
    snapshot.app.managed = text;
    const auto events = ApplicationEvents::make(std::move(snapshot), {});
    ASSERT_TRUE(events) << text;
    EXPECT_FALSE(events->resources_known()) << text;
    EXPECT_FALSE(events->lists_every_resource()) << text;
  }
  // Argo CD leaves empty lists out.
  auto input = small_case();
  input["application"]["status"]["resources"] = json::array();
  Snapshot snapshot{.app = app_snapshot(input), .tree = "{}"};
  snapshot.app.managed = "{}";
  EXPECT_TRUE(ApplicationEvents::make(std::move(snapshot), {})->lists_every_resource());
}

TEST(ApplicationEvents, ATreeThatGoesInCirclesEnds) {
  auto input = small_case();
  input["tree"]["nodes"][0]["parentRefs"] = json::array({input["tree"]["nodes"][1]});
  EXPECT_THAT(resource_body(input), HasSubstr("Back-off pulling image"));
}

TEST(ApplicationEvents, AC24_MalformedInputIsAnErrorNotACrash) {
  const auto good = small_case();
  for (const auto* text :
       {"", "null", "[]", "{", "{\"metadata\":{}}", "{\"metadata\":{\"name\":1}}",
        "{\"metadata\":[]}", "\xff", "{\"metadata\":{\"name\":\"\xff\"}}"}) {
    EXPECT_FALSE(AppView::parse(text)) << text;
  }
  for (const auto* text : {"", "null", "{\"items\":", "[]"}) {
    Snapshot snapshot{.app = app_snapshot(good)};
    snapshot.app.managed = text;
    EXPECT_FALSE(ApplicationEvents::make(std::move(snapshot), {})) << text;
    snapshot = {.app = app_snapshot(good)};
    snapshot.app.managed.reset();
    snapshot.tree = text;
    EXPECT_FALSE(ApplicationEvents::make(std::move(snapshot), {})) << text;
  }
}

TEST(ApplicationEvents, AC25_WrongTypesAnywhereAreTakenAsAbsent) {
  const auto good = golden_case("root-application");
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
      const auto events = events_of(input);
      ASSERT_TRUE(events) << place << " " << value;
      EXPECT_TRUE(json::accept(events->application_event(now))) << place << " " << value;
      for (std::size_t i = 0; i < events->resources().size(); ++i) {
        EXPECT_TRUE(json::accept(events->resource_event(i, now))) << place << " " << value;
      }
    }
  }
}

}  // namespace
}  // namespace gitops::reporter
