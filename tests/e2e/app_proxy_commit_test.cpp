// Commits by the running app-proxy, between doubles of an API server and of GitHub's REST interface,
// and Git's own server.
#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "app-proxy/git/packs.hpp"
#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "e2e/git_harness.hpp"
#include "support/git_server.hpp"
#include "test_http/canned_server.hpp"
#include "test_http/otlp_collector.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using Answer = GitHarness::Answer;
constexpr auto kAnn = AppProxyHarness::kAnn;
constexpr auto kBob = AppProxyHarness::kBob;
constexpr auto kBobsGitToken = "canary-git-bob";

// The repository acme/shop of the double is one of a real Git server. Ann is the host's Dana, Bob its
// Bo without a mail address.
struct CommitHarness {
  explicit CommitHarness(GitHarness& w) : harness(w) {
    git.create_repository("shop");
    git.commit("shop", {{"deploy/app.yaml", "replicas: 1\n"}}, "begin");
    git.add_user(FakeGitHost::kLogin, FakeGitHost::kToken);
    git.add_user("bo", kBobsGitToken);
    harness.host.find("acme", "shop")->clone_url = git.url("shop");
    harness.host.add_user(kBobsGitToken, {.id = 8, .login = "bo", .name = "Bo Example"});
  }

  void start() {
    Environment settings = more;
    settings["REPOS_DIR"] = (folder / "clones").string();
    harness.start(std::move(settings), flags);
  }
  Task<> start_registered() {
    start();
    co_await harness.base.account_known();
    EXPECT_EQ((co_await harness.add()).code(), "");
    for (const auto& [user, token] :
         {std::pair(kAnn, FakeGitHost::kToken), {kBob, kBobsGitToken}}) {
      const auto answer = co_await harness.register_user(user, {{"token", token}});
      EXPECT_EQ(answer.code(), "") << answer.body;
    }
  }

  // The document of the public clients, with their alias.
  static Json document(Json args) {
    args.emplace("repo", "acme/shop");
    return {{"query",
             "mutation commitFiles($args: CommitFilesArgs!) { commitFiles(args: $args) { "
             "COMMIT_SHA: sha sha message date tags committer { name email } } }"},
            {"variables", {{"args", std::move(args)}}}};
  }
  Task<Answer> commit(const char* user, Json args) {
    auto wanted = document(std::move(args));
    return harness.ask(user, wanted["query"], wanted["variables"]);
  }
  Task<Answer> remove(const char* user, Json args) {
    args.emplace("repo", "acme/shop");
    return harness.ask(user,
                       "mutation($args: DeleteFilesArgs!) { deleteFiles(args: $args) { sha message "
                       "} }",
                       {{"args", std::move(args)}});
  }
  static Json file(std::string path, std::string data, Json revision = nullptr) {
    return {
        {"path", std::move(path)}, {"data", std::move(data)}, {"revision", std::move(revision)}};
  }
  [[nodiscard]] std::string git_line(const std::vector<std::string>& args) const {
    auto result = git.git("shop", args);
    EXPECT_TRUE(result.ok()) << result.err;
    while (result.out.ends_with('\n')) result.out.pop_back();
    return result.out;
  }
  // How often each message stands in the branch.
  [[nodiscard]] std::map<std::string, int> subjects() const {
    std::map<std::string, int> found;
    std::istringstream lines(git_line({"log", "--format=%s", "main"}));
    for (std::string line; std::getline(lines, line);) ++found[line];
    return found;
  }

  GitHarness& harness;
  GitServer git;
  TempDir folder;
  Environment more;  // of the program
  std::vector<std::string> flags;
};

void in_commit_harness(const std::function<Task<>(CommitHarness&)>& body,
                       const std::function<void(CommitHarness&)>& prepare = {}) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([&](GitHarness& harness) -> Task<> {
    CommitHarness commits(harness);
    if (prepare) prepare(commits);
    co_await commits.start_registered();
    co_await body(commits);
  });
}

