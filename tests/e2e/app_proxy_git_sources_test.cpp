// Git sources by the running app-proxy, between doubles of an API server and of GitHub's REST
// interface, and Git's own server with the shared configuration repository.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "common/core/task_group.hpp"
#include "doubles/fake_argocd.hpp"
#include "doubles/fake_argocd_server.hpp"
#include "e2e/git_harness.hpp"
#include "k8s-client/resource.hpp"
#include "support/git_server.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = GitHarness::Answer;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;

// The repository "config" of a real Git server is the account's. Ann, who is an administrator, and Bob
// have registered tokens.
struct SourceHarness {
  explicit SourceHarness(GitHarness& w) : harness(w) {
    git.create_repository("config");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    git.add_user("bo", kBobsGitToken);
    harness.host.add_user(kBobsGitToken, {.id = 8, .login = "bo", .name = "Bo Example"});
    harness.base.platform.accounts().add({.id = "acc-1",
                                          .name = "acme",
                                          .admins = {"u-ann"},
                                          .git_provider = {},
                                          .shared_config_repo = git.url("config")});
  }

  Task<> start(Environment more = {}) {
    more.insert({"REPOS_DIR", (folder / "clones").string()});
    harness.start(std::move(more));
    co_await harness.base.account_known();
    EXPECT_EQ((co_await harness.add()).code(), "");
    for (const auto& [user, token] :
         {std::pair(kAnn, FakeGitHost::kToken), {kBob, kBobsGitToken}}) {
      EXPECT_EQ((co_await harness.register_user(user, {{"token", token}})).code(), "");
    }
  }

  // The documents of the public CLI.
  Task<Answer> create(const char* user, Json args) {
    Json all{{"destServer", "https://kubernetes.default.svc"},
             {"destNamespace", "runtime"},
             {"isInternal", false},
             {"include", ""},
             {"exclude", ""},
             {"createRepo", false}};
    all.update(args);
    co_return co_await harness.ask(
        user,
        "mutation CreateGitSource($args: CreateGitSourceInput!) { createGitSource(args: $args) }",
        {{"args", std::move(all)}});
  }
  Task<Answer> edit(const char* user, Json args) {
    return harness.ask(
        user, "mutation EditGitSource($args: EditGitSourceInput!) { editGitSource(args: $args) }",
        {{"args", std::move(args)}});
  }
  Task<Answer> remove(const char* user, const std::string& name) {
    return harness.ask(user,
                       "mutation DeleteApplication($args: DeleteApplicationInput!) { "
                       "deleteApplication(args: $args) }",
                       {{"args", {{"appName", name}}}});
  }
  [[nodiscard]] std::string file(const std::string& path) const {
    return git.file_at_head("config", path).value_or("");
  }
  [[nodiscard]] std::string git_line(const std::vector<std::string>& args) const {
    auto result = git.git("config", args);
    EXPECT_TRUE(result.ok()) << result.err;
    while (result.out.ends_with('\n')) result.out.pop_back();
    return result.out;
  }

  static constexpr auto kBobsGitToken = "canary-git-bob";
  GitHarness& harness;
  GitServer git;
  TempDir folder;
};

void in_source_harness(const std::function<Task<>(SourceHarness&)>& body) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([&](GitHarness& harness) -> Task<> {
    SourceHarness sources(harness);
    co_await sources.start();
    co_await body(sources);
  });
}

const Json kShop{{"appName", "shop"},
                 {"appSpecifier", "https://git.example.test/acme/shop.git/apps?ref=main"}};

