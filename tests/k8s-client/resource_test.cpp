#include "k8s-client/resource.hpp"

#include <gtest/gtest.h>

namespace gitops::k8s {
namespace {

TEST(Resource, NamesCoreAndGroupTypes) {
  EXPECT_EQ(resources::kPods.api_version(), "v1");
  EXPECT_EQ(resources::kDeployments.api_version(), "apps/v1");
  EXPECT_EQ(resources::kPods.full_name(), "pods");
  EXPECT_EQ(resources::kApplications.full_name(), "applications.argoproj.io");
}

TEST(Resource, BuildsPaths) {
  EXPECT_EQ(group_version_path(resources::kConfigMaps), "/api/v1");
  EXPECT_EQ(group_version_path(resources::kDeployments), "/apis/apps/v1");
  EXPECT_EQ(collection_path(resources::kConfigMaps, ""), "/api/v1/configmaps");
  EXPECT_EQ(collection_path(resources::kDeployments, "shop"),
            "/apis/apps/v1/namespaces/shop/deployments");
  EXPECT_EQ(object_path(resources::kDeployments, {"shop", "web"}, "status"),
            "/apis/apps/v1/namespaces/shop/deployments/web/status");
}

TEST(Resource, LeavesTheNamespaceOutOfClusterScopedPaths) {
  EXPECT_EQ(object_path(resources::kNamespaces, {"ignored", "shop"}), "/api/v1/namespaces/shop");
}

TEST(Resource, EncodesWhatWouldChangeThePath) {
  EXPECT_EQ(object_path(resources::kPods, {"a/b", "../x?y=1#z %2e"}),
            "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy%3D1%23z%20%252e");
}

TEST(ObjectKey, PrintsAndOrders) {
  EXPECT_EQ((ObjectKey{"shop", "web"}).to_string(), "shop/web");
  EXPECT_EQ((ObjectKey{"", "shop"}).to_string(), "shop");
  EXPECT_LT((ObjectKey{"a", "z"}), (ObjectKey{"b", "a"}));
}

}  // namespace
}  // namespace gitops::k8s