TEST(AppProxyCommit, ACommitArrivesAsTheUsersOwn) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto answer = co_await w.commit(
        kAnn, {{"branchName", "HEAD"},
               {"files", Json::array({CommitHarness::file("deploy/app.yaml", "replicas: 2\n"),
                                      CommitHarness::file("new/a.yaml", "a: 1\n")})},
               {"msg", "Scale the shop"},
               {"description", "For the holidays."},
               {"force", true}});
    const Json made = answer.json["data"]["commitFiles"];
    EXPECT_EQ(made["sha"], w.git.head("shop")) << answer.body;
    EXPECT_EQ(made["COMMIT_SHA"], made["sha"]);
    EXPECT_EQ(made["message"], "Scale the shop\n\nFor the holidays.");
    EXPECT_EQ(made["tags"], Json::array());
    EXPECT_EQ(made["committer"], (Json{{"name", "Dana Example"}, {"email", "dana@example.test"}}));
    EXPECT_EQ(w.git.file_at_head("shop", "deploy/app.yaml"), "replicas: 2\n");
    EXPECT_EQ(w.git.file_at_head("shop", "new/a.yaml"), "a: 1\n");
    EXPECT_EQ(w.git_line({"log", "-1", "--format=%an|%ae|%cn|%ce|%B", "main"}),
              "Dana Example|dana@example.test|Dana Example|dana@example.test|Scale the "
              "shop\n\nFor the holidays.");
    const auto when = parse_rfc3339(made["date"].get<std::string>());
    CO_ASSERT_TRUE(when.has_value());
    EXPECT_EQ(
        std::to_string(
            std::chrono::duration_cast<std::chrono::seconds>(when->time_since_epoch()).count()),
        w.git_line({"log", "-1", "--format=%ct", "main"}));

    // Nothing differs: an error, unless it is wanted so.
    Json same{{"files", Json::array({CommitHarness::file("new/a.yaml", "a: 1\n")})}};
    EXPECT_EQ((co_await w.commit(kAnn, same)).code(), "GIT_NOTHING_TO_COMMIT");
    EXPECT_EQ(w.git.head("shop"), made["sha"].get<std::string>());
    same["allowEmpty"] = true;
    const auto empty = co_await w.commit(kAnn, same);
    EXPECT_EQ(empty.json["data"]["commitFiles"]["message"], "Update new/a.yaml") << empty.body;

    // A host that tells no mail address.
    const auto by_bob = co_await w.commit(
        kBob,
        {{"files", Json::array({CommitHarness::file("b.yaml", "b: 1\n")})}, {"msg", "By Bob"}});
    EXPECT_EQ(by_bob.code(), "") << by_bob.body;
    const auto author = w.git_line({"log", "-1", "--format=%an|%ae", "main"});
    EXPECT_THAT(author, testing::StartsWith("Bo Example|"));
    EXPECT_THAT(author, HasSubstr("noreply"));
    const auto status = w.harness.base.daemon->status();
    EXPECT_EQ(status.count("commits", "waiting"), 0) << status;
    EXPECT_GE(status.count("clones", "bytes"), 0) << status;
  });
}

