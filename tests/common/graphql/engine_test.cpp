#include "common/graphql/engine.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "support/run_coro.hpp"

namespace gitops::graphql {
namespace {

using testing::HasSubstr;

struct Node {
  int depth = 0;
};

std::unique_ptr<Engine> make(EngineOptions options = {}) {
  Resolvers to;
  to.query({
      {"node", [] { return Node(); }},
      {"echo", [](Call& call) { return call.arguments().json(); }},
      {"long", [] { return std::vector<int>(10'000, 123456789); }},
  });
  to.mutation({{"go", [] { return true; }}});
  to.type<Node>("Node", {
                            {"id", &Node::depth},
                            {"node", [](const Node& own) { return Node{own.depth + 1}; }},
                        });
  auto engine = Engine::make(R"(
    type Query { node: Node echo(int: Int, list: [Int!], in: In, any: Any): String long: [Int!]! }
    type Mutation { go: Boolean }
    type Node { id: Int node: Node }
    input In { a: Int in: In }
    scalar Any
  )",
                             to, options);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

std::string ask(Engine& engine, std::string_view body) {
  std::string answer;
  test::run_coro([&]() -> Task<> {
    auto prepared = engine.prepare_body(body, Context());
    answer = prepared ? co_await (*prepared)->run() : prepared.error().body();
  });
  return answer;
}
std::string ask_query(Engine& engine, const std::string& query) {
  std::string answer;
  test::run_coro([&]() -> Task<> {
    auto prepared = engine.prepare(RequestText{.query = query}, Context());
    answer = prepared ? co_await (*prepared)->run() : prepared.error().body();
  });
  return answer;
}

TEST(GraphqlEngine, ReadsRequests) {
  const auto engine = make();
  EXPECT_EQ(ask(*engine, R"({"query":"{ __typename }"})"), R"({"data":{"__typename":"Query"}})");
  EXPECT_EQ(
      ask(*engine,
          R"({"query":"query A{a:__typename} query B($i:Int){echo(int:$i)}","operationName":"B","variables":{"i":3,"other":1},"extensions":{},"more":1})"),
      R"({"data":{"echo":"{\"int\":3}"}})");
  EXPECT_EQ(ask(*engine, R"({"query":"{ __typename }","variables":null,"operationName":null})"),
            R"({"data":{"__typename":"Query"}})");
  EXPECT_EQ(ask(*engine,
                "\xEF\xBB\xBF"
                R"({"query":"{ __typename }"})"),
            R"({"data":{"__typename":"Query"}})")
      << "a byte order mark";
}

TEST(GraphqlEngine, RefusesWhatIsNoRequest) {
  const auto engine = make();
  for (const auto& [body, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "The body is not valid JSON."},
           {"{\"query\":", "The body is not valid JSON."},
           {"3", "The body must be a JSON object."},
           {"{}", "query is missing."},
           {R"({"query":1})", "query must be a string."},
           {R"({"query":"{a}","variables":[]})", "variables must be an object."},
           {R"({"query":"{a}","operationName":1})", "operationName must be a string."}}) {
    const auto prepared = engine->prepare_body(body, Context());
    ASSERT_FALSE(prepared) << body;
    EXPECT_FALSE(prepared.error().is_well_formed) << body;
    EXPECT_EQ(prepared.error().errors[0].message, message);
  }
  EXPECT_THAT(ask(*engine, R"({"extensions":{"persistedQuery":{"version":1}}})"),
              HasSubstr("PersistedQueryNotSupported"));
}

TEST(GraphqlEngine, KeepsValidDocumentsOnly) {
  const auto engine = make({.max_cached_bytes = 16'000});
  EXPECT_EQ(ask_query(*engine, "{ node { id } }"), R"({"data":{"node":{"id":0}}})");
  EXPECT_EQ(engine->cached_documents(), 1u);
  EXPECT_EQ(ask_query(*engine, "{ node { id } }"), R"({"data":{"node":{"id":0}}})");
  EXPECT_EQ(engine->cached_documents(), 1u);
  ask_query(*engine, "{ nothing }");
  EXPECT_EQ(engine->cached_documents(), 1u);
  for (int i = 0; i < 100; ++i) ask_query(*engine, "{ a" + std::to_string(i) + ": __typename }");
  EXPECT_LT(engine->cached_documents(), 20u);
  EXPECT_GT(engine->cached_documents(), 5u);
}

// A public client makes JSON of Python's text of an error: ' becomes ", and a " of the message would end it.
TEST(GraphqlEngine, TellsOfVariablesWithoutDoubleQuotes) {
  const auto engine = make({.hides_values = true, .plain_variable_errors = true});
  EXPECT_EQ(ask(*engine, R"({"query":"query($n:Int!){echo(int:$n)}","variables":{"m":1}})"),
            R"({"errors":[{"message":"Variable $n of required type Int! was not provided.",)"
            R"("locations":[{"line":1,"column":7}]}]})");
  EXPECT_EQ(
      ask(*engine, R"({"query":"query($n:Int!){echo(int:$n)}","variables":{"n":"x"}})"),
      R"({"errors":[{"message":"Variable $n got invalid value (hidden); Int cannot represent )"
      R"(non-integer value","locations":[{"line":1,"column":7}]}]})");
}

TEST(GraphqlEngine, ChecksVariables) {
  const auto engine = make();
  EXPECT_EQ(
      ask(*engine,
          R"({"query":"query($l:[Int!]!){echo(list:$l)}","variables":{"l":[1,"x",null]}})"),
      R"({"errors":[{"message":"Variable \"$l\" got invalid value \"x\" at \"l[1]\"; Int cannot represent non-integer value: \"x\"","locations":[{"line":1,"column":7}]},)"
      R"({"message":"Variable \"$l\" got invalid value null at \"l[2]\"; Expected non-nullable type \"Int!\" not to be null.","locations":[{"line":1,"column":7}]}]})");
  EXPECT_THAT(
      ask(*engine,
          R"({"query":"query($i:In){echo(in:$i)}","variables":{"i":{"in":{"in":{"b":1}}}}})"),
      HasSubstr(R"(Field \"b\" is not defined by type \"In\".)"));
  EXPECT_EQ(
      ask(*engine,
          R"({"query":"query($i:In $a:Any){echo(in:$i,any:$a)}","variables":{"i":{"in":{"a":1}},"a":{"x":[1,"y",2.5,null]}}})"),
      R"({"data":{"echo":"{\"in\":{\"in\":{\"a\":1}},\"any\":{\"x\":[1,\"y\",2.5,null]}}"}})");
}

