#include "app-proxy/git/committer.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "app-proxy/git/git_bed.hpp"
#include "common/core/encoding.hpp"
#include "common/http/server.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/tcp_relay.hpp"
#include "support/tiny_disk.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::GitBed;
using test::GitServer;
using test::run_coro;

GitCredential user_of(const GitServer& server) {
  return {.username = server.username(), .password = Secret(server.password())};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Does not compress.
std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  std::mt19937 random(42);
  std::ranges::generate(text, [&] { return static_cast<char>(random()); });
  return text;
}

// A hook of the server for the repository "work".
void set_hook(const GitServer& server, const std::string& name, const std::string& script) {
  const auto hook = server.folder() / "repos/work.git/hooks" / name;
  test::write_file(hook, "#!/bin/sh\ncat >/dev/null\n" + script);
  std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
}

// How often each message stands in the branch; and there is nothing wrong with its objects.
std::map<std::string, int> subjects(const GitServer& server) {
  std::map<std::string, int> found;
  for (const auto& line : lines_of(server.git("work", {"log", "--format=%s", "main"}).out)) {
    ++found[line];
  }
  EXPECT_EQ(server.git("work", {"fsck", "--no-progress", "--no-dangling"}).exit_code, 0);
  return found;
}

// Runs `body` with a server, a repository "work" that has one commit, and a committer.
void with_bed(const std::function<Task<>(GitServer&, GitBed&, std::string url)>& body,
              GitBed::Options options = {}, Clock::duration limit = 60s) {
  GitServer server;
  server.create_repository("work");
  server.commit("work", {{"README.md", "hello\n"}, {"apps/a.yaml", "a: 1\n"}}, "first");
  run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, options);
        bed.credential = user_of(server);
        co_await body(server, bed, server.url("work"));
        co_await bed.stop();
      },
      limit);
}

TEST(Committer, CommitsAndReportsThePushedId) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    auto request = bed.request(url, "apps/b.yaml", "b: 2\n", "Ann");
    request.description = "because";
    const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("work"));
    EXPECT_EQ(done->branch, "main");
    EXPECT_EQ(server.file_at_head("work", "apps/b.yaml"), "b: 2\n");
    EXPECT_EQ(server.file_at_head("work", "README.md"), "hello\n");
    EXPECT_EQ(server.git("work", {"log", "-1", "--format=%an|%ae|%cn|%B", "main"}).out,
              "Ann|Ann@example.test|Ann|change apps/b.yaml\n\nbecause\n\n");
  });
}

TEST(Committer, UsesAPrivateCertificateAuthority) {
  test::CertificateAuthority authority;
  const auto certificate =
      authority.issue({.common_name = "git", .organization = {}, .alt_names = {"localhost"}});
  GitServer server(&certificate);
  server.create_repository("work");
  server.commit("work", {{"a", "1\n"}}, "first");
  for (const bool trusted : {true, false}) {
    run_coro(
        [&]() -> Task<> {
          GitBed bed(co_await asio::this_coro::executor,
                     {.ca_file = trusted ? authority.ca_file().string() : ""});
          bed.credential = user_of(server);
          const auto before = server.head("work");
          const auto done = co_await bed.committer.commit(
              bed.request(server.tls_url("work"), "b", "2\n"), deadline_after(trusted ? 20s : 5s));
          if (trusted) {
            CO_ASSERT_OK(done);
            EXPECT_EQ(done->sha, server.head("work"));
          } else {
            CO_ASSERT_TRUE(!done);
            EXPECT_EQ(done.error().code, ErrorCode::tls) << done.error().message;
            EXPECT_EQ(server.head("work"), before);
          }
          co_await bed.stop();
        },
        30s);
  }
}

TEST(Committer, AnEmptyRepositoryGetsItsFirstCommit) {
  with_bed([](GitServer& server, GitBed& bed, std::string) -> Task<> {
    const auto url = server.create_repository("empty");
    auto request = bed.request(url, "a/b/c.yaml", "c\n");
    request.branch.clear();
    const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("empty"));
    EXPECT_EQ(done->branch, "main");
  });
}

// The list of an empty repository names no branch; Git tells it by version 2 of its protocol, or
// the host by its interface.
TEST(Committer, TheFirstCommitGoesToTheDefaultBranchOfTheHost) {
  with_bed([](GitServer& server, GitBed& bed, std::string) -> Task<> {
    for (const bool git_tells : {true, false}) {
      const std::string name = git_tells ? "told" : "silent";
      const auto url = server.create_repository(name);
      EXPECT_TRUE(server.git(name, {"symbolic-ref", "HEAD", "refs/heads/trunk"}).ok());
      if (!git_tells) EXPECT_TRUE(server.git(name, {"config", "lsrefs.unborn", "ignore"}).ok());
      auto request = bed.request(url, "a.yaml", "a\n");
      request.branch = "HEAD";
      request.default_branch = git_tells ? "" : "trunk";
      const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
      CO_ASSERT_OK(done);
      EXPECT_EQ(done->branch, "trunk") << name;
      EXPECT_EQ(server.git(name, {"rev-parse", "HEAD"}).out, done->sha + "\n") << name;
    }
  });
}

TEST(Committer, ADefaultBranchThatNobodyTellsIsMainUnlessItIsNeeded) {
  with_bed([](GitServer& server, GitBed& bed, std::string) -> Task<> {
    const auto url = server.create_repository("silent");
    EXPECT_TRUE(server.git("silent", {"config", "lsrefs.unborn", "ignore"}).ok());
    auto request = bed.request(url, "a.yaml", "a\n");
    request.branch = "HEAD";
    request.default_branch.clear();
    request.needs_default_branch = true;
    const auto refused = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().subcode, kDefaultBranchUnknown) << refused.error().message;
    request.needs_default_branch = false;
    const auto done = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->branch, "main");
    // It has a branch now.
    request.changes.front().content = "b\n";
    request.needs_default_branch = true;
    const auto next = co_await bed.committer.commit(std::move(request), deadline_after(20s));
    CO_ASSERT_OK(next);
    EXPECT_EQ(next->branch, "main");
  });
}

