#include "app-proxy/git/clone_cache.hpp"

#include <algorithm>
#include <atomic>

#include <boost/asio/ip/tcp.hpp>
#include <gtest/gtest.h>

#include "app-proxy/git/git_bed.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {
namespace {

using namespace std::chrono_literals;
using test::GitBed;
using test::GitServer;
using test::run_coro;

namespace fs = std::filesystem;

std::vector<fs::path> loose_objects(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto parent = entry.path().parent_path();
    if (entry.is_regular_file() && parent.filename().string().size() == 2 &&
        parent.parent_path().filename() == "objects") {
      found.push_back(entry.path());
    }
  }
  return found;
}

TEST(CloneCache, ThisBootHasAnId) {
  EXPECT_EQ(CloneCache::this_boot().size(), 36U);
  EXPECT_EQ(CloneCache::this_boot(), CloneCache::this_boot());
}

// A loss of power: the objects of the last commit are cut short. libgit2 would never return from
// reading one of them.
TEST(CloneCache, ClonesOfAnotherBootAreRecreated) {
  GitServer server;
  server.create_repository("work");
  server.commit("work", {{"README.md", "hello\n"}}, "first");
  const test::TempDir folder("gitops-clones");
  const auto commit_as = [&](const std::string& boot, const std::string& path,
                             const std::string& clones_made) {
    run_coro(
        [&]() -> Task<> {
          GitBed bed(co_await asio::this_coro::executor,
                     {.clones = {.folder = folder.path(), .boot_id = boot}});
          bed.credential = {.username = server.username(), .password = Secret(server.password())};
          const auto done = co_await bed.committer.commit(
              bed.request(server.url("work"), path, "1\n"), deadline_after(20s));
          CO_ASSERT_OK(done);
          EXPECT_EQ(done->sha, server.head("work"));
          EXPECT_TRUE(bed.metrics.expose().contains("result=\"ok\"} " + clones_made));
          co_await bed.stop();
        },
        30s);
  };
  commit_as("boot-1", "a", "1");
  commit_as("boot-1", "b", "0");  // the same boot: the clone is used again
  const auto objects = loose_objects(folder.path());
  ASSERT_FALSE(objects.empty());
  for (const auto& file : objects) {
    fs::permissions(file, fs::perms::owner_all);
    fs::resize_file(file, 3);
  }
  commit_as("boot-2", "c", "1");
  EXPECT_EQ(server.git("work", {"rev-list", "--count", "main"}).out, "4\n");
  commit_as("boot-2", "d", "0");
  commit_as("", "e", "1");  // an unknown boot
}

// A start with many clones waits for none of them to be measured.
TEST(CloneCache, OldClonesAreMeasuredOnThePoolAndThenTheQuotaHolds) {
  const test::TempDir folder("gitops-clones");
  constexpr std::size_t kClones = 200;
  constexpr std::size_t kBytes = 8'192;
  const auto now = fs::file_time_type::clock::now();
  for (std::size_t i = 0; i < kClones; ++i) {
    const auto clone = folder.path() / ("clone-" + std::to_string(i) + ".git");
    fs::create_directories(clone / "refs");
    test::write_file(clone / "pack", std::string(kBytes, 'x'));
    fs::last_write_time(clone / "refs", now - std::chrono::minutes(i));  // 0 is the newest
  }
  test::write_file(folder.path() / "boot-id", "boot-1");
  fs::create_directories(folder.path() / "unfinished-1");
  run_coro(
      [&]() -> Task<> {
        Metrics metrics;
        WorkerPool pool({.name = "git", .threads = 1}, metrics);
        // The only thread of the pool is busy while the cache starts.
        std::atomic<bool> busy = true;
        CO_ASSERT_OK(
            pool.submit(std::stop_source(), [&](const std::stop_token&) { busy.wait(true); }));
        CloneCache clones(co_await asio::this_coro::executor, pool, pool, metrics,
                          {.folder = folder.path(), .quota = 150 * kBytes, .boot_id = "boot-1"});
        EXPECT_EQ(clones.bytes(), 0U);
        EXPECT_TRUE(metrics.expose().contains("gitops_app_proxy_git_clones 200"));
        EXPECT_TRUE(fs::exists(folder.path() / "unfinished-1"));
        busy = false;
        busy.notify_all();
        EXPECT_TRUE(co_await test::eventually(
            [&] { return metrics.expose().contains("gitops_app_proxy_git_clones 150"); },
            "150 clones"));
        EXPECT_EQ(clones.bytes(), 150 * kBytes);
        co_await clones.stop();
        pool.stop(10s);
      },
      30s);
  EXPECT_FALSE(fs::exists(folder.path() / "unfinished-1"));
  EXPECT_TRUE(fs::exists(folder.path() / "clone-149.git"));
  EXPECT_FALSE(fs::exists(folder.path() / "clone-150.git"));
}

