#include "app-proxy/runtime/runtime_groups.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

TEST(RuntimeGroups, AreAnEntryEach) {
  const auto line_of = [](const RuntimeGroup& group) { return status_text({entry_of(group)}); };
  EXPECT_EQ(entry_of({.name = "clusters"}).state, StatusState::ok);
  EXPECT_EQ(line_of({.name = "clusters"}), "clusters: ok\n");
  EXPECT_EQ(entry_of({.name = "clusters", .unknown = "403"}).state, StatusState::unknown);
  EXPECT_EQ(line_of({.name = "clusters", .unknown = "403"}), "clusters: not known: 403\n");
  EXPECT_EQ(entry_of({.name = "clusters", .unknown = "403", .is_pending = true}).state,
            StatusState::pending);
  EXPECT_EQ(entry_of({.name = "clusters", .errors = {"a: x"}}).state, StatusState::degraded);
  EXPECT_EQ(line_of({.name = "clusters", .errors = {"a: x", "b: y"}}), "clusters: a: x; b: y\n");
  EXPECT_EQ(line_of({.name = "clusters", .errors = {"a: x"}, .unknown = "403"}),
            "clusters: a: x; not known: 403\n");
}

TEST(RuntimeGroups, OnlyFailedItemsAreErrors) {
  const auto errors = errors_of({{.name = "connectivity"},
                                 {.name = "applications", .unknown = "403"},
                                 {.name = "components", .errors = {"a: x", "b: y"}}});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].message, "components: a: x; b: y");
  EXPECT_EQ(errors[0].level, control_plane::RuntimeError::Level::error);
}

