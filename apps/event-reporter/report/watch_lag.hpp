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

// Tells which states of a watch are from before this replica took a shard over. A watch may lag behind
// that of the former holder, which then has told newer states, or the object's deletion, already.
//
// After each take-over it requests the newest version of the watched collection. What is not above that
// version may be outdated, and so is everything until the version is known. Loop thread only; the
// objects that `newest` uses outlive this.
class WatchLag {
 public:
  // Requests the resourceVersion that the collection has now, not an earlier one.
  using Newest = std::function<Task<Result<std::string>>()>;
  WatchLag(const Executor& executor, Newest newest);

  // This replica has just taken the shard over from another one.
  void taken_over(std::uint32_t shard);
  // The API server was restored from a backup: versions from before do not compare with those of now.
  void restored();
  // Whether an object of that shard, which the watch delivers with this version, may have changed since
  // in the term of another replica.
  [[nodiscard]] bool may_be_outdated(std::uint32_t shard, std::string_view version) const;

  // The number of shards for which the version is not known yet.
  [[nodiscard]] std::size_t unknown() const;

  // Runs until it is cancelled.
  Task<> run();

 private:
  Newest newest_;
  std::map<std::uint32_t, std::string> since_;  // by shard; empty: not known yet
  std::set<std::uint32_t> unknown_;
  gitops::Event unknown_changed_;
};

// For /statusz. Empty if there are none.
[[nodiscard]] StatusReport status_of_take_overs(std::size_t shards);

}  // namespace gitops::reporter