std::size_t clones_made(const GitBed& bed) {
  std::size_t made = 0;
  for (const auto& entry : fs::directory_iterator(bed.folder.path())) {
    if (entry.path().extension() == ".git") ++made;
  }
  return made;
}

// Repositories become known: their clones are made one after another, and a commit finds its own.
TEST(CloneCache, AFirstCommitAfterThePreparationDoesNotClone) {
  constexpr std::size_t kRepositories = 4;
  GitServer server;
  const auto name = [](std::size_t i) { return "work-" + std::to_string(i); };
  for (std::size_t i = 0; i < kRepositories; ++i) {
    server.create_repository(name(i));
    server.commit(name(i), {{"README.md", "hello\n"}}, "first");
  }
  run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        bed.credential = {.username = server.username(), .password = Secret(server.password())};
        for (int again = 0; again < 2; ++again) {
          for (std::size_t i = 0; i < kRepositories; ++i) {
            const auto request = bed.request(server.url(name(i)), "a", "1\n");
            bed.committer.prepare(request.repository, request.credential);
          }
        }
        EXPECT_EQ(bed.clones.to_prepare(), kRepositories);
        while (clones_made(bed) < kRepositories || !bed.clones.in_progress().empty()) {
          EXPECT_LE(bed.clones.in_progress().size(), 1U);
          co_await sleep_for(1ms);
        }
        EXPECT_EQ(bed.clones.to_prepare(), 0U);
        const auto made = "clones_made_total{result=\"ok\"} " + std::to_string(kRepositories);
        EXPECT_TRUE(bed.metrics.expose().contains(made)) << bed.metrics.expose();
        for (std::size_t i = 0; i < kRepositories; ++i) {
          const auto done = co_await bed.committer.commit(
              bed.request(server.url(name(i)), "a", "1\n"), deadline_after(20s));
          CO_ASSERT_OK(done);
        }
        EXPECT_TRUE(bed.metrics.expose().contains(made)) << bed.metrics.expose();
        co_await bed.stop();
      },
      60s);
}

// A preparation never competes with a user, is told in the log while it lasts, and ends at once.
TEST(CloneCache, APreparationWaitsForUsersAndEndsWithTheProcess) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        // Connections are accepted, and nothing is said.
        const asio::ip::tcp::acceptor silent(executor, {asio::ip::address_v4::loopback(), 0});
        const auto url =
            "http://127.0.0.1:" + std::to_string(silent.local_endpoint().port()) + "/o/";
        test::LogCapture logs;
        CloneCache::Options options;
        options.stall = 500ms;
        options.report_period = 20ms;
        GitBed bed(executor, {.clones = options});
        TaskGroup users(executor);
        // The user leaves before the clone stalls, and so does not begin it again.
        users.spawn("user", [&]() -> Task<> {
          const auto done = co_await bed.committer.commit(bed.request(url + "user.git", "a", "1\n"),
                                                          deadline_after(200ms));
          EXPECT_FALSE(done);
        });
        EXPECT_TRUE(co_await test::eventually([&] { return !bed.clones.in_progress().empty(); },
                                              "a clone in progress"));
        const auto request = bed.request(url + "ahead.git", "a", "1\n");
        bed.committer.prepare(request.repository, request.credential);
        // The user's clone stalls and fails; only then the other one is begun.
        while (!logs.text().contains("still cloning")) {
          const auto making = bed.clones.in_progress();
          EXPECT_LE(making.size(), 1U);
          if (!making.empty()) {
            const bool is_users = making.front().url.contains("user.git");
            EXPECT_EQ(bed.clones.to_prepare(), is_users ? 1U : 0U);
          }
          co_await sleep_for(1ms);
        }
        users.cancel();
        co_await users.join();
        const auto before = Clock::now();
        co_await bed.stop();
        EXPECT_LT(Clock::now() - before, 5s);
      },
      60s);
}

