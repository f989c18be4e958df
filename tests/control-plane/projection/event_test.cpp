#include "control-plane/projection/event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const EventHead kHead{
    .event_id = "u1/application/7/abc", .sequence = 7, .runtime = "prod", .arrived_at = 1'000'000};

Json sample_application() {
  return Json::parse(R"({
    "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
    "metadata": {"name": "shop", "namespace": "argocd", "uid": "u1",
      "creationTimestamp": "2026-03-04T09:00:00Z",
      "labels": {"team": "a", "codefresh.io/entity": "git-source",
                 "app.meta.commit-author": "Dana", "app.meta.commit-message": "scale to two",
                 "app.meta.commit-date": "2026-03-04T09:12:02.000Z"}},
    "spec": {"destination": {"server": "https://10.0.0.1", "namespace": "shop"}},
    "status": {
      "sync": {"status": "OutOfSync", "revision": "c0ffee"},
      "health": {"status": "Degraded", "message": "2 things are broken"},
      "history": [{"id": 3, "revision": "aaa", "deployedAt": "2026-03-04T09:01:00Z"},
                  {"id": 4, "revision": "c0ffee", "deployStartedAt": "2026-03-04T09:13:00Z",
                   "deployedAt": "2026-03-04T09:13:40Z", "initiatedBy": {"username": "dana"}}],
      "operationState": {"phase": "Succeeded", "syncResult": {"revision": "c0ffee"}},
      "summary": {"images": ["registry/web:2", "registry/db:1"]}}})");
}

std::string application_event(const Json& application, Json source = Json::object()) {
  const Json defaults{{"desiredManifest", ""},  {"actualManifest", application.dump()},
                      {"gitManifest", ""},      {"revision", ""},
                      {"syncStatus", "Synced"}, {"healthStatus", "Healthy"},
                      {"historyId", 0}};
  for (const auto& [key, value] : defaults.items()) {
    if (!source.contains(key)) source[key] = value;
  }
  return Json{{"data", {{"object", base64_encode(application.dump())}, {"source", source}}}}.dump();
}

Result<Event> read(const std::string& body, const EventHead& head = kHead) {
  JsonParser parser(EventLimits().max_depth);
  return read_event(parser, body, head);
}

TEST(ReadEvent, AnApplicationHasItsOwnStates) {
  const auto event = read(application_event(sample_application()));
  ASSERT_TRUE(event) << event.error().message;
  const auto& state = event->state;
  EXPECT_EQ(state.key, (ObjectKey{.runtime = "prod",
                                  .group = "argoproj.io",
                                  .kind = "Application",
                                  .object_namespace = "argocd",
                                  .name = "shop"}));
  EXPECT_EQ(state.version, "v1alpha1");
  EXPECT_EQ(state.uid, "u1");
  EXPECT_EQ(state.sequence, 7);
  EXPECT_EQ(state.sync, SyncStatus::out_of_sync);
  EXPECT_EQ(state.health, HealthStatus::degraded);
  EXPECT_EQ(state.health_message, "2 things are broken");
  EXPECT_EQ(state.phase, Phase::succeeded);
  EXPECT_EQ(state.revision, "c0ffee");
  EXPECT_EQ(state.destination, "https://10.0.0.1");
  EXPECT_EQ(state.entity, "git-source");
  EXPECT_EQ(event->author, "Dana");
  EXPECT_EQ(event->message, "scale to two");
  EXPECT_FALSE(event->is_deletion);
  EXPECT_THAT(event->labels, testing::Contains(Pair("team", "a")));
}

TEST(ReadEvent, TheNewestEntryOfTheHistoryIsTheRelease) {
  const auto event = read(application_event(sample_application()));
  ASSERT_TRUE(event);
  ASSERT_TRUE(event->has_release);
  const auto& release = event->release;
  EXPECT_EQ(release.history_id, 4);
  EXPECT_EQ(event->state.history_id, 4);
  EXPECT_EQ(release.revision, "c0ffee");
  EXPECT_EQ(release.initiator, "dana");
  EXPECT_EQ(release.author, "Dana");
  EXPECT_EQ(release.phase, Phase::succeeded);
  EXPECT_TRUE(release.was_degraded);
  EXPECT_EQ(release.images, R"(["registry/web:2","registry/db:1"])");
  EXPECT_GT(release.finished_at, release.started_at);
}

TEST(ReadEvent, TheNextOperationDoesNotDescribeTheLastRelease) {
  auto application = sample_application();
  application["status"]["operationState"] = {{"phase", "Running"},
                                             {"syncResult", {{"revision", "ddd"}}}};
  const auto event = read(application_event(application));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state.sync, SyncStatus::syncing);
  EXPECT_EQ(event->state.history_id, 4);
  EXPECT_FALSE(event->has_release) << "its health is no longer that of the release";

  // The release is deployed again: a running operation is no state of it.
  application["status"]["operationState"]["syncResult"]["revision"] = "c0ffee";
  const auto again = read(application_event(application));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->has_release);
  EXPECT_EQ(again->release.sync, SyncStatus::out_of_sync);
}

