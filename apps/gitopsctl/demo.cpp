#include "gitopsctl/demo.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <unistd.h>

#include "common/core/process.hpp"

namespace gitops::ctl {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDemo = "gitops-demo";

constexpr const char* kDescription =
    R"(A commit in Git reaches the page of a control plane, a webhook its event source, and a request
comes through the tunnel. The daemons are the real ones; Kubernetes and Argo CD are played. It takes
less than a minute, needs no cluster, listens on 127.0.0.1 only and leaves nothing behind.
The program for it, gitops-demo, comes with the archive gitops-runtime of a release.

Examples:
  gitopsctl demo
  gitopsctl demo --keep
)";

std::string archive() {
  return "gitops-runtime-" + std::string(version()) + "-linux-";
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<fs::path> find_demo(const fs::path& own_folder, std::string_view search_path) {
  if (auto beside = own_folder / kDemo; is_program(beside)) return beside;
  std::error_code error;
  for (fs::directory_iterator at(own_folder.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    if (!at->path().filename().string().starts_with(archive())) continue;
    if (auto unpacked = at->path() / kDemo; is_program(unpacked)) return unpacked;
  }
  while (!search_path.empty()) {
    const auto folder = search_path.substr(0, search_path.find(':'));
    search_path.remove_prefix(std::min(folder.size() + 1, search_path.size()));
    if (auto found = fs::path(folder) / kDemo; !folder.empty() && is_program(found)) return found;
  }
  return std::nullopt;
}

cli::Command demo_command() {
  const auto keep = std::make_shared<bool>(false);
  return {.name = "demo",
          .summary = "Play the suite on this machine, without a cluster",
          .description = kDescription,
          .bind =
              [keep](ConfigReader& reader) {
                reader.add({.flag = "keep",
                            .help = "Leave everything running afterwards until Ctrl-C, and print "
                                    "how to play with it"},
                           *keep);
              },
          .run = [keep](const cli::Environment& environment, cli::Console& console) -> int {
            std::error_code error;
            const auto own = fs::read_symlink("/proc/self/exe", error).parent_path();
            const auto path = environment.find("PATH");
            const auto program = find_demo(own, path == environment.end() ? "" : path->second);
            if (!program) {
              console.err << "demo: " << kDemo
                          << " is neither beside gitopsctl nor in PATH; unpack " << archive()
                          << "*.tar.gz of the release beside the folder of gitopsctl\n";
              return cli::kFailed;
            }
            console.out.flush();
            std::string name = program->string();
            std::string option = "--keep";
            std::array<char*, 3> words{name.data(), *keep ? option.data() : nullptr, nullptr};
            ::execv(name.c_str(), words.data());
            console.err << "demo: " << name << ": " << std::strerror(errno) << '\n';
            return cli::kFailed;
          }};
}

}  // namespace gitops::ctl
