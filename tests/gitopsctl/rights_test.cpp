#include "gitopsctl/rights.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// tests/chart compares the table with the rendered chart.
namespace gitops::ctl {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsFalse;
using testing::Not;

TEST(Rights, AreDescribedInOneLine) {
  EXPECT_EQ(describe({.daemon = "d",
                      .group = "argoproj.io",
                      .resource = "applications",
                      .verbs = {"get", "list"},
                      .everywhere = true,
                      .purpose = ""},
                     "gitops"),
            "get, list applications.argoproj.io in all namespaces");
  EXPECT_EQ(describe({.daemon = "d",
                      .group = "",
                      .resource = "secrets",
                      .verbs = {"get"},
                      .names = {"a", "b"},
                      .purpose = ""},
                     "gitops"),
            "get secrets a, b in namespace gitops");
}

TEST(Rights, OfASingleNamespaceAreNowhereElse) {
  EXPECT_THAT(rights_of_runtime({.single_namespace = true, .workflows_everywhere = true}),
              Each(Field(&Right::everywhere, IsFalse())));
}

TEST(Rights, OfOneReplicaDoNotCreateLeases) {
  const auto creates = Field(&Right::verbs, Contains("create"));
  EXPECT_THAT(rights_of_runtime({}), Each(Not(creates)));
  EXPECT_THAT(rights_of_runtime({.replicas = 2}), Contains(creates).Times(2));
}

TEST(Rights, OnSecretsAreWrittenOnlyForAppProxy) {
  const auto updates = Field(&Right::verbs, Contains("update"));
  const auto on_secrets = AllOf(Field(&Right::resource, "secrets"), updates);
  EXPECT_THAT(rights_of_runtime({}), Each(Not(on_secrets)));
  EXPECT_THAT(rights_of_runtime({.app_proxy = true}),
              Contains(AllOf(on_secrets, Field(&Right::daemon, "cap-app-proxy"),
                             Field(&Right::everywhere, IsFalse())))
                  .Times(1));
}

TEST(Rights, OfOneDaemonOnly) {
  EXPECT_THAT(
      rights_of_runtime({.daemon = "runtime-event-reporter"}),
      AllOf(Not(testing::IsEmpty()), Each(Field(&Right::daemon, "runtime-event-reporter"))));
  EXPECT_THAT(rights_of_runtime({.daemon = "nobody"}), testing::IsEmpty());
}

TEST(Rights, EachSaysWhatItIsFor) {
  for (const Right& right : rights_of_runtime({.workflows_everywhere = true,
                                               .managed_clusters = true,
                                               .app_proxy = true,
                                               .replicas = 3})) {
    EXPECT_NE(right.purpose, "") << describe(right, "gitops");
    EXPECT_THAT(right.verbs, Not(testing::IsEmpty()));
  }
}

}  // namespace
}  // namespace gitops::ctl
