#include "common/http/route_table.hpp"

#include <stdexcept>

#include <gmock/gmock.h>

namespace gitops::http {
namespace {

// "found 2 a=b", "not_found", "405 GET, HEAD", "204 GET, HEAD", "malformed".
std::string outcome(const RouteTable& table, std::string_view method, std::string_view path,
                    const std::vector<std::string>& parameters = {}) {
  const RouteMatch match = table.match(method, path);
  switch (match.kind) {
    case RouteMatch::Kind::found: {
      std::string text = "found " + std::to_string(match.row);
      for (const auto& name : parameters) text += " " + name + "=" + match.parameters.at(name);
      return text;
    }
    case RouteMatch::Kind::not_found:
      return "not_found";
    case RouteMatch::Kind::method_not_allowed:
      return "405 " + match.allow;
    case RouteMatch::Kind::options:
      return "204 " + match.allow;
    case RouteMatch::Kind::malformed:
      return "malformed";
  }
  return "?";
}

TEST(RouteTable, FindsTheRowOfMethodAndPath) {
  const RouteTable table({{"GET", "/"},
                          {"GET", "/apps"},
                          {"POST", "/apps"},
                          {"GET", "/apps/{name}"},
                          {"GET", "/apps/{name}/logs/{pod}"}});
  EXPECT_EQ(outcome(table, "GET", "/"), "found 0");
  EXPECT_EQ(outcome(table, "GET", "/apps"), "found 1");
  EXPECT_EQ(outcome(table, "POST", "/apps"), "found 2");
  EXPECT_EQ(outcome(table, "GET", "/apps/shop", {"name"}), "found 3 name=shop");
  EXPECT_EQ(outcome(table, "GET", "/apps/shop/logs/p-1", {"pod", "name"}),
            "found 4 pod=p-1 name=shop");
}

TEST(RouteTable, PathsDifferByEachSlash) {
  const RouteTable table({{"GET", "/a"}, {"GET", "/b/"}, {"GET", "/c/{x}"}});
  EXPECT_EQ(outcome(table, "GET", "/a"), "found 0");
  EXPECT_EQ(outcome(table, "GET", "/b/"), "found 1");
  for (const char* path : {"/a/", "//a", "/b", "/b//", "/c/", "/c", "/c/x/", "/c//x", "/A", "/"}) {
    EXPECT_EQ(outcome(table, "GET", path), "not_found") << path;
  }
}

TEST(RouteTable, AnswersHeadByGetAndOptionsByItself) {
  const RouteTable table({{"GET", "/a"}, {"PUT", "/a"}, {"POST", "/b"}, {"OPTIONS", "/c"}});
  EXPECT_EQ(outcome(table, "HEAD", "/a"), "found 0");
  EXPECT_EQ(outcome(table, "HEAD", "/b"), "405 OPTIONS, POST");
  EXPECT_EQ(outcome(table, "DELETE", "/a"), "405 GET, HEAD, OPTIONS, PUT");
  EXPECT_EQ(outcome(table, "OPTIONS", "/a"), "204 GET, HEAD, OPTIONS, PUT");
  EXPECT_EQ(outcome(table, "OPTIONS", "/c"), "found 3");
  EXPECT_EQ(outcome(table, "OPTIONS", "/none"), "not_found");
  EXPECT_EQ(outcome(table, "get", "/a"), "405 GET, HEAD, OPTIONS, PUT") << "methods have a case";
}

TEST(RouteTable, PrefersTextFromTheLeft) {
  const RouteTable table({{"GET", "/{a}/{b}"},
                          {"GET", "/x/{b}"},
                          {"GET", "/{a}/y"},
                          {"GET", "/x/{rest...}"},
                          {"POST", "/x/y"}});
  EXPECT_EQ(outcome(table, "GET", "/x/y", {"b"}), "found 1 b=y");
  EXPECT_EQ(outcome(table, "GET", "/z/y", {"a"}), "found 2 a=z");
  EXPECT_EQ(outcome(table, "GET", "/z/z", {"a", "b"}), "found 0 a=z b=z");
  EXPECT_EQ(outcome(table, "GET", "/x/y/z", {"rest"}), "found 3 rest=y/z");
  EXPECT_EQ(outcome(table, "PUT", "/x/y"), "405 GET, HEAD, OPTIONS, POST");
}

TEST(RouteTable, TakesTheRestOfAPath) {
  const RouteTable table({{"GET", "/static/{path...}"}});
  EXPECT_EQ(outcome(table, "GET", "/static/a", {"path"}), "found 0 path=a");
  EXPECT_EQ(outcome(table, "GET", "/static/a//b/", {"path"}), "found 0 path=a//b/");
  EXPECT_EQ(outcome(table, "GET", "/static/", {"path"}), "found 0 path=");
  EXPECT_EQ(outcome(table, "GET", "/static"), "not_found");
}

TEST(RouteTable, DecodesOnce) {
  const RouteTable table({{"GET", "/apps/{name}"}});
  EXPECT_EQ(outcome(table, "GET", "/apps/a%20b", {"name"}), "found 0 name=a b");
  EXPECT_EQ(outcome(table, "GET", "/apps/%2541", {"name"}), "found 0 name=%41");
  EXPECT_EQ(outcome(table, "GET", "/apps/a%2Fb", {"name"}), "found 0 name=a/b");
  EXPECT_EQ(outcome(table, "GET", "/apps/a+b", {"name"}), "found 0 name=a+b");
  EXPECT_EQ(outcome(table, "GET", "/%61pps/x", {"name"}), "found 0 name=x");
  EXPECT_EQ(outcome(table, "GET", "/apps/%c3%a4", {"name"}), "found 0 name=\xc3\xa4");
}

TEST(RouteTable, RefusesPathsThatCouldMeanSomethingElse) {
  const RouteTable table({{"GET", "/apps/{name}"}, {"GET", "/static/{rest...}"}});
  for (const char* path :
       {"", "apps", "*", "/apps/%", "/apps/%4", "/apps/%zz", "/apps/%00", "/apps/a%0ab",
        "/apps/%7f", "/apps/%ff", "/apps/.", "/apps/..", "/apps/%2e%2e", "/static/a/../b",
        "/static/a%2F..%2Fb", "/static/..%2f", "/apps/.%2e"}) {
    EXPECT_EQ(outcome(table, "GET", path), "malformed") << path;
  }
  EXPECT_EQ(outcome(table, "GET", "/apps/...", {"name"}), "found 0 name=...");
  EXPECT_EQ(outcome(table, "GET", "/apps/..a", {"name"}), "found 0 name=..a");
}

TEST(RouteTable, RefusesTablesWithMistakes) {
  using Rows = std::vector<RouteTable::Row>;
  for (const Rows& rows :
       {Rows{{"GET", ""}}, Rows{{"GET", "a"}}, Rows{{"", "/a"}}, Rows{{"G T", "/a"}},
        Rows{{"GET", "/{}"}}, Rows{{"GET", "/a{b}"}}, Rows{{"GET", "/{a}b"}},
        Rows{{"GET", "/{a}/{a}"}}, Rows{{"GET", "/{a...}/b"}}, Rows{{"GET", "/{...}"}},
        Rows{{"GET", "/a%20b"}}, Rows{{"GET", "/a?b"}}, Rows{{"GET", "/{a"}}, Rows{{"GET", "/a}"}},
        Rows{{"GET", "/a"}, {"GET", "/a"}}, Rows{{"GET", "/{a}"}, {"GET", "/{b}"}},
        Rows{{"GET", "/x/{a...}"}, {"GET", "/x/{b...}"}}}) {
    EXPECT_THROW(RouteTable{rows}, std::logic_error) << rows.back().pattern;
  }
  EXPECT_NO_THROW(RouteTable(Rows{{"GET", "/a"}, {"POST", "/a"}, {"GET", "/{a}"}}));
}

TEST(RouteTable, AHandlerThatAsksForAnUnknownParameterIsABug) {
  const RouteTable table({{"GET", "/{a}"}});
  EXPECT_THROW((void)table.match("GET", "/x").parameters.at("b"), std::logic_error);
}

}  // namespace
}  // namespace gitops::http
