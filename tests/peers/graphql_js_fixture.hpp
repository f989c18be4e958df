#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/json_text.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/print.hpp"
#include "peers/peer_programs.hpp"
#include "support/process.hpp"
#include "support/run_coro.hpp"

// Our engine and the reference implementation, with responses in a form that can be compared.
namespace gitops::graphql {

inline std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::filesystem::path source_folder() {
  return std::filesystem::path(GITOPS_SOURCE_DIR) / "tests/peers/graphql-js";
}

// The same values as reference.mjs gives.
class Everything {
 public:
  Everything() {
    const nlohmann::json data = nlohmann::json::parse(read(source_folder() / "everything.json"));
    const auto text = [&](const nlohmann::json& value) { return value.dump(); };
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
inline nlohmann::json without_newer_introspection(nlohmann::json data) {
  if (!data.is_object() || !data.contains("__schema")) return data;
  nlohmann::json& schema = data["__schema"];
  const auto drop = [&](const char* list, const auto& is_newer) {
    if (!schema.contains(list)) return;
    nlohmann::json kept = nlohmann::json::array();
    for (const nlohmann::json& one : schema[list]) {
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
inline nlohmann::json comparable(const nlohmann::json& answer) {
  nlohmann::json made = nlohmann::json::object();
  if (answer.contains("data")) made["data"] = without_newer_introspection(answer["data"]);
  std::vector<nlohmann::json> errors;
  for (const nlohmann::json& error : answer.value("errors", nlohmann::json::array())) {
    nlohmann::json one = {{"message", error.at("message")}};
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

inline nlohmann::json ours(Engine& engine, const nlohmann::ordered_json& request) {
  const std::string query = request.at("query");
  const std::string variables = request.contains("variables") ? request["variables"].dump() : "";
  const std::string name = request.value("operationName", "");
  auto prepared = engine.prepare({query, variables, name}, Context());
  if (!prepared) return nlohmann::json::parse(prepared.error().body());
  std::string answer;
  test::run_coro([&]() -> Task<> { answer = co_await (*prepared)->run(); });
  return nlohmann::json::parse(answer);
}

inline EngineOptions as_strict_as_the_reference() {
  EngineOptions options;
  options.strictness = Strictness::strict;
  options.limits.max_depth = 1000;
  options.limits.max_aliases = options.limits.max_fragments = options.limits.max_directives =
      options.limits.max_breadth = options.limits.max_fields = 100'000;
  return options;
}

inline std::optional<std::string> missing() {
  if (!std::filesystem::is_directory(test::peers_folder() /
                                     "share/graphql-js/node_modules/graphql")) {
    return "graphql-js is not built (./dev peers graphql-js)";
  }
  if (!test::find_program("node")) return "node is not installed";
  return std::nullopt;
}

}  // namespace gitops::graphql
