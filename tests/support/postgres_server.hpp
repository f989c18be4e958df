#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "support/process.hpp"

namespace gitops::test {

// Debian's PostgreSQL for tests: a server of its own in a temporary folder, on a socket there, without TCP. It is started
// by the first use, and ends with the test binary. As root its programs run as the user nobody, since PostgreSQL refuses
// root.
class PostgresServer {
 public:
  // The server of this test binary. Throws when PostgreSQL is not installed.
  static PostgresServer& shared();

  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Makes an empty database and returns its address: "postgresql://…".
  std::string new_database();
  // The address of a database of that name.
  [[nodiscard]] std::string dsn(const std::string& database) const;
  // Stops the server as a crash would (SIGQUIT), and starts it again.
  void crash();
  void start();
  // Runs SQL by psql and returns what it prints, without heads.
  std::string query(const std::string& dsn, const std::string& sql);

 private:
  [[nodiscard]] std::vector<std::string> as_owner(std::vector<std::string> argv) const;
  void wait_until_ready();

  // Below /tmp, since a socket's path is short, and nobody must be able to reach it.
  std::filesystem::path folder_;
  std::filesystem::path programs_;
  std::unique_ptr<Process> server_;
  int databases_ = 0;
};

}  // namespace gitops::test
