#include "common/graphql/schema.hpp"

#include <gmock/gmock.h>

#include "common/graphql/input.hpp"

namespace gitops::graphql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string mistakes(std::string sdl) {
  const auto schema = Schema::parse(std::move(sdl));
  return schema ? "" : schema.error().message;
}

TEST(GraphqlSchema, ReadsTypesAndDefaults) {
  const auto schema = Schema::parse(R"(
    type Query { one(in: In = {a: 2}, list: [Int] = 3): [Thing!]! }
    extend type Query { two: Kind }
    interface Named { name: String }
    type Thing implements Named { name: String old: Int @deprecated(reason: "new") }
    union Any = Thing
    enum Kind { A B }
    input In { a: Int! b: Kind = B }
    scalar Time @specifiedBy(url: "u")
  )");
  ASSERT_TRUE(schema) << schema.error().message;
  const NamedType& query = *(*schema)->root(OperationKind::query);
  const Field& one = *query.field("one");
  EXPECT_EQ(one.type->text, "[Thing!]!");
  EXPECT_EQ(print(*one.argument("in")->default_value, *one.argument("in")->type), "{a: 2, b: B}");
  EXPECT_EQ(print(*one.argument("list")->default_value, *one.argument("list")->type), "[3]");
  EXPECT_TRUE(query.field("two"));
  EXPECT_EQ((*schema)->find("Thing")->field("old")->deprecation, "new");
  EXPECT_EQ((*schema)->find("Time")->specified_by, "u");
  EXPECT_TRUE(types_overlap(*(*schema)->find("Any"), *(*schema)->find("Named")));
  std::vector<std::string_view> names;
  for (const NamedType* type : (*schema)->types()) names.push_back(type->name);
  names.resize(10);
  EXPECT_THAT(names, ElementsAre("Query", "Int", "Named", "String", "Thing", "Any", "Kind", "In",
                                 "Time", "Boolean"));
}

TEST(GraphqlSchema, ListsEveryMistake) {
  const std::string text = mistakes(R"(
    type Query { a: Missing  b(x: Query): Int  a: Int }
    type Query { c: Int }
    union U = Int
    enum E { A A }
    type T implements Query { x: Int }
  )");
  EXPECT_THAT(text, HasSubstr("Query.a has the unknown type \"Missing\"."));
  EXPECT_THAT(text, HasSubstr("Query.b.x needs an input type, not \"Query\"."));
  EXPECT_THAT(text, HasSubstr("There are two types named \"Query\"."));
  EXPECT_THAT(text, HasSubstr("The union \"U\" has the member \"Int\", which is no object type."));
  EXPECT_THAT(text, HasSubstr("E.A is defined twice."));
  EXPECT_THAT(text, HasSubstr("T implements \"Query\", which is no interface."));
}

TEST(GraphqlSchema, ChecksInterfacesDefaultsAndCycles) {
  const std::string text = mistakes(R"(
    type Query { a(x: Int = "no"): Int @unknown }
    interface I { f(y: Int): String! }
    type T implements I { f(y: String, z: Int!): String }
    input A { b: B! }
    input B { a: A! }
  )");
  EXPECT_THAT(text, HasSubstr("The default value of Query.a.x does not fit its type."));
  EXPECT_THAT(text, HasSubstr("has no field \"f\" of type \"String!\"."));
  EXPECT_THAT(text, HasSubstr("The input \"A\" requires itself."));
  EXPECT_THAT(text, HasSubstr("uses the unknown directive \"@unknown\"."));
  EXPECT_THAT(mistakes("type T { a: Int }"), HasSubstr("There is no type for queries."));
  EXPECT_THAT(mistakes("type Query {"), HasSubstr("Syntax Error: Expected Name, found <EOF>."));
}

}  // namespace
}  // namespace gitops::graphql
