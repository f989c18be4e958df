#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/log.hpp"

namespace gitops::test {

// Keeps the log lines that are written while it lives, instead of printing them. One at a time.
class LogCapture {
 public:
  explicit LogCapture(LogLevel level = LogLevel::debug, LogFormat format = LogFormat::json);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  [[nodiscard]] std::vector<std::string> lines() const;
  // All lines, one under the other.
  [[nodiscard]] std::string text() const;
  // How many lines hold `part`.
  [[nodiscard]] std::size_t count(std::string_view part) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace gitops::test
