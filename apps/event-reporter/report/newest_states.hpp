#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gitops::reporter {

// The newest state that was read or reported of each object, by the object's key. A read may be
// ahead of the watch, which then still delivers older states, also those of a predecessor: another
// object that had the same name. Their resourceVersions compare, since a resourceVersion belongs to
// the whole cluster. Loop thread only.
class NewestStates {
 public:
  void note(const std::string& key, std::string_view uid, std::string_view resource_version);
  void forget(const std::string& key) { states_.erase(key); }
  // Forgets the objects that `which` selects. For a cluster that was restored from a backup: the
  // resourceVersions from before do not compare with those from then on.
  void forget_all(const std::function<bool(const std::string& key)>& which) {
    std::erase_if(states_, [&which](const auto& state) { return which(state.first); });
  }

  // Whether a newer state than this one was noted.
  [[nodiscard]] bool is_outdated(const std::string& key, std::string_view resource_version) const;
  // The uid of the state that was noted; null when there is none.
  [[nodiscard]] const std::string* uid(const std::string& key) const;

 private:
  struct State {
    std::string uid;
    std::uint64_t version = 0;  // resourceVersion; 0 when it is not a number
  };
  std::unordered_map<std::string, State> states_;
};

}  // namespace gitops::reporter
