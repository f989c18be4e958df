#include "support/postgres_server.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <grp.h>
#include <iterator>
#include <pwd.h>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwner = "nobody";
constexpr auto kStartLimit = std::chrono::seconds(30);

fs::path make_folder(const fs::path& parent) {
  std::string name = (parent / "gitops-postgres-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("no folder can be made in " + parent.string());
  }
  if (::getuid() == 0) {
    const auto* owner = ::getpwnam(kOwner);
    if (owner == nullptr) throw std::runtime_error("there is no user nobody");
    if (::chown(name.c_str(), owner->pw_uid, owner->pw_gid) != 0) {
      throw std::runtime_error("the folder of PostgreSQL cannot be given to nobody");
    }
  }
  return name;
}

}  // namespace

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

fs::path PostgresServer::programs() {
  fs::path newest;
  const fs::path versions = "/usr/lib/postgresql";
  if (fs::exists(versions)) {
    for (const auto& version : fs::directory_iterator(versions)) {
      if (fs::exists(version.path() / "bin/postgres")) newest = version.path() / "bin";
    }
  }
  if (newest.empty())
    throw std::runtime_error("PostgreSQL is not installed: apt-get install postgresql-15");
  return newest;
}

PostgresServer::PostgresServer(const fs::path& parent, std::vector<std::string> settings,
                               int wal_segment)
    : folder_(make_folder(parent)), programs_(programs()), settings_(std::move(settings)) {
  run_or_throw(as_owner({programs_ / "initdb", "--pgdata", folder_ / "data", "--username", "test",
                         "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync",
                         "--wal-segsize", std::to_string(wal_segment)}),
               {}, {}, kStartLimit, folder_);
  start();
}

PostgresServer::~PostgresServer() {
  if (server_) {
    go_on();
    server_->stop(std::chrono::seconds(5));
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

// Runs the program by setpriv of util-linux, which keeps the process id; su would not.
std::vector<std::string> PostgresServer::as_owner(std::vector<std::string> argv) const {
  if (::getuid() != 0) return argv;
  std::vector<std::string> prefix{"setpriv", std::string("--reuid=") + kOwner, "--regid=nogroup",
                                  "--clear-groups"};
  prefix.insert(prefix.end(), std::make_move_iterator(argv.begin()),
                std::make_move_iterator(argv.end()));
  return prefix;
}

void PostgresServer::start() {
  std::vector<std::string> argv{programs_ / "postgres",
                                "-D",
                                folder_ / "data",
                                "-k",
                                folder_,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "shared_buffers=64MB",
                                "-c",
                                "max_connections=60"};
  for (const auto& setting : settings_) {
    argv.emplace_back("-c");
    argv.push_back(setting);
  }
  server_ = std::make_unique<Process>(ProcessOptions{
      .argv = as_owner(std::move(argv)), .working_dir = folder_, .log_file = saved_ / "log"});
  wait_until_ready();
}

void PostgresServer::wait_until_ready() {
  const bool is_ready = wait_until(
      [this] {
        return !running() ||
               run_command({programs_ / "pg_isready", "-h", folder_, "-U", "test"}).ok();
      },
      kStartLimit, "PostgreSQL");
  if (!is_ready || !running()) {
    throw std::runtime_error("PostgreSQL does not start:\n" + end_of_log());
  }
}

std::string PostgresServer::end_of_log() const {
  constexpr std::size_t kMax = 20'000;
  const auto log = read_file(saved_ / "log");
  return log.substr(log.size() - std::min(log.size(), kMax));
}

void PostgresServer::crash() {
  server_->signal(SIGQUIT);
  if (!server_->wait(kStartLimit)) throw std::runtime_error("PostgreSQL does not stop");
  server_.reset();
}

// Not on the disk of the server, which may be small.
void PostgresServer::save_data() {
  fs::remove_all(saved_ / "data");
  run_or_throw({"cp", "--archive", folder_ / "data", saved_ / "data"});
}

void PostgresServer::put_data_back() {
  fs::remove_all(folder_ / "data");
  run_or_throw({"cp", "--archive", saved_ / "data", folder_ / "data"});
}

void PostgresServer::recover_at_start() {
  run_or_throw(as_owner({"touch", folder_ / "data/recovery.signal"}));
  run_or_throw(as_owner({"sh", "-c",
                         "echo \"restore_command = 'false'\" >>" +
                             (folder_ / "data/postgresql.auto.conf").string()}));
}

std::vector<int> PostgresServer::children() const {
  const auto process = std::to_string(server_->pid());
  std::istringstream list(read_file("/proc/" + process + "/task/" + process + "/children"));
  return {std::istream_iterator<int>(list), {}};
}

void PostgresServer::kill_child(std::size_t which) {
  const auto all = children();
  if (!all.empty()) ::kill(all[which % all.size()], SIGKILL);
}

// The main process first, so that it starts no others meanwhile.
void PostgresServer::stand_still() {
  server_->signal(SIGSTOP);
  for (const int child : children()) ::kill(child, SIGSTOP);
}

void PostgresServer::go_on() {
  for (const int child : children()) ::kill(child, SIGCONT);
  server_->signal(SIGCONT);
}

void PostgresServer::follow(PostgresServer& primary) {
  if (server_) crash();
  fs::remove_all(folder_ / "data");
  run_or_throw(as_owner({programs_ / "pg_basebackup", "--pgdata", folder_ / "data", "--host",
                         primary.folder_, "--username", "test", "--write-recovery-conf",
                         "--checkpoint", "fast", "--no-sync"}),
               {}, {}, kStartLimit, folder_);
  start();
  const auto database = primary.dsn("postgres");
  query(database, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  query(database, "SELECT pg_reload_conf()");
  require_until(
      [&] {
        return query(database,
                     "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1";
      },
      kStartLimit, "the synchronous standby");
}

// Its settings are those of before the primary waited for it.
void PostgresServer::promote() {
  query(dsn("postgres"), "SELECT pg_promote()");
}

std::string PostgresServer::dsn(const std::string& database) const {
  return "postgresql:///" + database + "?user=test&host=" + folder_.string();
}

std::string PostgresServer::new_database() {
  const auto name = "test" + std::to_string(++databases_);
  query(dsn("postgres"), "CREATE DATABASE " + name);
  return dsn(name);
}

std::string PostgresServer::query(const std::string& dsn, const std::string& sql) {
  return run_or_throw({"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set",
                       "ON_ERROR_STOP=1", "--dbname", dsn, "--command", sql});
}

}  // namespace gitops::test
