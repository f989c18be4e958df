#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "support/log_reader.hpp"
#include "support/process.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {

// The real request-router as a child process on free ports of 127.0.0.1. It looks names up in its
// own hosts file (through libnss-wrapper), so the machine needs no special names.
// Main thread.
class RouterProcess {
 public:
  // Returns when the program listens; otherwise throws, with its log. argv[0] is the program's
  // path; `environment` is added to this process's environment.
  RouterProcess(std::vector<std::string> argv, Environment environment, const std::string& hosts);

  // The main port.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint16_t admin_port() const { return admin_port_; }
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  // Sets the lines of the hosts file. nss_wrapper reads it at the next lookup; a concurrent lookup
  // of another thread finds no host. A test of several loops therefore waits for one lookup to end
  // first.
  void set_hosts(const std::string& lines);
  Process& process() { return process_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] const TempDir& folder() const { return folder_; }

 private:
  ProcessOptions options(std::vector<std::string> argv, Environment environment,
                         const std::string& hosts);

  TempDir folder_;
  int hosts_written_ = 0;
  Process process_;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
};

// The request-router between recording upstreams. Main thread.
class RouterHarness {
 public:
  struct Options {
    Environment environment = {};
    RecordingUpstream::Answer app_proxy = {};
    RecordingUpstream::Answer workflows = {};
    RecordingUpstream::Answer events = {};
    std::filesystem::path standard_output = {};  // a file or pipe that replaces the log
    const LogReader* log_reader = nullptr;       // of standard error
    bool app_proxy_down = false;
    bool workflows_down = false;
  };
  RouterHarness() : RouterHarness(Options{}) {}
  explicit RouterHarness(Options options);

  // The main port.
  [[nodiscard]] std::uint16_t port() const { return router_.port(); }
  [[nodiscard]] std::uint16_t admin_port() const { return router_.admin_port(); }
  RecordingUpstream& app_proxy() { return *app_proxy_; }
  RecordingUpstream& workflows() { return *workflows_; }
  RecordingUpstream& events() { return *events_; }
  // Ends it: connections to its port are refused from then on.
  void stop_events() { events_.reset(); }
  Process& process() { return router_.process(); }
  [[nodiscard]] std::string log() const { return router_.log(); }
  [[nodiscard]] const TempDir& folder() const { return router_.folder(); }
  // Requests that reached any upstream since the last forget().
  [[nodiscard]] std::size_t forwarded() const;
  void forget();
  // Sets the addresses of the event sources' names: lines of a hosts file.
  void set_hosts(const std::string& lines) { router_.set_hosts(lines); }
  // Resident memory in KiB, now and at most since the start, and open descriptors.
  [[nodiscard]] std::size_t memory() const { return status_number("VmRSS:"); }
  [[nodiscard]] std::size_t peak_memory() const { return status_number("VmHWM:"); }
  [[nodiscard]] std::size_t descriptors() const;

  // "GET target HTTP/1.1" with Host; `more`: further lines, each with its line end.
  static std::string request(const std::string& method, const std::string& target,
                             const std::string& more = {}, const std::string& body = {});
  RawResponse get(const std::string& target, const std::string& more = {}) const {
    return raw_call(port(), request("GET", target, more));
  }

 private:
  RouterProcess start(Options& from);
  [[nodiscard]] std::size_t status_number(std::string_view key) const;

  std::unique_ptr<RecordingUpstream> app_proxy_;
  std::unique_ptr<RecordingUpstream> workflows_;
  std::unique_ptr<RecordingUpstream> events_;
  RouterProcess router_;
};

// The path of the library that gives a child process its own hosts file; nullopt: not installed.
std::optional<std::string> find_hosts_library();
// The same. Throws when it is not installed.
std::string hosts_library();
// The value of LD_PRELOAD for a router with its own hosts file, in which lookups of names that begin
// with "silent" never end.
std::string hosts_and_silent_names();

}  // namespace gitops::test
