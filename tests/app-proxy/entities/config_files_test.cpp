#include "app-proxy/entities/config_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_bed.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ConfigFiles, LiesBelowThePathOfItsSpecifier) {
  const auto at = repository("https://git.example.test/acme/all.git/shared-config?ref=live");
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(at, source())), "");
  EXPECT_THAT(files.names(), ElementsAre("shared-config/resources/README.md",
                                         "shared-config/resources/app-projects/cf-git-sources.yaml",
                                         "shared-config/resources/prod/shop.yaml",
                                         "shared-config/runtimes/prod/in-cluster.yaml"));
  const auto& in_cluster = files.files["shared-config/runtimes/prod/in-cluster.yaml"];
  EXPECT_THAT(in_cluster, HasSubstr("    path: shared-config/resources\n"));
  EXPECT_THAT(in_cluster, HasSubstr("    targetRevision: live\n"));
}

TEST(ConfigFiles, TheConfigurationRuntimeAppliesConfigurations) {
  auto at = repository();
  EXPECT_THAT(in_cluster_manifest(at), Not(HasSubstr("configurations/")));
  at.is_configuration_runtime = true;
  EXPECT_THAT(in_cluster_manifest(at),
              HasSubstr("configurations/*.yaml,configurations/**/*.yaml,"));
}

// Argo CD would refuse a repository without that folder, and never remove the last Git source.
TEST(ConfigFiles, TheFolderOfResourcesIsNeverEmpty) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  files.files["resources/README.md"] = "of people";
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "");
  EXPECT_EQ(files.files["resources/README.md"], "of people");
  files.files.erase("resources/README.md");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "");
  EXPECT_THAT(files.files["resources/README.md"], HasSubstr("`control-planes/`"));
}

// Its in-cluster Application would apply the resources of all runtimes once more.
TEST(ConfigFiles, ARemovedRuntimeStaysSoWhenAClusterOrAGitSourceIsRemoved) {
  auto at = repository();
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(at, source())), "");
  EXPECT_EQ(files.apply(changes_to_add_cluster(at, "east", "https://east.test")), "");
  EXPECT_EQ(files.apply(changes_to_remove_runtime(at)), "");
  at.is_removed = true;
  const auto without = files.names();
  EXPECT_THAT(without,
              ElementsAre("resources/README.md", "resources/app-projects/cf-git-sources.yaml"));
  EXPECT_EQ(files.apply(changes_to_remove_cluster(at, "east")), "");
  EXPECT_EQ(files.apply(changes_to_remove(at, "shop")), "");
  EXPECT_EQ(files.names(), without);
}

// What people wrote into the files stays there.
TEST(ConfigFiles, GlobsOfOthersAndCommentsStay) {
  Files files;
  files.files["runtimes/prod/in-cluster.yaml"] =
      "# ours\nkind: Application\nspec:\n  source:\n    directory:\n"
      "      include: '{special/*.yaml}'   # kept\n";
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_EQ(files.files["runtimes/prod/in-cluster.yaml"],
            "# ours\nkind: Application\nspec:\n  source:\n    directory:\n"
            "      include: '{special/*.yaml,all-runtimes-all-clusters/*.yaml,"
            "all-runtimes-all-clusters/**/*.yaml,app-projects/*.yaml,app-projects/**/*.yaml,"
            "control-planes/*.yaml,control-planes/**/*.yaml,"
            "runtimes/prod/*.yaml,runtimes/prod/**/*.yaml,prod/shop.yaml}'   # kept\n");
}

TEST(ConfigFiles, AnInClusterApplicationWithoutGlobsIsNotGuessedAt) {
  Files files;
  files.files["runtimes/prod/in-cluster.yaml"] = "kind: Application\nspec: {}\n";
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "GIT_SOURCE_UNREADABLE");
  // Each round would add to them again.
  for (const std::string include : {"'{ {a,b}'", "a,b", "'{a},b}'"}) {
    files.files["runtimes/prod/in-cluster.yaml"] =
        "kind: Application\nspec:\n  source:\n    directory:\n      include: " + include + "\n";
    EXPECT_EQ(files.apply(changes_to_prepare(repository())), "GIT_SOURCE_UNREADABLE") << include;
  }
  files.files["runtimes/prod/in-cluster.yaml"] = "{{ not yaml";
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "GIT_SOURCE_UNREADABLE");
}

// Both would be Applications of that name in the runtime's namespace.
TEST(ConfigFiles, AGitSourceAndAClusterHaveDifferentNames) {
  Files files;
  const auto restricted = RestrictedGitSource{.name = "east",
                                              .source = source().source,
                                              .source_namespace = "cf-east",
                                              .destinations = {{.server = "https://x.test"}}};
  EXPECT_EQ(files.apply(changes_to_add_cluster(repository(), "east", "https://east.test")), "");
  auto before = files.files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source("west"))), "");
  files.files = before;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source("east"))), "NAME_TAKEN");
  files.files = before;
  EXPECT_EQ(files.apply(changes_to_create(repository(), restricted, kRestrictedGitSourceApi)),
            "NAME_TAKEN");
  files.files.clear();
  EXPECT_EQ(files.apply(changes_to_create(repository(), source("east"))), "");
  before = files.files;
  EXPECT_EQ(files.apply(changes_to_add_cluster(repository(), "east", "https://east.test")),
            "NAME_TAKEN");
  // Once the one is gone, the other may have the name.
  files.files = before;
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "east")), "");
  EXPECT_EQ(files.apply(changes_to_add_cluster(repository(), "east", "https://east.test")), "");
}

// Managed clusters have no sealing key, nor the kind SealedSecret.
TEST(ConfigFiles, ManagedClustersDoNotGetIntegrations) {
  EXPECT_THAT(cluster_manifest(repository(), "east", "https://east.test"),
              HasSubstr("      exclude: all-runtimes-all-clusters/integrations/**\n"));
  EXPECT_THAT(in_cluster_manifest(repository()), Not(HasSubstr("exclude")));
}

TEST(ConfigFiles, ReadsGlobs) {
  EXPECT_THAT(parse_globs("{a,b/*.yaml}"), ElementsAre("a", "b/*.yaml"));
  EXPECT_THAT(parse_globs("{a}"), ElementsAre("a"));
  EXPECT_THAT(parse_globs("*.yaml"), ElementsAre("*.yaml"));
  EXPECT_THAT(parse_globs("{a,,b,}"), ElementsAre("a", "b"));
  EXPECT_THAT(parse_globs("{a,{b,c}/*}"), ElementsAre("a", "{b,c}/*"));
  EXPECT_THAT(parse_globs("{a,b}/*.{yaml,yml}"), ElementsAre("{a,b}/*.{yaml,yml}"));
  EXPECT_THAT(parse_globs("{a,b"), ElementsAre("{a,b"));
  EXPECT_THAT(parse_globs("{}"), IsEmpty());
  EXPECT_THAT(parse_globs(""), IsEmpty());
  EXPECT_EQ(format_globs({"a", "b"}), "{a,b}");
}

}  // namespace
}  // namespace gitops::app_proxy
