#include "narrator.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace gitops::demo {

namespace {

constexpr const char* kBold = "\033[1m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kRed = "\033[31m";
constexpr const char* kNormal = "\033[0m";

}  // namespace

std::string shell_word(const std::filesystem::path& path) {
  std::string word = "'";
  for (const char c : path.string()) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

Narrator::Narrator() : colours_(::isatty(STDOUT_FILENO) == 1) {}

double Narrator::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Narrator::line(Clock::time_point when, const char* colour, const std::string& text) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%6.2f s",
                std::chrono::duration<double>(when - begin_).count());
  if (colours_) {
    std::printf("%s%s%s  %s%s%s\n", kDim, time.data(), kNormal, colour, text.c_str(), kNormal);
  } else {
    std::printf("%s  %s\n", time.data(), text.c_str());
  }
  std::fflush(stdout);
}

void Narrator::headline(const std::string& text) {
  std::printf("\n%s%s%s\n", colours_ ? kBold : "", text.c_str(), colours_ ? kNormal : "");
  std::fflush(stdout);
}

void Narrator::step(const std::string& text) {
  line(Clock::now(), "", text);
}

void Narrator::shown(Clock::time_point arrived, const std::string& text) {
  line(arrived, kGreen, "on the page: " + text);
}

void Narrator::see(const std::string& url) {
  std::printf("            %s%s%s\n", colours_ ? kDim : "", url.c_str(), colours_ ? kNormal : "");
  std::fflush(stdout);
}

void Narrator::failure(const std::string& text) {
  line(Clock::now(), kRed, "failed: " + text);
}

void Narrator::plain(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace gitops::demo