// The repository begins without any commit.
TEST(AppProxyGitSources, AreCreatedEditedAndDeletedByCommits) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    const auto created = co_await w.create(kBob, kShop);
    EXPECT_EQ(created.json, (Json{{"data", {{"createGitSource", nullptr}}}})) << created.body;
    EXPECT_THAT(w.file("resources/prod/shop.yaml"),
                HasSubstr("repoURL: https://git.example.test/acme/shop.git\n"));
    EXPECT_THAT(w.file("runtimes/prod/in-cluster.yaml"), HasSubstr(",prod/shop.yaml}'"));
    EXPECT_EQ(w.git_line({"log", "-1", "--format=%an|%B", "main"}),
              "Bo Example|Create Git source shop of runtime prod\n\n"
              "Requested by Bob through runtime prod.");

    // Again: nothing to do. Another one of that name: refused.
    EXPECT_EQ((co_await w.create(kAnn, kShop)).code(), "");
    Json other = kShop;
    other["destServer"] = "https://other.example.test";
    EXPECT_EQ((co_await w.create(kAnn, other)).code(), "GIT_SOURCE_EXISTS");
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "1");

    // The name of a managed cluster.
    w.git.commit("config", {{"runtimes/prod/east.yaml", "kind: Application\n"}}, "somebody");
    Json east = kShop;
    east["appName"] = "east";
    EXPECT_EQ((co_await w.create(kAnn, east)).code(), "NAME_TAKEN");
    east["appName"] = "prod";
    EXPECT_THAT((co_await w.create(kAnn, east)).body,
                HasSubstr("the runtime itself has an Application prod"));

    const Json edit{{"appName", "shop"},
                    {"appSpecifier", "https://git.example.test/acme/store.git"}};
    const auto edited = co_await w.edit(kBob, edit);
    EXPECT_EQ(edited.json, (Json{{"data", {{"editGitSource", nullptr}}}})) << edited.body;
    EXPECT_THAT(w.file("resources/prod/shop.yaml"),
                HasSubstr("repoURL: https://git.example.test/acme/store.git\n"));
    EXPECT_EQ((co_await w.edit(kBob, {{"appName", "none"}, {"appSpecifier", edit["appSpecifier"]}}))
                  .code(),
              "GIT_SOURCE_NOT_FOUND");

    const auto forbidden = co_await w.remove(kBob, "shop");
    EXPECT_EQ(forbidden.code(), "FORBIDDEN");
    EXPECT_THAT(forbidden.body, HasSubstr("only an administrator of the account may do this"));
    const auto removed = co_await w.remove(kAnn, "shop");
    EXPECT_EQ(removed.json, (Json{{"data", {{"deleteApplication", nullptr}}}})) << removed.body;
    EXPECT_THAT(w.git_line({"ls-tree", "-r", "--name-only", "main"}), Not(HasSubstr("shop")));
    EXPECT_THAT(w.file("runtimes/prod/in-cluster.yaml"), Not(HasSubstr("shop")));
    for (const char* gone : {"shop", "never-there"}) {
      EXPECT_EQ((co_await w.remove(kAnn, gone)).code(), "GIT_SOURCE_NOT_FOUND") << gone;
    }
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "4");

    for (const char* action : {"createGitSource", "editGitSource", "deleteApplication"}) {
      EXPECT_EQ((co_await w.harness.base.audited(action))["account"], "acc-1");
    }
  });
}

// The Git server does not tell the default branch of a repository without commits.
TEST(AppProxyGitSources, TheFirstCommitGoesToTheDefaultBranchOfTheHost) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    w.harness.host.add_repository("git", "config").default_branch = "trunk";
    EXPECT_TRUE(w.git.git("config", {"symbolic-ref", "HEAD", "refs/heads/trunk"}).ok());
    EXPECT_TRUE(w.git.git("config", {"config", "lsrefs.unborn", "ignore"}).ok());
    const auto created = co_await w.create(kBob, kShop);
    EXPECT_EQ(created.code(), "") << created.body;
    EXPECT_EQ(w.git_line({"for-each-ref", "--format=%(refname)"}), "refs/heads/trunk");
  });
}

// With the runtime's own token; a process that ends and starts again finds its work done.
TEST(AppProxyGitSources, AnEmptyRepositoryIsBroughtUpOnce) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([](GitHarness& harness) -> Task<> {
    SourceHarness w(harness);
    for (int starts = 0; starts < 2; ++starts) {
      harness.start({{"REPOS_DIR", (w.folder / "clones").string()},
                     {"GIT_USERNAME", FakeGitHost::kLogin},
                     {"GIT_PASSWORD", FakeGitHost::kToken}});
      const auto deadline = deadline_after(std::chrono::seconds(20));
      const auto is_done = [&] {
        const auto status = harness.base.daemon->status();
        return status.state("shared configuration repository") == "ok" &&
               status.message("shared configuration repository") == "applied by Application prod";
      };
      while (!is_done() && Clock::now() < deadline) {
        co_await sleep_for(std::chrono::milliseconds(20));
      }
      EXPECT_TRUE(is_done());
      EXPECT_EQ(w.git_line({"log", "--format=%an|%s", "main"}),
                "GitOps runtime prod|Prepare runtime prod");
    }
    EXPECT_EQ(w.git_line({"ls-tree", "-r", "--name-only", "main"}),
              "git-sources/prod/default/README.md\nresources/README.md\n"
              "resources/app-projects/cf-git-sources.yaml\n"
              "resources/prod/default-git-source.yaml\nruntimes/prod/in-cluster.yaml");
    EXPECT_TRUE(
        harness.cluster.find(k8s::resources::kApplications, {"default", "prod"}).has_value());
  });
}

