#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/core/task_group.hpp"
#include "common/graphql/engine.hpp"
#include "support/run_coro.hpp"

// A schema of repositories, teams and owners with its resolvers, and an engine for it.
namespace gitops::graphql {

// How a program's resolvers read.
struct Owner {
  std::string name;
};

struct Repository {
  std::string name;
  std::optional<int> stars;
  bool is_private = false;
  Owner owner;
  std::vector<std::string> branches;
};

struct Team {
  std::string title;
};

struct Session {
  std::string user;
  std::vector<std::string> log;
};

inline constexpr std::string_view kSchema = R"(
  type Query {
    version: String!
    repository(name: String!): Repository
    repositories(first: Int = 2): [Repository!]!
    slow(ms: Int!, text: String!): String
    both: [Party]
    whoAmI: String
    json: Document
    raw: Any
    forbidden: String
    missing: String
    broken: String
    hard: Hard
    selects: String
    team: Team
  }
  type Mutation { add(text: String!): Int remove(name: String!): Void fail: Int }
  type Subscription { ticks(upTo: Int!): Int fails: Int }
  type Repository { name: String! stars: Int isPrivate: Boolean! owner: Owner! branches: [String!]! slowName: String! }
  type Owner { name: String! }
  type Team { title: String }
  union Party = Owner | Team
  type Document { title: String count: Int kind: Kind parts: [Document!] extra: Any computed: String! }
  enum Kind { GOOD BAD }
  type Hard { ok: Int never: Int! later: Int! }
  scalar Any
  scalar Void
)";

inline Repository repository(const std::string& name) {
  return {
      name, name == "one" ? std::optional(5) : std::nullopt, true, {"Ann \"A\""}, {"main", "dev"}};
}

inline Task<std::string> wait_and_say(Call& call) {
  co_await sleep_for(std::chrono::milliseconds(call["ms"].integer()));
  co_return std::string(call["text"].text());
}

inline Resolvers resolvers() {
  Resolvers to;
  to.query({
      {"version", [] { return "1.0"; }},
      {"repository",
       [](Call& call) -> Result<Repository> {
         if (call["name"].text() == "none") return fail(ErrorCode::not_found, "no such repository");
         return repository(std::string(call["name"].text()));
       }},
      {"repositories",
       [](Call& call) -> Task<Result<std::vector<Repository>>> {
         co_await sleep_for(std::chrono::milliseconds(1));
         std::vector<Repository> all;
         for (int i = 0; i < call["first"].integer(); ++i) {
           all.push_back(repository(i == 0 ? "one" : "more"));
         }
         co_return all;
       }},
      {"slow", wait_and_say},
      {"both", [] { return std::vector<std::variant<Owner, Team>>{Owner{"o"}, Team{"t"}}; }},
      {"whoAmI", [](Call& call) { return call.context<Session>().user; }},
      {"json",
       [] {
         return Json::parse(R"({"title": "T \"x\"", "count": 3, "kind": "GOOD", "hidden": 1,
                               "parts": [{"title": null, "count": 1.5}, {"kind": "WORSE"}],
                               "extra": {"a": [1, 2]}})");
       }},
      {"raw", [](Call&) { return Json::parse(R"({"any": ["thing"]})"); }},
      {"forbidden", []() -> Result<int> { return fail(ErrorCode::forbidden, "you may not"); }},
      {"missing", []() -> Result<int> { return fail(ErrorCode::not_found, "not there"); }},
      {"broken", []() -> std::string { throw std::runtime_error("secret detail"); }},
      {"hard", [] { return Team{"hard"}; }},
      {"selects", [](Call& call) { return std::string(call.selects("x") ? "yes" : "no"); }},
      {"team", [] { return std::unique_ptr<Team>(); }},
  });
  to.mutation({
      {"add",
       [](Call& call) -> Task<int> {
         auto& log = call.context<Session>().log;
         log.push_back("begin " + std::string(call["text"].text()));
         co_await sleep_for(std::chrono::milliseconds(5));
         log.push_back("end " + std::string(call["text"].text()));
         co_return static_cast<int>(log.size());
       }},
      {"remove", [](Call&) -> Task<Result<void>> { co_return Result<void>(); }},
      {"fail", []() -> Task<Result<int>> { co_return fail(ErrorCode::conflict, "taken"); }},
  });
  to.subscription({
      {"ticks",
       [](Call& call) -> Task<Result<Stream>> {
         co_return Stream::from(
             [next = 0,
              last = call["upTo"].integer()]() mutable -> Task<Result<std::optional<int>>> {
               co_await sleep_for(std::chrono::milliseconds(1));
               if (next == last) co_return std::optional<int>();
               co_return std::optional<int>(++next);
             });
       }},
      {"fails",
       []() -> Task<Result<Stream>> { co_return fail(ErrorCode::unavailable, "no source"); }},
  });
  to.type<Repository>("Repository", {
                                        {"name", &Repository::name},
                                        {"stars", &Repository::stars},
                                        {"isPrivate", &Repository::is_private},
                                        {"owner", &Repository::owner},
                                        {"branches", &Repository::branches},
                                        {"slowName",
                                         [](const Repository& own) -> Task<std::string> {
                                           co_await sleep_for(std::chrono::milliseconds(10));
                                           co_return own.name;
                                         }},
                                    });
  to.type<Owner>("Owner", {{"name", &Owner::name}});
  to.type<Team>("Team", {{"title", &Team::title}});
  to.json(
      "Document",
      {{"computed", [](const JsonSlice& own) { return own.text.size() > 40 ? "long" : "short"; }}});
  to.type<Team>("Hard", {
                            {"ok", [] { return 1; }},
                            {"never", [](const Team&) -> std::optional<int> { return {}; }},
                            {"later",
                             []() -> Task<Result<int>> {
                               co_await sleep_for(std::chrono::milliseconds(1));
                               co_return fail(ErrorCode::unavailable, "gone");
                             }},
                        });
  return to;
}

inline Engine& engine() {
  static const auto made = Engine::make(std::string(kSchema), resolvers());
  if (!made) throw std::runtime_error(made.error().message);
  return **made;
}

inline Session session;

inline std::string run(std::string_view query, std::string_view variables = {},
                       Deadline deadline = kNever) {
  std::string answer;
  test::run_in_test_time([&]() -> Task<> {
    auto prepared = engine().prepare({query, variables, {}}, Context(session), deadline);
    answer = prepared ? co_await (*prepared)->run() : prepared.error().body();
  });
  return answer;
}

}  // namespace gitops::graphql