// Its HEAD names a branch that is not there: no other one is made in its place.
TEST(Committer, ADefaultBranchThatIsNotThereIsSaid) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    EXPECT_TRUE(server.git("work", {"symbolic-ref", "HEAD", "refs/heads/trunk"}).ok());
    const auto head = server.head("work");
    auto request = bed.request(url, "x", "1\n");
    request.branch.clear();
    const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().code, ErrorCode::not_found) << done.error().message;
    EXPECT_TRUE(done.error().message.contains("has no branch trunk")) << done.error().message;
    EXPECT_EQ(server.head("work"), head);
  });
}

TEST(Committer, ARepositoryWithSha256SaysThatItIsNotSupported) {
  with_bed([](GitServer& server, GitBed& bed, std::string) -> Task<> {
    const auto bare = (server.folder() / "repos/new.git").string();
    test::run_or_throw({"git", "init", "--quiet", "--bare", "--object-format=sha256", bare});
    for (const bool has_commit : {false, true}) {
      if (has_commit) {
        test::run_or_throw({"sh", "-c",
                            "cd " + bare +
                                " && T=$(git mktree </dev/null) && C=$(git -c user.name=x -c "
                                "user.email=x@x commit-tree -m x $T) && git update-ref "
                                "refs/heads/main $C"});
      }
      const auto done = co_await bed.committer.commit(bed.request(server.url("new"), "a", "1\n"),
                                                      deadline_after(20s));
      CO_ASSERT_TRUE(!done);
      EXPECT_EQ(done.error().code, ErrorCode::unsupported) << done.error().message;
      EXPECT_TRUE(done.error().message.contains("SHA-256")) << done.error().message;
    }
  });
}

// libgit2 takes no name that consists of what it drops at the ends of names.
TEST(Committer, AnyNameOfAUserCanCommit) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    int number = 0;
    for (const auto& [name, author] : {std::pair{".", "dana"},
                                       {"", "dana"},
                                       {" ,;:\"\\' <>\n", "dana"},
                                       {"Dana Jr.", "Dana Jr"},
                                       {"<Dana>", "Dana"}}) {
      auto request = bed.request(url, "f" + std::to_string(++number), "1\n");
      request.author = {.name = name, .email = "dana@example.test"};
      CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
      EXPECT_EQ(server.git("work", {"log", "-1", "--format=%an|%ae", "main"}).out,
                std::string(author) + "|dana@example.test\n");
    }
    auto request = bed.request(url, "f", "1\n");
    request.author = {.name = ".", .email = "..."};
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
    EXPECT_EQ(server.git("work", {"log", "-1", "--format=%an|%ae", "main"}).out,
              "GitOps Runtime|noreply@invalid\n");
  });
}

// A text in the place of a pointer would be lost to Git LFS, and so would one where it expects a
// pointer.
TEST(Committer, FilesOfGitLfsAreRefused) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const std::string pointer =
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
        "\nsize 12345\n";
    server.commit("work",
                  {{".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"},
                   {"maps/.gitattributes", "*.map filter=lfs -text\n"},
                   {"model.bin", pointer},
                   {"loose.txt", pointer}},
                  "lfs");
    const auto head = server.head("work");
    for (const char* path : {"model.bin", "loose.txt", "new.bin", "deep/new.bin", "maps/new.map"}) {
      auto request = bed.request(url, path, "text\n");
      request.force = true;
      const auto done = co_await bed.committer.commit(request, deadline_after(20s));
      CO_ASSERT_TRUE(!done) << path;
      EXPECT_EQ(done.error().code, ErrorCode::unsupported) << done.error().message;
      EXPECT_TRUE(done.error().message.contains(path)) << done.error().message;
      EXPECT_TRUE(done.error().message.contains("Git LFS")) << done.error().message;
    }
    EXPECT_EQ(server.head("work"), head);
    // Pointers, other files, and removals.
    for (const char* path : {"model.bin", "new.bin", "new.map"}) {
      CO_ASSERT_OK(co_await bed.committer.commit(
          bed.request(url, path, path == std::string("new.map") ? "text\n" : pointer + "x y\n"),
          deadline_after(20s)));
    }
    auto request = bed.request(url, "model.bin", "");
    request.changes[0].kind = FileChange::Kind::remove;
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
  });
}

TEST(Committer, TheDefaultBranchAndANewBranch) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    auto request = bed.request(url, "x", "1\n");
    request.branch = "HEAD";
    auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->branch, "main");
    request = bed.request(url, "x", "2\n");
    request.branch = "promote/1";
    done = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().code, ErrorCode::not_found);
    request.new_branch_from = "main";
    done = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(server.git("work", {"rev-parse", "promote/1~1"}).out, server.head("work") + "\n");
  });
}

TEST(Committer, RevisionsForceEmptyAndRemovals) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const auto deadline = deadline_after(40s);
    auto blob = server.git("work", {"rev-parse", "main:apps/a.yaml"}).out.substr(0, 40);
    const auto seen_commit = server.head("work");
    auto request = bed.request(url, "apps/a.yaml", "a: 2\n");
    request.changes[0].revision = blob;
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline));
    // The same once more: nothing differs.
    request.changes[0].revision.clear();
    auto done = co_await bed.committer.commit(request, deadline);
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().subcode, kNothingToCommit);
    request.allow_empty = true;
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline));
    // A stale revision, of either kind.
    for (const auto& stale : {blob, seen_commit, std::string(40, '7')}) {
      request.changes[0].content = "a: 3\n";
      request.changes[0].revision = stale;
      request.force = false;
      const auto head = server.head("work");
      done = co_await bed.committer.commit(request, deadline);
      CO_ASSERT_TRUE(!done);
      EXPECT_EQ(done.error().code, ErrorCode::conflict) << done.error().message;
      EXPECT_EQ(server.head("work"), head);
    }
    request.changes[0].revision = server.head("work");  // a commit in which it is the same
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline));
    request.changes[0].content = "a: 4\n";
    request.changes[0].revision = blob;
    request.force = true;
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline));
    EXPECT_EQ(server.file_at_head("work", "apps/a.yaml"), "a: 4\n");

    request = bed.request(url, "apps/none", "");
    request.changes[0].kind = FileChange::Kind::remove;
    done = co_await bed.committer.commit(request, deadline);
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().code, ErrorCode::not_found);
    request.changes[0] = {.path = "apps", .kind = FileChange::Kind::remove_folder};
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline));
    EXPECT_EQ(server.git("work", {"ls-tree", "--name-only", "-r", "main"}).out, "README.md\n");
  });
}

