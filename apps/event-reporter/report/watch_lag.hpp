#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/status_report.hpp"

namespace gitops::reporter {

// Detects states of a watch that are older than the take-over of their shard by this replica. A watch
// may lag behind that of the former holder, which then has already reported newer states, or the
// object's deletion.
//
// After each take-over it requests the newest version of the watched collection. States up to that
// version may be outdated, and so are all states until the version is known. Loop thread only; the
// objects that `newest` uses outlive this.
class WatchLag {
 public:
  // Requests the resourceVersion that the collection has now, not an earlier one.
  using Newest = std::function<Task<Result<std::string>>()>;
  WatchLag(const Executor& executor, Newest newest);

  // Records that this replica has just taken the shard over from another one.
  void taken_over(std::uint32_t shard);
  // Records that the API server was restored from a backup: versions from before do not compare with
  // later ones.
  void restored();
  // Returns whether an object of that shard, which the watch delivers with this version, may have
  // changed since in the term of another replica.
  [[nodiscard]] bool may_be_outdated(std::uint32_t shard, std::string_view version) const;

  // Number of shards for which the version is not known yet.
  [[nodiscard]] std::size_t unknown() const;

  // Runs until it is cancelled.
  Task<> run();

 private:
  Newest newest_;
  std::map<std::uint32_t, std::string> since_;  // by shard; empty: not known yet
  std::set<std::uint32_t> unknown_;
  gitops::Event unknown_changed_;
};

// Returns the entries of /statusz; empty when there are none.
[[nodiscard]] StatusReport status_of_take_overs(std::size_t shards);

}  // namespace gitops::reporter
