#pragma once

#include <stdexcept>
#include <string>

#include "common/core/time.hpp"

namespace gitops::demo {

// Something that the scene says did not come true; the text is a sentence for its reader.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes the scene, line by line, with the time since its begin; in colour on a terminal.
class Narrator {
 public:
  Narrator();

  void headline(const std::string& text);
  // "  1.24 s  text"
  void step(const std::string& text);
  // As step(), with the time at which it arrived.
  void received(Clock::time_point arrived, const std::string& text);
  void failure(const std::string& text);
  void plain(const std::string& text);

  [[nodiscard]] double seconds() const;

 private:
  void line(Clock::time_point when, const char* colour, const std::string& text);

  Clock::time_point begin_ = Clock::now();
  bool colours_;
};

}  // namespace gitops::demo