TEST(Committer, AnEditMayRemoveItsFile) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    auto request = bed.request(url, "apps/a.yaml", "");
    request.changes[0].kind = FileChange::Kind::edit_or_remove;
    request.changes[0].edit = [](std::optional<std::string_view> content) -> Result<std::string> {
      return content == "a: 1\n" ? std::string() : std::string(content.value_or(""));
    };
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
    EXPECT_EQ(server.git("work", {"ls-tree", "--name-only", "-r", "main"}).out, "README.md\n");
    const auto again = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_TRUE(!again);
    EXPECT_EQ(again.error().subcode, kNothingToCommit) << again.error().message;
    request.changes[0].path = "README.md";
    const auto kept = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_TRUE(!kept);
    EXPECT_EQ(kept.error().subcode, kNothingToCommit) << kept.error().message;
  });
}

// AC-42: concurrent commits while somebody else pushes.
TEST(Committer, AC42_AHundredCommitsOfFiveUsersBesideASecondWriter) {
  GitServer server;
  server.create_repository("work");
  server.commit("work", {{"README.md", "hello\n"}}, "first");
  const auto token_of = [](const std::string& user) { return "canary-" + user; };
  for (int user = 0; user < 5; ++user) {
    const auto name = "user" + std::to_string(user);
    server.add_user(name, token_of(name));
  }
  // The server's journal: who pushed which commits.
  const auto hook = server.folder() / "repos/work.git/hooks/post-receive";
  test::write_file(hook,
                   "#!/bin/sh\nwhile read old new ref; do\n"
                   "git log --format=\"$REMOTE_USER %an\" $old..$new >>pushed\ndone\n");
  std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
  std::atomic<bool> stop = false;
  std::atomic<int> others = 0;
  std::thread writer([&] {
    while (!stop) {
      try {
        server.commit("work", {{"other/" + std::to_string(others.load()), "x\n"}}, "other",
                      {.name = "Other", .email = "other@example.test"});
        ++others;
      } catch (const std::exception&) {
        // Its own push came second; git does not try again.
      }
    }
  });
  std::set<std::string> ids;
  run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        TaskGroup users(co_await asio::this_coro::executor);
        int failed = 0;
        for (int i = 0; i < 100; ++i) {
          users.spawn("user", [&, i]() -> Task<> {
            // So that the second writer is not too late for all of them.
            EXPECT_TRUE(co_await test::eventually([&] { return i < 50 || others > 0; },
                                                  "a commit of the second writer"));
            const std::string author = "user" + std::to_string(i % 5);
            auto request =
                bed.request(server.url("work"), "files/" + std::to_string(i), author, author);
            request.credential = {.username = author, .password = Secret(token_of(author))};
            const auto done =
                co_await bed.committer.commit(std::move(request), deadline_after(60s));
            if (done) {
              ids.insert(done->sha);
            } else {
              ++failed;
              ADD_FAILURE() << done.error().message;
            }
          });
        }
        co_await users.join();
        EXPECT_EQ(failed, 0);
        stop = true;
        co_await bed.stop();
      },
      90s);
  stop = true;
  writer.join();
  EXPECT_EQ(ids.size(), 100U);
  // All there, each once and with its author, in a line.
  const auto history = lines_of(server.git("work", {"log", "--format=%H %P|%an|%s", "main"}).out);
  EXPECT_EQ(history.size(), 1U + 100U + static_cast<std::size_t>(others.load()));
  std::map<std::string, int> by_author;
  std::set<std::string> pushed;
  for (const auto& line : history) {
    const auto first_bar = line.find('|');
    const auto second_bar = line.find('|', first_bar + 1);
    ++by_author[line.substr(first_bar + 1, second_bar - first_bar - 1)];
    pushed.insert(line.substr(0, 40));
    EXPECT_LE(first_bar, 81U) << "a merge: " << line;
  }
  for (int user = 0; user < 5; ++user) EXPECT_EQ(by_author["user" + std::to_string(user)], 20);
  for (const auto& id : ids) EXPECT_TRUE(pushed.contains(id)) << id;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(server.file_at_head("work", "files/" + std::to_string(i)),
              "user" + std::to_string(i % 5));
  }
  EXPECT_GT(others, 0);
  // Nobody's commit went through another's credential.
  // The server answers a push before it runs the hook.
  const auto journal = server.folder() / "repos/work.git/pushed";
  const auto pushes = 100U + static_cast<std::size_t>(others.load());
  const auto limit = deadline_after(30s);
  while (lines_of(test::read_file(journal)).size() < pushes && Clock::now() < limit) {
    std::this_thread::sleep_for(10ms);
  }
  std::map<std::string, int> by_pusher;
  for (const auto& pushed_by : lines_of(test::read_file(journal))) {
    const auto space = pushed_by.find(' ');
    const auto author = pushed_by.substr(space + 1);
    EXPECT_EQ(pushed_by.substr(0, space), author == "Other" ? server.username() : author);
    ++by_pusher[author];
  }
  for (int user = 0; user < 5; ++user) EXPECT_EQ(by_pusher["user" + std::to_string(user)], 20);
  EXPECT_EQ(server.git("work", {"fsck", "--no-progress", "--no-dangling"}).exit_code, 0);
}