// The globs of all of them are in one file.
TEST(AppProxyGitSources, ThatAreCreatedAtOnceAreAllThere) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    TaskGroup users(co_await asio::this_coro::executor);
    for (int i = 0; i < 10; ++i) {
      users.spawn("user", [&w, i]() -> Task<> {
        Json args = kShop;
        args["appName"] = "app-" + std::to_string(i);
        const auto answer = co_await w.create(i % 2 == 0 ? kAnn : kBob, args);
        EXPECT_EQ(answer.code(), "") << answer.body;
      });
    }
    w.git.commit("config", {{"README.md", "by hand\n"}}, "somebody else");
    co_await users.join();
    const auto in_cluster = w.file("runtimes/prod/in-cluster.yaml");
    for (int i = 0; i < 10; ++i) {
      const auto name = "prod/app-" + std::to_string(i) + ".yaml";
      EXPECT_THAT(in_cluster, HasSubstr(name));
      EXPECT_NE(w.file("resources/" + name), "");
    }
    EXPECT_EQ(w.file("README.md"), "by hand\n");
  });
}

TEST(AppProxyGitSources, MistakesAreToldAndChangeNothing) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    for (const auto& [wrong, message] : std::vector<std::pair<Json, std::string>>{
             {{{"appName", "../../x"}}, "appName: the name must be a DNS label"},
             {{{"appName", "in-cluster"}}, "appName: the runtime itself has an Application"},
             {{{"appSpecifier", "https://git.example.test/acme"}}, "appSpecifier: "},
             {{{"appSpecifier", w.git.url("none")}}, "appSpecifier: "},
             {{{"appSpecifier", w.git.url("config") + "?ref=none"}},
              "appSpecifier: git/config has no branch or tag none"},
             {{{"appSpecifier", "https://git.example.test/acme/shop.git/../x"}}, "appSpecifier: "},
             {{{"appSpecifier", "file:///etc/x.git"}}, "appSpecifier: "},
             {{{"destServer", "cluster"}}, "destServer: expected the URL"},
             {{{"destNamespace", "a b"}}, "destNamespace: expected the name of a namespace"},
             {{{"labels", {{"a", 1}}}}, "labels: the value of a is not a string"},
             {{{"labels", "[1]"}}, "labels: expected a JSON object"},
             {{{"labels", {{"team", "Platform Team"}}}}, "labels: team=Platform Team is no label"},
             {{{"labels", {{"my team", "a"}}}}, "labels: my team=a is no label"},
         }) {
      Json args = kShop;
      args.update(wrong);
      const auto answer = co_await w.create(kAnn, args);
      EXPECT_THAT(answer.body, HasSubstr(message)) << wrong.dump();
    }
    EXPECT_FALSE(w.git.git("config", {"rev-parse", "--verify", "main"}).ok());
    Json labelled = kShop;
    labelled["labels"] = R"({"team":"a"})";
    EXPECT_EQ((co_await w.create(kAnn, labelled)).code(), "");
    EXPECT_THAT(w.file("resources/prod/shop.yaml"), HasSubstr("team: a\n"));
  });
}

// A registered token has the shared configuration repository cloned, a new Git source its own: their
// first commits find a clone.
TEST(AppProxyGitSources, RepositoriesThatBecomeKnownAreClonedAhead) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    const auto made = [&](int count) {
      return w.harness.base.daemon->admin("/metrics")
          .body.contains("gitops_app_proxy_git_clones_made_total{result=\"ok\"} " +
                         std::to_string(count) + "\n");
    };
    EXPECT_TRUE(co_await test::eventually([&] { return made(1); }, "the first clone"));
    EXPECT_EQ(w.git.git("config", {"rev-list", "--count", "--all"}).out, "0\n");
    w.git.create_repository("team");
    w.git.commit("team", {{"apps/a.yaml", "a: 1\n"}}, "first");
    EXPECT_EQ((co_await w.create(
                   kBob, {{"appName", "team"}, {"appSpecifier", w.git.url("team") + "/apps"}}))
                  .code(),
              "");
    EXPECT_TRUE(co_await test::eventually([&] { return made(2); }, "the second clone"));
    const auto status = w.harness.base.daemon->status();
    EXPECT_EQ(status.count("clones", "in_progress"), 0) << status;
    EXPECT_EQ(status.count("clones", "to_be_made_ahead"), 0) << status;
  });
}

