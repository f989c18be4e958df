#include "event-reporter/report/newest_states.hpp"

#include <charconv>

namespace gitops::reporter {
namespace {

std::uint64_t version_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

void NewestStates::note(const std::string& key, std::string_view uid,
                        std::string_view resource_version) {
  const auto version = version_number(resource_version);
  auto& state = states_[key];
  state = {.uid = std::string(uid),
           .version = version,
           .undelivered = state.undelivered && state.version == version};
}

bool NewestStates::is_outdated(const std::string& key, std::string_view resource_version) const {
  const auto found = states_.find(key);
  return found != states_.end() && version_number(resource_version) < found->second.version;
}

std::vector<std::string> NewestStates::take_undelivered(const Watched& watched) {
  std::vector<std::string> out;
  for (auto& [key, state] : states_) {
    const auto delivered = watched(key);
    const bool is_behind = !delivered.empty() && version_number(delivered) < state.version;
    if (is_behind && state.undelivered) out.push_back(key);
    state.undelivered = is_behind;
  }
  for (const auto& key : out) states_.erase(key);
  return out;
}

const std::string* NewestStates::uid(const std::string& key) const {
  const auto found = states_.find(key);
  return found == states_.end() ? nullptr : &found->second.uid;
}

}  // namespace gitops::reporter
