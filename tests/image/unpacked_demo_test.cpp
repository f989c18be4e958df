// `gitopsctl demo` with the programs as the archive of a release has them, where no checkout can be seen.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "support/process.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UnpackedDemo : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path built = GITOPS_BIN_DIR;
    fs::create_directory(top());
    for (const auto* name : {"gitops-demo", "gitops-runtime"}) {
      fs::copy_file(built / name, top() / name);
    }
    for (const auto* name : {"app-proxy", "control-plane", "event-reporter", "gitopsctl",
                             "request-router", "tunnel-client", "tunnel-server"}) {
      fs::create_symlink("gitops-runtime", top() / name);
    }
  }

  [[nodiscard]] fs::path top() const { return folder_ / "unpacked"; }

  // Runs a command without a home and with an empty folder in place of the checkout. Where the kernel allows no
  // namespaces to users, the checkout can be seen.
  [[nodiscard]] CommandResult run(const std::vector<std::string>& words,
                                  const Environment& environment) const {
    fs::create_directories(folder_ / "empty");
    std::vector<std::string> command{"unshare", "--user", "--map-root-user", "--mount"};
    if (!run_command({"unshare", "--user", "--map-root-user", "--mount", "true"}).ok()) {
      command.clear();
    } else {
      command.insert(command.end(), {"sh", "-c", R"(mount --bind "$0" "$1" && shift && exec "$@")",
                                     folder_ / "empty", GITOPS_SOURCE_DIR});
    }
    command.insert(command.end(), words.begin(), words.end());
    auto all = environment;
    all["HOME"] = std::nullopt;
    return run_command(command, all, {}, std::chrono::seconds(200), folder_ / "empty");
  }

  TempDir folder_;
};

TEST_F(UnpackedDemo, IsPlayedToItsLastLine) {
  // As users have them: temporary files below a name with a blank, and a proxy that knows nothing of this machine.
  const auto temporary = folder_ / "user's temporary files";
  fs::create_directory(temporary);
  Environment environment{{"TMPDIR", temporary.string()}};
  for (const auto* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"}) {
    environment[name] = "http://127.0.0.1:1";
  }
  const auto played = run({top() / "gitopsctl", "demo"}, environment);
  EXPECT_EQ(played.exit_code, 0) << played.out << played.err;
  EXPECT_THAT(played.out, HasSubstr("All of it was checked")) << played.err;
}

TEST_F(UnpackedDemo, NamesThePackagesThatAreMissing) {
  fs::create_directory(folder_ / "bin");
  fs::create_symlink("/usr/bin/env", folder_ / "bin/env");
  const auto refused =
      run({"env", "PATH=" + (folder_ / "bin").string(), top() / "gitopsctl", "demo"}, {});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out + refused.err, HasSubstr("sudo apt-get install -y curl git"));
}

TEST_F(UnpackedDemo, IsSaidToBeAbsentWithTheArchiveThatHasIt) {
  fs::remove(top() / "gitops-demo");
  const auto refused = run({top() / "gitopsctl", "demo"}, {});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("demo: gitops-demo is neither beside gitopsctl nor in PATH; "
                                     "unpack gitops-runtime-"));
}

}  // namespace
}  // namespace gitops::test
