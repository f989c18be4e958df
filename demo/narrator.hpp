#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "common/core/time.hpp"

namespace gitops::demo {

// A failed check of the scene. The text is a sentence for the reader.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns a path as one word of a shell command.
std::string shell_word(const std::filesystem::path& path);

// Writes the scene line by line with the time since its start; in colour on a terminal.
class Narrator {
 public:
  Narrator();

  void headline(const std::string& text);
  // Writes "  1.24 s  text".
  void step(const std::string& text);
  // Writes what an open page of the console shows, with the time of its arrival there.
  void shown(Clock::time_point arrived, const std::string& text);
  // Writes the address of the page that shows what the last steps were about.
  void see(const std::string& url);
  void failure(const std::string& text);
  void plain(const std::string& text);

  [[nodiscard]] double seconds() const;

 private:
  void line(Clock::time_point when, const char* colour, const std::string& text);

  Clock::time_point begin_ = Clock::now();
  bool colours_;
};

}  // namespace gitops::demo
