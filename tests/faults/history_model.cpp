#include "faults/history_model.hpp"

#include <algorithm>
#include <utility>

namespace gitops::test {
namespace {

std::string describe(const std::optional<ObjectState>& state) {
  return state ? state->content + " " + state->rest : std::string("gone");
}

bool is_same(const ObjectState& truth, const ObjectState& told) {
  return truth.rest == told.rest && (told.content.empty() || truth.content == told.content);
}

}  // namespace

// -- the truth --

void HistoryModel::set(const std::string& object, ObjectState state, Order order) {
  auto& truth = truths_[object];
  truth.order = order;
  truth.hidden = false;
  truth.history.emplace_back(state.content);
  if (calm_) {
    auto& made = milestones_[object].made;
    if (made.empty() || made.back() != state.milestone) made.push_back(state.milestone);
  }
  truth.state = std::move(state);
}

void HistoryModel::remove(const std::string& object) {
  const auto truth = truths_.find(object);
  if (truth == truths_.end()) return;
  truth->second.hidden = false;
  if (!truth->second.state) return;
  truth->second.state.reset();
  truth->second.history.emplace_back(std::nullopt);
}

void HistoryModel::hide(const std::string& object) {
  const auto truth = truths_.find(object);
  if (truth != truths_.end()) truth->second.hidden = true;
}

void HistoryModel::begin_calm() {
  calm_ = true;
  milestones_.clear();
  for (const auto& [object, truth] : truths_) {
    if (truth.state && !truth.hidden) milestones_[object].made.push_back(truth.state->milestone);
  }
  // The receiver has the present state, so that it need not be told once more.
  for (auto& [object, milestones] : milestones_) milestones.told = milestones.made;
}

std::vector<std::string> HistoryModel::skipped() const {
  std::vector<std::string> skipped;
  for (const auto& [object, milestones] : milestones_) {
    if (!truths_.at(object).state) continue;
    auto told = milestones.told.begin();
    for (const auto& milestone : milestones.made) {
      while (told != milestones.told.end() && *told != milestone) ++told;
      if (told != milestones.told.end()) continue;
      skipped.push_back(object + ": was " + milestone + ", which was not told");
      break;
    }
  }
  return skipped;
}

// -- the receiver --

// The first of the object's states that the event may be about, from the one with this index on.
std::optional<std::size_t> HistoryModel::place(const Truth& truth, const ReceivedEvent& event,
                                               std::size_t from) const {
  for (auto at = from; at < truth.history.size(); ++at) {
    const auto& content = truth.history[at];
    if (content.has_value() != event.state.has_value()) continue;
    if (!content || event.state->content.empty() || *content == event.state->content) return at;
  }
  return std::nullopt;
}

void HistoryModel::receive(const ReceivedEvent& event) {
  ++events_;
  const auto content = describe(event.state);
  const auto what = event.id + " (" + content + ")";
  const auto [known_id, is_new] = contents_.emplace(event.id, content);
  const bool reduced = event.state && event.state->content.empty();
  if (reduced && !too_large_.contains(event.id)) wrong_.push_back("without a content: " + what);
  if (!is_new && known_id->second != content && !too_large_.contains(event.id)) {
    wrong_.push_back(event.object + ": one id for " + known_id->second + " and " + content + ": " +
                     event.id);
  }
  if (event.sequence == 0) wrong_.push_back("without a sequence: " + what);
  auto& picture = pictures_[event.object];
  const auto truth = truths_.find(event.object);
  if (truth == truths_.end()) {
    wrong_.push_back("of an unknown object " + event.object + ": " + what);
    return;
  }
  const auto [before, is_first] = picture.by_sequence.emplace(event.sequence, content);
  if (!is_first && before->second != content && !too_large_.contains(event.id)) {
    wrong_.push_back(event.object + ": one sequence for " + before->second + " and " + content +
                     ": " + event.id);
  }
  const bool taken = event.sequence > picture.sequence;
  auto at = place(truth->second, event, taken ? picture.at : 0);
  const bool of_another = !picture.deleted_by.empty() && !picture.deleted_by.contains(event.sender);
  if (!at && event.state && of_another) at = place(truth->second, event, picture.at_before);
  const auto ever = at ? at : place(truth->second, event, 0);
  const bool may_be_late = truth->second.order == Order::mixed && !event.state;
  // The state may be that of another object of the same name, which came before or after it.
  const bool may_be_of_another = truth->second.order == Order::mixed && event.state &&
                                 place(truth->second, ReceivedEvent{}, 0).has_value();
  if (!ever && !may_be_of_another) {
    wrong_.push_back((event.state ? "never was so: " : "never was deleted: ") + event.object + " " +
                     what);
  } else if (ever && !at && !may_be_late) {
    wrong_.push_back("goes back: " + event.object + " " + what);
  }
  picture.trail += "  " + event.sender + " " + what +
                   (taken    ? " taken"
                    : is_new ? " ignored"
                             : " known") +
                   "\n";
  if (!taken) return;
  if (event.state) {
    picture.deleted_by.clear();
  } else {
    if (picture.deleted_by.empty()) picture.at_before = picture.at;
    picture.deleted_by.insert(event.sender);
  }
  picture.sequence = event.sequence;
  picture.state = event.state;
  if (at) picture.at = *at;
  if (calm_ && event.state) milestones_[event.object].told.push_back(event.state->milestone);
}

std::vector<std::string> HistoryModel::lost() const {
  std::vector<std::string> lost;
  for (const auto& [object, truth] : truths_) {
    if (truth.hidden) continue;
    const auto found = pictures_.find(object);
    if (!truth.state) {
      if (found != pictures_.end() && found->second.state) {
        lost.push_back(object + ": was deleted, was not reported gone");
      }
    } else if (found == pictures_.end()) {
      lost.push_back(object + ": exists, was never reported");
    } else if (!found->second.state) {
      lost.push_back(object + ": exists, was reported gone");
    } else if (!is_same(*truth.state, *found->second.state)) {
      lost.push_back(object + ": is " + describe(truth.state) + ", was reported as " +
                     describe(found->second.state));
    }
  }
  return lost;
}

std::string HistoryModel::trails(std::string_view text) const {
  constexpr std::size_t kStates = 12;
  std::string out;
  for (const auto& [identity, picture] : pictures_) {
    const auto uid = identity.substr(0, identity.find(' '));
    const bool is_its_application =
        identity.starts_with(uid + " Application ") && text.contains(uid + " ");
    if (!text.contains(identity + " ") && !text.contains(identity + ":") && !is_its_application) {
      continue;
    }
    const auto truth = truths_.find(identity);
    if (truth != truths_.end()) {
      const auto& history = truth->second.history;
      out += "  the truth of " + identity + ":";
      for (auto at = history.size() - std::min(history.size(), kStates); at < history.size();
           ++at) {
        out += " " + history[at].value_or("gone");
      }
      out += truth->second.hidden ? " (hidden)\n" : "\n";
    }
    out += picture.trail;
  }
  return out;
}

HistoryModel HistoryModel::without_events() const {
  HistoryModel model;
  model.truths_ = truths_;
  model.too_large_ = too_large_;
  return model;
}

}  // namespace gitops::test
