#include "event-reporter/event/digest.hpp"

#include <algorithm>
#include <initializer_list>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gitops::reporter {
namespace {

nlohmann::json application() {
  return nlohmann::json::parse(R"({
    "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
    "metadata": {"name": "web", "namespace": "argocd", "uid": "u", "resourceVersion": "7",
      "generation": 3, "managedFields": [{"time": "x"}], "labels": {"team": "a"},
      "annotations": {"note": "b"}},
    "spec": {"project": "default", "source": {"repoURL": "r"}},
    "status": {"reconciledAt": "2026-03-04T09:00:00Z", "sync": {"status": "Synced"},
      "health": {"status": "Healthy"},
      "conditions": [{"type": "OrphanedResourceWarning", "message": "m",
        "lastTransitionTime": "2026-03-04T09:00:00Z"}]}})");
}

Digest digest_after(const std::string& pointer, const nlohmann::json& value) {
  auto app = application();
  app[nlohmann::json::json_pointer(pointer)] = value;
  return change_digest(app.dump());
}

TEST(ChangeDigest, ARefreshIsNoChange) {
  const auto before = change_digest(application().dump());
  EXPECT_EQ(digest_after("/status/reconciledAt", "2026-03-04T09:03:00Z"), before);
  EXPECT_EQ(digest_after("/status/observedAt", "2026-03-04T09:03:00Z"), before);
  EXPECT_EQ(digest_after("/metadata/resourceVersion", "8"), before);
  EXPECT_EQ(digest_after("/metadata/generation", 4), before);
  EXPECT_EQ(digest_after("/metadata/managedFields", nlohmann::json::array()), before);
  EXPECT_EQ(digest_after("/metadata/annotations/argocd.argoproj.io~1refresh", "hard"), before);
  EXPECT_EQ(
      digest_after("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "{}"),
      before);
  EXPECT_EQ(digest_after("/status/conditions/0/lastTransitionTime", "2026-03-04T09:09:09Z"),
            before);
}

TEST(ChangeDigest, EverythingElseIsAChange) {
  const auto before = change_digest(application().dump());
  EXPECT_NE(digest_after("/status/sync/status", "OutOfSync"), before);
  EXPECT_NE(digest_after("/status/health/status", "Degraded"), before);
  EXPECT_NE(digest_after("/status/conditions/0/message", "n"), before);
  EXPECT_NE(digest_after("/status/operationState/phase", "Running"), before);
  EXPECT_NE(digest_after("/operation/sync/revision", "abc"), before);
  EXPECT_NE(digest_after("/spec/project", "other"), before);
  EXPECT_NE(digest_after("/metadata/labels/team", "b"), before);
  EXPECT_NE(digest_after("/metadata/annotations/note", "c"), before);
  EXPECT_NE(digest_after("/metadata/deletionTimestamp", "2026-03-04T09:09:09Z"), before);
  EXPECT_NE(digest_after("/metadata/uid", "v"), before);
}

Digest object_digest_after(const std::string& pointer, const nlohmann::json& value) {
  auto object = application();
  object["status"]["conditions"][0]["lastUpdateTime"] = "2026-03-04T09:00:00Z";
  object["status"]["observedGeneration"] = "3";
  object[nlohmann::json::json_pointer(pointer)] = value;
  return object_digest(object.dump());
}

TEST(ObjectDigest, BookkeepingIsNoChange) {
  const auto before = object_digest_after("/status/observedGeneration", "3");
  EXPECT_EQ(object_digest_after("/status/observedGeneration", "4"), before);
  EXPECT_EQ(object_digest_after("/metadata/resourceVersion", "8"), before);
  EXPECT_EQ(object_digest_after("/metadata/managedFields", nlohmann::json::array()), before);
  EXPECT_EQ(object_digest_after("/apiVersion", nullptr), before) << "items of lists have none";
  EXPECT_EQ(object_digest_after("/kind", nullptr), before);
  for (const auto* time : {"lastTransitionTime", "lastUpdateTime"}) {
    EXPECT_EQ(object_digest_after(std::string("/status/conditions/0/") + time, "later"), before);
  }
}

TEST(ObjectDigest, EverythingElseIsAChange) {
  const auto before = object_digest_after("/status/observedGeneration", "3");
  for (const auto* pointer :
       {"/status/phase", "/status/reconciledAt", "/status/conditions/0/message", "/spec/replicas",
        "/metadata/labels/team", "/metadata/deletionTimestamp", "/metadata/uid"}) {
    EXPECT_NE(object_digest_after(pointer, "other"), before) << pointer;
  }
}

TEST(Hasher, KeepsPartsApart) {
  const auto of = [](std::initializer_list<std::string_view> parts) {
    Hasher hasher;
    for (const auto part : parts) hasher.add(part);
    return hasher.finish();
  };
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({""}), of({}));
  EXPECT_EQ(to_hex(Digest{0x8f, 0x1b}, 2), "8f1b");
}

// Ledgers hold digests, so how the texts are gathered must not show.
TEST(Hasher, SumsUpEachTextBehindItsSize) {
  for (const std::size_t size : {0U, 1U, 7U, 495U, 496U, 497U, 503U, 504U, 505U, 512U, 5'000U}) {
    Hasher hasher;
    Sha256 expected;
    for (const std::size_t of_part : {size, std::size_t{3}, size, std::size_t{500}, size}) {
      const std::string part(of_part, static_cast<char>('a' + of_part % 26));
      const std::uint64_t bytes = of_part;
      hasher.add(part);
      expected.add({reinterpret_cast<const char*>(&bytes), sizeof bytes});
      expected.add(part);
    }
    const auto sum = expected.finish();
    Digest begin{};
    std::copy_n(sum.begin(), begin.size(), begin.begin());
    EXPECT_EQ(hasher.finish(), begin) << size;
  }
}

TEST(TreeDigest, IsOfTheNodesInAnyOrder) {
  const auto of = [](const std::string& nodes) {
    return tree_digest(R"({"orphanedNodes":[{"name":"c"}],"nodes":)" + nodes + "}");
  };
  const auto digest = of(R"([{"name":"a"},{"name":"b"}])");
  EXPECT_EQ(of(R"([{"name":"b"},{"name":"a"}])"), digest);
  EXPECT_NE(of(R"([{"name":"a"}])"), digest);
  EXPECT_NE(of(R"([{"name":"a"},{"name":"b","health":{"status":"Degraded"}}])"), digest);
  EXPECT_EQ(of("[]"), of("null"));
}

}  // namespace
}  // namespace gitops::reporter
