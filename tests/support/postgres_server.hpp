#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace gitops::test {

// A PostgreSQL server of Debian for tests, in a temporary folder, on a socket there, without TCP. The first use starts
// it, and it ends with the test binary. As root its programs run as the user nobody, since PostgreSQL refuses root.
class PostgresServer {
 public:
  // Returns the folder with the programs of the newest PostgreSQL that is installed. Throws when there is none.
  static std::filesystem::path programs();
  // Returns the server of this test binary. Throws when PostgreSQL is not installed.
  static PostgresServer& shared();

  // Keeps its data below `parent`, which everybody can read and write. `settings` are such as "max_wal_size=64MB";
  // `wal_segment` is the size of a segment of its log in MiB, a power of 2.
  explicit PostgresServer(const std::filesystem::path& parent = "/tmp",
                          std::vector<std::string> settings = {}, int wal_segment = 16);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Creates an empty database and returns its address: "postgresql://…".
  std::string new_database();
  // Returns the address of a database of that name.
  [[nodiscard]] std::string dsn(const std::string& database) const;
  // Returns the process id of the server's main process, whose children serve the connections.
  [[nodiscard]] int pid() const { return server_->pid(); }
  // Stops the server like a crash (SIGQUIT), and starts it again.
  void crash();
  void start();
  [[nodiscard]] bool running() { return server_ && server_->running(); }
  // The end of the server's log, for people. The log is not on the disk of the data, which may be full.
  [[nodiscard]] std::string end_of_log() const;
  // Copies the data of a server that does not run, and puts the copy back.
  void save_data();
  void put_data_back();
  // Makes the next start a recovery, as to a point in time: the server has another timeline after it.
  void recover_at_start();
  // Kills one of its processes (SIGKILL), as the kernel does when memory runs out. The server then ends all connections,
  // and recovers by itself.
  void kill_child(std::size_t which);
  // Stops all its processes (SIGSTOP), as a disk that hangs does: connections stay, and nothing is answered.
  void stand_still();
  void go_on();
  // Becomes a synchronous standby of the other server, with a copy of its data instead of its own: commits there wait for
  // this one. promote() makes it a primary, whose commits wait for nobody.
  void follow(PostgresServer& primary);
  void promote();
  // The Unix socket that it listens on.
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path socket() const { return folder_ / ".s.PGSQL.5432"; }
  // Runs SQL by psql and returns its output without headers.
  std::string query(const std::string& dsn, const std::string& sql);

 private:
  [[nodiscard]] std::vector<int> children() const;
  [[nodiscard]] std::vector<std::string> as_owner(std::vector<std::string> argv) const;
  void wait_until_ready();

  // Near the root, since a socket's path is short, and nobody must be able to reach it.
  std::filesystem::path folder_;
  std::filesystem::path programs_;
  std::vector<std::string> settings_;
  TempDir saved_;  // the saved data, and the log
  std::unique_ptr<Process> server_;
  int databases_ = 0;
};

}  // namespace gitops::test
