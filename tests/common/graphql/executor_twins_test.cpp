#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <gmock/gmock.h>

#include "common/graphql/engine.hpp"
#include "support/run_coro.hpp"

// The executor writes an answer by plain functions where no row waits, and by coroutines where one
// does. Each query here runs with rows that do not wait, with rows that all wait, and with both; the
// texts must be the same.
namespace gitops::graphql {
namespace {

enum class Waiting { none, every_second, all };

// Makes rows that give the same values with and without waiting.
class RowMaker {
 public:
  explicit RowMaker(Waiting waiting) : waiting_(waiting) {}

  template <class T = Root, class F>
  RowOf<T> row(std::string name, F function) {
    RowOf<T> made(std::move(name), std::move(function));
    const bool is_second = ++count_ % 2 == 0;
    if (waiting_ == Waiting::none || (waiting_ == Waiting::every_second && !is_second)) return made;
    made.later = [now = std::exchange(made.now, nullptr)](const void* object,
                                                          Call& call) -> Task<Value> {
      ++turns;
      co_await asio::post(co_await asio::this_coro::executor, use_task);
      co_return now(object, call);
    };
    return made;
  }

  static inline int turns = 0;  // of the loop that rows have waited

 private:
  Waiting waiting_;
  int count_ = 0;
};

constexpr std::string_view kSchema = R"(
  type Query {
    text: String! whole: Int! number: Float truth: Boolean kind: Kind wrongKind: Kind nothing: Int any: Any
    echo(text: String!): String
    node: Node nodes(count: Int!): [Node!]! grid: [[Node!]!]! notAList: [Node] wrongObject: Node
    numbers(count: Int!): [Int!]! holes: [String] matrix: [[Int]!]!
    party: [Party] named: Named document: Document missing: String broken: String
  }
  type Mutation { add(n: Int!): Int! fail: Int }
  interface Named { name: String! }
  type Person implements Named { name: String! }
  type Team { title: String }
  union Party = Person | Team
  type Node { name: String! depth: Int! odd: Int hard: String! children(count: Int!): [Node] }
  type Document { title: String count: Int any: Any parts: [Document] self: Document computed: String! }
  enum Kind { GOOD BAD }
  scalar Any
)";

constexpr std::string_view kDocument = R"({"title": "T \"x\"", "count": 3, "any": [1, {"a": null}],
  "parts": [null, {"title": "p", "parts": []}, {"title": null, "parts": null}], "self": null})";

struct Person {
  std::string name;
};
struct Team {
  std::string title;
};
struct Node {
  int depth = 0;
  std::string name;
};

Node node(int depth) {
  return {.depth = depth, .name = "n" + std::to_string(depth)};
}

std::vector<Node> nodes(std::int64_t count, int first = 0) {
  std::vector<Node> made;
  for (int i = 0; i < count; ++i) made.push_back(node(first + i));
  return made;
}

Resolvers tables(Waiting waiting) {
  RowMaker make(waiting);
  Resolvers to;
  to.query({
      make.row("text", [] { return "a \"text\""; }),
      make.row("whole", [] { return 7; }),
      make.row("number", [] { return 1.5; }),
      make.row("truth", [] { return true; }),
      make.row("kind", [] { return "GOOD"; }),
      make.row("wrongKind", [] { return "WORSE"; }),
      make.row("nothing", [] { return std::optional<int>(); }),
      make.row("any", [] { return Json::trusted(R"({"a": [1, 2]})"); }),
      make.row("echo", [](Call& call) { return std::string(call["text"].text()); }),
      make.row("node", [] { return node(0); }),
      make.row("nodes", [](Call& call) { return nodes(call["count"].integer()); }),
      make.row("grid", [] { return std::vector<std::vector<Node>>{nodes(2), {}, nodes(1)}; }),
      make.row("notAList", [] { return 7; }),
      make.row("wrongObject", [] { return "text"; }),
      make.row("numbers",
               [](Call& call) {
                 return std::vector<int>(static_cast<std::size_t>(call["count"].integer()), 5);
               }),
      make.row("holes",
               [] { return std::vector<std::optional<std::string>>{"a", std::nullopt, "c"}; }),
      make.row("matrix", [] { return std::vector<std::vector<int>>{{1, 2}, {}, {3}}; }),
      make.row("party",
               [] { return std::vector<std::variant<Person, Team>>{Person{"p"}, Team{}}; }),
      make.row("named", [] { return Person{"p"}; }),
      make.row("document", [] { return Json::trusted(std::string(kDocument)); }),
      make.row("missing", []() -> Result<int> { return fail(ErrorCode::not_found, "not there"); }),
      make.row("broken", []() -> std::string { throw std::runtime_error("detail"); }),
  });
  to.mutation({
      make.row("add", [](Call& call) { return call["n"].integer() + 1; }),
      make.row("fail", []() -> Result<int> { return fail(ErrorCode::conflict, "taken"); }),
  });
  to.type<Person>("Person", {make.row<Person>("name", &Person::name)});
  to.type<Team>("Team", {make.row<Team>("title", &Team::title)});
  to.type<Node>("Node", {
                            make.row<Node>("name", &Node::name),
                            make.row<Node>("depth", &Node::depth),
                            make.row<Node>("odd",
                                           [](const Node& own) -> Result<int> {
                                             if (own.depth % 2 == 0) return own.depth;
                                             return fail(ErrorCode::conflict, "odd");
                                           }),
                            make.row<Node>("hard",
                                           [](const Node& own) {
                                             return own.depth == 2 ? std::nullopt
                                                                   : std::optional(own.name);
                                           }),
                            make.row<Node>("children",
                                           [](const Node& own, Call& call) {
                                             return nodes(call["count"].integer(), own.depth + 1);
                                           }),
                        });
  to.json("Document", {make.row<JsonSlice>("computed", [](const JsonSlice& own) {
            return own.text.contains("title") ? "titled" : "bare";
          })});
  return to;
}

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
}  // namespace gitops::graphql