// AC-39: what must not be written, refused before anything is pushed.
TEST(Committer, AC39_SymbolicLinksSubmodulesAndGitFolders) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    // A tree that a work tree would be tricked by.
    const auto blob = server.git("work", {"rev-parse", "main:README.md"}).out.substr(0, 40);
    const auto script = "cd " + (server.folder() / "repos/work.git").string() +
                        " && L=$(printf /etc | git hash-object -w --stdin)"
                        " && T=$(printf '120000 blob %s\\tlink\\n160000 commit "
                        "%s\\tmodule\\n100644 blob %s\\tfile\\n' $L " +
                        server.head("work") + " " + blob +
                        " | git mktree --missing)"
                        " && C=$(git -c user.name=x -c user.email=x@x commit-tree -m x $T) && git "
                        "update-ref refs/heads/main $C";
    test::run_or_throw({"sh", "-c", script});
    const auto head = server.head("work");
    for (const char* path :
         {"link", "link/passwd", "module/x", "module", "file/x", "../x", "a/../../x", "/etc/passwd",
          ".git/config", "a/.GIT/hooks/x", "git~1/config", ".gitmodules", "a//b", "a\nb"}) {
      const auto done =
          co_await bed.committer.commit(bed.request(url, path, "x\n"), deadline_after(20s));
      CO_ASSERT_TRUE(!done) << path;
      EXPECT_EQ(done.error().code, ErrorCode::invalid_argument) << done.error().message;
    }
    for (const char* branch :
         {"../main", "a..b", "-x", "refs/tags/v1", "a b", "HEAD~1", "x.lock"}) {
      auto request = bed.request(url, "ok", "x\n");
      request.branch = branch;
      const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
      CO_ASSERT_TRUE(!done) << branch;
      EXPECT_EQ(done.error().code, ErrorCode::invalid_argument) << done.error().message;
    }
    EXPECT_EQ(server.head("work"), head);
  });
}

// AC-42: a token appears nowhere but in its header.
TEST(Committer, AC42_AWrongTokenIsNamedInNoOutput) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    test::LogCapture logs;
    bed.credential.password = Secret("canary-7f3a9");
    const auto head = server.head("work");
    const auto done =
        co_await bed.committer.commit(bed.request(url, "x", "1\n"), deadline_after(20s));
    CO_ASSERT_TRUE(!done);
    EXPECT_EQ(done.error().code, ErrorCode::unauthenticated);
    EXPECT_FALSE(done.error().message.contains("canary"));
    EXPECT_FALSE(logs.text().contains("canary"));
    EXPECT_EQ(server.head("work"), head);
    for (const auto& file : std::filesystem::recursive_directory_iterator(bed.folder.path())) {
      if (!file.is_regular_file()) continue;
      EXPECT_FALSE(test::read_file(file.path()).contains("canary")) << file.path();
    }
  });
}

TEST(Committer, ABranchThatTheServerProtectsIsAnErrorWithItsReason) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const auto hook = server.folder() / "repos/work.git/hooks/pre-receive";
    // Refuses each push that holds a commit of Bob.
    test::write_file(
        hook,
        "#!/bin/sh\nread old new ref\n"
        "if git log --format=%an $old..$new | grep -q Bob; then echo no >&2; exit 1; fi\n");
    std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
    TaskGroup users(co_await asio::this_coro::executor);
    std::map<std::string, Result<CommitResult>> results;
    for (const char* author : {"Ann", "Bob", "Cid"}) {
      users.spawn("user", [&, author]() -> Task<> {
        results.emplace(author, co_await bed.committer.commit(
                                    bed.request(url, author, "x\n", author), deadline_after(40s)));
      });
    }
    co_await users.join();
    CO_ASSERT_OK(results.at("Ann"));
    CO_ASSERT_OK(results.at("Cid"));
    CO_ASSERT_TRUE(!results.at("Bob"));
    EXPECT_EQ(results.at("Bob").error().code, ErrorCode::forbidden);
    EXPECT_TRUE(results.at("Bob").error().message.contains("pre-receive hook declined"));
    EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "3\n");
  });
}

// A server that refuses what it cannot unpack has answered: the push is not repeated, its outcome
// is known, and the commit behind it does not wait.
TEST(Committer, ACommitThatTheServerCannotTakeIsRefusedAtOnce) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    EXPECT_TRUE(server.git("work", {"config", "receive.maxInputSize", "3000"}).ok());
    const auto head = server.head("work");
    const auto refused = co_await bed.committer.commit(
        bed.request(url, "large", random_text(20'000)), deadline_after(40s));
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().code, ErrorCode::forbidden) << refused.error().message;
    EXPECT_EQ(refused.error().subcode, kServerLimit);
    EXPECT_TRUE(refused.error().message.contains("unpack ")) << refused.error().message;
    EXPECT_TRUE(refused.error().message.contains("larger than the Git server takes"))
        << refused.error().message;
    EXPECT_TRUE(refused.error().message.contains("exceeds maximum allowed size"))
        << refused.error().message;
    EXPECT_FALSE(refused.error().message.contains("not known"));
    EXPECT_EQ(server.head("work"), head);
    EXPECT_TRUE(bed.metrics.expose().contains("gitops_app_proxy_git_lost_answers_total 0"));
    const auto small =
        co_await bed.committer.commit(bed.request(url, "small", "1\n"), deadline_after(40s));
    CO_ASSERT_OK(small);
    EXPECT_EQ(small->sha, server.head("work"));
  });
}

