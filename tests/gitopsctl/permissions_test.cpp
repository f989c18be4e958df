#include "gitopsctl/permissions.hpp"

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

TEST(Permissions, AreDescribedInOneLine) {
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

TEST(Permissions, OfASingleNamespaceAreNowhereElse) {
  EXPECT_THAT(permissions_of_runtime({.single_namespace = true, .workflows_everywhere = true}),
              Each(Field(&Permission::everywhere, IsFalse())));
}

TEST(Permissions, OfOneReplicaDoNotCreateLeases) {
  const auto creates = Field(&Permission::verbs, Contains("create"));
  EXPECT_THAT(permissions_of_runtime({}), Each(Not(creates)));
  EXPECT_THAT(permissions_of_runtime({.replicas = 2}), Contains(creates).Times(2));
}

TEST(Permissions, OnSecretsAreWrittenOnlyForAppProxy) {
  const auto updates = Field(&Permission::verbs, Contains("update"));
  const auto on_secrets = AllOf(Field(&Permission::resource, "secrets"), updates);
  EXPECT_THAT(permissions_of_runtime({}), Each(Not(on_secrets)));
  EXPECT_THAT(permissions_of_runtime({.app_proxy = true}),
              Contains(AllOf(on_secrets, Field(&Permission::daemon, "cap-app-proxy"),
                             Field(&Permission::everywhere, IsFalse())))
                  .Times(1));
}

TEST(Permissions, OfOneDaemonOnly) {
  EXPECT_THAT(
      permissions_of_runtime({.daemon = "runtime-event-reporter"}),
      AllOf(Not(testing::IsEmpty()), Each(Field(&Permission::daemon, "runtime-event-reporter"))));
  EXPECT_THAT(permissions_of_runtime({.daemon = "nobody"}), testing::IsEmpty());
}

TEST(Permissions, EachSaysWhatItIsFor) {
  for (const Permission& permission : permissions_of_runtime({.workflows_everywhere = true,
                                                              .managed_clusters = true,
                                                              .app_proxy = true,
                                                              .replicas = 3})) {
    EXPECT_NE(permission.purpose, "") << describe(permission, "gitops");
    EXPECT_THAT(permission.verbs, Not(testing::IsEmpty()));
  }
}

}  // namespace
}  // namespace gitops::ctl