TEST(AppProxyCommit, ATraceHoldsTheWaitAndTheRequestsToGit) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  in_git_harness([](GitHarness& harness) -> Task<> {
    OtlpCollector collector(co_await asio::this_coro::executor);
    CommitHarness w(harness);
    w.more = {{"OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()}, {"OTEL_TRACES_SAMPLER_ARG", "1"}};
    co_await w.start_registered();
    const auto answer = co_await w.commit(
        kAnn, {{"branchName", "HEAD"},
               {"files", Json::array({CommitHarness::file("deploy/app.yaml", "replicas: 3\n")})},
               {"msg", "words of a user"}});
    EXPECT_EQ(answer.code(), "");
    EXPECT_TRUE(co_await eventually(
        [&] {
          const auto* commit = collector.find("app-proxy", "commit");
          return commit != nullptr &&
                 collector.find("app-proxy", "POST graphql", commit->trace) != nullptr;
        },
        "the trace"))
        << collector.names();
    if (const auto* commit = collector.find("app-proxy", "commit")) {
      EXPECT_EQ(commit->parent, collector.find("app-proxy", "POST graphql", commit->trace)->id);
      for (const char* name : {"GET git", "POST git"}) {
        const auto* request = collector.find("app-proxy", name, commit->trace);
        EXPECT_TRUE(request != nullptr && request->parent == commit->id) << collector.names();
      }
    }
    EXPECT_THAT(collector.mistakes(), testing::IsEmpty());
    EXPECT_THAT(collector.text(), Not(HasSubstr("canary")));
    EXPECT_THAT(collector.text(), Not(HasSubstr("words of a user")));
    co_await collector.stop();
  });
}

TEST(AppProxyCommit, AChangedFileIsNotOverwritten) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto seen = w.git_line({"rev-parse", "main:deploy/app.yaml"});
    w.git.commit("shop", {{"deploy/app.yaml", "replicas: 7\n"}}, "somebody else");
    const auto tip = w.git.head("shop");
    Json args{
        {"files", Json::array({CommitHarness::file("deploy/app.yaml", "replicas: 3\n", seen)})},
        {"msg", "three"}};
    const auto refused = co_await w.commit(kAnn, args);
    EXPECT_EQ(refused.status, 200);
    EXPECT_EQ(refused.code(), "GIT_CONFLICT") << refused.body;
    EXPECT_EQ(w.git.head("shop"), tip);
    args["files"][0]["revision"] = w.git_line({"rev-parse", "main:deploy/app.yaml"});
    EXPECT_EQ((co_await w.commit(kAnn, args)).code(), "");
    EXPECT_EQ(w.git.file_at_head("shop", "deploy/app.yaml"), "replicas: 3\n");
    args["files"][0] = CommitHarness::file("deploy/app.yaml", "replicas: 4\n", seen);
    args["force"] = true;
    EXPECT_EQ((co_await w.commit(kAnn, args)).code(), "");
    EXPECT_EQ(w.git.file_at_head("shop", "deploy/app.yaml"), "replicas: 4\n");
  });
}

TEST(AppProxyCommit, FilesAreDeleted) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    w.git.commit("shop", {{"a.yaml", "a\n"}, {"b.yaml", "b\n"}}, "two");
    const auto answer = co_await w.remove(kBob, {{"paths", {"a.yaml", "b.yaml"}}});
    EXPECT_EQ(answer.json["data"]["deleteFiles"],
              (Json{{"sha", w.git.head("shop")}, {"message", "Delete 2 files"}}))
        << answer.body;
    EXPECT_EQ(w.git.file_at_head("shop", "a.yaml"), std::nullopt);
    EXPECT_EQ(w.git.file_at_head("shop", "deploy/app.yaml"), "replicas: 1\n");
    const auto tip = w.git.head("shop");
    EXPECT_EQ((co_await w.remove(kBob, {{"paths", {"a.yaml"}}})).code(), "GIT_NOT_FOUND");
    EXPECT_EQ(
        (co_await w.remove(kBob, {{"paths", {"deploy/app.yaml"}}, {"branchName", "no"}})).code(),
        "GIT_NOT_FOUND");
    EXPECT_EQ(w.git.head("shop"), tip);
  });
}

// [AC-39]
TEST(AppProxyCommit, AC39_PathsOutsideOfTheRepositoryAreRefused) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto tip = w.git.head("shop");
    const auto asked = w.harness.host.requests().size();
    for (const char* path : {"../x", "a/../../x", "/etc/passwd", ".git/config", "a/.GIT/config",
                             "git~1/x", "a\\b", "", ".gitmodules"}) {
      const auto written = co_await w.commit(
          kAnn, {{"files", Json::array({CommitHarness::file(path, "x")})}, {"force", true}});
      EXPECT_EQ(written.code(), "INVALID_ARGUMENT") << path;
      EXPECT_EQ((co_await w.remove(kAnn, {{"paths", {path}}})).code(), "INVALID_ARGUMENT") << path;
    }
    EXPECT_EQ(w.harness.host.requests().size(), asked);
    for (const char* branch : {"--force", "refs/tags/v1", "a..b", "a b"}) {
      EXPECT_EQ(
          (co_await w.commit(kAnn, {{"branchName", branch},
                                    {"files", Json::array({CommitHarness::file("x.yaml", "x")})}}))
              .code(),
          "INVALID_ARGUMENT")
          << branch;
    }
    EXPECT_EQ(w.git.head("shop"), tip);
    // A repository that the host says is elsewhere: the token does not go there.
    w.harness.host.find("acme", "shop")->clone_url = "http://localhost:1/acme/shop.git";
    EXPECT_EQ(
        (co_await w.commit(kAnn, {{"files", Json::array({CommitHarness::file("x.yaml", "x")})}}))
            .code(),
        "GIT_REDIRECTED");
  });
}

