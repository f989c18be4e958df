#include "control-plane/http/console_assets.hpp"

#include <gmock/gmock.h>

#include "common/core/metrics.hpp"
#include "common/http/gzip.hpp"
#include "control-plane/http/served_routes.hpp"

namespace gitops::control_plane_server {
namespace {

using testing::HasSubstr;

constexpr ConsoleAsset kScript{.path = "/assets/index-1a2b3c.js",
                               .media_type = "text/javascript; charset=utf-8",
                               .raw = "raw text",
                               .gzip = "gzip",
                               .brotli = "br",
                               .hash = "0123456789abcdef"};
constexpr ConsoleAsset kPlain{.path = "/index.html",
                              .media_type = "text/html; charset=utf-8",
                              .raw = "<!doctype html>",
                              .gzip = {},
                              .brotli = {},
                              .hash = "fedcba9876543210"};
// The client decodes what is compressed, so these files are not.
constexpr ConsoleAsset kAssets[] = {{.path = "/assets/index-1a2b3c.js",
                                     .media_type = "text/javascript; charset=utf-8",
                                     .raw = "raw text",
                                     .gzip = {},
                                     .brotli = {},
                                     .hash = "0123456789abcdef"},
                                    kPlain};

std::string header(const http::Response& response, std::string_view name) {
  return std::string(response.headers.find(name).value_or(""));
}
std::string coding_for(std::string accepted) {
  return header(asset_response(kScript, {{"Accept-Encoding", std::move(accepted)}}),
                "Content-Encoding");
}

TEST(ConsoleAssets, TheSmallestAllowedFormIsChosen) {
  EXPECT_EQ(coding_for("gzip, deflate, br, zstd"), "br");
  EXPECT_EQ(coding_for("gzip"), "gzip");
  EXPECT_EQ(coding_for("GZIP;q=0.5"), "gzip");
  EXPECT_EQ(coding_for("br;q=0, gzip"), "gzip");
  EXPECT_EQ(coding_for("br; q=0.0 , *"), "gzip");
  EXPECT_EQ(coding_for("*"), "br");
  EXPECT_EQ(coding_for("*;q=0"), "");
  EXPECT_EQ(coding_for("brotli, x-gzip"), "");
  EXPECT_EQ(coding_for(""), "");
  EXPECT_EQ(asset_response(kScript, {}).body, "raw text");
  EXPECT_EQ(asset_response(kPlain, {{"Accept-Encoding", "br, gzip"}}).body, "<!doctype html>")
      << "a form that does not exist";
}

TEST(ConsoleAssets, EachFormHasATagOfItsOwn) {
  const auto tag = [](std::string accepted) {
    return header(asset_response(kScript, {{"Accept-Encoding", std::move(accepted)}}), "ETag");
  };
  EXPECT_EQ(tag("br"), "\"0123456789abcdef-br\"");
  EXPECT_EQ(tag("gzip"), "\"0123456789abcdef-gzip\"");
  EXPECT_EQ(tag(""), "\"0123456789abcdef\"");
  const auto known = [](const std::string& accepted, const std::string& tags) {
    return asset_response(kScript, {{"Accept-Encoding", accepted}, {"If-None-Match", tags}});
  };
  const auto same = known("br", R"(W/"x", "0123456789abcdef-br")");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(header(same, "ETag"), tag("br"));
  EXPECT_EQ(known("gzip", tag("br")).status, 200) << "the tag of another form";
  EXPECT_EQ(known("", tag("br")).status, 200);
  EXPECT_EQ(known("br", "*").status, 304);
}

TEST(ConsoleAssets, HashedNamesAreKeptAndOthersRevalidated) {
  const auto script = asset_response(kScript, {});
  EXPECT_EQ(header(script, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header(asset_response(kPlain, {}), "Cache-Control"), "no-cache");
  EXPECT_EQ(header(script, "Vary"), "Accept-Encoding");
  EXPECT_EQ(header(script, "X-Content-Type-Options"), "nosniff");
}

TEST(ConsoleAssets, ThePolicyAllowsNothingInlineAndNoOtherHost) {
  const auto policy = header(asset_response(kPlain, {}), "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, testing::Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, testing::Not(HasSubstr("http")));
}

TEST(ConsoleAssets, ThePageOfAUserReachesRuntimes) {
  const std::vector<std::string> origins{"https://prod.example", "https://test.example:8443"};
  const auto page = asset_response(kPlain, {}, origins);
  EXPECT_THAT(header(page, "Content-Security-Policy"),
              testing::EndsWith("; connect-src 'self' https://prod.example "
                                "https://test.example:8443"));
  EXPECT_EQ(header(page, "Cache-Control"), "private, no-cache");
  const auto without = header(asset_response(kPlain, {}), "ETag");
  EXPECT_NE(header(page, "ETag"), without);
  EXPECT_NE(header(page, "ETag"), header(asset_response(kPlain, {}, {origins[0]}), "ETag"));
  EXPECT_EQ(asset_response(kPlain, {{"If-None-Match", without}}, origins).status, 200)
      << "the browser has the page with another policy";
  EXPECT_EQ(asset_response(kPlain, {{"If-None-Match", header(page, "ETag")}}, origins).status, 304);
}

TEST(ConsoleAssets, OnlyPagesOfBrowsersFallBackToThePage) {
  const http::Headers browser{{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}};
  for (const auto* path : {"/", "/applications", "/applications/prod/argocd/api/tree", "/apix",
                           "/runtimes/prod", "/consoles"}) {
    EXPECT_TRUE(is_console_page(path, browser)) << path;
    EXPECT_FALSE(is_console_page(path, {{"Accept", "*/*"}})) << path;
    EXPECT_FALSE(is_console_page(path, {})) << path;
  }
  for (const auto* path : {"/api", "/api/nothing", "/2.0/api/nothing", "/console/api/v1/nothing",
                           "/assets/index-old.js", "/tunnel-plugin", "/tunnel-plugin/x"}) {
    EXPECT_FALSE(is_console_page(path, browser)) << path;
  }
}

TEST(ConsoleAssets, TheRoutesServeFilesPagesAndErrors) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    ServedRoutes served(accounts, console_routes(kAssets, {}));
    const http::Headers browser{{"Accept", "text/html"}};
    const auto script = co_await served.send("GET", "/assets/index-1a2b3c.js", {});
    EXPECT_EQ(script.status, 200);
    EXPECT_EQ(script.body, "raw text");
    const auto head = co_await served.send("HEAD", "/assets/index-1a2b3c.js", {});
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
    EXPECT_EQ(header(head, "Content-Length"), "8");
    const auto root = co_await served.send("GET", "/", browser);
    EXPECT_EQ(root.body, "<!doctype html>");
    const auto page = co_await served.send("GET", "/runtimes/prod?x=1", browser);
    EXPECT_EQ(page.body, "<!doctype html>");
    const auto gone = co_await served.send("GET", "/assets/index-old.js", browser);
    EXPECT_EQ(gone.status, 404);
    EXPECT_THAT(gone.body, HasSubstr("\"message\""));
    const auto program = co_await served.send("GET", "/runtimes/prod", {{"Accept", "*/*"}});
    EXPECT_EQ(program.status, 404);
    const auto change = co_await served.send("POST", "/runtimes/prod", browser);
    EXPECT_EQ(change.status, 404);
    co_await served.stop();
  });
}

TEST(ConsoleAssets, OnlyThePageAsksForItsRuntimes) {
  with_accounts([](AccountsFixture& accounts) -> Task<> {
    std::vector<std::string> asked;
    ServedRoutes served(
        accounts,
        console_routes(kAssets,
                       [&asked](http::Exchange& exchange) -> Task<std::vector<std::string>> {
                         asked.emplace_back(exchange.path());
                         co_return std::vector<std::string>{"https://prod.example"};
                       }));
    const http::Headers browser{{"Accept", "text/html"}};
    const auto page = co_await served.send("GET", "/runtimes/prod", browser);
    EXPECT_THAT(header(page, "Content-Security-Policy"), HasSubstr(" https://prod.example"));
    const auto script = co_await served.send("GET", "/assets/index-1a2b3c.js", browser);
    EXPECT_THAT(header(script, "Content-Security-Policy"), testing::Not(HasSubstr("https:")));
    EXPECT_THAT(asked, testing::ElementsAre("/runtimes/prod"));
    co_await served.stop();
  });
}

TEST(ConsoleAssets, TheProgramHasAPage) {
  const auto assets = console_assets();
  const auto page = std::ranges::find(assets, "/index.html", &ConsoleAsset::path);
  ASSERT_NE(page, assets.end());
  EXPECT_THAT(asset_response(*page, {}).body, testing::StartsWith("<!doctype html>"));
}

TEST(ConsoleAssets, ARawFormThatIsMissingIsInflated) {
  const std::string text(1000, 'x');
  const auto gzip = http::gzip_compress(text);
  const ConsoleAsset asset{.path = "/assets/a-1.js",
                           .media_type = "text/javascript",
                           .raw = {},
                           .gzip = gzip,
                           .brotli = {},
                           .hash = "1"};
  const auto raw = asset_response(asset, {{"Accept-Encoding", "identity"}});
  EXPECT_EQ(raw.body, text);
  EXPECT_EQ(header(raw, "Content-Encoding"), "");
  EXPECT_EQ(header(raw, "ETag"), "\"1\"");
  EXPECT_EQ(asset_response(asset, {{"Accept-Encoding", "gzip"}}).body, gzip);
}

}  // namespace
}  // namespace gitops::control_plane_server
