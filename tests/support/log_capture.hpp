#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/log.hpp"

namespace gitops::test {

// Captures log lines instead of printing them, for the lifetime of the object. One at a time.
class LogCapture {
 public:
  explicit LogCapture(LogLevel level = LogLevel::debug, LogFormat format = LogFormat::json);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  [[nodiscard]] std::vector<std::string> lines() const;
  // All lines, joined by newlines.
  [[nodiscard]] std::string text() const;
  // The number of lines that contain `part`.
  [[nodiscard]] std::size_t count(std::string_view part) const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace gitops::test
