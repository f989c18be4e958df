// Our library and the reference implementation (npm graphql) on the same documents: the same answers,
// and the same errors with the same places and paths.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/json_text.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/print.hpp"
#include "peers/peer_programs.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

namespace gitops::graphql {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kDocuments = 4000;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

fs::path source_folder() {
  return fs::path(GITOPS_SOURCE_DIR) / "tests/peers/graphql-js";
}

// The same values as reference.mjs gives.
class Everything {
 public:
  Everything() {
    const json data = json::parse(read(source_folder() / "everything.json"));
    const auto text = [&](const json& value) { return value.dump(); };
    const std::string ann = text(data.at("ann"));
    const std::string best = text(data.at("ann").at("bestFriend"));
    const std::string repo = text(data.at("repo"));
    texts_ = {{"user", ann},
              {"users", "[" + ann + "," + best + "]"},
              {"node", ann},
              {"resource", repo},
              {"named", "[" + ann + "," + repo + "]"},
              {"items", "[" + ann + "," + repo + "," + text(data.at("tag")) + ",null]"},
              {"deep", text(data.at("deep"))},
              {"deepHard", text(data.at("deep").at("deepHard"))},
              {"ann", ann}};
  }

  Resolvers resolvers() {
    const auto given = [this](const char* name) {
      return [this, name] { return JsonSlice{texts_.at(name)}; };
    };
    const auto echo = [](Call& call) { return call.arguments().json(); };
    const auto failing = [] { return Result<int>(fail(ErrorCode::invalid_argument, "it failed")); };
    Resolvers to;
    to.query({
        {"user", given("user")},
        {"users", given("users")},
        {"node", given("node")},
        {"resource", given("resource")},
        {"named", given("named")},
        {"items", given("items")},
        {"echo", echo},
        {"need", echo},
        {"deep", given("deep")},
        {"deepHard", given("deepHard")},
        {"version", [] { return "1.2.3"; }},
    });
    to.mutation({
        {"rename",
         [this](Call& call) {
           return Json::trusted(edit_member(texts_.at("ann"), "name", [&](std::string_view) {
             return in_quotes(call["name"].text());
           }));
         }},
        {"count", [] { return 3; }},
        {"fail", failing},
    });
    const auto no_stream = []() -> Task<Result<Stream>> {
      co_return fail(ErrorCode::unsupported, "not here");
    };
    to.subscription({{"ticks", no_stream}, {"users", no_stream}});
    for (const char* type : {"User", "Repository", "Tag"}) to.json(type);
    to.json("Deep", {{"fails", failing}, {"failsHard", failing}});
    return to;
  }