TEST(AppProxyGitSources, RestrictedOnesNeedAnAdministratorAndTheirKind) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    const Json args{
        {"appName", "team"},
        {"appSpecifier", "https://git.example.test/acme/team.git/apps"},
        {"sourceNamespace", "cf-team"},
        {"destinations",
         {{{"server", "https://kubernetes.default.svc"}, {"namespaces", {"team-a", "team-b"}}}}},
        {"sourceRepos", {"*"}}};
    const auto ask = [&w](const char* user, std::string verb, Json with) -> Task<Answer> {
      return w.harness.ask(user,
                           "mutation($args: " + std::string(verb == "create" ? "Create" : "Edit") +
                               "RestrictedGitSourceInput!) { " + verb +
                               "RestrictedGitSource(args: $args) }",
                           {{"args", std::move(with)}});
    };
    // A cluster without the kind would apply nothing else of the repository any more.
    const auto unknown = co_await ask(kAnn, "create", args);
    EXPECT_EQ(unknown.code(), "UNSUPPORTED") << unknown.body;
    EXPECT_THAT(unknown.body, HasSubstr("codefresh.io/v1beta1"));
    EXPECT_FALSE(w.git.git("config", {"rev-parse", "--verify", "main"}).ok());

    w.harness.cluster.add_type(
        {"codefresh.io", "v1beta1", "restrictedgitsources", "RestrictedGitSource"});
    EXPECT_EQ((co_await ask(kBob, "create", args)).code(), "FORBIDDEN");
    const auto created = co_await ask(kAnn, "create", args);
    EXPECT_EQ(created.json, (Json{{"data", {{"createRestrictedGitSource", nullptr}}}}))
        << created.body;
    EXPECT_THAT(w.file("resources/prod/team.yaml"),
                HasSubstr("  - namespace: team-b\n    server: https://kubernetes.default.svc\n"));
    EXPECT_THAT(w.file("runtimes/prod/in-cluster.yaml"), HasSubstr(",prod/team.yaml}'"));
    EXPECT_THAT(w.git_line({"log", "-1", "--format=%B", "main"}),
                HasSubstr("Create restricted Git source team of runtime prod\n\n"
                          "Requested by Ann through runtime prod."));
    EXPECT_EQ((co_await ask(kAnn, "create", args)).code(), "");

    Json edited = args;
    edited["sourceRepos"] = {"https://git.example.test/acme/*"};
    EXPECT_EQ((co_await ask(kAnn, "edit", edited)).code(), "");
    EXPECT_THAT(w.file("resources/prod/team.yaml"),
                HasSubstr("  - https://git.example.test/acme/*\n"));
    edited["sourceNamespace"] = "kube-system";
    EXPECT_THAT((co_await ask(kAnn, "edit", edited)).body, HasSubstr("sourceNamespace: "));
    EXPECT_EQ((co_await w.remove(kAnn, "team")).code(), "");
    EXPECT_THAT(w.git_line({"ls-tree", "-r", "--name-only", "main"}), Not(HasSubstr("team")));
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "3");
  });
}

// Products, promotion entities and delivery pipelines are files, each kind in its folder; clients change
// them by commitFiles and deleteFiles.
TEST(AppProxyGitSources, ProductsPromotionEntitiesAndPipelinesAreFiles) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    w.git.create_repository("builds");
    for (const char* name : {"config", "builds"}) {
      w.harness.host.add_repository("acme", name).clone_url = w.git.url(name);
    }
    const auto commit = [&w](const char* repository, Json files, std::string msg) -> Task<Answer> {
      return w.harness.ask(
          kBob,
          "mutation commitFiles($args: CommitFilesArgs!) { commitFiles(args: $args) "
          "{ COMMIT_SHA: sha } }",
          {{"args",
            {{"repo", std::string("acme/") + repository},
             {"branchName", "HEAD"},
             {"files", std::move(files)},
             {"msg", std::move(msg)}}}});
    };
    const auto object = [](const std::string& kind, const std::string& name,
                           const std::string& api) {
      return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n";
    };
    const std::string configurations = "resources/configurations/";
    Json entities = Json::array();
    for (const auto& [folder, kind] : {std::pair("products", "Product"),
                                       {"promotion-flows", "PromotionFlow"},
                                       {"promotion-policies", "PromotionPolicy"},
                                       {"promotion-templates", "PromotionTemplate"}}) {
      entities.push_back({{"path", configurations + folder + "/shop.yaml"},
                          {"data", object(kind, "shop", "codefresh.io/v1beta1")}});
    }
    const auto created = co_await commit("config", entities, "Add product shop");
    EXPECT_EQ(created.code(), "") << created.body;
    EXPECT_EQ(w.git_line({"log", "-1", "--format=%an|%s", "main"}), "Bo Example|Add product shop");
    EXPECT_EQ(w.git_line({"rev-list", "--count", "main"}), "1") << "all of them in one commit";
    // Beside the files of Git sources, which are made in the same repository.
    EXPECT_EQ((co_await w.create(kBob, kShop)).code(), "");
    EXPECT_THAT(w.file(configurations + "products/shop.yaml"), HasSubstr("kind: Product\n"));

    const std::string product = configurations + "products/shop.yaml";
    const auto seen = w.git_line({"rev-parse", "main:" + product});
    const auto edit = [&](const char* label) {
      return Json::array({{{"path", product},
                           {"revision", seen},
                           {"data", object("Product", "shop", "codefresh.io/v1beta1") +
                                        "  labels:\n    team: " + label + "\n"}}});
    };
    EXPECT_EQ((co_await commit("config", edit("a"), "Edit product shop")).code(), "");
    // Somebody who has seen the first version does not overwrite the second.
    EXPECT_EQ((co_await commit("config", edit("b"), "Edit product shop")).code(), "GIT_CONFLICT");
    EXPECT_THAT(w.file(product), HasSubstr("team: a\n"));
    const auto removed = co_await w.harness.ask(
        kBob, "mutation($args: DeleteFilesArgs!) { deleteFiles(args: $args) { sha } }",
        {{"args",
          {{"repo", "acme/config"},
           {"paths", {product, configurations + "promotion-flows/shop.yaml"}},
           {"msg", "Delete product shop"}}}});
    EXPECT_EQ(removed.code(), "") << removed.body;
    EXPECT_EQ(w.file(product), "");
    EXPECT_NE(w.file(configurations + "promotion-policies/shop.yaml"), "");

    Json pipeline = Json::array();
    for (const char* kind : {"WorkflowTemplate", "EventSource", "Sensor"}) {
      pipeline.push_back({{"path", std::string("apps/build/") + kind + ".yaml"},
                          {"data", object(kind, "build", "argoproj.io/v1alpha1")}});
    }
    EXPECT_EQ((co_await commit("builds", pipeline, "Add pipeline build")).code(), "");
    EXPECT_EQ(w.git.git("builds", {"ls-tree", "-r", "--name-only", "main"}).out,
              "apps/build/EventSource.yaml\napps/build/Sensor.yaml\n"
              "apps/build/WorkflowTemplate.yaml\n");
    EXPECT_EQ(w.git.git("builds", {"rev-list", "--count", "main"}).out, "1\n");
  });
}

