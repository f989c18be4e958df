#include "app-proxy/entities/git_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app-proxy/entities/config_files.hpp"
#include "config_bed.hpp"

namespace gitops::app_proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(GitSourceFiles, AGitSourceIsAFileAndAGlob) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_THAT(files.names(),
              ElementsAre("resources/README.md", "resources/app-projects/cf-git-sources.yaml",
                          "resources/prod/shop.yaml", "runtimes/prod/in-cluster.yaml"));
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
  project: cf-git-sources
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
      include: '{all-runtimes-all-clusters/*.yaml,all-runtimes-all-clusters/**/*.yaml,app-projects/*.yaml,app-projects/**/*.yaml,control-planes/*.yaml,control-planes/**/*.yaml,runtimes/prod/*.yaml,runtimes/prod/**/*.yaml,prod/shop.yaml}'
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

TEST(GitSourceFiles, CreatingTwiceChangesNothing) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  const auto once = files.files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_EQ(files.files, once);
  auto other = source();
  other.server = "https://other.example.test";
  EXPECT_EQ(files.apply(changes_to_create(repository(), other)), "GIT_SOURCE_EXISTS");
}

TEST(GitSourceFiles, LabelsCannotReplaceOurs) {
  auto wanted = source();
  wanted.labels = {{"team", "a"}, {"codefresh.io/internal", "true"}, {"codefresh.io/entity", "x"}};
  const auto text = git_source_manifest(repository(), wanted);
  EXPECT_THAT(text, HasSubstr("    codefresh.io/entity: git-source\n"
                              "    codefresh.io/internal: \"false\"\n    team: a\n"));
}

TEST(GitSourceFiles, EditsAGitSourceInPlace) {
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

TEST(GitSourceFiles, RemovingIsTheOppositeOfCreating) {
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
  EXPECT_THAT(files.names(),
              ElementsAre("resources/README.md", "resources/app-projects/cf-git-sources.yaml",
                          "resources/staging/x.yaml"));
}

// Argo CD refuses Applications of a project that is not there, and a folder without files.
TEST(GitSourceFiles, BringsUpTheProjectAndTheDefaultGitSource) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_bring_up(repository())), "");
  EXPECT_THAT(
      files.names(),
      ElementsAre("git-sources/prod/default/README.md", "resources/README.md",
                  "resources/app-projects/cf-git-sources.yaml",
                  "resources/prod/default-git-source.yaml", "runtimes/prod/in-cluster.yaml"));
  EXPECT_EQ(files.files["resources/app-projects/cf-git-sources.yaml"],
            R"(apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata:
  labels:
    codefresh.io/internal: "true"
  name: cf-git-sources
spec:
  clusterResourceWhitelist:
  - group: '*'
    kind: '*'
  description: Git sources of GitOps runtimes
  destinations:
  - namespace: '*'
    server: '*'
  sourceRepos:
  - '*'
)");
  const auto& source = files.files["resources/prod/default-git-source.yaml"];
  EXPECT_THAT(source, HasSubstr("    path: git-sources/prod/default\n"
                                "    repoURL: https://git.example.test/acme/config.git\n"));
  EXPECT_THAT(files.files["runtimes/prod/in-cluster.yaml"],
              HasSubstr(",prod/default-git-source.yaml}"));
  const auto once = files.files;
  EXPECT_EQ(files.apply(changes_to_bring_up(repository())), "");
  EXPECT_EQ(files.files, once);
  // What people made of it stays; one that was deleted comes back.
  files.files["resources/prod/default-git-source.yaml"] = "of people";
  EXPECT_EQ(files.apply(changes_to_bring_up(repository())), "");
  EXPECT_EQ(files.files["resources/prod/default-git-source.yaml"], "of people");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "default-git-source")), "");
  EXPECT_EQ(files.apply(changes_to_bring_up(repository())), "");
  EXPECT_EQ(files.files, once);
}

// The forms of the product's own files: a folded list of globs, and sources in a list.
TEST(GitSourceFiles, WorksOnFilesOfTheProduct) {
  Files files;
  files.files["runtimes/prod/in-cluster.yaml"] =
      "kind: Application\nspec:\n  source:\n    directory:\n      include: >-\n"
      "        {all-runtimes-all-clusters/**/*.yaml,prod/old.yaml}\n      recurse: true\n"
      "    path: resources\n";
  files.files["resources/prod/old.yaml"] =
      "kind: Application\nspec:\n  sources:\n    - repoURL: https://git.example.test/a/b.git\n"
      "      path: .\n      targetRevision: main\n      directory:\n        include: '*'\n";
  EXPECT_EQ(files.apply(changes_to_create(repository(), source())), "");
  EXPECT_THAT(files.files["runtimes/prod/in-cluster.yaml"],
              HasSubstr("      include: '{all-runtimes-all-clusters/**/*.yaml,prod/old.yaml,"));
  EXPECT_THAT(files.files["runtimes/prod/in-cluster.yaml"],
              HasSubstr(",prod/shop.yaml}'\n      recurse: true\n"));
  const GitSourceEdit edit{.name = "old",
                           .source = parse_specifier("https://git.example.test/a/c.git/x").value(),
                           .include = "{*.yaml}"};
  EXPECT_EQ(files.apply(changes_to_edit(repository(), edit)), "");
  EXPECT_EQ(
      files.files["resources/prod/old.yaml"],
      "kind: Application\nspec:\n  sources:\n    - repoURL: https://git.example.test/a/c.git\n"
      "      path: x\n      targetRevision: HEAD\n      directory:\n"
      "        include: '{*.yaml}'\n");
  files.files["resources/prod/old.yaml"] =
      "kind: Application\nspec:\n  sources:\n    - repoURL: a\n    - repoURL: b\n";
  EXPECT_EQ(files.apply(changes_to_edit(repository(), edit)), "GIT_SOURCE_UNREADABLE");
}

