#include "support/log_capture.hpp"

#include <algorithm>

namespace gitops::test {

LogCapture::LogCapture(LogLevel level, LogFormat format) {
  configure_logging(level, format);
  capture_logging([this](std::string_view line) {
    const std::scoped_lock lock(mutex_);
    lines_.emplace_back(line);
  });
}

LogCapture::~LogCapture() {
  capture_logging({});
  configure_logging(LogLevel::info, LogFormat::json);
}

std::vector<std::string> LogCapture::lines() const {
  const std::scoped_lock lock(mutex_);
  return lines_;
}

std::string LogCapture::text() const {
  std::string out;
  for (const std::string& line : lines()) out += line + '\n';
  return out;
}

std::size_t LogCapture::count(std::string_view part) const {
  const auto all = lines();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const std::string& line) { return line.contains(part); }));
}

void LogCapture::clear() {
  const std::scoped_lock lock(mutex_);
  lines_.clear();
}

}  // namespace gitops::test
