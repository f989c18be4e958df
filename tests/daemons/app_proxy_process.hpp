#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/status_page.hpp"

namespace gitops::test {

// The real app-proxy as a child process on free ports of 127.0.0.1. Main thread.
class AppProxyProcess {
 public:
  // Returns when the program listens; otherwise throws, with its log. `environment` is added to this
  // process's environment.
  AppProxyProcess(Environment environment, std::vector<std::string> flags = {});

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint16_t admin_port() const { return admin_port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Log and audit stream.
  [[nodiscard]] std::string log() const { return read_file(process_.log_file()); }
  [[nodiscard]] HttpReply admin(const std::string& path) const;
  [[nodiscard]] StatusPage status() const { return StatusPage(admin(kStatusPath).body); }
  // Resident memory in KiB.
  [[nodiscard]] std::size_t memory() const;
  Process& process() { return process_; }

 private:
  TempDir folder_;
  Process process_;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
};

}  // namespace gitops::test
