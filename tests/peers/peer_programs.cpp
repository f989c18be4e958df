#include "peers/peer_programs.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStartLimit{60};

std::string end_of(const std::string& log) {
  return log.substr(log.size() - std::min<std::size_t>(log.size(), 2000));
}

}  // namespace

fs::path peers_folder() {
  if (const char* folder = std::getenv("GITOPS_PEERS_DIR"); folder != nullptr && *folder != '\0') {
    return folder;
  }
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return fs::path(cache) / "gitops-runtime" / "peers";
  const char* home = std::getenv("HOME");
  return fs::path(home == nullptr ? "/" : home) / ".cache" / "gitops-runtime" / "peers";
}

fs::path peer_program(const std::string& name) {
  return peers_folder() / "bin" / name;
}

std::vector<fs::path> peer_manifests(const std::string& peer) {
  std::vector<fs::path> files;
  const fs::path folder = peers_folder() / "share" / peer;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

PeerPrograms::PeerPrograms(std::string_view folder_prefix) : folder_(folder_prefix) {}

PeerPrograms::~PeerPrograms() {
  // All at once: nobody then waits for another one, and nothing is worth saving.
  for (auto& [name, process] : processes_) process.signal(SIGKILL);
}

void PeerPrograms::start(const std::string& name, std::vector<std::string> argv, Environment env) {
  env.try_emplace("KUBECONFIG", std::nullopt);
  commands_.insert_or_assign(name, Command{.argv = std::move(argv), .env = std::move(env)});
  restart(name);
}

void PeerPrograms::restart(const std::string& name) {
  const auto& command = commands_.at(name);
  processes_.erase(name);
  processes_.emplace(name, Process({.argv = command.argv,
                                    .env = command.env,
                                    .working_dir = folder_.path(),
                                    .log_file = logs_dir() / (name + ".log")}));
}

void PeerPrograms::await(const std::string& name, const std::function<bool()>& condition,
                         std::string_view what) {
  Process& process = processes_.at(name);
  const auto holds = [&] {
    if (!process.running()) throw std::runtime_error(name + " ended:\n" + end_of(log(name)));
    return condition();
  };
  if (!wait_until(holds, kStartLimit, name + ": " + std::string(what))) {
    throw std::runtime_error(name + ": no " + std::string(what) + ":\n" + end_of(log(name)));
  }
}

std::vector<pid_t> PeerPrograms::pids() const {
  std::vector<pid_t> result;
  result.reserve(processes_.size());
  for (const auto& [name, process] : processes_) result.push_back(process.pid());
  return result;
}

std::string PeerPrograms::log(const std::string& name) const {
  const fs::path file = logs_dir() / (name + ".log");
  return fs::exists(file) ? read_file(file) : "(no log)";
}

}  // namespace gitops::test