// Attack case 32, each multiplication with its own stable code.
class Ac32 : public testing::Test {
 protected:
  void expect_refused(const std::string& query, std::string_view code) {
    const std::string answer = ask_query(*engine, query);
    EXPECT_THAT(answer, HasSubstr("\"code\":\"" + std::string(code) + "\""))
        << answer.substr(0, 300);
    EXPECT_THAT(answer, testing::Not(HasSubstr("\"data\"")));
  }
  std::unique_ptr<Engine> engine = make();
};

TEST_F(Ac32, Depth) {
  std::string query;
  for (int i = 0; i < 21; ++i) query += "{node";
  expect_refused(query + "{id}" + std::string(21, '}'), "QUERY_TOO_DEEP");
  // The same through fragments.
  query = "{ node { ...F0 } }";
  for (int i = 0; i < 30; ++i) {
    query += " fragment F" + std::to_string(i) + " on Node { node { ...F" + std::to_string(i + 1) +
             " } }";
  }
  expect_refused(query + " fragment F30 on Node { id }", "QUERY_TOO_DEEP");
  EXPECT_THAT(ask_query(*engine, "{ node { node { node { id } } } }"), HasSubstr("\"data\""));
}

TEST_F(Ac32, NestingEndsTheParser) {
  std::string query;
  for (int i = 0; i < 3000; ++i) query += "{a";
  EXPECT_THAT(ask_query(*engine, query), HasSubstr("nested more than 100 levels deep"));
  EXPECT_THAT(ask_query(*engine, "{ echo(any: " + std::string(9000, '[')),
              HasSubstr("nested more than 100 levels deep"));
}

TEST_F(Ac32, Breadth) {
  std::string query = "{";
  for (int i = 0; i < 201; ++i) query += " __typename";
  expect_refused(query + "}", "QUERY_TOO_BROAD");
}

TEST_F(Ac32, Aliases) {
  std::string query = "{";
  for (int i = 0; i < 101; ++i) query += " a" + std::to_string(i) + ": long";
  expect_refused(query + "}", "TOO_MANY_ALIASES");
}

TEST_F(Ac32, Directives) {
  std::string query = "{ __typename";
  for (int i = 0; i < 101; ++i) query += " @skip(if: false)";
  expect_refused(query + "}", "TOO_MANY_DIRECTIVES");
}