// Two users whose tokens were revoked come before one whose token is good.
TEST(CloneCache, ARefusalOfOthersCredentialsIsNotThatOfACaller) {
  GitServer server;
  server.create_repository("work");
  server.commit("work", {{"README.md", "hello\n"}}, "first");
  run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor, {});
        const auto url = bed.request(server.url("work"), "a", "1\n").repository;
        const std::vector<std::string> passwords{"canary-1", "canary-2", server.password()};
        std::vector<bool> got(passwords.size());
        TaskGroup users(co_await asio::this_coro::executor);
        for (std::size_t i = 0; i < passwords.size(); ++i) {
          users.spawn("user", [&, i]() -> Task<> {
            GitCredential credential{.username = server.username(),
                                     .password = Secret(passwords[i])};
            const auto clone = co_await bed.clones.get(url, std::move(credential), bed.client,
                                                       deadline_after(20s));
            got[i] = clone.has_value();
          });
        }
        co_await users.join();
        EXPECT_EQ(got, (std::vector<bool>{false, false, true}));
        co_await bed.stop();
      },
      30s);
}

// The clones need more than the quota: the least recently used goes, and is made again on use.
TEST(CloneCache, TheLeastRecentlyUsedCloneGoesFirst) {
  GitServer server;
  const std::string content = [] {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += hex_encode(bytes_of(sha256(std::to_string(i))));
    return text;  // 625 KiB, half of it when compressed
  }();
  for (const char* name : {"one", "two", "three"}) {
    server.create_repository(name);
    server.commit(name, {{"large", content}}, "first");
  }
  run_coro(
      [&]() -> Task<> {
        GitBed bed(co_await asio::this_coro::executor,
                   {.clones = {.folder = {}, .quota = std::uintmax_t{1'000} * 1024}});
        bed.credential = {.username = server.username(), .password = Secret(server.password())};
        const auto commit = [&](const char* name, const char* path) -> Task<> {
          CO_ASSERT_OK(co_await bed.committer.commit(bed.request(server.url(name), path, "1\n"),
                                                     deadline_after(20s)));
        };
        const auto has = [&](const std::string& name) {
          return std::ranges::any_of(fs::directory_iterator(bed.folder.path()), [&](const auto& e) {
            return e.path().filename().string().contains("-" + name + "-");
          });
        };
        co_await commit("one", "a");
        co_await commit("two", "a");
        co_await commit("one", "b");
        EXPECT_TRUE(has("one") && has("two"));
        co_await commit("three", "a");  // "two" was used before "one"
        EXPECT_TRUE(co_await test::eventually([&] { return !has("two"); },
                                              "the removal of the clone used least recently"));
        EXPECT_TRUE(has("one") && has("three"));
        EXPECT_LE(bed.clones.bytes(), std::uintmax_t{1'000} * 1024);
        EXPECT_TRUE(bed.metrics.expose().contains("gitops_app_proxy_git_clones_evicted_total 1"));
        co_await commit("two", "b");
        EXPECT_EQ(server.git("two", {"rev-list", "--count", "main"}).out, "3\n");
        co_await bed.stop();
      },
      40s);
}

// Loose objects without end would make every look-up slower.
TEST(CloneCache, ManyLooseObjectsAreOnePackLater) {
  const test::TempDir folder;
  auto repository = BareRepository::create(folder / "r.git").value();
  std::string head;
  constexpr int kFiles = 900;
  for (int round = 0; round < 5; ++round) {
    CommitSpec spec{.message = "round", .author = {.name = "Ann", .email = "ann@example.test"}};
    for (int i = 0; i < kFiles; ++i) {
      spec.changes.push_back({.path = "d" + std::to_string(i % 30) + "/" + std::to_string(i),
                              .content = std::to_string(round) + "/" + std::to_string(i)});
    }
    auto made = repository.commit(head, spec);
    ASSERT_TRUE(made) << made.error().message;
    head = *made;
    if (round < 4) {
      ASSERT_TRUE(repository.compact());
      EXPECT_EQ(loose_objects(folder.path()).empty(), false) << "too early";
    }
  }
  EXPECT_GT(loose_objects(folder.path()).size(), 4'096U);
  ASSERT_TRUE(repository.remember("main", head));
  ASSERT_TRUE(repository.compact());
  EXPECT_TRUE(loose_objects(folder.path()).empty());
  std::size_t packs = 0;
  for (const auto& entry : fs::directory_iterator(folder / "r.git/objects/pack")) {
    packs += entry.path().extension() == ".pack" ? 1 : 0;
  }
  EXPECT_EQ(packs, 1U);
  // Also for an object that is opened now, and for Git.
  auto again = BareRepository::open(folder / "r.git").value();
  EXPECT_EQ(again.read_file(head, "d7/7", 100).value(), "4/7");
  EXPECT_EQ(repository.read_file(head, "d7/7", 100).value(), "4/7");
  test::run_or_throw({"git", "--git-dir", (folder / "r.git").string(), "fsck", "--no-progress"},
                     test::isolated_git_environment(folder.path()));
}

}  // namespace
}  // namespace gitops::app_proxy
