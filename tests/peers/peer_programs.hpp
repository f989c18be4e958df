#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

namespace gitops::test {

/// The folder `tests/peers/build` fills: bin/ with programs, share/ with manifests.
std::filesystem::path peers_folder();

/// The path of a program there.
std::filesystem::path peer_program(const std::string& name);

/// The manifests of a peer, in the order of their names; empty when it is not built.
std::vector<std::filesystem::path> peer_manifests(const std::string& peer);

/// The programs of one fixture, by name, with a temporary folder that they run in. The destructor
/// kills them all. Main thread, as for Process.
class PeerPrograms {
 public:
  explicit PeerPrograms(std::string_view folder_prefix);
  PeerPrograms(const PeerPrograms&) = delete;
  PeerPrograms& operator=(const PeerPrograms&) = delete;
  ~PeerPrograms();

  /// Starts a program, in the place of the last one of that name. KUBECONFIG is not inherited.
  void start(const std::string& name, std::vector<std::string> argv, Environment env = {});

  /// Kills a program, if it runs, and starts it once more as start() did.
  void restart(const std::string& name);

  /// Waits for what the named program must bring about, at most a minute; throws with the end of
  /// its log when that does not come, or when the program ends.
  void await(const std::string& name, const std::function<bool()>& condition,
             std::string_view what = "readiness");

  bool has(const std::string& name) const { return processes_.contains(name); }
  Process& at(const std::string& name) { return processes_.at(name); }
  std::vector<pid_t> pids() const;

  /// What the program has written so far.
  std::string log(const std::string& name) const;

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path logs_dir() const { return folder_ / "logs"; }

 private:
  struct Command {
    std::vector<std::string> argv;
    Environment env;
  };

  TempDir folder_;
  std::map<std::string, Command> commands_;
  std::map<std::string, Process> processes_;
};

}  // namespace gitops::test

/// First line of a test that needs these fixtures' programs: skips it, with the reason, where one
/// is missing. `Fixture` has a static missing().
#define GITOPS_REQUIRE_PEER(Fixture)                                      \
  if (const auto lacking = ::gitops::test::Fixture::missing(); lacking) { \
    GTEST_SKIP() << "peers: " << *lacking;                                \
  }                                                                       \
  static_assert(true, "a semicolon follows")
