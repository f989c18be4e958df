#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gitops::test {

// What a program served at one time.
struct Scrape {
  struct Sample {
    double value = 0;
    bool is_counter = false;
  };
  double at = 0;                          // Unix time in seconds
  std::map<std::string, Sample> samples;  // by name and labels, as in the exposition
};

// Reads an exposition. Histograms are counters.
Scrape read_scrape(const std::string& text, double at);

// What a recording has of all programs at one time. A program that was down is absent.
struct Frame {
  struct Seen {
    Scrape scrape;
    std::size_t start = 0;  // how often the program had been started before
  };
  std::map<std::string, Seen> programs;
};

// Plays recorded frames, one each interval, in any order and as often as it takes, as one long time: counters go on where
// they were, and begin at what was recorded when the program was started again; time stamps keep their age. Pure.
class Day {
 public:
  struct Program {
    std::string pods;          // name of the workload
    std::size_t replicas = 1;  // each with the recorded samples
    bool is_stateful = true;   // a started program keeps its pod's name
  };
  Day(std::chrono::seconds interval, std::map<std::string, Program> programs);

  // Plays the frames once.
  void play(const std::vector<Frame>& frames);
  // Plays them again and again until this time, from the day's begin on.
  void play_until(std::chrono::seconds end, const std::vector<Frame>& frames);
  [[nodiscard]] std::chrono::seconds time() const { return interval_ * static_cast<long>(length_); }

  // Series with the labels that Prometheus adds, and their samples in promtool's notation.
  [[nodiscard]] std::map<std::string, std::string> series() const;

 private:
  struct Counter {
    double offset = 0;
    double last = 0;
  };
  struct State {
    std::size_t start = 0;
    std::size_t starts_seen = 0;  // names the pods of a Deployment
    std::map<std::string, Counter> counters;
  };
  void play_frame(const Frame& frame, bool is_first);
  double value_of(State& state, const std::string& name, const Scrape::Sample& sample,
                  double scraped_at, bool is_first) const;

  std::chrono::seconds interval_;
  std::map<std::string, Program> programs_;
  std::map<std::string, State> states_;
  std::map<std::string, std::vector<std::optional<double>>> series_;
  std::size_t length_ = 0;
};

}  // namespace gitops::test
