#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "common/graphql/engine.hpp"

// A schema with every kind of type, and its rows with and without waiting.
namespace gitops::graphql::twins {

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

inline constexpr std::string_view kSchema = R"(
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

inline constexpr std::string_view kDocument =
    R"({"title": "T \"x\"", "count": 3, "any": [1, {"a": null}],
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

inline Node node(int depth) {
  return {.depth = depth, .name = "n" + std::to_string(depth)};
}

inline std::vector<Node> nodes(std::int64_t count, int first = 0) {
  std::vector<Node> made;
  for (int i = 0; i < count; ++i) made.push_back(node(first + i));
  return made;
}

inline Resolvers tables(Waiting waiting) {
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

}  // namespace gitops::graphql::twins