TEST_F(Ac32, Fragments) {
  std::string query = "{";
  for (int i = 0; i < 101; ++i) query += " ...F";
  expect_refused(query + "} fragment F on Query { __typename }", "TOO_MANY_FRAGMENTS");
}

TEST_F(Ac32, FragmentsThatDoubleEachTime) {
  std::string query = "{ node { ...F0 } }";
  for (int i = 0; i < 15; ++i) {
    const std::string next = "{ ...F" + std::to_string(i + 1) + " }";
    query += " fragment F" + std::to_string(i) + " on Node { a: node " + next + " b: node " + next +
             " }";
  }
  expect_refused(query + " fragment F15 on Node { id }", "QUERY_TOO_COMPLEX");
}

TEST_F(Ac32, FragmentCycles) {
  const std::string answer = ask_query(
      *engine,
      "{ node { ...A } } fragment A on Node { ...B } fragment B on Node { node { ...A } }");
  EXPECT_THAT(answer, HasSubstr("Cannot spread fragment \\\"A\\\" within itself via \\\"B\\\"."));
}

TEST_F(Ac32, LongDocuments) {
  expect_refused("{ __typename } #" + std::string(10'000'000, 'x'), "DOCUMENT_TOO_LARGE");
  std::string query = "{";
  for (int i = 0; i < 10'001; ++i) query += " a";
  EXPECT_THAT(ask_query(*engine, query + "}"), HasSubstr("more that 10000 tokens"));
}

TEST_F(Ac32, LongNamesAreNotRepeatedInFull) {
  const std::string answer = ask_query(*engine, "{ " + std::string(200'000, 'x') + " }");
  EXPECT_LT(answer.size(), 3000u);
}

TEST_F(Ac32, HugeNumbers) {
  EXPECT_THAT(ask_query(*engine, "{ echo(int: " + std::string(5000, '9') + ") }").substr(0, 100),
              HasSubstr("non 32-bit signed integer"));
  EXPECT_THAT(
      ask(*engine, R"({"query":"query($i:Int){echo(int:$i)}","variables":{"i":99999999999}})"),
      HasSubstr("Int cannot represent non 32-bit signed integer value: 99999999999"));
  EXPECT_THAT(ask(*engine, R"({"query":"query($i:Int){echo(int:$i)}","variables":{"i":)" +
                               std::string(400, '9') + "}}"),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(ask(*engine, R"({"query":"query($i:Int){echo(int:$i)}","variables":{"i":1e400}})"),
              HasSubstr("\"errors\""));
}

// The variables of a request are read before anybody asks who sent it.
TEST_F(Ac32, ManyVariablesInManyMembers) {
  std::string members = "\"unknown\":1";
  for (int i = 0; members.size() < 1024UL * 1024 - 100'000; ++i) {
    members += ",\"m" + std::to_string(i) + "\":1";
  }
  const auto time_of = [&](int count) {
    std::string defined;
    std::string used;
    for (int i = 0; i < count; ++i) {
      defined += "$v" + std::to_string(i) + ":Int=7 ";
      used += "$v" + std::to_string(i) + " ";
    }
    const std::string body = "{\"query\":\"query(" + defined + "){echo(list:[" + used +
                             "])}\",\"variables\":{" + members + "}}";
    auto best = Clock::duration::max();
    for (int i = 0; i < 3; ++i) {
      const auto begin = Clock::now();
      EXPECT_THAT(ask(*engine, body).substr(0, 30), HasSubstr("{\"data\":{\"echo\":"));
      best = std::min(best, Clock::now() - begin);
    }
    return best;
  };
  const auto one = time_of(1);
  const auto many = time_of(1'200);
  EXPECT_LT(many, 20 * one) << "each variable must not read all members";
}

TEST_F(Ac32, Batches) {
  EXPECT_THAT(ask(*engine, R"([{"query":"{ __typename }"},{"query":"{ __typename }"}])"),
              HasSubstr("BATCH_REFUSED"));
}

TEST_F(Ac32, LongAnswers) {
  EngineOptions options;
  options.limits.max_response = 10'000;
  engine = make(options);
  EXPECT_EQ(
      ask_query(*engine, "{ long }"),
      R"({"data":null,"errors":[{"message":"The answer has more than 10000 bytes, the limit of this server.","extensions":{"code":"RESPONSE_TOO_LARGE","statusCode":400}}]})");
}

}  // namespace
}  // namespace gitops::graphql