 private:
  std::map<std::string, std::string> texts_;
};

// The reference has newer additions to the introspection types and to the built-in directives.
json without_newer_introspection(json data) {
  if (!data.is_object() || !data.contains("__schema")) return data;
  json& schema = data["__schema"];
  const auto drop = [&](const char* list, const auto& is_newer) {
    if (!schema.contains(list)) return;
    json kept = json::array();
    for (const json& one : schema[list]) {
      if (!is_newer(one.at("name").get<std::string>())) kept.push_back(one);
    }
    schema[list] = kept;
  };
  drop("types", [](const std::string& name) { return name.starts_with("__"); });
  drop("directives",
       [](const std::string& name) { return name == "deprecated" || name == "oneOf"; });
  return data;
}

// Errors as far as both sides must agree; sorted when the operation ran, since the order in which
// fields are resolved is free.
json comparable(const json& answer) {
  json made = json::object();
  if (answer.contains("data")) made["data"] = without_newer_introspection(answer["data"]);
  std::vector<json> errors;
  for (const json& error : answer.value("errors", json::array())) {
    json one = {{"message", error.at("message")}};
    for (const char* member : {"locations", "path"}) {
      if (error.contains(member)) one[member] = error[member];
    }
    // A document with definitions of types gets no further errors from us.
    const std::string message = one["message"];
    if (!errors.empty() && !message.ends_with("definition is not executable.") &&
        std::string(errors.front()["message"]).ends_with("definition is not executable.")) {
      break;
    }
    errors.push_back(std::move(one));
  }
  if (answer.contains("data")) std::ranges::sort(errors);
  if (!errors.empty()) made["errors"] = errors;
  return made;
}

json ours(Engine& engine, const nlohmann::ordered_json& request) {
  const std::string query = request.at("query");
  const std::string variables = request.contains("variables") ? request["variables"].dump() : "";
  const std::string name = request.value("operationName", "");
  auto prepared = engine.prepare({query, variables, name}, Context());
  if (!prepared) return json::parse(prepared.error().body());
  std::string answer;
  test::run_coro([&]() -> Task<> { answer = co_await (*prepared)->run(); });
  return json::parse(answer);
}

EngineOptions as_strict_as_the_reference() {
  EngineOptions options;
  options.strictness = Strictness::strict;
  options.limits.max_depth = 1000;
  options.limits.max_aliases = options.limits.max_fragments = options.limits.max_directives =
      options.limits.max_breadth = options.limits.max_fields = 100'000;
  return options;
}

std::optional<std::string> missing() {
  if (!fs::is_directory(test::peers_folder() / "share/graphql-js/node_modules/graphql")) {
    return "graphql-js is not built (./dev peers graphql-js)";
  }
  if (!test::find_program("node")) return "node is not installed";
  return std::nullopt;
}

TEST(GraphqlReference, GivesTheSameAnswersAndErrors) {
  if (const auto lacking = missing()) GTEST_SKIP() << "peers: " << *lacking;
  // Other and longer corpora than the usual one.
  const char* seed = std::getenv("GITOPS_SEED");
  const char* count = std::getenv("GITOPS_COUNT");
  const test::TempDir folder("graphql-js");
  const fs::path corpus = folder.path() / "corpus";
  const auto made = test::run_command(
      {"node", source_folder() / "reference.mjs", corpus,
       count ? count : std::to_string(kDocuments), seed ? seed : "1"},
      {{"GRAPHQL_JS_MODULES", (test::peers_folder() / "share/graphql-js").string()}}, {},
      std::chrono::seconds(120));
  ASSERT_TRUE(made.ok()) << made.err;

  Everything everything;
  auto engine = Engine::make(read(source_folder() / "everything.graphql"), everything.resolvers(),
                             as_strict_as_the_reference());
  ASSERT_TRUE(engine) << engine.error().message;
  std::map<std::string, int> kinds;
  int different = 0;
  int compared = 0;
  std::ifstream lines(corpus);
  for (std::string line; std::getline(lines, line);) {
    const auto request = nlohmann::ordered_json::parse(line);  // messages show members in order
    const json expected = comparable(json::parse(request.at("answer").dump()));
    const json got = comparable(ours(**engine, request));
    const bool has_data = expected.contains("data");
    const bool has_errors = expected.contains("errors");
    const bool is_syntax =
        has_errors && std::string(expected["errors"][0]["message"]).starts_with("Syntax Error");
    ++kinds[is_syntax     ? "syntax errors"
            : !has_errors ? "answers"
            : has_data    ? "partial"
                          : "refused"];
    ++compared;
    if (got == expected) continue;
    if (++different <= 10) {
      ADD_FAILURE() << "query: " << request.at("query").get<std::string>()
                    << "\nvariables: " << request.value("variables", nlohmann::ordered_json())
                    << "\nreference: " << expected << "\nours:      " << got;
    }
  }
  EXPECT_EQ(different, 0);
  std::string summary;
  for (const auto& [kind, number] : kinds) summary += " " + kind + ": " + std::to_string(number);
  RecordProperty("compared", summary);
  std::printf("compared:%s; different: %d\n", summary.c_str(), different);
  // A corpus that shows little would pass too.
  EXPECT_GE(kinds["answers"], compared / 10);
  EXPECT_GE(kinds["partial"], compared / 20);
  EXPECT_GE(kinds["refused"], compared / 10);
  EXPECT_GE(kinds["syntax errors"], compared / 10);
}

}  // namespace
}  // namespace gitops::graphql