TEST(AppProxyCommit, ManyAtOnceAllArrive) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    TaskGroup users(co_await asio::this_coro::executor);
    for (int i = 0; i < 20; ++i) {
      users.spawn("commit", [&w, i]() -> Task<> {
        const auto path = "many/" + std::to_string(i) + ".yaml";
        const auto answer = co_await w.commit(
            i % 2 == 0 ? kAnn : kBob, {{"files", Json::array({CommitHarness::file(path, "x\n")})}});
        EXPECT_EQ(answer.code(), "") << answer.body;
      });
    }
    co_await users.join();
    const auto found = w.subjects();
    EXPECT_EQ(found.size(), 21U);
    for (const auto& [subject, times] : found) EXPECT_EQ(times, 1) << subject;
    const auto authors = w.git_line({"shortlog", "-s", "main"});
    EXPECT_THAT(authors, HasSubstr("10\tDana Example"));
    EXPECT_THAT(authors, HasSubstr("10\tBo Example"));
  });
}

TEST(AppProxyCommit, ATokenThatTheGitServerRefusesIsTold) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    write_file(w.git.folder() / "htpasswd", "");
    const auto answer =
        co_await w.commit(kBob, {{"files", Json::array({CommitHarness::file("x.yaml", "x")})}});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.code(), "GIT_TOKEN_REJECTED") << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("register a new token"));
  });
}

// [AC-31]
TEST(AppProxyCommit, AC31_AfterAKillNothingIsCommittedTwice) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    constexpr int kCommits = 20;
    const auto args = [](int i) {
      const auto path = "k/" + std::to_string(i) + ".yaml";
      return Json{{"files", Json::array({CommitHarness::file(path, "x\n")})}};
    };
    // One after another, so that the kill meets one in any of its phases.
    std::vector<bool> acknowledged(kCommits);
    TaskGroup client(executor);
    client.spawn("commits", [&]() -> Task<> {
      const http::Url url{
          .scheme = "http", .host = "127.0.0.1", .port = w.harness.base.daemon->port()};
      for (int i = 0; i < kCommits; ++i) {
        const auto answer = co_await w.harness.base.client.send(
            url,
            {.method = "POST",
             .target = "/api/graphql",
             .headers = {{"Authorization", kAnn}, {"Content-Type", "application/json"}},
             .body = CommitHarness::document(args(i)).dump()},
            deadline_after(std::chrono::seconds(20)));
        if (!answer) co_return;
        acknowledged[static_cast<std::size_t>(i)] = !answer->body.contains("errors");
      }
    });
    const auto deadline = deadline_after(std::chrono::seconds(20));
    while (w.subjects().size() < 5 && Clock::now() < deadline) {
      co_await sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_THAT(w.harness.logs(), Not(HasSubstr("canary")));
    CO_ASSERT_TRUE(::kill(w.harness.base.daemon->process().pid(), SIGKILL) == 0);
    co_await client.join();
    EXPECT_FALSE(acknowledged.back()) << "the kill came too late to mean something";
    const auto after_kill = w.subjects();
    for (int i = 0; i < kCommits; ++i) {
      if (!acknowledged[static_cast<std::size_t>(i)]) continue;
      EXPECT_TRUE(after_kill.contains("Update k/" + std::to_string(i) + ".yaml")) << i;
    }
    w.harness.base.client.close_idle();
    w.start();
    co_await w.harness.base.account_known();
    for (int i = 0; i < kCommits; ++i) {
      if (acknowledged[static_cast<std::size_t>(i)]) continue;
      const auto answer = co_await w.commit(kAnn, args(i));
      // One that was pushed, and whose answer was lost, has nothing to do any more.
      const bool was_there = after_kill.contains("Update k/" + std::to_string(i) + ".yaml");
      EXPECT_EQ(answer.code(), was_there ? "GIT_NOTHING_TO_COMMIT" : "") << answer.body;
    }
    const auto found = w.subjects();
    EXPECT_EQ(found.size(), kCommits + 1U);
    for (const auto& [subject, times] : found) EXPECT_EQ(times, 1) << subject;
    EXPECT_EQ(w.git_line({"fsck", "--no-progress", "--no-dangling"}), "");
  });
}

