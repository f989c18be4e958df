#include "event-reporter/watch/resource_kinds.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

k8s::Record record(const ResourceKind& kind, std::string_view text) {
  k8s::ObjectDecoder decoder(fields_of(kind));
  auto decoded = decoder.decode(text);
  EXPECT_EQ(decoded.kind, k8s::ObjectDecoder::Kind::object) << text;
  return std::move(decoded.record);
}

TEST(ResourceKinds, EveryRowCanBeWatchedAndFound) {
  std::set<std::string> names;
  for (const auto& kind : resource_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(find_kind(kind.name), &kind);
    EXPECT_FALSE(kind.state.empty()) << kind.name;
    EXPECT_GT(fields_of(kind).size(), 0U);
    EXPECT_TRUE(kind.resource.namespaced);
  }
  EXPECT_EQ(find_kind("pods"), nullptr);
}

TEST(ResourceKinds, OfReplicaSetsTheOwnerCounts) {
  const auto& kind = *find_kind("replicasets");
  const auto owned_by = [&](std::string_view owners) {
    return has_owner(kind, record(kind, R"({"metadata":{"name":"x","ownerReferences":)" +
                                            std::string(owners) + "}}"));
  };
  EXPECT_TRUE(owned_by(R"([{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","name":"web"}])"));
  EXPECT_TRUE(owned_by(R"([{"kind":"X"},{"apiVersion":"argoproj.io/v2","kind":"Rollout"}])"));
  EXPECT_FALSE(owned_by(R"([{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}])"));
  EXPECT_FALSE(owned_by(R"([{"apiVersion":"example.com/v1","kind":"Rollout","name":"web"}])"));
  for (const auto* odd : {"[]", "null", "7", R"("Rollout")", "[7,null]", R"({"kind":"Rollout"})"}) {
    EXPECT_FALSE(owned_by(odd)) << odd;
  }
  EXPECT_FALSE(has_owner(kind, record(kind, R"({"metadata":{"name":"x"}})")));
  const auto& rollouts = *find_kind("rollouts");
  EXPECT_TRUE(has_owner(rollouts, record(rollouts, R"({"metadata":{"name":"x"}})")));
}

TEST(ResourceKinds, AMilestoneIsAnotherPhaseAndItsOperationTheRevision) {
  const auto& kind = *find_kind("rollouts");
  const auto of = [&](std::string_view revision, std::string_view phase,
                      std::string_view replicas) {
    return milestone_of(
        kind,
        record(kind, R"({"metadata":{"name":"x","annotations":{"rollout.argoproj.io/revision":")" +
                         std::string(revision) + R"("}},"status":{"phase":")" + std::string(phase) +
                         R"(","readyReplicas":)" + std::string(replicas) + "}}"));
  };
  EXPECT_EQ(of("1", "Progressing", "1"), of("1", "Progressing", "2"));
  EXPECT_NE(of("1", "Progressing", "1"), of("1", "Healthy", "1"));
  EXPECT_EQ(of("1", "Progressing", "1").operation, of("1", "Healthy", "1").operation);
  EXPECT_NE(of("1", "Healthy", "1").operation, of("2", "Healthy", "1").operation);
  EXPECT_NE(of("1", "Healthy", "1"), of("2", "Healthy", "1"));
}

TEST(ResourceKey, NoTwoObjectsHaveTheSame) {
  std::set<std::string> texts;
  for (const auto& key : {
           ResourceKey{"in-cluster", "rollouts", {"a", "b"}},
           ResourceKey{"in-cluster", "workflows", {"a", "b"}},
           ResourceKey{"https://a.example.com/b", "rollouts", {"a", "b"}},
           ResourceKey{"https://a.example.com", "rollouts", {"b/rollouts/a", "b"}},
           ResourceKey{"in-cluster", "rollouts", {"a/b", ""}},
           ResourceKey{"in-cluster", "rollouts", {"", "a/b"}},
           ResourceKey{"in-cluster", "rollouts", {"a%2Fb", "%"}},
       }) {
    EXPECT_TRUE(texts.insert(key.to_string()).second) << key.to_string();
    EXPECT_EQ(parse_resource_key(key.to_string()), key);
  }
  EXPECT_EQ((ResourceKey{"in-cluster", "rollouts", {"shop", "web"}}.to_string()),
            "in-cluster/rollouts/shop/web");
}

TEST(ResourceKey, AnythingElseNamesNoKind) {
  for (const auto* text : {"", "argocd/web", "a/rollouts/b", "a/rollouts/b/c/d", "a/pods/b/c",
                           "a/rollouts/%zz/c", "///"}) {
    EXPECT_EQ(parse_resource_key(text), ResourceKey{}) << text;
  }
}

}  // namespace
}  // namespace gitops::reporter