TEST(ReadEvent, AChildApplicationHasItsOwnStatesAndItsParentAsManager) {
  const auto event = read(application_event(sample_application(), {{"appName", "apps"},
                                                                   {"appNamespace", "argocd"},
                                                                   {"appUID", "u0"},
                                                                   {"desiredManifest", "{}"}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state.key.owner_uid, "");
  EXPECT_EQ(event->state.manager,
            (Manager{.name = "apps", .application_namespace = "argocd", .uid = "u0"}));
  EXPECT_EQ(event->state.sync, SyncStatus::out_of_sync);
}

TEST(ReadEvent, AResourceBelongsToItsApplication) {
  const Json deployment{{"apiVersion", "apps/v1"},
                        {"kind", "Deployment"},
                        {"metadata", {{"name", "web"}, {"namespace", "shop"}, {"uid", "u9"}}}};
  const auto event =
      read(application_event(deployment, {{"appName", "shop"},
                                          {"appNamespace", "argocd"},
                                          {"appUID", "u1"},
                                          {"appLabels", nullptr},
                                          {"cluster", "https://10.0.0.1"},
                                          {"revision", "c0ffee"},
                                          {"commitAuthor", "Dana"},
                                          {"commitDate", "2026-03-04T09:12:02Z"},
                                          {"desiredManifest", R"({"kind":"Deployment"})"},
                                          {"gitManifest", "kind: Deployment\n"}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state.key.owner_uid, "u1");
  EXPECT_EQ(event->state.key.group, "apps");
  EXPECT_EQ(event->state.key.cluster, "");
  EXPECT_EQ(event->state.destination, "https://10.0.0.1");
  EXPECT_EQ(event->state.sync, SyncStatus::synced);
  EXPECT_EQ(event->state.health, HealthStatus::healthy);
  EXPECT_EQ(event->body.desired, R"({"kind":"Deployment"})");
  EXPECT_EQ(event->body.in_git, "kind: Deployment\n");
  EXPECT_EQ(Json::parse(event->body.live), deployment);
  EXPECT_FALSE(Json::parse(event->body.source).contains("gitManifest"));
  EXPECT_EQ(Json::parse(event->body.source)["appName"], event->state.manager.name);
  EXPECT_GT(event->commit_at, 0);
  EXPECT_FALSE(event->has_release);
}

TEST(ReadEvent, TwoEmptyManifestsAreADeletion) {
  const auto event = read(application_event(sample_application(), {{"actualManifest", ""}}));
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->is_deletion);
  EXPECT_EQ(event->state.presence, Presence::gone);
}

TEST(ReadEvent, AnObjectOfTheResourceReporterIsJsonText) {
  const std::string rollout = R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout",
    "metadata":{"name":"checkout","namespace":"shop","uid":"u5",
      "annotations":{"rollout.argoproj.io/revision":"12"}},
    "spec":{"replicas":32000000000000000000000},"status":{"phase":"Paused"}})";
  const auto event = read(Json{{"data", {{"object", rollout}}}}.dump());
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->state.key.origin, Origin::resource);
  EXPECT_EQ(event->state.key.cluster, kInCluster);
  EXPECT_EQ(event->state.phase, Phase::paused);
  EXPECT_EQ(event->state.health, HealthStatus::suspended);
  EXPECT_EQ(event->state.revision, "12");
  EXPECT_EQ(event->body.live, rollout);
  const auto gone = read(
      Json{{"data", {{"object", rollout}, {"deleted", true}, {"cluster", "https://c2"}}}}.dump());
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->is_deletion);
  EXPECT_EQ(gone->state.key.cluster, "https://c2");
}

TEST(ReadEvent, WhatIsNotKnownIsNotInvented) {
  const Json bare{{"apiVersion", "argoproj.io/v1alpha1"},
                  {"kind", "Application"},
                  {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}}};
  const auto event = read(application_event(bare, {{"healthStatus", nullptr}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state.sync, SyncStatus::unknown);
  EXPECT_EQ(event->state.health, HealthStatus::none);
  EXPECT_EQ(event->state.phase, Phase::none);
  EXPECT_EQ(event->state.created_at, 0);
  EXPECT_FALSE(event->has_release);
}

TEST(ReadEvent, RefusesWhatIsNoEvent) {
  const auto refused = [](const std::string& body) {
    const auto event = read(body);
    return event ? std::string("taken") : event.error().message;
  };
  EXPECT_THAT(refused(""), HasSubstr("the event"));
  EXPECT_THAT(refused("[]"), HasSubstr("the event"));
  EXPECT_EQ(refused("{}"), "data is not an object");
  EXPECT_EQ(refused(R"({"data":{"object":1}})"), "data.object is not a text");
  EXPECT_THAT(refused(R"({"data":{"object":"?"}})"), HasSubstr("data.object"));
  EXPECT_THAT(refused(R"({"data":{"object":"{\"kind\":\"Rollout\"}"}})"),
              HasSubstr("apiVersion is missing"));
  EXPECT_EQ(
      refused(
          R"({"data":{"object":"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\\u0000b\"}}"}})"),
      "metadata.name has a control character");
  EXPECT_EQ(
      refused(
          R"({"data":{"object":"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\")" +
          std::string(600, 'x') + R"(\"}}"}})"),
      "metadata.name is too long");
}

TEST(ReadEvent, AMillionLabelsAreCutOff) {
  auto application = sample_application();
  for (int i = 0; i < 1000; ++i) application["metadata"]["labels"]["l" + std::to_string(i)] = "x";
  const auto event = read(application_event(application));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->labels.size(), EventLimits().max_labels);
}

TEST(ReadEvent, EqualContentHasEqualDigests) {
  const auto one = read(application_event(sample_application()));
  const auto two = read(application_event(sample_application()));
  auto changed = sample_application();
  changed["metadata"]["labels"]["team"] = "b";
  const auto three = read(application_event(changed));
  ASSERT_TRUE(one && two && three);
  EXPECT_EQ(one->state.body_digest, two->state.body_digest);
  EXPECT_NE(one->state.body_digest, three->state.body_digest);
  EXPECT_NE(one->state.labels_digest, three->state.labels_digest);
}

}  // namespace
}  // namespace gitops::control_plane_server
