// The GraphQL library alone: from a request's body to the text of its answer, CPU time per request.
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/median.hpp"
#include "common/core/task_group.hpp"
#include "common/graphql/engine.hpp"

namespace {

using namespace gitops;
using namespace gitops::graphql;

struct VersionInfo {
  std::string version = "1.2.3";
  std::string platform_host = "https://platform.example.test";
  std::string platform_version = "4.5.6";
};
struct Repository {
  std::string id;
  std::string full_name;
  std::string clone_url;
  std::string default_branch = "main";
  bool is_private = true;
  int open_issues = 3;
};

constexpr int kRuns = 7;

std::unique_ptr<Engine> engine(std::size_t cache) {
  static std::vector<Repository> repositories;
  static std::string text = "[";
  if (repositories.empty()) {
    for (int i = 0; i < 100; ++i) {
      const std::string name = "team/repository-" + std::to_string(i);
      repositories.push_back(
          {std::to_string(i), name, "https://git.example.test/" + name + ".git"});
      text += (i > 0 ? "," : "") +
              nlohmann::json({{"id", std::to_string(i)},
                              {"fullName", name},
                              {"cloneUrl", "https://git.example.test/" + name + ".git"},
                              {"defaultBranch", "main"},
                              {"isRepoPrivate", true},
                              {"openIssues", 3}})
                  .dump();
    }
    text += "]";
  }
  Resolvers to;
  to.query({
      {"versionInfo", [] { return VersionInfo(); }},
      {"repositories", []() -> const std::vector<Repository>& { return repositories; }},
      {"passedOn", [] { return JsonSlice{text}; }},
  });
  to.type<VersionInfo>("AppProxyVersionInfo",
                       {
                           {"version", &VersionInfo::version},
                           {"platformHost", &VersionInfo::platform_host},
                           {"platformVersion", &VersionInfo::platform_version},
                       });
  to.type<Repository>("Repository", {
                                        {"id", &Repository::id},
                                        {"fullName", &Repository::full_name},
                                        {"cloneUrl", &Repository::clone_url},
                                        {"defaultBranch", &Repository::default_branch},
                                        {"isRepoPrivate", &Repository::is_private},
                                        {"openIssues", &Repository::open_issues},
                                    });
  to.json("PassedOn");
  auto made = Engine::make(R"(
    type Query { versionInfo: AppProxyVersionInfo! repositories: [Repository!]! passedOn: [PassedOn!]! }
    type AppProxyVersionInfo { version: String! platformHost: String! platformVersion: String! }
    type Repository { id: String! fullName: String! cloneUrl: String! defaultBranch: String! isRepoPrivate: Boolean! openIssues: Int! }
    type PassedOn { id: String! fullName: String! cloneUrl: String! defaultBranch: String! isRepoPrivate: Boolean! openIssues: Int! }
  )",
                           to, {.max_cached_bytes = cache});
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Microseconds of CPU per request.
double measure(Engine& engine, const std::string& body, int requests, std::size_t& size) {
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    Loop loop;
    TaskGroup group(loop.get_executor());
    const double begin = cpu_seconds();
    group.spawn("bench", [&]() -> Task<> {
      for (int i = 0; i < requests; ++i) {
        auto prepared = engine.prepare_body(body, Context());
        size = (co_await (*prepared)->run()).size();
      }
    });
    loop.run();
    runs.push_back((cpu_seconds() - begin) * 1e6 / requests);
  }
  return bench::median(runs);
}

}  // namespace

int main() {
  const std::string version =
      R"({"query":"query VersionInfo { versionInfo { version platformHost platformVersion } }"})";
  const auto list = [](const std::string& field) {
    return R"({"query":"query { )" + field +
           R"( { id fullName cloneUrl defaultBranch isRepoPrivate openIssues } }"})";
  };
  struct Case {
    const char* name;
    std::string body;
    int requests;
  };
  for (const Case& one : {Case{"graphql-version", version, 20'000},
                          Case{"graphql-list-100", list("repositories"), 1'000},
                          Case{"graphql-json-100", list("passedOn"), 1'000}}) {
    for (const bool is_cached : {false, true}) {
      std::size_t size = 0;
      const auto made = engine(is_cached ? 1024 * 1024 : 0);
      const double cost = measure(*made, one.body, one.requests, size);
      nlohmann::ordered_json row;
      row["name"] = std::string(one.name) + (is_cached ? "-cached" : "");
      row["unit"] = "µs CPU";
      row["ours"] = cost;
      row["peer"] = nullptr;
      row["ratio"] = nullptr;
      row["goal"] = "";
      row["holds"] = nullptr;
      row["note"] = std::string("body to answer, ") + std::to_string(size) + " bytes, " +
                    (is_cached ? "document from the cache" : "parsed and validated each time");
      std::puts(row.dump().c_str());
    }
  }
}
