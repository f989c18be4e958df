#include "app-proxy/entities/config_repository.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ConfigRepository repository(std::string specifier = "https://git.example.test/acme/config.git") {
  return {
      .at = parse_specifier(specifier).value(), .runtime = "prod", .runtime_namespace = "gitops"};
}

GitSource source(std::string name = "shop") {
  return {.name = std::move(name),
          .source = parse_specifier("https://git.example.test/acme/shop.git/apps?ref=main").value(),
          .server = "https://kubernetes.default.svc"};
}

// The files of a branch, changed as a commit would.
struct Files {
  std::map<std::string, std::string> files;

  // The error's reason; empty when all went well.
  std::string apply(const std::vector<FileChange>& changes) {
    EXPECT_TRUE(check_changes(changes)) << check_changes(changes).error().message;
    for (const auto& change : changes) {
      if (change.kind == FileChange::Kind::remove_folder) {
        std::erase_if(files, [&](const auto& file) {
          return file.first == change.path || file.first.starts_with(change.path + "/");
        });
        continue;
      }
      const auto found = files.find(change.path);
      auto made =
          change.edit(found == files.end() ? std::optional<std::string_view>()
                                           : std::optional<std::string_view>(found->second));
      if (!made) return made.error().reason;
      files[change.path] = *made;
    }
    return {};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, content] : files) found.push_back(name);
    return found;
  }
};

TEST(ConfigRepository, AGitSourceIsAFileAndAGlob) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_THAT(files.names(), ElementsAre("resources/README.md", "resources/prod/shop.yaml",
                                         "runtimes/prod/in-cluster.yaml"));
  EXPECT_EQ(files.files["resources/prod/shop.yaml"], R"(apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  finalizers:
  - resources-finalizer.argocd.argoproj.io
  labels:
    codefresh.io/entity: git-source
    codefresh.io/internal: "false"
  name: shop
  namespace: gitops
spec:
  destination:
    namespace: gitops
    server: https://kubernetes.default.svc
  project: default
  source:
    directory:
      exclude: ""
      include: '*'
      recurse: true
    path: apps
    repoURL: https://git.example.test/acme/shop.git
    targetRevision: main
  syncPolicy:
    automated:
      allowEmpty: true
      prune: true
      selfHeal: true
    syncOptions:
    - allowEmpty=true
)");
  EXPECT_EQ(files.files["runtimes/prod/in-cluster.yaml"], R"(apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  finalizers:
  - resources-finalizer.argocd.argoproj.io
  labels:
    codefresh.io/entity: internal-config
    codefresh.io/internal: "true"
  name: in-cluster
  namespace: gitops
spec:
  destination:
    namespace: gitops
    server: https://kubernetes.default.svc
  project: default
  source:
    directory:
      include: '{all-runtimes-all-clusters/*.yaml,all-runtimes-all-clusters/**/*.yaml,control-planes/*.yaml,control-planes/**/*.yaml,runtimes/prod/*.yaml,runtimes/prod/**/*.yaml,prod/shop.yaml}'
      recurse: true
    path: resources
    repoURL: https://git.example.test/acme/config.git
    targetRevision: HEAD
  syncPolicy:
    automated:
      allowEmpty: true
      prune: true
      selfHeal: true
    syncOptions:
    - allowEmpty=true
)");
}

TEST(ConfigRepository, CreatingTwiceChangesNothing) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  const auto once = files.files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_EQ(files.files, once);
  auto other = source();
  other.server = "https://other.example.test";
  EXPECT_EQ(files.apply(changes_to_create(repository(), other)), "GIT_SOURCE_EXISTS");
}

TEST(ConfigRepository, LabelsCannotReplaceOurs) {
  auto wanted = source();
  wanted.labels = {{"team", "a"}, {"codefresh.io/internal", "true"}, {"codefresh.io/entity", "x"}};
  const auto text = git_source_manifest(repository(), wanted);
  EXPECT_THAT(text, HasSubstr("    codefresh.io/entity: git-source\n"
                              "    codefresh.io/internal: \"false\"\n    team: a\n"));
}

TEST(ConfigRepository, LiesBelowThePathOfItsSpecifier) {
  const auto at = repository("https://git.example.test/acme/all.git/shared-config?ref=live");
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(at, source())), "");
  EXPECT_THAT(files.names(), ElementsAre("shared-config/resources/README.md",
                                         "shared-config/resources/prod/shop.yaml",
                                         "shared-config/runtimes/prod/in-cluster.yaml"));
  const auto& in_cluster = files.files["shared-config/runtimes/prod/in-cluster.yaml"];
  EXPECT_THAT(in_cluster, HasSubstr("    path: shared-config/resources\n"));
  EXPECT_THAT(in_cluster, HasSubstr("    targetRevision: live\n"));
}

TEST(ConfigRepository, TheConfigurationRuntimeAppliesConfigurations) {
  auto at = repository();
  EXPECT_THAT(in_cluster_manifest(at), Not(HasSubstr("configurations/")));
  at.is_configuration_runtime = true;
  EXPECT_THAT(in_cluster_manifest(at),
              HasSubstr("configurations/*.yaml,configurations/**/*.yaml,"));
}

