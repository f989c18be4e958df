// Our library and the reference implementation (npm graphql) on the same documents: the same answers,
// and the same errors with the same places and paths.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/core/json_text.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/print.hpp"
#include "peers/graphql_js_fixture.hpp"
#include "peers/peer_programs.hpp"
#include "support/process.hpp"

namespace gitops::graphql {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kDocuments = 4000;

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
