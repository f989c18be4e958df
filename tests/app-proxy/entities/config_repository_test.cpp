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
      if (change.kind == FileChange::Kind::look) continue;
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
                                         "shared-config/resources/app-projects/cf-git-sources.yaml",
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
            "all-runtimes-all-clusters/**/*.yaml,app-projects/*.yaml,app-projects/**/*.yaml,"
            "control-planes/*.yaml,control-planes/**/*.yaml,"
            "runtimes/prod/*.yaml,runtimes/prod/**/*.yaml,prod/shop.yaml}'   # kept\n");
}

TEST(ConfigRepository, AnInClusterApplicationWithoutGlobsIsNotGuessedAt) {
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
  EXPECT_THAT(files.names(),
              ElementsAre("resources/README.md", "resources/app-projects/cf-git-sources.yaml",
                          "resources/staging/x.yaml"));
}

// Argo CD refuses Applications of a project that is not there, and a folder without files.
TEST(ConfigRepository, BringsUpTheProjectAndTheDefaultGitSource) {
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

// Both would be Applications of that name in the runtime's namespace.
TEST(ConfigRepository, AGitSourceAndAClusterHaveDifferentNames) {
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
TEST(ConfigRepository, ManagedClustersDoNotGetIntegrations) {
  EXPECT_THAT(cluster_manifest(repository(), "east", "https://east.test"),
              HasSubstr("      exclude: all-runtimes-all-clusters/integrations/**\n"));
  EXPECT_THAT(in_cluster_manifest(repository()), Not(HasSubstr("exclude")));
}

// The forms of the product's own files: a folded list of globs, and sources in a list.
TEST(ConfigRepository, WorksOnFilesOfTheProduct) {
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

TEST(ConfigRepository, ARestrictedGitSourceIsAFileAndAGlob) {
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

TEST(ConfigRepository, EditsARestrictedGitSource) {
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

TEST(ConfigRepository, ChecksARestrictedGitSource) {
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

RolloutsInstallation rollouts(std::string server, const RolloutsFiles& present = {}) {
  return {.name = rollouts_name(server, present),
          .server = server,
          .destination_namespace = "rollouts",
          .chart_repository = "https://charts.example.test",
          .chart_version = "1"};
}

TEST(ConfigRepository, EachClusterHasARolloutsFileOfItsOwn) {
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

TEST(ConfigRepository, AnInstallationOfRolloutsThatIsThereIsNotOverwritten) {
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

TEST(ConfigRepository, TellsThatTheRuntimeWasRemoved) {
  const RuntimeFiles files{.runtime = "prod", .config_repository = [] {
                             return std::string("https://git.example.test/acme/config.git");
                           }};
  const RuntimeFiles copy = files;
  EXPECT_FALSE(copy.repository()->is_removed);
  *files.is_removed = true;
  EXPECT_TRUE(copy.repository()->is_removed);
}

TEST(ConfigRepository, ReadsGlobs) {
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
