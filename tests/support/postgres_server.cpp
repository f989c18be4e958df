#include "support/postgres_server.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <grp.h>
#include <pwd.h>
#include <stdexcept>
#include <utility>

#include <system_error>
#include <unistd.h>

#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwner = "nobody";
constexpr auto kStartLimit = std::chrono::seconds(30);

fs::path newest_programs() {
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

fs::path make_folder() {
  std::string name = "/tmp/gitops-postgres-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder can be made in /tmp");
  return name;
}

}  // namespace

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() : folder_(make_folder()), programs_(newest_programs()) {
  if (::getuid() == 0) {
    const auto* owner = ::getpwnam(kOwner);
    if (owner == nullptr) throw std::runtime_error("there is no user nobody");
    if (::chown(folder_.c_str(), owner->pw_uid, owner->pw_gid) != 0) {
      throw std::runtime_error("the folder of PostgreSQL cannot be given to nobody");
    }
  }
  run_or_throw(as_owner({programs_ / "initdb", "--pgdata", folder_ / "data", "--username", "test",
                         "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"}),
               {}, {}, kStartLimit, folder_);
  start();
}

PostgresServer::~PostgresServer() {
  if (server_) server_->stop(std::chrono::seconds(5));
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
  server_ = std::make_unique<Process>(ProcessOptions{
      .argv =
          as_owner({programs_ / "postgres", "-D", folder_ / "data", "-k", folder_, "-c",
                    "listen_addresses=", "-c", "shared_buffers=64MB", "-c", "max_connections=60"}),
      .working_dir = folder_,
      .log_file = folder_ / "log"});
  wait_until_ready();
}

void PostgresServer::wait_until_ready() {
  require_until(
      [this] { return run_command({programs_ / "pg_isready", "-h", folder_, "-U", "test"}).ok(); },
      kStartLimit, "PostgreSQL");
}

void PostgresServer::crash() {
  server_->signal(SIGQUIT);
  if (!server_->wait(kStartLimit)) throw std::runtime_error("PostgreSQL does not stop");
  server_.reset();
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
