// Commits through libgit2 on our HTTP client beside the git command line, on the same server.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

#include "app-proxy/git/git_bed.hpp"
#include "bench/proc.hpp"
#include "common/core/task_group.hpp"

namespace gitops::test {
namespace {

constexpr int kCommits = 30;
constexpr int kQueued = 100;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void row(const char* name, const char* unit, double ours, double peer, double ratio,
         const char* goal, bool holds, const char* note) {
  std::printf(
      R"({"name":"%s","unit":"%s","ours":%.2f,"peer":%.2f,"ratio":%.3f,"goal":"%s","holds":%s,"note":"%s"})"
      "\n",
      name, unit, ours, peer, ratio, goal, holds ? "true" : "false", note);
}

Task<> commit_once(GitBed& bed, const std::string& url, std::string path, std::string text) {
  const auto done = co_await bed.committer.commit(
      bed.request(url, std::move(path), std::move(text)), deadline_after(std::chrono::minutes(1)));
  if (!done) {
    std::fprintf(stderr, "commit: %s\n", done.error().message.c_str());
    std::exit(1);
  }
}

// A repository of 50,000 files of 20 KiB that do not compress, in 500 folders: 1 GB.
void make_large(GitServer& server, const std::string& name) {
  constexpr int kFiles = 50'000;
  constexpr std::size_t kWords = 20UL * 1024 / 8;
  server.create_repository(name);
  const auto stream = server.folder() / "import";
  {
    std::ofstream out(stream, std::ios::binary);
    out << "commit refs/heads/main\ncommitter a <a@example.test> 1700000000 +0000\ndata 5\nlarge\n";
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> words(kWords);
    for (int i = 0; i < kFiles; ++i) {
      std::ranges::generate(words, std::ref(random));  // a copy would repeat itself
      out << "M 100644 inline team-" << i / 1'000 << "/app-" << i / 100 << "/" << i << ".bin\ndata "
          << kWords * 8 << "\n";
      out.write(reinterpret_cast<const char*>(words.data()), kWords * 8);
      out << "\n";
    }
  }
  run_or_throw({"sh", "-c",
                "git -c core.compression=0 --git-dir '" +
                    (server.folder() / "repos" / (name + ".git")).string() +
                    "' fast-import --quiet <'" + stream.string() + "'"},
               isolated_git_environment(server.folder()), {}, std::chrono::minutes(10));
  std::filesystem::remove(stream);
}

// A commit of somebody else, made where the server keeps its repository.
void commit_aside(GitServer& server, const std::string& name, int number) {
  const std::string text = std::to_string(number) + "\n";
  run_or_throw({"git", "--git-dir", (server.folder() / "repos" / (name + ".git")).string(),
                "fast-import", "--quiet"},
               isolated_git_environment(server.folder()),
               "commit refs/heads/main\ncommitter a <a@example.test> 1700000000 +0000\ndata 5\n"
               "aside\nfrom refs/heads/main^0\nM 100644 inline team-7/aside.yaml\ndata " +
                   std::to_string(text.size()) + "\n" + text);
}

Task<> bench_large(GitServer& server) {
  constexpr int kLarge = 60;
  constexpr int kWarm = 10;
  make_large(server, "large");
  GitBed bed(co_await asio::this_coro::executor, {});
  bed.credential = {.username = server.username(), .password = Secret(server.password())};
  const std::string url = server.url("large");
  auto begin = Clock::now();
  const auto first = co_await bed.committer.commit(bed.request(url, "warm", "1"),
                                                   deadline_after(std::chrono::minutes(10)));
  if (!first) {
    std::fprintf(stderr, "first commit: %s\n", first.error().message.c_str());
    std::exit(1);
  }
  std::fprintf(stderr, "first clone and commit: %.0f ms\n", ms_since(begin));
  const auto memory = [] { return bench::memory_of(::getpid(), "VmRSS:"); };
  std::vector<double> alone;
  std::vector<double> after_others;
  double before = 0;
  for (int i = 0; i < kLarge; ++i) {
    if (i == kWarm) before = memory();
    begin = Clock::now();
    co_await commit_once(bed, url, "team-1/app-13/1333.yaml",
                         "replicas: " + std::to_string(i) + "\n");
    alone.push_back(ms_since(begin));
    commit_aside(server, "large", i);
    begin = Clock::now();
    co_await commit_once(bed, url, "team-2/app-23/2333.yaml",
                         "replicas: " + std::to_string(i) + "\n");
    after_others.push_back(ms_since(begin));
  }
  const double grown = memory() - before;
  constexpr double kLimit = 1'000;
  const double slowest = std::max(*std::ranges::max_element(alone.begin() + 1, alone.end()),
                                  *std::ranges::max_element(after_others));
  row("app-proxy-large", "ms", median(alone), kLimit, median(alone) / kLimit, "<= 1.0",
      median(alone) <= kLimit, "one file of 50,000 in 1 GB, warm, median of 60; peer: the limit");
  row("app-proxy-large-fetch", "ms", median(after_others), kLimit, median(after_others) / kLimit,
      "<= 1.0", median(after_others) <= kLimit,
      ("the same after somebody else's push; slowest of all " + std::to_string(slowest) + " ms")
          .c_str());
  row("app-proxy-large-memory", "MB", grown, 16, grown / 16, "<= 1.0", grown <= 16,
      ("growth of RSS over the last 100 of 120 commits, at " + std::to_string(before) +
       " MB; peer: the limit")
          .c_str());
  co_await bed.stop();
}

// The peer: a warm clone that fetches, commits and pushes with the git command line.
class GitClient {
 public:
  GitClient(const GitServer& server, std::string url, const std::string& name)
      : folder_((server.folder() / name).string()),
        env_(isolated_git_environment(server.folder())) {
    for (const char* who : {"AUTHOR", "COMMITTER"}) {
      env_["GIT_" + std::string(who) + "_NAME"] = "Ann";
      env_["GIT_" + std::string(who) + "_EMAIL"] = "ann@example.test";
    }
    url.insert(7, server.username() + ":" + server.password() + "@");
    run_or_throw({"git", "clone", "-q", "--single-branch", url, folder_}, env_);
  }

