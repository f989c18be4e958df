// Long lists, and TLS, beside a real control plane.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gitopsctl/action_bed.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

CommandResult call(const std::string& url, const std::string& key, std::vector<std::string> words,
                   const std::filesystem::path& home = {}, const std::string& input = {}) {
  words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
  Environment environment{{"HTTP_PROXY", std::nullopt},
                          {"http_proxy", std::nullopt},
                          {"HTTPS_PROXY", std::nullopt},
                          {"https_proxy", std::nullopt},
                          {"XDG_CONFIG_HOME", std::nullopt},
                          {"GITOPSCTL_CONTEXTS", std::nullopt},
                          {"HOME", home},
                          {"CODEFRESH_URL", url},
                          {"CODEFRESH_TOKEN", key}};
  return run_command(words, environment, input);
}

TEST(Pages, AListOfSeveralPagesIsWhole) {
  constexpr int kClusters = 603;
  action_bed().report_clusters(kClusters);
  const auto url = action_bed().program().url();
  const auto all = call(url, action_bed().key, {"cluster", "list", "-o", "name"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(std::ranges::count(all.out, '\n'), kClusters);
  EXPECT_EQ(all.err, "");
  const auto some = call(url, action_bed().key, {"cluster", "list", "-o", "name", "--limit=550"});
  EXPECT_EQ(std::ranges::count(some.out, '\n'), 550);
  EXPECT_THAT(some.err, HasSubstr("550 are shown, and there are more"));
  EXPECT_EQ(call(url, action_bed().key, {"cluster", "list", "silent"}).err, "No resources found\n");
}

TEST(Pages, TheAuditLogSaysThatThereIsMore) {
  const auto one = call(action_bed().program().url(), action_bed().key, {"audit", "--limit=1"});
  EXPECT_EQ(std::ranges::count(one.out, '\n'), 2) << "with its headers: " << one.out;
  EXPECT_THAT(one.err, HasSubstr("1 are shown, and there are more"));
}

TEST(Tls, AnAuthorityOfOnesOwnIsNamedAtTheLogin) {
  CertificateAuthority authority;
  ControlPlaneProcess program;
  program.use_tls(authority);
  program.add_account("acme");
  program.add_user("ann", "acme");
  const auto key = program.create_key("ann", "acme");
  program.start();
  const TempDir home;
  const auto refused = call({}, {}, {"login", program.url()}, home.path(), key);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, AllOf(StartsWith("Unable to connect to the server: "),
                                 HasSubstr("hint: gitopsctl login --ca-file")));
  const auto login =
      call({}, {}, {"login", program.url(), "--ca-file", authority.ca_file()}, home.path(), key);
  EXPECT_EQ(login.exit_code, 0) << login.err;
  EXPECT_THAT(call({}, {}, {"whoami"}, home.path()).out, HasSubstr("ann"));
}

// Two control planes behind ports of one host, such as those of kubectl port-forward.
TEST(Login, ANameThatIsNotGivenTakesNoOtherContextsPlace) {
  const TempDir home;
  const auto url = action_bed().program().url();
  const auto& key = action_bed().key;
  ASSERT_EQ(call({}, {}, {"login", url}, home.path(), key).exit_code, 0);
  EXPECT_EQ(call({}, {}, {"login", url + "/"}, home.path(), key).exit_code, 0) << "the same one";
  const auto other = call({}, {}, {"login", "http://127.0.0.1:1"}, home.path(), "canary.key");
  EXPECT_EQ(other.exit_code, 2) << other.out;
  EXPECT_THAT(other.err, HasSubstr("context 127.0.0.1 is of another control plane; "));
  EXPECT_EQ(call({}, {}, {"whoami"}, home.path()).exit_code, 0);
  const auto named =
      call({}, {}, {"login", "http://127.0.0.1:1", "--name=there"}, home.path(), "canary.key");
  EXPECT_EQ(named.exit_code, 3) << "it is asked: " << named.err;
}

TEST(Login, FilesThatItNamesAreFoundFromAnyFolder) {
  const TempDir home;
  const TempDir folder;
  write_file(folder / "key", action_bed().key);
  const Environment environment{
      {"HTTP_PROXY", std::nullopt},      {"http_proxy", std::nullopt},
      {"XDG_CONFIG_HOME", std::nullopt}, {"GITOPSCTL_CONTEXTS", std::nullopt},
      {"CODEFRESH_URL", std::nullopt},   {"HOME", home.path()}};
  const auto login = run_command({std::string(GITOPS_BIN_DIR) + "/gitopsctl", "login",
                                  action_bed().program().url(), "--token-file", "key"},
                                 environment, {}, std::chrono::seconds(60), folder.path());
  EXPECT_EQ(login.exit_code, 0) << login.err;
  const auto who = run_command({std::string(GITOPS_BIN_DIR) + "/gitopsctl", "whoami"}, environment);
  EXPECT_EQ(who.exit_code, 0) << who.err;
}

}  // namespace
}  // namespace gitops::test