// Argo CD would refuse a repository without that folder, and never remove the last Git source.
TEST(ConfigRepository, TheFolderOfResourcesIsNeverEmpty) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  files.files["resources/README.md"] = "of people";
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "");
  EXPECT_EQ(files.files["resources/README.md"], "of people");
  files.files.erase("resources/README.md");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "");
  EXPECT_THAT(files.files["resources/README.md"], HasSubstr("`control-planes/`"));
}

// What people wrote into the files stays there.
TEST(ConfigRepository, GlobsOfOthersAndCommentsStay) {
  Files files;
  files.files["runtimes/prod/in-cluster.yaml"] =
      "# ours\nkind: Application\nspec:\n  source:\n    directory:\n"
      "      include: '{special/*.yaml}'   # kept\n";
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_EQ(files.files["runtimes/prod/in-cluster.yaml"],
            "# ours\nkind: Application\nspec:\n  source:\n    directory:\n"
            "      include: '{special/*.yaml,all-runtimes-all-clusters/*.yaml,"
            "all-runtimes-all-clusters/**/*.yaml,control-planes/*.yaml,control-planes/**/*.yaml,"
            "runtimes/prod/*.yaml,runtimes/prod/**/*.yaml,prod/shop.yaml}'   # kept\n");
}

TEST(ConfigRepository, AnInClusterApplicationWithoutGlobsIsNotGuessedAt) {
  Files files;
  files.files["runtimes/prod/in-cluster.yaml"] = "kind: Application\nspec: {}\n";
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "GIT_SOURCE_UNREADABLE");
  files.files["runtimes/prod/in-cluster.yaml"] = "{{ not yaml";
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "shop")), "GIT_SOURCE_UNREADABLE");
}

TEST(ConfigRepository, EditsAGitSourceInPlace) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  auto& file = files.files["resources/prod/shop.yaml"];
  file = "# by hand\n" + file;
  const auto before = file;
  const GitSourceEdit edit{
      .name = "shop",
      .source = parse_specifier("https://git.example.test/acme/store.git").value(),
      .exclude = "*.md"};
  EXPECT_EQ(files.apply(changes_to_edit(repository(), edit)), "");
  auto expected = before;
  for (const auto& [from, to] : {std::pair("acme/shop.git", "acme/store.git"),
                                 {"path: apps", "path: ."},
                                 {"targetRevision: main", "targetRevision: HEAD"},
                                 {"exclude: \"\"", "exclude: \"*.md\""}}) {
    expected.replace(expected.find(from), std::string_view(from).size(), to);
  }
  EXPECT_EQ(file, expected);
  EXPECT_EQ(files.apply(changes_to_edit(repository(), {.name = "none", .source = edit.source})),
            "GIT_SOURCE_NOT_FOUND");
  file = "kind: RestrictedGitSource\nspec: {}\n";
  EXPECT_EQ(files.apply(changes_to_edit(repository(), edit)), "GIT_SOURCE_UNREADABLE");
}

TEST(ConfigRepository, RemovingIsTheOppositeOfCreating) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_prepare(repository())), "");
  const auto before = files.files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source("a"))), "");
  EXPECT_EQ(files.apply(changes_to_create(repository(), source("b"))), "");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "a")), "");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "a")), "") << "again";
  EXPECT_THAT(files.files["runtimes/prod/in-cluster.yaml"], HasSubstr(",prod/b.yaml}"));
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "b")), "");
  EXPECT_EQ(files.files, before);
  files.files["resources/staging/x.yaml"] = "another runtime's";
  files.files["resources/runtimes/prod/own.yaml"] = "x";
  EXPECT_EQ(files.apply(changes_to_remove_runtime(repository())), "");
  EXPECT_THAT(files.names(), ElementsAre("resources/README.md", "resources/staging/x.yaml"));
}

TEST(ConfigRepository, ReadsGlobs) {
  EXPECT_THAT(parse_globs("{a,b/*.yaml}"), ElementsAre("a", "b/*.yaml"));
  EXPECT_THAT(parse_globs("{a}"), ElementsAre("a"));
  EXPECT_THAT(parse_globs("*.yaml"), ElementsAre("*.yaml"));
  EXPECT_THAT(parse_globs("{a,,b,}"), ElementsAre("a", "b"));
  EXPECT_THAT(parse_globs("{}"), IsEmpty());
  EXPECT_THAT(parse_globs(""), IsEmpty());
  EXPECT_EQ(format_globs({"a", "b"}), "{a,b}");
}

TEST(ConfigRepository, NamesAreDnsLabels) {
  EXPECT_TRUE(check_entity_name("shop-2"));
  for (const std::string name :
       {"", "Shop", "a/b", "../x", "-a", "a-", "a.b", "in-cluster", "a b"}) {
    EXPECT_FALSE(check_entity_name(name)) << name;
  }
  EXPECT_FALSE(check_entity_name(std::string(64, 'a')));
}

}  // namespace
}  // namespace gitops::app_proxy