// The Git host has made the repository; the commit of its folder was refused.
TEST(AppProxyGitSources, ARepositoryThatIsHalfMadeIsCompletedByTheNextRequest) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    w.git.create_repository("new");
    const auto hook = w.git.folder() / "repos/new.git/hooks/pre-receive";
    write_file(hook, "#!/bin/sh\ncat >/dev/null\nexit 1\n");
    std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
    Json source{{"appName", "new"},
                {"appSpecifier", w.git.url("new") + "/apps?ref=main"},
                {"createRepo", true}};
    const auto refused = co_await w.create(kAnn, source);
    EXPECT_EQ(refused.code(), "GIT_REFUSED") << refused.body;
    EXPECT_NE(w.harness.host.find("git", "new"), nullptr);
    std::filesystem::remove(hook);
    const auto created = co_await w.create(kAnn, source);
    EXPECT_EQ(created.code(), "") << created.body;
    EXPECT_THAT(w.git.file_at_head("new", "apps/README.md").value_or(""), HasSubstr("Git source"));
    EXPECT_NE(w.file("resources/prod/new.yaml"), "");
    EXPECT_EQ(w.git.git("new", {"rev-list", "--count", "main"}).out, "1\n");

    // One without a commit, as Bitbucket makes it.
    source["appName"] = "bare";
    source["appSpecifier"] = w.git.create_repository("bare") + "?ref=main";
    w.harness.host.add_repository("git", "bare");
    const auto bare = co_await w.create(kAnn, source);
    EXPECT_EQ(bare.code(), "") << bare.body;
    EXPECT_THAT(w.git.file_at_head("bare", "README.md").value_or(""), HasSubstr("Git source"));
    // A branch that the repository does not have is no reason for a commit.
    source["appSpecifier"] = w.git.url("bare") + "?ref=none";
    EXPECT_EQ((co_await w.create(kAnn, source)).code(), "GIT_NOT_FOUND");
    EXPECT_EQ(w.git.git("bare", {"rev-list", "--count", "--all"}).out, "1\n");
  });
}

// GitHub makes the branch with the repository. The request ended before the commit of the folder.
TEST(AppProxyGitSources, AFolderThatARepositoryLacksIsMadeByTheNextRequest) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    w.git.create_repository("new");
    w.git.commit("new", {{"README.md", "new\n"}}, "Initial commit");
    w.harness.host.add_repository("git", "new");
    Json source{{"appName", "new"},
                {"appSpecifier", w.git.url("new") + "/apps?ref=main"},
                {"createRepo", true}};
    const auto created = co_await w.create(kAnn, source);
    EXPECT_EQ(created.code(), "") << created.body;
    EXPECT_THAT(w.git.file_at_head("new", "apps/README.md").value_or(""), HasSubstr("Git source"));
    // A folder with files gets no commit.
    w.git.commit("new", {{"more/app.yaml", "kind: ConfigMap\n"}}, "more");
    source["appName"] = "more";
    source["appSpecifier"] = w.git.url("new") + "/more?ref=main";
    const auto more = co_await w.create(kAnn, source);
    EXPECT_EQ(more.code(), "") << more.body;
    EXPECT_EQ(w.git.git("new", {"rev-list", "--count", "main"}).out, "3\n");
  });
}

