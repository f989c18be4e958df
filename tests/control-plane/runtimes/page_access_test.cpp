#include "control-plane/runtimes/page_access.hpp"

#include <gmock/gmock.h>

namespace gitops::control_plane_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RuntimeRow runtime(const std::string& name, const std::string& address) {
  return {.name = name,
          .runtime_namespace = {},
          .cluster = {},
          .arguments = R"({"ingressHost":")" + address + "\"}",
          .status = {},
          .errors = {}};
}

TEST(BrowserOrigin, IsThatOfAPlainAddress) {
  EXPECT_EQ(browser_origin("https://prod.example", false), "https://prod.example");
  EXPECT_EQ(browser_origin("https://Prod.Example:443/", false), "https://prod.example");
  EXPECT_EQ(browser_origin("https://prod.example:8443", false), "https://prod.example:8443");
  EXPECT_EQ(browser_origin("https://[fd00::1]", false), "https://[fd00::1]");
  EXPECT_EQ(browser_origin("http://127.0.0.1:8080", true), "http://127.0.0.1:8080");
}

TEST(BrowserOrigin, AnythingElseDoesNotReachThePolicy) {
  for (const auto* address : {"",
                              "prod.example",
                              "http://prod.example",
                              "wss://prod.example",
                              "https://*.example",
                              "https://*",
                              "*",
                              "https:",
                              "https://prod.example/base",
                              "https://prod.example/?a=1",
                              "https://prod.example?",
                              "https://a:b@prod.example",
                              "https://prod.example; script-src *",
                              "https://prod.example;script-src",
                              "https://prod.example 'unsafe-inline'",
                              "https://prod.example,https://evil.example",
                              "https://'self'",
                              "'unsafe-inline'",
                              "data:",
                              "https://prod.example\\nX: y",
                              "https://prod.example#a"}) {
    EXPECT_EQ(browser_origin(address, false), "") << address;
  }
}

TEST(BrowserOrigins, AreDistinctAndBounded) {
  std::vector<RuntimeRow> runtimes{
      runtime("a", "https://a.example"), runtime("b", "https://a.example"),
      runtime("c", "https://c.example/path"), runtime("d", "https://d.example")};
  EXPECT_THAT(browser_origins(runtimes, "", false),
              ElementsAre("https://a.example", "https://d.example"));
  EXPECT_THAT(browser_origins(runtimes, "d", false),
              ElementsAre("https://d.example", "https://a.example"));
  for (int i = 0; i < 1'000; ++i) {
    runtimes.push_back(runtime("r", "https://r" + std::to_string(i) + ".example"));
  }
  runtimes.push_back(runtime("last", "https://last.example"));
  const auto origins = browser_origins(runtimes, "last", false);
  std::size_t bytes = 0;
  for (const auto& origin : origins) bytes += origin.size() + 1;
  EXPECT_LE(bytes, kMaxPageOrigins);
  EXPECT_GT(bytes, kMaxPageOrigins - 30);
  EXPECT_EQ(origins[0], "https://last.example") << "the one that the page is about";
  EXPECT_THAT(browser_origins({}, "", true), IsEmpty());
}

TEST(RuntimeOfPage, IsInItsPath) {
  EXPECT_EQ(runtime_of_page("/applications/prod/argocd/shop/tree"), "prod");
  EXPECT_EQ(runtime_of_page("/runtimes/prod"), "prod");
  for (const auto* path : {"/", "/applications", "/applications/", "/audit", "/access/users"}) {
    EXPECT_EQ(runtime_of_page(path), "") << path;
  }
}

}  // namespace
}  // namespace gitops::control_plane_server
