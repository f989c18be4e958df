#include "faults/control_plane_history_model.hpp"

#include <set>
#include <stdexcept>

namespace gitops::test {
namespace {

std::string describe(const PostedEvent& event) {
  return std::to_string(event.sequence) + " (" +
         (event.content.empty() ? "gone" : event.content.substr(0, 40)) + ")";
}

std::string describe(const StoredObject& stored) {
  return std::to_string(stored.sequence) + " (" +
         (stored.is_gone ? "gone" : stored.content.substr(0, 40)) + ")";
}

}  // namespace

void ControlPlaneHistoryModel::post(const PostedEvent& event) {
  ++attempts_;
  const auto [at, is_new] =
      objects_[event.object].try_emplace(event.sequence, Posted{.event = event});
  if (is_new) ++events_;
  const auto& known = at->second.event;
  if (known.content != event.content || known.uid != event.uid) {
    throw std::logic_error(event.object + ": one sequence for two events");
  }
}

void ControlPlaneHistoryModel::acknowledge(const PostedEvent& event) {
  auto& posted = objects_.at(event.object).at(event.sequence);
  if (!posted.is_acknowledged) ++acknowledged_;
  posted.is_acknowledged = true;
}

std::vector<std::string> ControlPlaneHistoryModel::lost(
    std::span<const StoredObject> stored) const {
  std::map<std::string, const StoredObject*> by_object;
  for (const auto& one : stored) by_object[one.object] = &one;
  std::vector<std::string> lost;
  for (const auto& [object, events] : objects_) {
    const auto found = by_object.find(object);
    const auto sequence = found == by_object.end() ? 0 : found->second->sequence;
    for (auto at = events.upper_bound(sequence); at != events.end(); ++at) {
      if (!at->second.is_acknowledged || at->second.event.is_of_earlier_uid) continue;
      lost.push_back(object + ": " + describe(at->second.event) + " was acknowledged, stored is " +
                     (sequence == 0 ? "nothing" : describe(*found->second)));
    }
  }
  return lost;
}

std::vector<std::string> ControlPlaneHistoryModel::wrong(
    std::span<const StoredObject> stored) const {
  std::vector<std::string> wrong;
  std::set<std::string> seen;
  for (const auto& one : stored) {
    if (!seen.insert(one.object).second) wrong.push_back(one.object + ": stored twice");
    const auto found = objects_.find(one.object);
    if (found == objects_.end()) {
      wrong.push_back(one.object + ": an unknown object");
    } else {
      judge(found->second, one, wrong);
    }
  }
  return wrong;
}

void ControlPlaneHistoryModel::judge(const Events& events, const StoredObject& stored,
                                     std::vector<std::string>& wrong) {
  const auto complain = [&](const std::string& what) {
    wrong.push_back(stored.object + ": stored is " + describe(stored) + ", " + what);
  };
  for (const auto milestone : stored.milestones) {
    if (!events.contains(milestone)) {
      complain("with a milestone of the unknown sequence " + std::to_string(milestone));
    }
  }
  const auto found = events.find(stored.sequence);
  if (found == events.end()) return complain("a sequence that was never posted");
  const auto& event = found->second.event;
  if (event.is_of_earlier_uid) return complain("by the deletion of an earlier uid");
  if (stored.is_gone != event.content.empty()) return complain("posted was " + describe(event));
  // A deletion need not name the uid, and the texts of an object stay after it.
  if (stored.is_gone) return;
  if (stored.content != event.content) complain("posted was " + describe(event));
  if (stored.uid != event.uid) complain("with uid " + stored.uid + " instead of " + event.uid);
}

}  // namespace gitops::test