// The double prunes when the test says so.
TEST(AppProxyGitSources, TheirDeletionIsAnsweredWhenArgoCdHasPrunedThem) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([](GitHarness& harness) -> Task<> {
    SourceHarness sources(harness);
    const auto executor = co_await asio::this_coro::executor;
    FakeArgoCd argocd(executor, harness.cluster, {.ns = "default"});
    EXPECT_TRUE(argocd.start());
    const auto put = [&](const std::string& name, const std::string& entity) {
      argocd.set_tree(name, Json::object());
      harness.cluster.put(k8s::resources::kApplications,
                          {{"apiVersion", "argoproj.io/v1alpha1"},
                           {"kind", "Application"},
                           {"metadata",
                            {{"name", name},
                             {"namespace", "default"},
                             {"labels", {{"codefresh.io/entity", entity}}}}}});
    };
    co_await sources.start(
        {{"ARGO_CD_URL", argocd.url().to_string()}, {"ARGO_CD_TOKEN", "argocd.double.token"}});
    EXPECT_EQ((co_await sources.create(kBob, kShop)).code(), "");
    put("shop", "git-source");
    put("prod", "runtime");
    bool is_answered = false;
    TaskGroup users(executor);
    users.spawn("user", [&]() -> Task<> {
      const auto removed = co_await sources.remove(kAnn, "shop");
      EXPECT_EQ(removed.json, (Json{{"data", {{"deleteApplication", nullptr}}}})) << removed.body;
      is_answered = true;
    });
    // It has those compared that would prune it, the second time after it has seen that it is still there.
    const auto compared = [&](const char* name) {
      return argocd.count("GET", std::string("/applications/") + name + "?");
    };
    EXPECT_TRUE(co_await test::eventually(
        [&] { return compared("in-cluster") >= 2 || is_answered; }, "the second comparison"));
    EXPECT_GE(compared("prod"), 2U);
    EXPECT_FALSE(is_answered);
    harness.cluster.remove(k8s::resources::kApplications, {"default", "shop"});
    co_await users.join();
    EXPECT_TRUE(is_answered);

    // An Application of that name that is no Git source stays, and nobody waits for it.
    put("other", "");
    EXPECT_EQ((co_await sources.remove(kAnn, "other")).code(), "GIT_SOURCE_NOT_FOUND");
    // One that stays is told in time for the public CLI, which waits 30 s.
    EXPECT_EQ((co_await sources.create(kBob, kShop)).code(), "");
    put("shop", "git-source");
    const auto begun = Clock::now();
    const auto stuck = co_await sources.remove(kAnn, "shop");
    EXPECT_EQ(stuck.code(), "STILL_PRUNING") << stuck.body;
    EXPECT_LT(Clock::now() - begun, 28s);
    EXPECT_THAT(sources.git_line({"ls-tree", "-r", "--name-only", "main"}),
                Not(HasSubstr("shop.yaml")));
    harness.base.client.close_idle();
    co_await argocd.stop();
  });
}

