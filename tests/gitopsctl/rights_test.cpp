#include "gitopsctl/rights.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// tests/chart compares the table with the rendered chart.
namespace gitops::ctl {
namespace {

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

TEST(Rights, EachSaysWhatItIsFor) {
  for (const Right& right :
       rights_of_runtime({.workflows_everywhere = true, .managed_clusters = true, .replicas = 3})) {
    EXPECT_NE(right.purpose, "") << describe(right, "gitops");
    EXPECT_THAT(right.verbs, Not(testing::IsEmpty()));
  }
}

}  // namespace
}  // namespace gitops::ctl
