#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

// The real control plane as a child process on free ports of 127.0.0.1, with a database of its own. Main thread.
class ControlPlaneProcess {
 public:
  // `database_url` is PostgreSQL's, or the path of SQLite's file; empty: a file in a temporary folder. Starts nothing
  // yet.
  explicit ControlPlaneProcess(std::string database_url = {}, std::vector<std::string> flags = {});

  // Serves by TLS from the next start on, with a certificate for localhost that `authority` issues.
  void use_tls(CertificateAuthority& authority);
  // Every start listens on this port, one of free_port(); otherwise each has a port of its own.
  void use_port(int port) { wanted_port_ = port; }

  // Runs a command of the program, as {"user", "add", "--name=ann"}, and returns what it prints. With SQLite only while
  // the daemon does not run. Throws when it fails.
  std::string command(std::vector<std::string> arguments) const;
  // These return the ids that the commands print.
  std::string add_account(const std::string& name) const;
  std::string add_user(const std::string& name, const std::string& account,
                       const std::vector<std::string>& flags = {}) const;
  // Returns the key's text.
  std::string create_key(const std::string& user, const std::string& account) const;

  // Returns when the program serves; otherwise throws, with its log.
  void start() {
    launch();
    wait_until_serving();
  }
  // The two halves of start(), for a database that is not there yet.
  void launch();
  void wait_until_serving();
  // SIGTERM; returns the exit code.
  int stop() { return process_->stop(std::chrono::seconds(20)); }
  void kill() { process_->kill(); }
  Process& process() { return *process_; }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint16_t admin_port() const { return admin_port_; }
  [[nodiscard]] std::string url() const {
    return (ca_file_.empty() ? "http://127.0.0.1:" : "https://localhost:") + std::to_string(port_);
  }
  [[nodiscard]] std::filesystem::path log_file() const { return folder_ / "log"; }
  [[nodiscard]] std::string log() const { return read_file(log_file()); }
  [[nodiscard]] HttpReply admin(const std::string& path) const;
  // The SQLite file.
  [[nodiscard]] std::string database_path() const;
  [[nodiscard]] const std::string& database_url() const { return database_url_; }

  // Sends a document with variables, which are JSON, and returns the response.
  [[nodiscard]] HttpReply graphql(const std::string& token, const std::string& query,
                                  const std::string& variables = "{}") const;
  // Registers a runtime and returns its token. Throws when that is refused.
  [[nodiscard]] std::string register_runtime(const std::string& token,
                                             const std::string& name) const;
  // Posts the event of an Application, by the token of its runtime. `application` is its JSON.
  [[nodiscard]] HttpReply post_application(const std::string& token, const std::string& application,
                                           std::int64_t sequence) const;

 private:
  [[nodiscard]] std::vector<std::string> database_flags() const;
  [[nodiscard]] bool is_sqlite() const;

  TempDir folder_;
  std::string database_url_;
  std::vector<std::string> flags_;
  std::filesystem::path ca_file_;  // empty: without TLS
  std::optional<Process> process_;
  std::size_t earlier_log_ = 0;  // bytes of earlier starts
  int wanted_port_ = 0;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
};

// Posts the event of an Application to the control plane at `url`, by the token of its runtime. For any thread.
HttpReply post_application_to(const std::string& url, const std::string& token,
                              const std::string& application, std::int64_t sequence,
                              const std::filesystem::path& ca_file = {});

}  // namespace gitops::test
