#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/graphql/engine.hpp"

// A schema with one of everything and resolvers for it, for the GraphQL fuzz targets.
namespace gitops::graphql {

struct FuzzNode {
  int level = 0;
};
struct FuzzLeaf {
  std::string name;
};

inline std::unique_ptr<Engine> fuzz_engine(EngineOptions options = {}) {
  Resolvers to;
  const auto node = [](const FuzzNode& own) { return FuzzNode{own.level + 1}; };
  const auto failing = [] { return Result<int>(fail(ErrorCode::not_found, "nothing here")); };
  to.query({
      {"node", [] { return FuzzNode(); }},
      {"any",
       [] { return std::vector<std::variant<FuzzNode, FuzzLeaf>>{FuzzNode(), FuzzLeaf{"x"}}; }},
      {"echo", [](Call& call) { return call.arguments().json(); }},
      {"later", [](Call& call) -> Task<std::string> { co_return call["in"].json(); }},
      {"json",
       [] {
         return Json::trusted(
             R"({"text":"a \"b\"","number":12,"self":{"number":"x"},"list":[{},null]})");
       }},
      {"fails", failing},
  });
  to.mutation({{"set", [](Call& call) { return call["value"].integer(); }}});
  to.subscription({{"ticks", []() -> Task<Result<Stream>> {
                      co_return fail(ErrorCode::unsupported, "no stream");
                    }}});
  to.type<FuzzNode>(
      "Node", {
                  {"id", &FuzzNode::level},
                  {"node", node},
                  {"strict", node},
                  {"fails", failing},
                  {"nodes", [](const FuzzNode& own) { return std::vector<FuzzNode>(2, own); }},
              });
  to.type<FuzzLeaf>("Leaf", {{"id", [] { return 7; }}, {"name", &FuzzLeaf::name}});
  to.json("Document");
  auto made = Engine::make(R"(
    type Query { node: Node any: [Any!] echo(int: Int = 3, text: String, list: [[Int!]], in: In, json: Json, color: Color): String later(in: In): String json: Document fails: Int! }
    type Mutation { set(value: Int!): Int }
    type Subscription { ticks: Int }
    interface Identified { id: Int! }
    type Node implements Identified { id: Int! node: Node strict: Node! fails: Int! nodes: [Node!]! }
    type Leaf implements Identified { id: Int! name: String }
    type Document { text: String number: Int self: Document list: [Document!] }
    union Any = Node | Leaf
    enum Color { RED GREEN }
    input In { a: Int! = 1 b: String in: In color: Color = RED list: [In!] }
    scalar Json
    directive @mark(name: String! = "x") repeatable on FIELD | QUERY | INLINE_FRAGMENT
  )",
                           to, options);
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

}  // namespace gitops::graphql
