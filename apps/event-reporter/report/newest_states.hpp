#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gitops::reporter {

// The newest state that was read or reported of each object, by the object's key. A read may be
// ahead of the watch, which then still delivers older states, also those of a predecessor: another
// object that had the same name. Their resourceVersions compare, since a resourceVersion belongs to
// the whole cluster. Loop thread only.
class NewestStates {
 public:
  void note(const std::string& key, std::string_view uid, std::string_view resource_version);
  void forget(const std::string& key) { states_.erase(key); }
  // Forgets the objects that `which` selects. Called for a cluster that was restored from a backup:
  // the resourceVersions from before do not compare with later ones.
  void forget_all(const auto& which) {
    std::erase_if(states_, [&which](const auto& state) { return which(state.first); });
  }

  // Returns whether a newer state than this one was noted.
  [[nodiscard]] bool is_outdated(const std::string& key, std::string_view resource_version) const;
  // Returns the objects whose noted state the watch has still not delivered, though the same state was
  // noted at the previous call, and forgets them. Either the watch hangs, or the cluster was restored from
  // a backup and the watch cannot show it: it delivers nothing for an object that it knows in its restored
  // state. `watched` returns the resourceVersion that the watch delivered last; empty when it has no
  // object.
  using Watched = std::function<std::string_view(const std::string& key)>;
  [[nodiscard]] std::vector<std::string> take_undelivered(const Watched& watched);
  // Returns the uid of the noted state; null when there is none.
  [[nodiscard]] const std::string* uid(const std::string& key) const;

 private:
  struct State {
    std::string uid;
    std::uint64_t version = 0;  // resourceVersion; 0 when it is not a number
    bool undelivered = false;   // at the last call of take_undelivered()
  };
  std::unordered_map<std::string, State> states_;
};

}  // namespace gitops::reporter