// [AC-42] Five users commit at once beside a second writer; the program is killed in the middle of
// it and started again. Everything is there once, in a line, each commit by its author.
TEST(AppProxyCommit, AC42_AKillAmongFiveUsersAndASecondWriter) {
  struct Person {
    std::string key;
    std::string git_token;
    std::string login;
  };
  std::vector<Person> people;
  in_commit_harness(
      [&](CommitHarness& w) -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        for (const auto& person : people) {
          const auto answer =
              co_await w.harness.register_user(person.key.c_str(), {{"token", person.git_token}});
          EXPECT_EQ(answer.code(), "") << answer.body;
        }
        constexpr std::size_t kCommits = 100;
        const auto args = [](std::size_t i) {
          return Json{
              {"files", Json::array({CommitHarness::file("f/" + std::to_string(i), "x\n")})}};
        };
        std::atomic<bool> stop = false;
        std::atomic<int> others = 0;
        std::thread writer([&] {
          while (!stop) {
            try {
              w.git.commit("shop", {}, "other " + std::to_string(others));
              ++others;
            } catch (const std::exception&) {
              // Its own push came second; git does not try again.
            }
          }
        });
        struct Joining {
          ~Joining() {
            stop = true;
            writer.join();
          }
          std::atomic<bool>& stop;
          std::thread& writer;
        };
        std::optional<Joining> joining(std::in_place, stop, writer);
        std::vector<bool> acknowledged(kCommits);
        const http::Url url{
            .scheme = "http", .host = "127.0.0.1", .port = w.harness.base.daemon->port()};
        TaskGroup clients(executor);
        for (std::size_t i = 0; i < kCommits; ++i) {
          clients.spawn("commit", [&, i]() -> Task<> {
            const auto answer = co_await w.harness.base.client.send(
                url,
                {.method = "POST",
                 .target = "/api/graphql",
                 .headers = {{"Authorization", people[i % people.size()].key},
                             {"Content-Type", "application/json"}},
                 .body = CommitHarness::document(args(i)).dump()},
                deadline_after(std::chrono::seconds(30)));
            if (answer) acknowledged[i] = !answer->body.contains("errors");
          });
        }
        const auto ours = [&] {
          const auto found = w.subjects();
          return std::ranges::count_if(
              found, [](const auto& entry) { return entry.first.starts_with("Update f/"); });
        };
        const auto deadline = deadline_after(std::chrono::seconds(30));
        while (ours() < 20 && Clock::now() < deadline) {
          co_await sleep_for(std::chrono::milliseconds(5));
        }
        CO_ASSERT_TRUE(::kill(w.harness.base.daemon->process().pid(), SIGKILL) == 0);
        co_await clients.join();
        EXPECT_LT(std::ranges::count(acknowledged, true), std::ssize(acknowledged));
        const auto after_kill = w.subjects();
        EXPECT_LT(ours(), std::ssize(acknowledged)) << "the kill came too late to mean something";
        w.harness.base.client.close_idle();
        w.start();
        co_await w.harness.base.account_known();
        for (std::size_t i = 0; i < kCommits; ++i) {
          const bool is_there = after_kill.contains("Update f/" + std::to_string(i));
          if (acknowledged[i]) {
            EXPECT_TRUE(is_there) << i;
            continue;
          }
          clients.spawn("again", [&, i, is_there]() -> Task<> {
            const auto answer = co_await w.commit(people[i % people.size()].key.c_str(), args(i));
            EXPECT_EQ(answer.code(), is_there ? "GIT_NOTHING_TO_COMMIT" : "") << answer.body;
          });
        }
        co_await clients.join();
        joining.reset();
        EXPECT_GT(others, 0);
        const auto found = w.subjects();
        EXPECT_EQ(found.size(), 1 + kCommits + static_cast<std::size_t>(others));
        for (const auto& [subject, times] : found) EXPECT_EQ(times, 1) << subject;
        EXPECT_EQ(w.git_line({"rev-list", "--count", "--merges", "main"}), "0");
        EXPECT_EQ(w.git_line({"fsck", "--no-progress", "--no-dangling"}), "");
        for (const auto& person : people) {
          EXPECT_EQ(w.git_line({"rev-list", "--count", "--author=Person " + person.login, "main"}),
                    "20");
        }
      },
      [&](CommitHarness& w) {
        for (int i = 0; i < 5; ++i) {
          const auto id = std::to_string(i);
          people.push_back({"canary-person" + id + ".7777", "canary-git-person" + id, "p" + id});
          w.harness.base.platform.accounts().add(
              people.back().key,
              FakeAccounts::User{.id = "u-p" + id, .name = "P" + id, .account_id = "acc-1"});
          w.git.add_user(people.back().login, people.back().git_token);
          w.harness.host.add_user(people.back().git_token,
                                  {.id = 20 + i,
                                   .login = people.back().login,
                                   .name = "Person " + people.back().login});
        }
      });
}

