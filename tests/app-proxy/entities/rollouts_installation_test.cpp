#include "app-proxy/entities/rollouts_installation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_bed.hpp"

namespace gitops::app_proxy {
namespace {

RolloutsInstallation rollouts(std::string server, const RolloutsFiles& present = {}) {
  return {.name = rollouts_name(server, present),
          .server = server,
          .destination_namespace = "rollouts",
          .chart_repository = "https://charts.example.test",
          .chart_version = "1"};
}

TEST(RolloutsFiles, EachClusterHasARolloutsFileOfItsOwn) {
  const auto new_name = [](const std::string& server) { return rollouts_name(server, {}); };
  EXPECT_EQ(new_name("https://kubernetes.default.svc"), "argo-rollouts-in-cluster");
  EXPECT_EQ(new_name("https://kubernetes.default.svc/"), "argo-rollouts-in-cluster");
  EXPECT_EQ(new_name("https://10.1.2.3:6443"), "argo-rollouts-10-1-2-3");
  EXPECT_EQ(new_name("https://Edge.example.test/"), "argo-rollouts-edge-example-test");
  // Several clusters behind one host.
  const auto a = new_name("https://rancher.example.test/k8s/clusters/a");
  const auto b = new_name("https://rancher.example.test/k8s/clusters/b");
  EXPECT_THAT(a, testing::MatchesRegex("argo-rollouts-rancher-example-test-[0-9a-f]{8}"));
  EXPECT_NE(a, b);
  EXPECT_EQ(new_name("https://rancher.example.test/k8s/clusters/a/"), a);
  const auto long_name = new_name("https://" + std::string(60, 'x') + ".example.test/a");
  EXPECT_EQ(long_name.size(), 63U) << "as a label's value";

  // The host's name is another cluster's: that of another port, or of a path in files of earlier releases.
  const auto file = [](const std::string& server) {
    return rollouts_manifest(repository(), rollouts(server));
  };
  EXPECT_EQ(rollouts_name("https://10.1.2.3:7443", {.by_host = file("https://10.1.2.3:6443")}),
            rollouts_names("https://10.1.2.3:7443").by_url);
  EXPECT_EQ(rollouts_name("https://10.1.2.3:6443/", {.by_host = file("https://10.1.2.3:6443")}),
            "argo-rollouts-10-1-2-3");
  EXPECT_EQ(rollouts_name("https://10.1.2.3:6443", {.by_host = "no manifest"}),
            rollouts_names("https://10.1.2.3:6443").by_url);
  const std::string in_rancher = "https://rancher.example.test/k8s/clusters/a";
  EXPECT_EQ(rollouts_name(in_rancher, {.by_host = file(in_rancher)}),
            "argo-rollouts-rancher-example-test");
  // The other cluster's file has gone since.
  EXPECT_EQ(rollouts_name("https://10.1.2.3:7443", {.by_url = file("https://10.1.2.3:7443")}),
            rollouts_names("https://10.1.2.3:7443").by_url);
}

TEST(RolloutsFiles, AnInstallationOfRolloutsThatIsThereIsNotOverwritten) {
  const std::string server = "https://10.1.2.3:6443";
  const std::string path = "resources/runtimes/prod/argo-rollouts-10-1-2-3.yaml";
  Files files;
  EXPECT_EQ(files.apply(changes_to_install_rollouts(repository(), rollouts(server))), "");
  auto& file = files.files[path];
  EXPECT_EQ(file, rollouts_manifest(repository(), rollouts(server)));
  EXPECT_NE(files.files["runtimes/prod/in-cluster.yaml"], "");
  file = "# by hand\n" + file;
  file.replace(file.find("targetRevision: \"1\""), 19, "targetRevision: \"2\"");
  const auto by_hand = file;
  EXPECT_EQ(files.apply(changes_to_install_rollouts(repository(), rollouts(server + "/"))), "");
  EXPECT_EQ(file, by_hand);
  // Another namespace is set in place.
  auto moved = rollouts(server);
  moved.destination_namespace = "elsewhere";
  EXPECT_EQ(files.apply(changes_to_install_rollouts(repository(), moved)), "");
  auto expected = by_hand;
  expected.replace(expected.find("namespace: rollouts"), 19, "namespace: elsewhere");
  EXPECT_EQ(file, expected);
  // Somebody has made it another cluster's in the meantime.
  file.replace(file.find(server), server.size(), "https://10.9.9.9:6443");
  const auto others = file;
  EXPECT_EQ(files.apply(changes_to_install_rollouts(repository(), rollouts(server))), "NAME_TAKEN");
  EXPECT_EQ(file, others);
}

TEST(RolloutsFiles, AnInstallationIsRemovedWithItsCluster) {
  const std::string server = "https://10.1.2.3:6443";
  const std::string other = "https://10.1.2.3:7443";
  const std::string path = "resources/runtimes/prod/argo-rollouts-10-1-2-3.yaml";
  Files files;
  EXPECT_EQ(files.apply(changes_to_install_rollouts(repository(), rollouts(server))), "");
  EXPECT_EQ(files.apply(changes_to_install_rollouts(
                repository(), rollouts(other, {.by_host = files.files[path]}))),
            "");
  const auto both = files.files;
  EXPECT_EQ(files.apply(changes_to_remove_rollouts(repository(), server + "/")), "");
  EXPECT_FALSE(files.files.contains(path));
  EXPECT_EQ(files.files.size(), both.size() - 1) << "the other cluster keeps its own";
  files.files = both;
  EXPECT_EQ(files.apply(changes_to_remove_rollouts(repository(), other)), "");
  EXPECT_TRUE(files.files.contains(path));
  EXPECT_EQ(files.files.size(), both.size() - 1);
  // Where there is none.
  const auto one = files.files;
  EXPECT_EQ(files.apply(changes_to_remove_rollouts(repository(), other)), "");
  EXPECT_EQ(files.files, one);
}

}  // namespace
}  // namespace gitops::app_proxy