TEST(AppProxyGitSources, AClusterThatArgoCdDoesNotHaveIsToldAndChangesNothing) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([](GitHarness& harness) -> Task<> {
    SourceHarness w(harness);
    FakeArgoCdServer argocd(co_await asio::this_coro::executor);
    argocd.has_accounts = false;
    argocd.clusters = {"edge"};
    EXPECT_TRUE(argocd.start());
    co_await w.start({{"ARGO_CD_URL", argocd.url().to_string()}, {"ARGO_CD_TOKEN", "canary-argo"}});
    Json shop = kShop;
    shop["destServer"] = "https://gone.example.test";
    const auto refused = co_await w.create(kAnn, shop);
    EXPECT_EQ(refused.code(), "NOT_FOUND");
    EXPECT_THAT(refused.body,
                HasSubstr(R"(destServer: cluster \"https://gone.example.test\" not found)"));
    const auto rollouts = co_await harness.ask(
        kAnn, "mutation($args: CreateArgoRolloutsInput!) { createArgoRollouts(args: $args) }",
        {{"args", {{"destServer", shop["destServer"]}, {"destNamespace", "rollouts"}}}});
    EXPECT_EQ(rollouts.code(), "NOT_FOUND");
    EXPECT_FALSE(w.git.file_at_head("config", "resources/prod/shop.yaml"));
    // Argo CD's list has it.
    shop["destServer"] = "https://edge.example.test/";
    EXPECT_EQ((co_await w.create(kAnn, shop)).code(), "");
    // Its account may not get this one, which a Secret has.
    harness.cluster.put(k8s::resources::kSecrets,
                        {{"apiVersion", "v1"},
                         {"kind", "Secret"},
                         {"metadata",
                          {{"name", "cluster-hidden"},
                           {"namespace", "default"},
                           {"labels", {{"argocd.argoproj.io/secret-type", "cluster"}}}}},
                         {"data",
                          {{"name", base64_encode("hidden")},
                           {"server", base64_encode("https://hidden.example.test")}}}});
    const Json hidden{{"appName", "hidden"}, {"destServer", "https://hidden.example.test"}};
    shop.update(hidden);
    EXPECT_EQ((co_await w.create(kAnn, shop)).code(), "");
    // A list that cannot be read proves nothing.
    argocd.lists_clusters = false;
    const Json other{{"appName", "other"}, {"destServer", "https://gone.example.test"}};
    shop.update(other);
    EXPECT_EQ((co_await w.create(kAnn, shop)).code(), "");
    harness.base.client.close_idle();
    co_await argocd.stop();
  });
}

// The files of clusters behind one host, and what people make of them.
TEST(AppProxyGitSources, ArgoRolloutsHaveAFileForEachCluster) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    const std::string folder = "resources/runtimes/prod/";
    const std::string host = "https://rancher.example.test";
    const auto install = [&w, host](const std::string& path,
                                    const char* ns = "rollouts") -> Task<std::string> {
      const auto answer = co_await w.harness.ask(
          kAnn, "mutation($args: CreateArgoRolloutsInput!) { createArgoRollouts(args: $args) }",
          {{"args", {{"destServer", host + path}, {"destNamespace", ns}}}});
      EXPECT_EQ(answer.code(), "") << answer.body;
      co_return answer.code();
    };
    const auto files = [&w, folder] {
      std::vector<std::string> names;
      std::istringstream lines(w.git_line({"ls-tree", "--name-only", "main", folder}));
      for (std::string name; std::getline(lines, name);) names.push_back(name);
      return names;
    };
    // Earlier releases named the file by the host alone.
    const std::string first = folder + "argo-rollouts-rancher-example-test.yaml";
    const std::string by_hand =
        "# by hand\nkind: Application\nspec:\n  destination:\n    namespace: rollouts\n    "
        "server: " +
        host + "/k8s/clusters/a\n";
    w.git.commit("config", {{first, by_hand}}, "before");
    (void)co_await install("/k8s/clusters/a");
    EXPECT_EQ(w.file(first), by_hand);
    EXPECT_THAT(files(), testing::ElementsAre(first));
    (void)co_await install("/k8s/clusters/b");
    CO_ASSERT_EQ(files().size(), 2U);
    const auto second = files()[0] == first ? files()[1] : files()[0];
    EXPECT_THAT(w.file(second), HasSubstr("server: " + host + "/k8s/clusters/b\n"));
    EXPECT_EQ(w.file(first), by_hand);
    // Repeated: nothing to commit, also after an edit.
    w.git.commit("config", {{second, w.file(second) + "# by hand\n"}}, "an edit");
    const auto head = w.git.head("config");
    (void)co_await install("/k8s/clusters/a");
    (void)co_await install("/k8s/clusters/b");
    EXPECT_EQ(w.git.head("config"), head);
    (void)co_await install("/k8s/clusters/b", "elsewhere");
    EXPECT_THAT(w.file(second), HasSubstr("    namespace: elsewhere\n"));
    EXPECT_THAT(w.file(second), testing::EndsWith("# by hand\n"));
    EXPECT_EQ(files().size(), 2U);
  });
}

// The runtime's own token is refused, so that the program tries soon again.
TEST(AppProxyGitSources, ARemovedRuntimeIsNotPreparedUntilItHasANewGitSource) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([](GitHarness& harness) -> Task<> {
    SourceHarness w(harness);
    co_await w.start({{"GIT_USERNAME", "robot"}, {"GIT_PASSWORD", "canary-wrong"}});
    EXPECT_EQ((co_await w.create(kAnn, kShop)).code(), "");
    EXPECT_EQ((co_await harness.ask(kAnn, "mutation { removeRuntimeFromIscRepo }")).json,
              (Json{{"data", {{"removeRuntimeFromIscRepo", 2}}}}));
    const auto says = [&](const char* status) -> Task<bool> {
      const auto deadline = deadline_after(25s);
      while (!harness.base.daemon->status()
                  .message("shared configuration repository")
                  .starts_with(status) &&
             Clock::now() < deadline) {
        co_await sleep_for(20ms);
      }
      co_return Clock::now() < deadline;
    };
    EXPECT_TRUE(co_await says("the runtime was removed from it"));
    EXPECT_EQ((co_await w.create(kAnn, kShop)).code(), "");
    EXPECT_TRUE(co_await says("the runtime's files: "));
  });
}