  // Milliseconds. Without the shell's start: four programs, as a service would run them.
  double commit(const std::string& path, const std::string& text) {
    const auto file = std::filesystem::path(folder_) / path;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
    run_or_throw({"git", "-C", folder_, "add", "-N", path}, env_);
    const auto begin = Clock::now();
    run_or_throw({"git", "-C", folder_, "fetch", "-q", "origin", "main"}, env_);
    run_or_throw({"git", "-C", folder_, "reset", "-q", "--soft", "FETCH_HEAD"}, env_);
    run_or_throw({"git", "-C", folder_, "commit", "-q", "-m", "change", path}, env_);
    run_or_throw({"git", "-C", folder_, "push", "-q", "origin", "HEAD:main"}, env_);
    return ms_since(begin);
  }

 private:
  std::string folder_;
  Environment env_;
};

// The same commit where the server has 10,000 other branches, whose commits are not in the clone.
Task<> bench_branches(GitServer& server) {
  constexpr int kBranches = 10'000;
  const std::string url = server.create_repository("branches");
  server.commit("branches", {{"README.md", "hello\n"}}, "first");
  GitBed bed(co_await asio::this_coro::executor, {});
  bed.credential = {.username = server.username(), .password = Secret(server.password())};
  co_await commit_once(bed, url, "warm", "1");
  GitClient git(server, url, "peer-branches");
  std::string import;
  for (int i = 0; i < kBranches; ++i) {
    import += "commit refs/heads/feature/" + std::to_string(i) + "\ncommitter a <a@example.test> " +
              std::to_string(1'700'000'000 + i) + " +0000\ndata 5\nother\nfrom refs/heads/main^0\n";
  }
  const auto bare = (server.folder() / "repos/branches.git").string();
  run_or_throw({"git", "--git-dir", bare, "fast-import", "--quiet"},
               isolated_git_environment(server.folder()), import);
  run_or_throw({"git", "--git-dir", bare, "pack-refs", "--all"},
               isolated_git_environment(server.folder()));
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < kCommits; ++i) {
    const auto begin = Clock::now();
    co_await commit_once(bed, url, "ours/" + std::to_string(i), "x\n");
    ours.push_back(ms_since(begin));
    theirs.push_back(git.commit("theirs/" + std::to_string(i), "x\n"));
  }
  const double mine = median(ours);
  const double peer = median(theirs);
  row("app-proxy-branches", "ms", mine, peer, mine / peer, "<= 1.0", mine <= peer,
      "as app-proxy-commit, in a repository of 10,001 branches");
  co_await bed.stop();
}

Task<> bench(GitServer& server) {
  const auto executor = co_await asio::this_coro::executor;
  GitBed bed(executor, {});
  bed.credential = {.username = server.username(), .password = Secret(server.password())};
  FileChanges files;
  for (int i = 0; i < 500; ++i) {
    files["apps/" + std::to_string(i / 25) + "/" + std::to_string(i) + ".yaml"] =
        "name: app-" + std::to_string(i) + "\nreplicas: 1\n";
  }
  const std::string url = server.create_repository("one");
  server.commit("one", files, "first");
  co_await commit_once(bed, url, "warm", "1");

  GitClient peer(server, url, "peer");
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < kCommits; ++i) {
    const auto begin = Clock::now();
    co_await commit_once(bed, url, "apps/3/77.yaml", "replicas: " + std::to_string(i) + "\n");
    ours.push_back(ms_since(begin));
    theirs.push_back(peer.commit("apps/4/101.yaml", "replicas: " + std::to_string(i) + "\n"));
  }
  const double mine = median(ours);
  const double git = median(theirs);
  row("app-proxy-commit", "ms", mine, git, mine / git, "<= 1.0", mine <= git,
      "median wall of 30; each has the other's commit to fetch; peer: git fetch, reset, commit, "
      "push");

  const std::string queue = server.create_repository("queue");
  server.commit("queue", files, "first");
  co_await commit_once(bed, queue, "warm", "1");
  auto begin = Clock::now();
  for (int i = 0; i < kQueued; ++i) {
    co_await commit_once(bed, queue, "a/" + std::to_string(i), "x");
  }
  const double single = ms_since(begin);
  begin = Clock::now();
  TaskGroup users(executor);
  for (int i = 0; i < kQueued; ++i) {
    users.spawn("user", [&, i] { return commit_once(bed, queue, "b/" + std::to_string(i), "x"); });
  }
  co_await users.join();
  const double together = ms_since(begin);
  row("app-proxy-queue", "ms", together, single, together / single, "<= 0.2",
      together * 5 <= single,
      "100 commits of one user that wait together; peer: the same one by one");
  co_await bed.stop();
  co_await bench_branches(server);
  co_await bench_large(server);
}

}  // namespace
}  // namespace gitops::test

int main() {
  using namespace gitops;
  test::GitServer server;
  Loop loop(1);
  asio::co_spawn(
      loop, [&] { return test::bench(server); },
      [](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
      });
  loop.run();
}