RestrictedGitSource restricted() {
  return {.name = "team",
          .source = parse_specifier("https://git.example.test/acme/team.git/apps").value(),
          .source_namespace = "cf-team",
          .destinations = {{.server = "https://kubernetes.default.svc",
                            .destination_namespace = "team-a"},
                           {.name = "live", .destination_namespace = "team-*"}},
          .source_repositories = {"https://git.example.test/acme/*"}};
}

TEST(GitSourceFiles, ARestrictedGitSourceIsAFileAndAGlob) {
  Files files;
  const auto create = [&](const RestrictedGitSource& wanted) {
    return files.apply(changes_to_create(repository(), wanted, kRestrictedGitSourceApi));
  };
  EXPECT_EQ(create(restricted()), "");
  EXPECT_EQ(files.files["resources/prod/team.yaml"], R"(apiVersion: codefresh.io/v1beta1
kind: RestrictedGitSource
metadata:
  labels:
    codefresh.io/entity: git-source
    codefresh.io/internal: "false"
  name: team
  namespace: gitops
spec:
  destinations:
  - namespace: team-a
    server: https://kubernetes.default.svc
  - name: live
    namespace: team-*
  source:
    directory:
      exclude: ""
      include: '*'
      recurse: true
    path: apps
    repoURL: https://git.example.test/acme/team.git
    targetRevision: HEAD
  sourceNamespace: cf-team
  sourceRepos:
  - https://git.example.test/acme/*
  syncPolicy:
    automated:
      allowEmpty: true
      prune: true
      selfHeal: true
    syncOptions:
    - allowEmpty=true
    - CreateNamespace=true
)");
  EXPECT_THAT(files.files["runtimes/prod/in-cluster.yaml"], HasSubstr(",prod/team.yaml}"));
  EXPECT_EQ(create(restricted()), "") << "again";
  auto other = restricted();
  other.source_namespace = "cf-other";
  EXPECT_EQ(create(other), "GIT_SOURCE_EXISTS");
  EXPECT_EQ(files.apply(changes_to_edit(
                repository(), GitSourceEdit{.name = "team", .source = restricted().source})),
            "GIT_SOURCE_UNREADABLE");
  EXPECT_EQ(files.apply(changes_to_remove(repository(), "team")), "");
  EXPECT_THAT(files.names(), Not(testing::Contains("resources/prod/team.yaml")));
}

TEST(GitSourceFiles, EditsARestrictedGitSource) {
  Files files;
  EXPECT_EQ(files.apply(changes_to_create(repository(), restricted(), kOldRestrictedGitSourceApi)),
            "");
  auto& file = files.files["resources/prod/team.yaml"];
  file += "# by hand\n";
  auto wanted = restricted();
  wanted.source_namespace = "cf-other";
  EXPECT_EQ(files.apply(changes_to_edit(
                repository(), RestrictedGitSourceEdit{.wanted = wanted, .include = "*.yaml"})),
            "");
  EXPECT_THAT(file, HasSubstr("  sourceNamespace: cf-other\n"));
  EXPECT_THAT(file, HasSubstr("      include: '*.yaml'\n"));
  EXPECT_THAT(file, testing::EndsWith("# by hand\n")) << "edited in place";
  // Lists cannot be changed in place. The globs stay.
  wanted.destinations.pop_back();
  EXPECT_EQ(files.apply(changes_to_edit(repository(), RestrictedGitSourceEdit{.wanted = wanted})),
            "");
  wanted.include = "*.yaml";
  EXPECT_EQ(file, restricted_git_source_manifest(repository(), wanted, kOldRestrictedGitSourceApi));
  wanted.name = "none";
  EXPECT_EQ(files.apply(changes_to_edit(repository(), RestrictedGitSourceEdit{.wanted = wanted})),
            "GIT_SOURCE_NOT_FOUND");
}

TEST(GitSourceFiles, ChecksARestrictedGitSource) {
  EXPECT_TRUE(check_restricted(restricted()));
  const auto refusal = [](const std::function<void(RestrictedGitSource&)>& change) {
    auto wrong = restricted();
    change(wrong);
    const auto checked = check_restricted(wrong);
    return checked ? "" : checked.error().message;
  };
  EXPECT_THAT(refusal([](auto& s) { s.name = "A"; }), HasSubstr("appName: "));
  EXPECT_THAT(refusal([](auto& s) { s.name = std::string(60, 'a'); }), HasSubstr("appName: "));
  EXPECT_THAT(refusal([](auto& s) { s.source_namespace = "team"; }),
              HasSubstr("sourceNamespace: "));
  EXPECT_THAT(refusal([](auto& s) { s.source_namespace = "cf-"; }), HasSubstr("sourceNamespace: "));
  EXPECT_THAT(refusal([](auto& s) { s.destinations.clear(); }), HasSubstr("destinations: "));
  EXPECT_THAT(refusal([](auto& s) { s.destinations.resize(101, s.destinations[0]); }),
              HasSubstr("destinations: expected 1 to 100"));
  EXPECT_THAT(refusal([](auto& s) { s.destinations[0].name = "live"; }),
              HasSubstr("either name or server"));
  EXPECT_THAT(refusal([](auto& s) { s.destinations[0].server = "cluster"; }),
              HasSubstr("server: "));
  EXPECT_THAT(refusal([](auto& s) { s.destinations[0].destination_namespace = "a b"; }),
              HasSubstr("namespaces: "));
  EXPECT_THAT(refusal([](auto& s) { s.source_repositories = {""}; }), HasSubstr("sourceRepos: "));
}

}  // namespace
}  // namespace gitops::app_proxy