// What the runtime made in the folder of its default Git source goes, what people put there stays.
TEST(AppProxyGitSources, TheFolderOfTheDefaultGitSourceGoesUnlessItHasMore) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    const std::string document = "mutation RemoveRuntimeFromIscRepo { removeRuntimeFromIscRepo }";
    const std::string folder = "git-sources/prod/default/";
    w.git.commit("config", {{"resources/README.md", "x\n"}, {folder + "README.md", "ours\n"}},
                 "begin");
    EXPECT_EQ((co_await w.harness.ask(kAnn, document)).json,
              (Json{{"data", {{"removeRuntimeFromIscRepo", 1}}}}));
    EXPECT_EQ(w.git_line({"ls-tree", "-r", "--name-only", "main"}), "resources/README.md");
    w.git.commit("config",
                 {{folder + "README.md", "ours\n"},
                  {folder + "app.yaml", "people's\n"},
                  {"runtimes/prod/in-cluster.yaml", "kind: Application\n"}},
                 "again");
    EXPECT_EQ((co_await w.harness.ask(kAnn, document)).json,
              (Json{{"data", {{"removeRuntimeFromIscRepo", 1}}}}));
    EXPECT_EQ(w.git_line({"ls-tree", "-r", "--name-only", "main"}),
              folder + "README.md\n" + folder + "app.yaml\nresources/README.md");
    EXPECT_THAT(w.git_line({"log", "-1", "--format=%B", "main"}),
                HasSubstr("Left: the folder git-sources/prod/default with 2 files"));
  });
}

// The push arrives and its answer is lost, and then the server shows no branch for another push.
TEST(AppProxyGitSources, ARemovalWhoseAnswerIsLostIsLookedUp) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    EXPECT_EQ((co_await w.create(kAnn, kShop)).code(), "");
    const auto hook = w.git.folder() / "repos/config.git/hooks/post-receive";
    write_file(hook,
               "#!/bin/sh\ncat >/dev/null\ngit config http.receivepack false\nkill -9 $PPID\n");
    std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
    const auto removed = co_await w.harness.ask(kAnn, "mutation { removeRuntimeFromIscRepo }");
    EXPECT_EQ(removed.json, (Json{{"data", {{"removeRuntimeFromIscRepo", 2}}}})) << removed.body;
    EXPECT_EQ(w.file("runtimes/prod/in-cluster.yaml"), "");
  });
}

TEST(AppProxyGitSources, TheRestOfARuntimeIsMadeAndRemoved) {
  in_source_harness([](SourceHarness& w) -> Task<> {
    w.git.commit("config", {{"resources/staging/x.yaml", "another runtime's\n"}}, "begin");
    const auto rollouts = co_await w.harness.ask(
        kAnn,
        "mutation CreateArgoRollouts($args: CreateArgoRolloutsInput!) { createArgoRollouts(args: "
        "$args) }",
        {{"args", {{"destServer", "https://10.1.2.3:6443"}, {"destNamespace", "rollouts"}}}});
    EXPECT_EQ(rollouts.json, (Json{{"data", {{"createArgoRollouts", nullptr}}}})) << rollouts.body;
    EXPECT_THAT(w.file("resources/runtimes/prod/argo-rollouts-10-1-2-3.yaml"),
                HasSubstr("chart: argo-rollouts\n"));
    EXPECT_EQ((co_await w.create(kAnn, kShop)).code(), "");
    const std::string document = "mutation RemoveRuntimeFromIscRepo { removeRuntimeFromIscRepo }";
    EXPECT_EQ((co_await w.harness.ask(kBob, document)).code(), "FORBIDDEN");
    EXPECT_EQ((co_await w.harness.ask(kAnn, document)).json,
              (Json{{"data", {{"removeRuntimeFromIscRepo", 3}}}}));
    EXPECT_EQ(w.git_line({"ls-tree", "-r", "--name-only", "main"}),
              "resources/README.md\nresources/app-projects/cf-git-sources.yaml\n"
              "resources/staging/x.yaml");
    EXPECT_EQ((co_await w.harness.ask(kAnn, document)).json,
              (Json{{"data", {{"removeRuntimeFromIscRepo", 0}}}}));
  });
}

}  // namespace
}  // namespace gitops::test