TEST(RuntimeGroups, NameFiveAndTakeFiveHundredCharacters) {
  RuntimeGroup group{.name = "components"};
  for (int i = 0; i < 7; ++i) group.errors.push_back("pod-" + std::to_string(i) + ": down");
  EXPECT_EQ(describe_errors(group),
            "pod-0: down; pod-1: down; pod-2: down; pod-3: down; pod-4: down; and 2 more");
  // One long text does not hide the names of the others.
  for (auto& error : group.errors) error += "\n" + std::string(10'000, 'x');
  auto text = describe_errors(group);
  EXPECT_LE(text.size(), 500U);
  EXPECT_THAT(text, HasSubstr("; pod-4: down "));
  EXPECT_THAT(text, HasSubstr("and 2 more"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  // Characters of several bytes stay whole.
  for (std::size_t more = 0; more < 4; ++more) {
    std::string umlauts(more, 'a');
    for (int i = 0; i < 1'000; ++i) umlauts += "ü";
    text = describe_errors({.name = "components", .errors = {umlauts}});
    EXPECT_LE(text.size(), 500U);
    EXPECT_TRUE(text.ends_with("ü…")) << text;
  }
  const auto line =
      status_text({entry_of({.name = "clusters", .unknown = std::string(10'000, 'x')})});
  EXPECT_LE(line.size(), 520U);
}

TEST(Connectivity, NamesTheServersThatCannotBeUsed) {
  EXPECT_EQ(entry_of(connectivity_group({})).state, StatusState::ok);
  EXPECT_EQ(entry_of(connectivity_group({.argocd = "", .workflows = ""})).state, StatusState::ok);
  EXPECT_THAT(
      connectivity_group({.control_plane = "a", .argocd = "b", .workflows = "c", .git = "d"})
          .errors,
      ElementsAre("control plane: a", "Argo CD: b", "Argo Workflows: c", "Git: d"));
}

TEST(GitSources, AreThoseOfTheSharedConfigurationRepository) {
  EXPECT_EQ(entry_of(git_sources_group(true, "")).state, StatusState::ok);
  EXPECT_THAT(git_sources_group(true, "no right").errors,
              ElementsAre("shared configuration repository: no right"));
  EXPECT_TRUE(git_sources_group(true, std::nullopt).is_pending);
  const auto without = git_sources_group(false, "no Git token");
  EXPECT_THAT(without.errors, IsEmpty());
  EXPECT_FALSE(without.is_pending);
}

TEST(Clusters, AreNamedWithoutTheServersWords) {
  using control_plane::ClusterState;
  const std::vector<ClusterState> unreachable{
      {.name = "edge", .server = "https://edge.test", .status = "Failed", .message = "10:41: dial"},
      {.name = "", .server = "https://a.test", .status = "Failed"}};
  EXPECT_THAT(
      clusters_group(unreachable).errors,
      ElementsAre("edge: Argo CD cannot reach it", "https://a.test: Argo CD cannot reach it"));
  const auto failed = clusters_group(fail(ErrorCode::forbidden, "403"));
  EXPECT_EQ(entry_of(failed).message, "not known: 403");
  EXPECT_FALSE(failed.is_pending);
  EXPECT_TRUE(clusters_group(fail(ErrorCode::unavailable, "not looked yet")).is_pending);
}

Json application(const char* sync, const char* health) {
  return {{"status", {{"sync", {{"status", sync}}}, {"health", {{"status", health}}}}}};
}

// Its error at once, and when it has lasted.
std::pair<std::string, std::string> errors(const Json& object) {
  const auto read = read_application("in-cluster", object.is_null() ? "" : object.dump());
  return {error_of(read, false), error_of(read, true)};
}

TEST(OwnApplications, SayWhatIsWrong) {
  using Both = std::pair<std::string, std::string>;
  EXPECT_EQ(errors(application("Synced", "Healthy")), Both());
  EXPECT_EQ(errors(application("Synced", "Progressing")), Both());
  auto object = application("Synced", "Degraded");
  EXPECT_EQ(errors(object).first, "in-cluster: Degraded");
  object["status"]["health"]["message"] = "pod web fails";
  EXPECT_EQ(errors(object).first, "in-cluster: Degraded: pod web fails");
  // An error is what people can act on.
  object["status"]["conditions"] = {{{"type", "OrphanedResourceWarning"}, {"message", "9"}},
                                    {{"type", "ComparisonError"}, {"message", "no repository"}}};
  EXPECT_EQ(errors(object).first, "in-cluster: ComparisonError: no repository");
  // What often passes by itself.
  EXPECT_EQ(errors(Json()), (Both{"", "in-cluster: there is no such Application"}));
  EXPECT_EQ(errors(application("Synced", "Missing")), (Both{"", "in-cluster: Missing"}));
  object = application("OutOfSync", "Healthy");
  EXPECT_EQ(errors(object), (Both{"", "in-cluster: OutOfSync"}));
  object["status"]["operationState"] = {{"phase", "Failed"}, {"message", "hook failed"}};
  EXPECT_EQ(errors(object), (Both{"", "in-cluster: OutOfSync: hook failed"}));
}

TEST(OwnApplications, WhatIsNoApplicationHasNoError) {
  for (const char* text : {"null", "[]", "{}", R"({"status":7})", R"({"status":{"conditions":7}})",
                           R"({"status":{"conditions":[7,null,{}]}})"}) {
    EXPECT_EQ(error_of(read_application("a", text), true), "") << text;
  }
}

const auto kNow = parse_rfc3339("2026-03-04T09:15:00Z").value();

Json waiting(const char* reason) {
  return {{"name", "main"}, {"state", {{"waiting", {{"reason", reason}}}}}};
}

Json ready(const char* status, const char* since) {
  return {{{"type", "Initialized"},
           {"status", "False"},
           {"lastTransitionTime", "2026-01-01T00:00:00Z"}},
          {{"type", "Ready"}, {"status", status}, {"lastTransitionTime", since}}};
}

std::vector<std::string> pods(const std::vector<Json>& statuses) {
  Json items = Json::array();
  for (const Json& status : statuses) {
    items.push_back({{"metadata",
                      {{"name", "pod-" + std::to_string(items.size())},
                       {"creationTimestamp", "2026-03-04T09:14:00Z"}}},
                     {"status", status}});
  }
  return pod_errors(Json{{"metadata", Json::object()}, {"items", items}}.dump(), kNow);
}

TEST(Components, AreErrorsWhenTheyDoNotStart) {
  EXPECT_THAT(pods({{{"containerStatuses", {waiting("CrashLoopBackOff")}}},
                    {{"initContainerStatuses", {waiting("ImagePullBackOff")}}},
                    {{"containerStatuses", {waiting("ContainerCreating")}}},
                    {{"containerStatuses", {waiting("PodInitializing")}}},
                    {{"containerStatuses",
                      {{{"name", "a"}, {"state", {{"running", {}}}}},
                       waiting("CreateContainerConfigError")}}}}),
              ElementsAre("pod-0: container main: CrashLoopBackOff",
                          "pod-1: container main: ImagePullBackOff",
                          "pod-4: container main: CreateContainerConfigError"));
}

TEST(Components, AreErrorsWhenTheyAreNotReadyForFiveMinutes) {
  EXPECT_THAT(pods({{{"conditions", ready("True", "2026-03-04T08:00:00Z")}},
                    {{"conditions", ready("False", "2026-03-04T09:11:00Z")}},
                    {{"conditions", ready("False", "2026-03-04T09:09:00Z")}},
                    Json::object()}),
              ElementsAre("pod-2: not ready for more than five minutes"));
  // One that no node takes has no such condition.
  const Json old{{"items",
                  {{{"metadata", {{"name", "old"}, {"creationTimestamp", "2026-03-04T09:00:00Z"}}},
                    {"status", {{"phase", "Pending"}}}}}}};
  EXPECT_THAT(pod_errors(old.dump(), kNow),
              ElementsAre("old: not ready for more than five minutes"));
}

TEST(Components, ArePodsThatShouldRun) {
  Json pod{{"metadata", {{"name", "old"}, {"creationTimestamp", "2026-03-04T09:00:00Z"}}},
           {"status", {{"phase", "Running"}}}};
  const auto found = [](const Json& one) {
    return pod_errors(Json{{"items", {one}}}.dump(), kNow);
  };
  EXPECT_THAT(found(pod), testing::SizeIs(1));
  for (const char* phase : {"Succeeded", "Failed"}) {
    auto ended = pod;
    ended["status"]["phase"] = phase;
    EXPECT_THAT(found(ended), IsEmpty()) << phase;
  }
  auto deleted = pod;
  deleted["metadata"]["deletionTimestamp"] = "2026-03-04T09:00:00Z";
  EXPECT_THAT(found(deleted), IsEmpty());
  auto step = pod;
  step["metadata"]["labels"]["workflows.argoproj.io/workflow"] = "build";
  EXPECT_THAT(found(step), IsEmpty());
}

TEST(Components, WhatIsNoListHasNone) {
  for (const char* text : {"", "null", "[]", "{}", R"({"items":7})", R"({"items":[7,null,{}]})",
                           R"({"items":[{"status":7}]})"}) {
    EXPECT_THAT(pod_errors(text, kNow), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace gitops::app_proxy
