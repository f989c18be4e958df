#include "chart/day.hpp"

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <utility>

namespace gitops::test {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << value;
  return out.str();
}

// A target that is gone makes its series stale.
std::string text_of(const std::optional<double>& value, std::size_t times) {
  if (!value) return times == 1 ? "stale" : "stale _x" + std::to_string(times - 1);
  return times == 1 ? number(*value) : number(*value) + "+0x" + std::to_string(times - 1);
}

bool is_same(const std::optional<double>& one, const std::optional<double>& other) {
  if (one.has_value() != other.has_value()) return false;
  return !one || *one == *other || (std::isnan(*one) && std::isnan(*other));
}

// "name{labels}" with further labels.
std::string with_labels(const std::string& name, const std::string& labels) {
  const auto brace = name.find('{');
  if (brace == name.npos) return name + "{" + labels + "}";
  return name.substr(0, brace + 1) + labels + "," + name.substr(brace + 1);
}

}  // namespace

Scrape read_scrape(const std::string& text, double at) {
  Scrape scrape{.at = at, .samples = {}};
  std::istringstream lines(text);
  bool is_counter = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) is_counter = !line.ends_with(" gauge");
    const auto space = line.rfind(' ');
    if (line.starts_with('#') || space == line.npos) continue;
    scrape.samples[line.substr(0, space)] = {.value = std::strtod(line.c_str() + space, nullptr),
                                             .is_counter = is_counter};
  }
  return scrape;
}

Day::Day(std::chrono::seconds interval, std::map<std::string, Program> programs)
    : interval_(interval), programs_(std::move(programs)) {}

double Day::value_of(State& state, const std::string& name, const Scrape::Sample& sample,
                     double scraped_at, bool is_first) const {
  if (name.contains("timestamp_seconds") && sample.value > 0) {
    return static_cast<double>(time().count()) - (scraped_at - sample.value);
  }
  if (!sample.is_counter) return sample.value;
  const auto [counter, is_new] = state.counters.try_emplace(name);
  // Another frame than the one that followed in the recording: nothing is counted in between.
  if (is_first && !is_new) counter->second.offset = counter->second.last - sample.value;
  counter->second.last = sample.value + counter->second.offset;
  return counter->second.last;
}

void Day::play_frame(const Frame& frame, bool is_first) {
  for (const auto& [name, seen] : frame.programs) {
    const auto& program = programs_.at(name);
    auto& state = states_[name];
    if (std::exchange(state.start, seen.start) != seen.start && !is_first) {
      state.counters.clear();
      ++state.starts_seen;
    }
    for (const auto& [sample_name, sample] : seen.scrape.samples) {
      const auto value = value_of(state, sample_name, sample, seen.scrape.at, is_first);
      for (std::size_t pod = 0; pod < program.replicas; ++pod) {
        const auto suffix = program.is_stateful
                                ? std::to_string(pod)
                                : std::to_string(state.starts_seen) + "-" + std::to_string(pod);
        auto& values = series_[with_labels(
            sample_name, "namespace=\"gitops\",pod=\"" + program.pods + "-" + suffix + "\"")];
        values.resize(length_);
        values.emplace_back(value);
      }
    }
  }
  ++length_;
}

void Day::play(const std::vector<Frame>& frames) {
  bool is_first = true;
  for (const auto& frame : frames) play_frame(frame, std::exchange(is_first, false));
}

void Day::play_until(std::chrono::seconds end, const std::vector<Frame>& frames) {
  while (time() < end) play(frames);
}

std::map<std::string, std::string> Day::series() const {
  std::map<std::string, std::string> found;
  for (const auto& [name, values] : series_) {
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < values.size(); begin = end) {
      while (end < values.size() && is_same(values[begin], values[end])) ++end;
      text += (text.empty() ? "" : " ") + text_of(values[begin], end - begin);
    }
    found[name] = values.size() < length_ ? text + " stale" : text;
  }
  return found;
}

}  // namespace gitops::test