// Somebody else's push holds the lock of the branch for a moment.
TEST(Committer, ARefusalThatPassesIsTriedAgain) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    set_hook(server, "pre-receive", "echo x >>pushes\n");
    const auto bare = server.folder() / "repos/work.git";
    const auto lock = bare / "refs/heads/main.lock";
    test::write_file(lock, "");
    TaskGroup users(co_await asio::this_coro::executor);
    std::optional<Result<CommitResult>> done;
    users.spawn("user", [&]() -> Task<> {
      done = co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(40s));
    });
    const auto pushes = [&]() -> std::size_t {
      return std::filesystem::exists(bare / "pushes")
                 ? lines_of(test::read_file(bare / "pushes")).size()
                 : 0;
    };
    EXPECT_TRUE(co_await test::eventually([&] { return done || pushes() >= 3; }, "the third push"));
    CO_ASSERT_TRUE(!done) << (*done ? "committed" : done->error().message);
    std::filesystem::remove(lock);
    co_await users.join();
    CO_ASSERT_OK(*done);
    EXPECT_EQ(done->value().sha, server.head("work"));
    EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "2\n");
  });
}

// One that does not pass is given up, and says so.
TEST(Committer, ALockThatStaysIsGivenUpWithItsReason) {
  with_bed(
      [](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        test::write_file(server.folder() / "repos/work.git/refs/heads/main.lock", "");
        const auto head = server.head("work");
        const auto done =
            co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(50s));
        CO_ASSERT_TRUE(!done);
        EXPECT_EQ(done.error().code, ErrorCode::unavailable) << done.error().message;
        EXPECT_TRUE(done.error().message.contains("cannot take the push to main now"))
            << done.error().message;
        EXPECT_TRUE(done.error().message.contains("cannot lock ref")) << done.error().message;
        EXPECT_EQ(server.head("work"), head);
      },
      {.committer = {.longest_pause = 20ms}});
}

// What a hook says is quoted: bounded, without control characters and without the credential.
TEST(Committer, TheWordsOfAHookAreTold) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    set_hook(server, "pre-receive",
             "printf 'Checking: 50%% (1/2)\\rChecking: 100%% (2/2)\\n' >&2\n"
             "echo ======== >&2\n"
             "echo 'Commits need a ticket, as in \033[1mSHOP-1\033[0m.' >&2\n"
             "echo 'You are " +
                 server.password() + ".' >&2\n" + "yes 'And so on.' | head -n 1000 >&2\nexit 1\n");
    const auto done =
        co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s));
    CO_ASSERT_TRUE(!done);
    const auto& message = done.error().message;
    EXPECT_EQ(done.error().code, ErrorCode::forbidden) << message;
    EXPECT_TRUE(message.contains("pre-receive hook declined; it says: \"Commits need a ticket"))
        << message;
    EXPECT_TRUE(message.contains("You are [redacted].")) << message;
    EXPECT_FALSE(message.contains('\x1b')) << message;
    EXPECT_LT(message.size(), 600U);
  });
}

TEST(Committer, AnAcceptedPushWhoseAnswerIsLostCountsOnce) {
  with_bed(
      [](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        // The branch has moved when this hook runs; the answer comes after it.
        const auto hook = server.folder() / "repos/work.git/hooks/post-receive";
        test::write_file(hook,
                         "#!/bin/sh\ncat >/dev/null\n"
                         "if mkdir once 2>/dev/null; then exec sleep 30; fi\n");
        std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
        const auto done =
            co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s));
        CO_ASSERT_OK(done);
        EXPECT_EQ(done->sha, server.head("work"));
        EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "2\n");
        EXPECT_TRUE(bed.metrics.expose().contains("gitops_app_proxy_git_lost_answers_total 1"));
      },
      {.committer = {.stall = 2s}});
}

TEST(Committer, AServerThatDiesHalfwayThroughAPushGetsTheCommitOnce) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    test::TcpRelay relay(executor, "127.0.0.1",
                         parse_repository_url(url, Scheme::http_too)->http.port);
    auto request = bed.request(url, "a", "1\n");
    request.repository.http.port = relay.port();
    CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
    const auto head = server.head("work");
    // Nothing but the push sends half as much.
    const std::string content = random_text(3UL * 1024 * 1024);
    request.changes = {{.path = "b", .content = content}};
    relay.close_after(content.size() / 2);
    TaskGroup users(executor);
    std::optional<Result<CommitResult>> done;
    users.spawn("user", [&]() -> Task<> {
      done = co_await bed.committer.commit(std::move(request), deadline_after(30s));
    });
    // Cut in the middle of the push, and away for at least one more attempt.
    EXPECT_TRUE(co_await test::eventually([&] { return done || relay.refused() > 0; },
                                          "a refused connection"));
    CO_ASSERT_TRUE(!done) << (*done ? "committed" : done->error().message);
    EXPECT_EQ(server.head("work"), head);
    relay.open();
    co_await users.join();
    CO_ASSERT_OK(*done);
    EXPECT_EQ(done->value().sha, server.head("work"));
    EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "3\n");
    EXPECT_EQ(server.file_at_head("work", "b"), content);
    co_await relay.stop();
  });
}

// Commits that wait together are pushed together, and an edit that refuses is its own request's failure.
TEST(Committer, AnEditThatRefusesFailsNobodyElse) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    TaskGroup users(co_await asio::this_coro::executor);
    for (int i = 0; i < 6; ++i) {
      users.spawn("user", [&bed, url, i]() -> Task<> {
        auto request = bed.request(url, "f" + std::to_string(i), "1\n");
        const bool refuses = i % 2 == 1;
        if (refuses) {
          request.changes = {{.path = "f" + std::to_string(i),
                              .kind = FileChange::Kind::edit,
                              .edit = [](std::optional<std::string_view>) -> Result<std::string> {
                                return std::unexpected(Error{.code = ErrorCode::conflict,
                                                             .message = "taken",
                                                             .subcode = "TAKEN"});
                              }}};
        }
        const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
        EXPECT_EQ(done.has_value(), !refuses) << i << (done ? "" : done.error().message);
        if (!done) EXPECT_EQ(done.error().subcode, refuses ? "TAKEN" : "") << i;
      });
    }
    co_await users.join();
    EXPECT_EQ(subjects(server).size(), 4U);
  });
}

