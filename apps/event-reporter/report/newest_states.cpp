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
  states_[key] = {.uid = std::string(uid), .version = version_number(resource_version)};
}

bool NewestStates::is_outdated(const std::string& key, std::string_view resource_version) const {
  const auto found = states_.find(key);
  return found != states_.end() && version_number(resource_version) < found->second.version;
}

const std::string* NewestStates::uid(const std::string& key) const {
  const auto found = states_.find(key);
  return found == states_.end() ? nullptr : &found->second.uid;
}

}  // namespace gitops::reporter
