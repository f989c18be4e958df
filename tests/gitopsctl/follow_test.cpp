// Commands that go on until they are interrupted, and the completion of names, beside a real control plane.
#include <csignal>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gitopsctl/action_bed.hpp"
#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr auto kLimit = std::chrono::seconds(60);

class Follow : public testing::Test {
 protected:
  static ActionBed& bed() { return action_bed(); }
  Environment environment() const {
    return {{"HTTP_PROXY", std::nullopt},
            {"http_proxy", std::nullopt},
            {"HOME", folder_.path()},
            {"CODEFRESH_URL", bed().program().url()},
            {"CODEFRESH_TOKEN", bed().key}};
  }
  Process start(std::vector<std::string> words) const {
    words.insert(words.begin(), std::string(GITOPS_BIN_DIR) + "/gitopsctl");
    return Process({.argv = std::move(words), .env = environment(), .log_file = folder_ / "log"});
  }
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }

  TempDir folder_;
};

TEST_F(Follow, AWatchPrintsTheListAndThenWhatChanges) {
  bed().report_health("Healthy");
  Process watch = start({"app", "list", "--watch"});
  ASSERT_TRUE(wait_until([&] { return log().contains("moving") && log().contains("shop"); }, kLimit,
                         "the list"));
  bed().report_health("Degraded");
  ASSERT_TRUE(wait_until([&] { return log().contains("Degraded"); }, kLimit, "the change"))
      << log();
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(kLimit), 130);
  const auto text = log();
  EXPECT_EQ(text.find("shop"), text.rfind("shop")) << "it has not changed: " << text;
  EXPECT_EQ(text.find("NAMESPACE"), text.rfind("NAMESPACE")) << text;
}

TEST_F(Follow, EventsAreLinesAsTheyCome) {
  Process events = start({"events", "--follow"});
  bool is_healthy = false;
  // The stream may begin after the first report.
  ASSERT_TRUE(wait_until(
      [&] {
        is_healthy = !is_healthy;
        bed().report_health(is_healthy ? "Healthy" : "Missing");
        return log().contains("Application  prod/argocd/moving  OutOfSync  Missing");
      },
      kLimit, "the line"))
      << log();
  events.signal(SIGINT);
  EXPECT_EQ(events.wait(kLimit), 130);
  EXPECT_THAT(log(), Not(HasSubstr("\x1b")));
}

TEST_F(Follow, BashCompletesTheNamesOfTheServer) {
  const auto completed = [&](const std::string& words, int at) {
    const std::string script = "PATH=" + std::string(GITOPS_BIN_DIR) +
                               ":$PATH; source <(gitopsctl completion bash); compopt() { :; }; "
                               "COMP_WORDS=(gitopsctl " +
                               words + "); COMP_CWORD=" + std::to_string(at) +
                               "; _gitopsctl; printf '%s\\n' \"${COMPREPLY[@]}\"";
    return run_or_throw({"bash", "-u", "-c", script}, environment());
  };
  EXPECT_EQ(completed("app get sh", 3), "shop");
  EXPECT_EQ(completed("app sync prod/argocd/s", 3), "prod/argocd/shop");
  EXPECT_EQ(completed("runtime status p", 3), "prod");
  EXPECT_EQ(completed("app list --runtime si", 4), "silent");
}

TEST_F(Follow, ATokenIsAskedForWithoutAnEcho) {
  // The pseudo-terminal of script(1) echoes what is typed, unless the program switches that off.
  if (!find_program("script")) GTEST_SKIP() << "script(1) is missing";
  const std::string login =
      std::string(GITOPS_BIN_DIR) + "/gitopsctl login " + bed().program().url() + " --name=here";
  const std::string command =
      "(until grep -q 'not shown' " + (folder_ / "typed").string() +
      " 2>/dev/null; do sleep 0.1; done; printf '%s\\n' \"$KEY\"; sleep 3) | "
      "script --quiet --return --flush --command '" +
      login + "' " + (folder_ / "typed").string();
  auto with_key = environment();
  with_key["KEY"] = bed().key;
  const auto result = run_command({"bash", "-c", command}, with_key);
  EXPECT_THAT(result.out, HasSubstr("API key (it is not shown): "));
  EXPECT_THAT(result.out, HasSubstr("Logged in as ann of account acme"));
  EXPECT_THAT(result.out + read_file(folder_ / "typed"), Not(HasSubstr(bed().key)));
}

}  // namespace
}  // namespace gitops::test