// The first request holds the queue until the other two wait in it.
TEST(Committer, ARequestForABranchThatIsThereDoesNotFailOneThatMakesIt) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    TaskGroup users(co_await asio::this_coro::executor);
    const auto send = [&](std::string path, std::string origin) {
      users.spawn("user", [&bed, url, path, origin]() -> Task<> {
        auto request = bed.request(url, path, "1\n");
        request.branch = "promote/2";
        request.new_branch_from = origin;
        const auto done = co_await bed.committer.commit(std::move(request), deadline_after(20s));
        EXPECT_EQ(done.has_value(), !origin.empty()) << path << (done ? "" : done.error().message);
        if (!done) EXPECT_EQ(done.error().code, ErrorCode::not_found) << path;
      });
    };
    send("first", "");
    send("second", "");
    send("makes", "main");
    co_await users.join();
    EXPECT_EQ(server.git("work", {"show", "promote/2:makes"}).out, "1\n");
    EXPECT_EQ(server.git("work", {"rev-list", "--count", "promote/2"}).out, "2\n");
  });
}

// A server before Git's own that writes to the repository "work", and reads from "behind" while
// `is_behind` says so, given the number of lists for a fetch.
struct TwoCopies {
  TwoCopies(const Executor& executor, GitServer& git_server, GitBed& git_bed)
      : bed(git_bed),
        origin(parse_repository_url(git_server.url("work"), Scheme::http_too).value().http),
        server(executor, {}, [this](http::Exchange& exchange) { return pass_on(exchange); }) {
    EXPECT_TRUE(server.listen());
    git_server.create_repository("behind");
    const auto work = (git_server.folder() / "repos/work.git").string();
    EXPECT_TRUE(git_server.git("behind", {"fetch", "--quiet", work, "main:main"}).ok());
    git_server.commit("work", {{"b.yaml", "b: 1\n"}}, "second");
  }
  Task<> pass_on(http::Exchange& exchange) {
    auto body = co_await exchange.read_body(std::size_t{1} << 20);
    http::Request request{.method = exchange.request().method,
                          .target = exchange.request().target,
                          .headers = {},
                          .body = body ? std::move(*body) : std::string()};
    for (const char* name : {"Authorization", "Content-Type", "Accept", "Git-Protocol"}) {
      const auto value = exchange.request().headers.find(name);
      if (value) request.headers.add(name, std::string(*value));
    }
    const bool is_list = request.method == "GET";
    if (request.target.contains("git-upload-pack")) {
      if (is_list) ++lists_for_fetch;
      if (is_behind(lists_for_fetch)) {
        request.target.replace(request.target.find("/work.git"), 9, "/behind.git");
      }
    } else if (is_list) {
      ++lists_for_push;
    }
    auto response = co_await bed.client.send(origin, std::move(request), deadline_after(10s));
    if (!response) co_return;
    const std::string type(response->headers.find("Content-Type").value_or(""));
    (void)co_await exchange.reply({.status = response->status,
                                   .headers = {{"Content-Type", type}},
                                   .body = std::move(response->body)});
  }

  GitBed& bed;
  http::Url origin;
  http::Server server;
  std::function<bool(int)> is_behind = [](int) { return true; };
  int lists_for_fetch = 0;
  int lists_for_push = 0;
};

TEST(Committer, AServerWhoseCopiesDifferIsAskedAgainAfterAPause) {
  with_bed(
      [](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        TwoCopies copies(co_await asio::this_coro::executor, server, bed);
        auto request = bed.request(url, "a", "1\n");
        request.repository.http.port = copies.server.port();
        const auto done = co_await bed.committer.commit(request, deadline_after(20s));
        CO_ASSERT_TRUE(!done);
        EXPECT_EQ(done.error().code, ErrorCode::unavailable) << done.error().message;
        EXPECT_TRUE(done.error().message.contains("another commit of branch main"))
            << done.error().message;
        EXPECT_EQ(copies.lists_for_push, 3);
        co_await copies.server.stop(Clock::now());
      },
      {.committer = {.first_pause = 24h, .longest_pause = 24h}});
}

TEST(Committer, ACopyThatCatchesUpGetsTheCommit) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    TwoCopies copies(co_await asio::this_coro::executor, server, bed);
    copies.is_behind = [](int lists) { return lists < 8; };
    auto request = bed.request(url, "a", "1\n");
    request.repository.http.port = copies.server.port();
    const auto done = co_await bed.committer.commit(request, deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("work"));
    EXPECT_EQ(server.file_at_head("work", "b.yaml"), "b: 1\n");
    co_await copies.server.stop(Clock::now());
  });
}

// [AC-31] More commits than the queue of a branch holds: the answer comes at once, and those that
// wait are pushed.
TEST(Committer, AC31_AFullQueueIsAnAnswer) {
  with_bed(
      [](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        set_hook(server, "pre-receive", "touch started\nwhile [ ! -e go ]; do sleep 0.02; done\n");
        const auto repository = server.folder() / "repos/work.git";
        TaskGroup users(co_await asio::this_coro::executor);
        const auto send = [&](std::string path) {
          users.spawn("user", [&, path]() -> Task<> {
            const auto done =
                co_await bed.committer.commit(bed.request(url, path, "1\n"), deadline_after(40s));
            EXPECT_TRUE(done) << done.error().message;
          });
        };
        send("pushed");
        EXPECT_TRUE(co_await test::eventually(
            [&] { return std::filesystem::exists(repository / "started"); }, "the first push"));
        for (const auto* path : {"a", "b", "c"}) send(path);
        EXPECT_TRUE(co_await test::eventually([&] { return bed.committer.waiting() >= 3; },
                                              "three waiting commits"));
        const auto refused =
            co_await bed.committer.commit(bed.request(url, "d", "1\n"), deadline_after(40s));
        CO_ASSERT_TRUE(!refused);
        EXPECT_EQ(refused.error().code, ErrorCode::too_many_requests) << refused.error().message;
        EXPECT_EQ(bed.committer.waiting(), 3U);
        test::write_file(repository / "go", "");
        co_await users.join();
        EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "5\n");
        EXPECT_FALSE(server.file_at_head("work", "d"));
      },
      {.committer = {.max_waiting_per_branch = 3}});
}

