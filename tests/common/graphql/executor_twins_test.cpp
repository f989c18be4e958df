#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "common/graphql/engine.hpp"
#include "common/graphql/executor_twins_fixture.hpp"
#include "support/run_coro.hpp"

// The executor writes an answer by plain functions where no row waits, and by coroutines where one
// does. Each query here runs with rows that do not wait, with rows that all wait, and with both; the
// texts must be the same.
namespace gitops::graphql::twins {
namespace {

struct TestQuery {
  std::string_view query;
  std::string_view variables = {};
};

// Siblings that wait run side by side, so each query has one error, or one in each item of a list.
constexpr TestQuery kTestQueries[] = {
    {"{ text whole number truth kind nothing any __typename }"},
    {"{ a: echo(text: \"x\") echo(text: \"y\") }"},
    {"{ ...F node { depth } } fragment F on Query { node { name } text @skip(if: true) }"},
    {"{ node { name depth children(count: 2) { name children(count: 1) { depth } } } }"},
    {"{ nodes(count: 3) { name } whole }"},
    {"{ nodes(count: 0) { name } }"},
    {"{ nodes(count: 100) { name } }"},
    {"{ numbers(count: 200) }"},
    {"{ holes matrix grid { name } }"},
    {"{ party { __typename ... on Person { name } ... on Team { title } } named { name } }"},
    {"{ document { title count any self { computed } parts { title } } }"},
    {"{ document { computed parts { title computed parts { computed } } } }"},
    {"{ missing text }"},
    {"{ broken text }"},
    {"{ wrongKind text }"},
    {"{ notAList { name } text }"},
    {"{ wrongObject { name } text }"},
    {"{ nodes(count: 4) { odd name } }"},
    {"{ nodes(count: 3) { name hard } text }"},
    {"{ node { children(count: 1) { children(count: 1) { hard } name } } text }"},
    {"query($t: String) { echo(text: $t) text }", R"({"t": null})"},
    {"query($on: Boolean) { node { name @include(if: $on) } text }", R"({"on": null})"},
    {"mutation { a: add(n: 1) b: add(n: 2) fail c: add(n: 3) }"},
};

std::unique_ptr<Engine> engine(Waiting waiting) {
  auto made = Engine::make(std::string(kSchema), tables(waiting));
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

std::string run(Engine& engine, const TestQuery& asked) {
  std::string text;
  test::run_in_test_time([&]() -> Task<> {
    auto prepared = engine.prepare({asked.query, asked.variables, {}}, Context());
    text = prepared ? co_await (*prepared)->run() : prepared.error().body();
  });
  return text;
}

TEST(GraphqlExecutorTwins, WriteTheSameText) {
  const auto plain = engine(Waiting::none);
  const auto mixed = engine(Waiting::every_second);
  const auto waiting = engine(Waiting::all);
  for (const TestQuery& asked : kTestQueries) {
    SCOPED_TRACE(asked.query);
    RowMaker::turns = 0;
    const std::string expected = run(*plain, asked);
    EXPECT_EQ(RowMaker::turns, 0);
    EXPECT_THAT(expected, testing::StartsWith("{\"data\":"));
    EXPECT_EQ(run(*mixed, asked), expected);
    RowMaker::turns = 0;
    EXPECT_EQ(run(*waiting, asked), expected);
    EXPECT_GT(RowMaker::turns, 0);
  }
}

// A null in a list of JSON objects was an error when a row below waited.
TEST(GraphqlExecutorTwins, KeepANullInJson) {
  const auto waiting = engine(Waiting::all);
  EXPECT_EQ(
      run(*waiting, {"{ document { parts { computed } } }"}),
      R"({"data":{"document":{"parts":[null,{"computed":"titled"},{"computed":"titled"}]}}})");
}

}  // namespace
}  // namespace gitops::graphql::twins
