#include "app-proxy/http/routes.hpp"

#include <gtest/gtest.h>

namespace gitops::app_proxy {
namespace {

TEST(Routes, PathsHaveOneCanonicalForm) {
  for (const char* path : {"/api/graphql", "/app-proxy/api/graphql", "//api///graphql//",
                           "/app-proxy//api/graphql/", "//app-proxy/api/graphql"}) {
    EXPECT_EQ(canonical_path(path), "/api/graphql") << path;
  }
  EXPECT_EQ(canonical_path("/"), "/");
  EXPECT_EQ(canonical_path("//"), "/");
  EXPECT_EQ(canonical_path(""), "");
  // The prefix counts once, and as a whole segment.
  EXPECT_EQ(canonical_path("/app-proxy/app-proxy/api"), "/app-proxy/api");
  EXPECT_EQ(canonical_path("/app-proxyapi/graphql"), "/app-proxyapi/graphql");
  EXPECT_EQ(canonical_path("/app-proxy"), "/app-proxy");
  // Nothing is decoded: what is encoded stays what it is for the router.
  EXPECT_EQ(canonical_path("/app-proxy%2fapi/..%2f/x"), "/app-proxy%2fapi/..%2f/x");
}

TEST(Routes, ErrorsHaveTheFormThatClientsKnow) {
  const auto response = rest_error(400, "a \"b\"");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, R"({"statusCode":400,"message":"a \"b\"","error":"Bad Request"})");
}

// A client that was slow may send the same body again, and one whose body is too large may not.
TEST(Routes, ABodyThatDidNotArriveInTimeIsNotTooLarge) {
  EXPECT_EQ(status_of_unread_body({.code = ErrorCode::timeout}), 408);
  EXPECT_EQ(status_of_unread_body({.code = ErrorCode::too_large, .http_status = 413}), 413);
  EXPECT_EQ(status_of_unread_body({.code = ErrorCode::protocol, .http_status = 400}), 400);
}

}  // namespace
}  // namespace gitops::app_proxy