TEST(Committer, ABrokenCloneHeals) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    CO_ASSERT_OK(co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s)));
    // Cuts the packs short and loses the other objects.
    std::vector<std::filesystem::path> objects;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(bed.folder.path())) {
      if (entry.is_regular_file() && entry.path().string().contains("/objects/")) {
        objects.push_back(entry.path());
      }
    }
    CO_ASSERT_TRUE(!objects.empty());
    for (const auto& file : objects) {
      if (file.string().contains("/pack/")) {
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        std::filesystem::resize_file(file, 3);
      } else {
        std::filesystem::remove(file);
      }
    }
    const auto done =
        co_await bed.committer.commit(bed.request(url, "b", "2\n"), deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("work"));
    EXPECT_EQ(server.file_at_head("work", "a"), "1\n");
  });
}

// Servers that take no body without a length, as lighttpd does, answer 411 to anything else.
TEST(Committer, APushAboveAMebibyteHasALength) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const std::string content = random_text(5UL * 1024 * 1024);
    const auto done =
        co_await bed.committer.commit(bed.request(url, "large", content), deadline_after(30s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("work"));
    EXPECT_EQ(server.file_at_head("work", "large"), content);
  });
}

// The disk of the clones is full: the commit fails as a whole, and works once there is room.
TEST(Committer, AFullDiskFailsTheCommitAndPushesNothing) {
  test::TinyDisk disk(512);
  with_bed(
      [&](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        CO_ASSERT_OK(
            co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s)));
        const auto head = server.head("work");
        const auto request = bed.request(url, "b", random_text(900UL * 1024));
        test::LogCapture logs;
        const auto failed = co_await bed.committer.commit(request, deadline_after(20s));
        CO_ASSERT_TRUE(!failed);
        EXPECT_EQ(failed.error().subcode, kDiskFull) << failed.error().message;
        EXPECT_TRUE(logs.text().contains("the disk of the clones is full"));
        EXPECT_EQ(server.head("work"), head);
        disk.make_room();
        const auto done = co_await bed.committer.commit(request, deadline_after(20s));
        CO_ASSERT_OK(done);
        EXPECT_EQ(done->sha, server.head("work"));
        EXPECT_EQ(subjects(server),
                  (std::map<std::string, int>{{"first", 1}, {"change a", 1}, {"change b", 1}}));
      },
      {.clones = {.folder = disk.path() / "clones"}});
}