TEST(AppProxyCommit, CommitsAreSignedWhenThereIsAKey) {
  in_commit_harness(
      [](CommitHarness& w) -> Task<> {
        const auto change = [](const char* path) {
          return Json{{"files", Json::array({CommitHarness::file(path, "x\n")})}};
        };
        EXPECT_EQ((co_await w.commit(kAnn, change("a.yaml"))).code(), "");
        EXPECT_EQ((co_await w.commit(kBob, change("b.yaml"))).code(), "");
        write_file(w.folder / "allowed",
                   "* " + read_file(w.folder / "keys/ssh-privatekey.pub") + "\n");
        for (const char* commit : {"main", "main~1"}) {
          const auto verified =
              w.git.git("shop", {"-c", "gpg.format=ssh", "-c",
                                 "gpg.ssh.allowedSignersFile=" + (w.folder / "allowed").string(),
                                 "verify-commit", commit});
          EXPECT_TRUE(verified.ok()) << commit << verified.err;
        }
        EXPECT_THAT(w.harness.logs(), HasSubstr("commits are signed"));
        EXPECT_THAT(w.harness.logs(), Not(HasSubstr("PRIVATE KEY")));
        // A key that cannot be used: nothing is pushed without a signature.
        const auto tip = w.git.head("shop");
        w.harness.base.client.close_idle();
        w.harness.base.daemon->process().stop();
        write_file(w.folder / "keys/ssh-privatekey", "no key\n");
        w.start();
        co_await w.harness.base.account_known();
        const auto refused = co_await w.commit(kAnn, change("c.yaml"));
        EXPECT_EQ(refused.code(), "UNAVAILABLE") << refused.body;
        EXPECT_THAT(refused.body, HasSubstr("key to sign"));
        EXPECT_EQ(w.git.head("shop"), tip);
      },
      [](CommitHarness& w) {
        std::filesystem::create_directories(w.folder / "keys");
        const auto key = w.folder / "keys/ssh-privatekey";
        run_or_throw({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key.string()});
        w.more["COMMIT_SIGNING_KEY_FILE"] = key.string();
      });
}

