// Commits through libgit2 on our HTTP client beside the git command line, on the same server.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "app-proxy/git/git_bed.hpp"
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

  // The peer: a warm clone, then fetch, commit, push.
  std::string with_user = url;
  with_user.insert(7, server.username() + ":" + server.password() + "@");
  const auto clone = (server.folder() / "peer").string();
  auto env = isolated_git_environment(server.folder());
  for (const char* who : {"AUTHOR", "COMMITTER"}) {
    env["GIT_" + std::string(who) + "_NAME"] = "Ann";
    env["GIT_" + std::string(who) + "_EMAIL"] = "ann@example.test";
  }
  run_or_throw({"git", "clone", "-q", with_user, clone}, env);
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < kCommits; ++i) {
    auto begin = Clock::now();
    co_await commit_once(bed, url, "apps/3/77.yaml", "replicas: " + std::to_string(i) + "\n");
    ours.push_back(ms_since(begin));
    // Without the shell's start: four programs, as a service would run them.
    write_file(clone + "/apps/4/101.yaml", "replicas: " + std::to_string(i) + "\n");
    begin = Clock::now();
    run_or_throw({"git", "-C", clone, "fetch", "-q", "origin", "main"}, env);
    run_or_throw({"git", "-C", clone, "reset", "-q", "--soft", "FETCH_HEAD"}, env);
    run_or_throw({"git", "-C", clone, "commit", "-q", "-m", "change", "apps/4/101.yaml"}, env);
    run_or_throw({"git", "-C", clone, "push", "-q", "origin", "HEAD:main"}, env);
    theirs.push_back(ms_since(begin));
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