// The objects fit, what is sent does not.
TEST(Committer, AFullDiskWhileAPushIsPrepared) {
  test::TinyDisk disk(3'200);
  with_bed(
      [&](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        const auto head = server.head("work");
        auto request = bed.request(url, "b", random_text(1'100UL * 1024));
        request.changes.push_back({.path = "c", .content = random_text(1'101UL * 1024)});
        const auto failed = co_await bed.committer.commit(request, deadline_after(20s));
        if (disk.is_file_system()) {
          CO_ASSERT_TRUE(!failed);
          EXPECT_EQ(failed.error().subcode, kDiskFull) << failed.error().message;
          EXPECT_EQ(server.head("work"), head);
          disk.make_room();
          CO_ASSERT_OK(co_await bed.committer.commit(request, deadline_after(20s)));
        }
        EXPECT_EQ(subjects(server), (std::map<std::string, int>{{"first", 1}, {"change b", 1}}));
      },
      {.clones = {.folder = disk.path() / "clones"}});
}

TEST(Committer, AFullDiskCostsOldClonesBeforeItCostsACommit) {
  test::TinyDisk disk(1'400);
  if (!disk.is_file_system()) GTEST_SKIP() << "mounting is not allowed";
  with_bed(
      [&](GitServer& server, GitBed& bed, std::string url) -> Task<> {
        const auto old = server.create_repository("old");
        CO_ASSERT_OK(co_await bed.committer.commit(
            bed.request(old, "large", random_text(700UL * 1024)), deadline_after(20s)));
        const auto done = co_await bed.committer.commit(
            bed.request(url, "b", random_text(800UL * 1024)), deadline_after(20s));
        CO_ASSERT_OK(done);
        EXPECT_EQ(done->sha, server.head("work"));
        EXPECT_TRUE(bed.metrics.expose().contains("gitops_app_proxy_git_clones_evicted_total 1"));
        EXPECT_EQ(subjects(server), (std::map<std::string, int>{{"first", 1}, {"change b", 1}}));
      },
      {.clones = {.folder = disk.path() / "clones"}});
}

// While the server holds a push: its deadline passes, and callers leave. What has begun may arrive
// once, what has not never does, and the branch takes commits again.
TEST(Committer, LeavingInTheMiddleOfACommit) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    set_hook(server, "pre-receive", "touch began\nwhile [ -e hold ]; do sleep 0.02; done\n");
    const auto bare = server.folder() / "repos/work.git";
    test::write_file(bare / "hold", "");
    server.add_user("other", "canary-other");
    TaskGroup users(executor);
    std::optional<Result<CommitResult>> late;
    users.spawn("late", [&]() -> Task<> {
      late = co_await bed.committer.commit(bed.request(url, "late", "x\n"), deadline_after(3s));
    });
    EXPECT_TRUE(co_await test::eventually([&] { return std::filesystem::exists(bare / "began"); },
                                          "the push of the late commit"));
    // Waits behind it, since its credential is another one, and leaves.
    TaskGroup gone(executor);
    gone.spawn("gone", [&]() -> Task<> {
      auto request = bed.request(url, "gone", "x\n");
      request.credential = {.username = "other", .password = Secret("canary-other")};
      (void)co_await bed.committer.commit(std::move(request), deadline_after(20s));
    });
    EXPECT_TRUE(co_await test::eventually([&] { return bed.committer.waiting() > 0; },
                                          "the waiting commit"));
    gone.cancel();
    co_await gone.join();
    co_await users.join();
    CO_ASSERT_TRUE(late && !*late);
    EXPECT_EQ(late->error().code, ErrorCode::timeout);
    EXPECT_TRUE(late->error().message.contains("may still be pushed") ||
                late->error().message.contains("not known whether"))
        << late->error().message;
    // One that leaves while its own push is held.
    std::filesystem::remove(bare / "began");
    TaskGroup leaving(executor);
    leaving.spawn("leaving", [&]() -> Task<> {
      (void)co_await bed.committer.commit(bed.request(url, "leaving", "x\n"), deadline_after(20s));
    });
    EXPECT_TRUE(co_await test::eventually([&] { return std::filesystem::exists(bare / "began"); },
                                          "its push"));
    leaving.cancel();
    co_await leaving.join();
    std::filesystem::remove(bare / "hold");
    const auto done =
        co_await bed.committer.commit(bed.request(url, "next", "x\n"), deadline_after(20s));
    CO_ASSERT_OK(done);
    EXPECT_EQ(done->sha, server.head("work"));
    const auto found = subjects(server);
    EXPECT_EQ(found.at("change next"), 1);
    EXPECT_FALSE(found.contains("change gone"));
    for (const auto& [subject, times] : found) EXPECT_EQ(times, 1) << subject;
    EXPECT_EQ(bed.committer.waiting(), 0U);
  });
}

// First clones that take long, of the same host, delay no commit to a repository that is there.
TEST(Committer, FirstClonesDelayNobodyElse) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    CO_ASSERT_OK(co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s)));
    // The server's reading end waits where the repository is a slow one (git-config(1),
    // uploadpack.packObjectsHook).
    const auto hold = server.folder() / "hold";
    const auto hook = server.folder() / "slow";
    test::write_file(hold, "");
    test::write_file(hook, "#!/bin/sh\ncase \"$PWD\" in *slow*) while [ -e '" + hold.string() +
                               "' ]; do sleep 0.02; done;; esac\nexec \"$@\"\n");
    std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
    test::write_file(server.folder() / ".gitconfig",
                     "[uploadpack]\n\tpackObjectsHook = " + hook.string() + "\n");
    constexpr int kSlow = 8;
    TaskGroup users(executor);
    int arrived = 0;
    for (int i = 0; i < kSlow; ++i) {
      const auto name = "slow" + std::to_string(i);
      const auto slow = server.create_repository(name);
      server.commit(name, {{"README.md", "hello\n"}}, "first");
      bed.clones.prepare(parse_repository_url(slow, Scheme::http_too).value(), bed.credential,
                         bed.client);
      users.spawn("user", [&, slow]() -> Task<> {
        const auto done =
            co_await bed.committer.commit(bed.request(slow, "x", "x\n"), deadline_after(40s));
        if (done) ++arrived;
      });
    }
    EXPECT_TRUE(co_await test::eventually([&] { return bed.clones.in_progress().size() >= kSlow; },
                                          "the slow clones"));
    for (int i = 0; i < 5; ++i) {
      CO_ASSERT_OK(co_await bed.committer.commit(bed.request(url, "b" + std::to_string(i), "1\n"),
                                                 deadline_after(20s)));
    }
    EXPECT_EQ(arrived, 0);
    const auto making = bed.clones.in_progress();
    EXPECT_EQ(making.size(), static_cast<std::size_t>(kSlow));
    EXPECT_TRUE(std::ranges::all_of(
        making, [](const auto& clone) { return clone.url.contains("/git/slow"); }));
    std::filesystem::remove(hold);
    co_await users.join();
    EXPECT_EQ(arrived, kSlow);
    // What was made ahead was not made again by the commit.
    EXPECT_TRUE(bed.metrics.expose().contains("result=\"ok\"} " + std::to_string(kSlow + 1)));
    EXPECT_TRUE(bed.clones.in_progress().empty());
  });
}

// A commit's token is in the header of its requests only: not in the clone's settings, references,
// logs of references, FETCH_HEAD, nor in a name.
TEST(Committer, AC28_AC42_NoCredentialOnTheDisk) {
  with_bed([](GitServer& server, GitBed& bed, std::string url) -> Task<> {
    bed.credential = {.username = "ann", .password = Secret("canary-5c1d")};
    server.add_user("ann", "canary-5c1d");
    test::LogCapture logs;
    CO_ASSERT_OK(co_await bed.committer.commit(bed.request(url, "a", "1\n"), deadline_after(20s)));
    server.commit("work", {{"other", "1\n"}}, "other");  // so that the next one fetches
    CO_ASSERT_OK(co_await bed.committer.commit(bed.request(url, "b", "1\n"), deadline_after(20s)));
    auto wrong = bed.request(url, "c", "1\n");
    wrong.credential.password = Secret("canary-wrong");
    CO_ASSERT_TRUE(!co_await bed.committer.commit(std::move(wrong), deadline_after(20s)));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(bed.folder.path())) {
      EXPECT_FALSE(entry.path().string().contains("canary")) << entry.path();
      if (!entry.is_regular_file()) continue;
      ++files;
      const auto text = test::read_file(entry.path());
      EXPECT_FALSE(text.contains("canary")) << entry.path();
      EXPECT_FALSE(text.contains(base64_encode("ann:canary-5c1d"))) << entry.path();
    }
    EXPECT_GT(files, 5U);
    EXPECT_FALSE(logs.text().contains("canary"));
    EXPECT_FALSE(bed.metrics.expose().contains("canary"));
    for (const char* page : {"/proc/self/cmdline", "/proc/self/environ"}) {
      EXPECT_FALSE(test::read_file(page).contains("canary-5c1d")) << page;
    }
  });
}

}  // namespace
}  // namespace gitops::app_proxy
