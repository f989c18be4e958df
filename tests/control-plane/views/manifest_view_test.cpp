#include "control-plane/views/manifest_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control-plane/accounts/accounts_fixture.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {
namespace {

using Json = nlohmann::json;
using store::Engine;
using testing::HasSubstr;
using testing::Not;

Json without_uid(Json object) {
  object["metadata"].erase("uid");
  return object;
}

Json manifests_of(const Json& object, Json source) {
  source.update(managed_by("shop"));
  const auto event = event_of_body(app_event(object, source), 7);
  return Json::parse(object_json([&](ObjectJson& out) {
    std::string text;
    append_manifests(text, {.state = event.state, .body = event.body});
    out.raw("is", text);
  }))["is"];
}

TEST(ManifestView, ShowsAllThreeSides) {
  const auto live = object_of("v1", "ConfigMap", "shop", "settings");
  const auto desired = without_uid(live);
  const auto shown = manifests_of(
      live, {{"desiredManifest", desired.dump()}, {"gitManifest", "kind: ConfigMap\n"}});
  EXPECT_EQ(shown["liveManifest"], live.dump());
  EXPECT_EQ(shown["desiredManifest"], desired.dump());
  EXPECT_EQ(shown["gitManifest"], "kind: ConfigMap\n");
  EXPECT_EQ(shown["masked"], false);
}

TEST(ManifestView, AnObjectThatGitAloneHasIsNotLive) {
  const auto desired = without_uid(object_of("v1", "ConfigMap", "shop", "settings"));
  const auto shown =
      manifests_of(desired, {{"desiredManifest", desired.dump()}, {"actualManifest", ""}});
  EXPECT_TRUE(shown["liveManifest"].is_null());
  EXPECT_EQ(shown["desiredManifest"], desired.dump());
}

TEST(ManifestView, AnObjectThatTheClusterAloneHasIsNotDesired) {
  const auto live = object_of("v1", "ConfigMap", "shop", "settings");
  const auto shown = manifests_of(live, {{"desiredManifest", ""}});
  EXPECT_EQ(shown["liveManifest"], live.dump());
  EXPECT_TRUE(shown["desiredManifest"].is_null());
}

TEST(ManifestView, AC_28_ValuesOfASecretAreNeverShown) {
  auto live = object_of("v1", "Secret", "shop", "login");
  live["data"] = {{"same", "Y2FuYXJ5LW9uZQ=="}, {"changed", "Y2FuYXJ5LXR3bw=="}};
  live["metadata"]["annotations"] = {
      {"kubectl.kubernetes.io/last-applied-configuration", R"({"data":{"x":"canary-three"}})"},
      {"note", "kept"}};
  auto desired = without_uid(live);
  desired["data"]["changed"] = "Y2FuYXJ5LWZvdXI=";
  desired["stringData"] = {{"plain", "canary-five"}};
  desired["metadata"].erase("annotations");
  const auto shown = manifests_of(
      live, {{"desiredManifest", desired.dump()}, {"gitManifest", "data:\n  x: canary-six\n"}});
  EXPECT_EQ(shown["masked"], true);
  EXPECT_TRUE(shown["gitManifest"].is_null());
  EXPECT_THAT(shown.dump(), Not(HasSubstr("canary")));
  EXPECT_THAT(shown.dump(), Not(HasSubstr("Y2FuYXJ5")));
  const auto one = Json::parse(shown["liveManifest"].get<std::string>());
  const auto other = Json::parse(shown["desiredManifest"].get<std::string>());
  EXPECT_EQ(one["data"]["same"], other["data"]["same"]);
  EXPECT_NE(one["data"]["changed"], other["data"]["changed"]);
  EXPECT_EQ(one["metadata"]["annotations"]["note"], "kept");
  EXPECT_EQ(one["metadata"]["name"], "login");
}

TEST(ManifestView, ASecretOfAnotherFormShowsNoValueEither) {
  auto live = object_of("v1", "Secret", "shop", "login");
  live["data"] = "canary-one";
  live["metadata"]["annotations"] = "kept";
  const auto shown = manifests_of(live, {{"desiredManifest", "canary-two"}});
  EXPECT_THAT(shown.dump(), Not(HasSubstr("canary")));
}

struct FindResource : testing::TestWithParam<Engine> {
  store::Connection& db() { return bed.connection(); }
  StoreBed bed{GetParam()};
  Seeder seeder{GetParam()};
};

TEST_P(FindResource, FindsThatOfThisApplicationAlone) {
  const auto send = [&](const std::string& body, std::int64_t account = 1) {
    return seeder.store(db(), account, body);
  };
  const auto app = send(app_event(application_of("shop")));
  const auto config = object_of("v1", "ConfigMap", "shop", "settings");
  const auto own = send(app_event(config, managed_by("shop")));
  send(app_event(config, managed_by("cart")));
  send(app_event(config, managed_by("shop")), 2);
  const std::array<std::int64_t, 1> ids{app};
  auto state = must(objects_of_ids(db(), 1, ids, BodyUse::skip)).at(0).state;
  const ResourceName name{.kind = "ConfigMap", .object_namespace = "shop", .name = "settings"};
  const auto found = must(find_resource(db(), 1, state, name));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.id, own);
  EXPECT_TRUE(found->body.has_value());
  EXPECT_FALSE(must(find_resource(db(), 1, state, {.kind = "Secret", .name = "settings"})));
  state.uid.clear();
  EXPECT_FALSE(must(find_resource(db(), 1, state, name)));
}

INSTANTIATE_TEST_SUITE_P(Engines, FindResource, testing::Values(Engine::sqlite, Engine::postgres),
                         [](const auto& info) { return test::engine_name(info.param); });

}  // namespace
}  // namespace gitops::control_plane_server