// [AC-28] Secrets of all kinds at once: session tokens, Git tokens, the runtime's own, a key for
// signatures. None of them, in any form in which it is sent or stored, stands in an answer, a line of
// the log, a page of the admin port, a clone or an argument, also when things fail and at a crash.
TEST(AppProxyCommit, AC28_SecretsOfEveryKindAppearNowhere) {
  std::vector<std::string> secrets{"canary", base64_encode("canary").substr(0, 8)};
  in_commit_harness(
      [&](CommitHarness& w) -> Task<> {
        constexpr auto kRefused = "canary-git-refused";
        secrets.push_back(base64_encode("dana:" + std::string(FakeGitHost::kToken)));
        secrets.push_back(base64_encode("bo:" + std::string(kBobsGitToken)));
        secrets.push_back(base64_encode("bo:" + std::string(kRefused)));
        std::string shown;
        const auto note = [&](const Answer& answer, int status = 200) {
          EXPECT_EQ(answer.status, status) << answer.body;
          shown += answer.body;
          for (const auto& [name, value] : answer.headers) shown += name + value;
        };
        const auto change = [](const std::string& path) {
          return Json{{"files", Json::array({CommitHarness::file(path, "x\n")})}};
        };
        const auto as = [&](http::Headers headers) {
          return w.harness.base.ask("{gitIntegrations{name}}", std::move(headers));
        };
        note(co_await w.commit(kAnn, change("a.yaml")));
        for (const std::string token : {kAnn, "canary-wrong.0000"}) {
          const int status = token == kAnn ? 200 : 401;
          note(co_await as({{"Authorization", token}}), status);
          note(co_await as({{"x-access-token", token}}), status);
          note(co_await as({{"Cookie", "session=" + token}, {"Origin", AppProxyHarness::kPage}}),
               status);
        }
        // A token that the host knows and the Git server refuses; hosts that fail; a hook's refusal.
        w.harness.host.add_user(kRefused, {.id = 8, .login = "bo", .name = "Bo Example"});
        note(co_await w.harness.register_user(kBob, {{"token", kRefused}}));
        const auto refused = co_await w.commit(kBob, change("b.yaml"));
        EXPECT_EQ(refused.code(), "GIT_TOKEN_REJECTED") << refused.body;
        note(refused);
        note(co_await w.harness.register_user(kBob, {{"token", "canary-unknown"}}));
        for (const int status : {401, 403, 404, 500}) {
          w.harness.host.fail_next(1, status);
          note(co_await w.commit(kAnn, change("c.yaml")));
        }
        w.harness.host.end_faults();
        const auto hook = w.git.folder() / "repos/shop.git/hooks/pre-receive";
        write_file(hook, "#!/bin/sh\ncat >/dev/null\nenv >&2\necho not today >&2\nexit 1\n");
        std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
        const auto declined = co_await w.commit(kAnn, change("d.yaml"));
        EXPECT_EQ(declined.code(), "GIT_REFUSED") << declined.body;
        note(declined);
        auto& daemon = *w.harness.base.daemon;
        for (const char* page : {"/metrics", "/statusz", kStatusPath, "/healthz", "/readyz"}) {
          shown += daemon.admin(page).body;
        }
        shown += read_file("/proc/" + std::to_string(daemon.process().pid()) + "/cmdline");
        for (const auto& entry :
             std::filesystem::recursive_directory_iterator(w.folder / "clones")) {
          shown += entry.path().string();
          if (entry.is_regular_file()) shown += read_file(entry.path());
        }
        daemon.process().signal(SIGABRT);
        EXPECT_EQ(daemon.process().wait(std::chrono::seconds(10)), 128 + SIGABRT);
        shown += w.harness.logs();
        EXPECT_THAT(shown, HasSubstr("commits are signed"));
        EXPECT_THAT(shown, HasSubstr("a field failed"));
        for (const auto& secret : secrets) EXPECT_FALSE(shown.contains(secret)) << secret;
        w.harness.base.client.close_idle();
        w.start();
        co_await w.harness.base.account_known();
      },
      [&](CommitHarness& w) {
        const auto key = w.folder / "ssh-privatekey";
        run_or_throw({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key.string()});
        w.more["COMMIT_SIGNING_KEY_FILE"] = key.string();
        w.more["GIT_PASSWORD"] = "canary-git-password";
        w.flags = {"--log-level=debug"};
        // The seed, as it is and in the file's Base64; the public key may be shown.
        std::string text = read_file(key);
        const auto begin = text.find('\n') + 1;
        const auto decoded = base64_decode(text.substr(begin, text.rfind("-----END") - begin));
        ASSERT_TRUE(decoded);
        const auto type = decoded->rfind("ssh-ed25519");
        secrets.push_back(decoded->substr(type + 11 + 4 + 32 + 4, 32));
        secrets.push_back(base64_encode(secrets.back()).substr(0, 40));
        std::erase(text, '\n');
        secrets.push_back(text.substr(text.rfind("-----END") - 60, 40));
      });
}

