// docs/reference/app-proxy/examples.md and examples-argo.md: each document of the pages is sent to the running
// app-proxy, in order, and answered as the page says. Commits go to Git's own server; the rest behind the daemon are doubles.
#include <gmock/gmock.h>

#include "app-proxy/resolvers/table.hpp"
#include "doubles/double_server.hpp"
#include "e2e/app_proxy_examples_harness.hpp"
#include "e2e/git_harness.hpp"
#include "support/git_server.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;

TEST(AppProxyExamples, AreAnsweredAsThePageSays) {
  if (const auto missing = GitServer::missing()) FAIL() << *missing;
  const auto page = documented_examples();
  in_git_harness([&](GitHarness& harness) -> Task<> {
    ExampleHarness examples(harness, co_await asio::this_coro::executor);
    co_await play_in(examples, [&](ExampleHarness& w) -> Task<> {
      co_await w.start();
      for (const auto& [document, answer] : page) {
        SCOPED_TRACE(document);
        std::string sent = document;
        for (const auto& [shown, real] : w.names()) sent = replaced(sent, shown, real);
        const auto got = co_await w.ask(sent);
        std::string body = got.body;
        for (const auto& [shown, real] : w.names()) body = replaced(body, real, shown);
        Json said = Json::parse(body, nullptr, false);
        const Json wanted = Json::parse(answer, nullptr, false);
        forget_what_varies(said, wanted);
        EXPECT_EQ(said, wanted);
      }
    });
  });
}

// A field of the API without an example fails.
TEST(AppProxyExamples, AreThereForEachField) {
  std::string all;
  for (const auto& example : documented_examples()) {
    all += example.document;
  }
  const app_proxy::VersionInfo version;
  const app_proxy::ResolverDependencies dependencies{.version = version};
  for (const auto& row : app_proxy::table(dependencies)) {
    const auto field = std::string(" ") + row.field;
    EXPECT_TRUE(all.contains(field + "(") || all.contains(field + " ")) << row.field;
  }
}

}  // namespace
}  // namespace gitops::test
