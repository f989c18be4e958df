#include "gitopsctl/app.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gitopsctl/runtime.hpp"
#include "support/process.hpp"

namespace gitops::ctl {
namespace {

TEST(AppName, IsReadAsItIsPrinted) {
  for (const char* text : {"shop", "argocd/shop", "prod/argocd/shop"}) {
    EXPECT_EQ(parse_app_name(text).text(), text);
  }
  const auto name = parse_app_name("prod/argocd/shop");
  EXPECT_EQ(name.runtime, "prod");
  EXPECT_EQ(name.ns, "argocd");
  EXPECT_EQ(name.name, "shop");
  EXPECT_EQ(parse_app_name("argocd/shop").ns, "argocd");
}

TEST(AppName, FlagsWinOverTheName) {
  AppSettings settings{.app = "prod/argocd/shop", .runtime = "stage", .ns = "apps"};
  EXPECT_EQ(settings.wanted().text(), "stage/apps/shop");
}

TEST(ShortRevision, IsThatOfACommitAlone) {
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  EXPECT_EQ(short_revision(commit), "0123456");
  EXPECT_EQ(short_revision(commit + "0123456789abcdef01234567"), "0123456");
  // 10.11.1 is another version of the chart.
  for (const char* whole : {"10.11.12", "1.2.3-rc.1", "sha256:0123456789", ""}) {
    EXPECT_EQ(short_revision(whole), whole);
  }
}

TEST(InstallCommand, IsTheOneThatTheConsoleShows) {
  const auto source = test::read_file(std::string(GITOPS_SOURCE_DIR) +
                                      "/apps/control-plane/console/src/pages/runtimes/install.ts");
  std::string wanted;
  // A template literal of TypeScript escapes the backslash.
  for (const char c : install_command("${addressFor(origin)}", "${name}")) {
    if (c == '\\') wanted += '\\';
    wanted += c;
  }
  EXPECT_THAT(source, testing::HasSubstr("`" + wanted + "`"));
  EXPECT_THAT(source, testing::HasSubstr("'" + std::string(kTokenCommand) + "'"));
}

TEST(InstallCommand, AnAddressOfThisMachineIsThatOfTheServiceForPods) {
  const std::string service = "http://control-plane.gitops-control-plane";
  EXPECT_EQ(address_for_pods("http://localhost:8080"), service);
  EXPECT_EQ(address_for_pods("http://127.0.0.1:8080"), service);
  EXPECT_EQ(address_for_pods("https://gitops.example.com"), "https://gitops.example.com");
}

}  // namespace
}  // namespace gitops::ctl