// [AC-40] A Git server that answers with what libgit2 would never return from, or would need gigabytes
// for, beside one that means well.
TEST(AppProxyCommit, AC40_AHostileServerCostsLittle) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    const std::string id(40, '1');
    const std::string list = packet("# service=git-upload-pack\n") + "0000" +
                             packet(id + " HEAD" + '\0' + "symref=HEAD:refs/heads/main\n") +
                             packet(id + " refs/heads/main\n") + "0000";
    const std::string text(1'000'000, 'a');
    const auto blob = pack_object(PackType::blob, text);
    const auto named = sha1("blob 1000000" + std::string(1, '\0') + text);
    const auto twice = pack_object(PackType::ref_delta, growing_delta(text.size(), text.size() / 2),
                                   bytes_of(named));
    const auto bomb =
        pack_object(PackType::ofs_delta,
                    pack_number(text.size()) + pack_number(std::uint64_t{8} << 30U) + "\x90\x64",
                    pack_distance(blob.size()));
    const auto answer = [](std::string body, const std::string& kind) {
      return http::Response{.status = 200,
                            .headers = {{"Content-Type", "application/x-git-upload-pack-" + kind}},
                            .body = std::move(body)};
    };
    const auto real = w.harness.host.find("acme", "shop")->clone_url;
    const Json args{{"files", Json::array({CommitHarness::file("x.yaml", "x")})}};
    const auto before = w.harness.base.daemon->memory();
    for (const auto& pack :
         {pack_of({blob, twice, twice}), pack_of({blob, bomb}), pack_of({}, ~0U)}) {
      CannedServer server(
          executor, {answer(list, "advertisement"), answer(packet("NAK\n") + pack, "result")});
      w.harness.host.find("acme", "shop")->clone_url = server.url().to_string() + "/acme/shop.git";
      const auto began = Clock::now();
      const auto refused = co_await w.commit(kAnn, args);
      EXPECT_EQ(refused.status, 200);
      EXPECT_NE(refused.code(), "") << refused.body;
      EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
      co_await server.stop();
    }
    EXPECT_LT(w.harness.base.daemon->memory(), before + 64UL * 1024);  // KiB
    w.harness.host.find("acme", "shop")->clone_url = real;
    EXPECT_EQ((co_await w.commit(kAnn, args)).code(), "");
    EXPECT_THAT(w.harness.logs(), Not(HasSubstr("canary")));
  });
}

// [AC-41] There is no SSH, so no host key that could be left unchecked: a host that names such a clone
// URL, or a local one, is asked for nothing.
TEST(AppProxyCommit, AC41_CloneUrlsForSshAreRefused) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto tip = w.git.head("shop");
    for (const char* url :
         {"ssh://git@127.0.0.1/acme/shop.git", "git@127.0.0.1:acme/shop.git", "file:///etc",
          "/etc/passwd", "--upload-pack=touch /tmp/x", "ext::sh -c id"}) {
      w.harness.host.find("acme", "shop")->clone_url = url;
      const auto refused =
          co_await w.commit(kAnn, {{"files", Json::array({CommitHarness::file("x.yaml", "x")})}});
      EXPECT_EQ(refused.code(), "GIT_BAD_ANSWER") << url << refused.body;
    }
    EXPECT_EQ(w.git.head("shop"), tip);
    EXPECT_THAT(w.harness.base.daemon->admin("/metrics").body,
                HasSubstr("gitops_app_proxy_git_clones 0"));
  });
}

// The gate takes bodies up to 1 MiB, and so commits; the answer to a larger one says so.
TEST(AppProxyCommit, ALargerCommitIsRefusedWithItsLimit) {
  in_commit_harness([](CommitHarness& w) -> Task<> {
    const auto tip = w.git.head("shop");
    const auto fits = co_await w.commit(
        kAnn,
        {{"files", Json::array({CommitHarness::file("a.txt", std::string(900UL * 1024, 'a'))})}});
    EXPECT_EQ(fits.code(), "") << fits.body;
    const auto after = w.git.head("shop");
    EXPECT_NE(after, tip);
    const auto refused = co_await w.commit(
        kAnn,
        {{"files", Json::array({CommitHarness::file("a.txt", std::string(1100UL * 1024, 'b'))})}});
    EXPECT_EQ(refused.status, 413);
    EXPECT_THAT(refused.body, HasSubstr("1 MiB"));
    EXPECT_EQ(w.git.head("shop"), after);
  });
}

}  // namespace
}  // namespace gitops::test
