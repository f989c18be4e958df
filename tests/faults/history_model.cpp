#include "faults/history_model.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;

Json manifest_of(const FakePlatform::Report& report) {
  return Json::parse(report.source("actualManifest"), nullptr, false);
}

std::string text_at(const Json& object, const Json::json_pointer& path) {
  return object.is_object() && object.contains(path) && object.at(path).is_string()
             ? object.at(path).get<std::string>()
             : std::string("(none)");
}

AppTruth app_state(const FakePlatform::Report& report) {
  const auto manifest = manifest_of(report);
  return {.content = text_at(manifest, "/status/content"_json_pointer),
          .revision = text_at(manifest, "/status/sync/revision"_json_pointer),
          .sync = report.source("syncStatus"),
          .health = report.source("healthStatus")};
}

ResourceTruth resource_state(const FakePlatform::Report& report) {
  return {.content = text_at(manifest_of(report), "/data/content"_json_pointer),
          .sync = report.source("syncStatus"),
          .health = report.source("healthStatus")};
}

std::string describe(const AppTruth& state) {
  return state.content + " " + state.revision + " " + state.sync + " " + state.health;
}

std::string describe(const ResourceTruth& state) {
  return state.content + " " + state.sync + " " + state.health;
}

template <class State, class Received>
void compare(std::vector<std::string>& lost, const std::string& what, const State& truth,
             const Received* received) {
  if (received == nullptr) {
    lost.push_back(what + ": exists, was never reported");
  } else if (received->gone) {
    lost.push_back(what + ": exists, was reported gone");
  } else if (received->state != truth) {
    lost.push_back(what + ": is " + describe(truth) + ", was reported as " +
                   describe(received->state));
  }
}

}  // namespace

HistoryModel::App& HistoryModel::add(const std::string& uid, std::string name) {
  all_[uid] = name;
  auto& app = live_[uid];
  app.name = std::move(name);
  return app;
}

template <class State>
bool HistoryModel::take(Received<State>& known, const FakePlatform::Report& report, bool gone,
                        State state) {
  const auto content = gone ? "gone" : describe(state);
  const auto [before, is_new] = known.contents.emplace(report.sequence, content);
  if (!is_new && before->second != content) {
    wrong_.push_back("one sequence for " + before->second + " and " + content + ": " +
                     report.event_id);
  }
  if (report.sequence <= known.sequence) return false;
  known.sequence = report.sequence;
  known.gone = gone;
  known.state = std::move(state);
  return true;
}

void HistoryModel::receive(const FakePlatform::Report& report) {
  ++events_;
  const auto& id = report.event_id;
  const auto uid = id.substr(0, id.find('/'));
  const std::string sender(report.headers.find("User-Agent").value_or(""));
  const auto known = all_.find(uid);
  if (known == all_.end()) wrong_.push_back("unknown application: " + id);
  if (report.sequence == 0) wrong_.push_back("without a sequence: " + id);
  const bool is_new = ids_.insert(id).second;
  bool taken = false;
  if (known != all_.end()) {
    auto& picture = pictures_[uid];
    const bool gone = report.source("actualManifest").empty();
    if (report.kind() == "Application") {
      if (report.name() != known->second) wrong_.push_back("another name: " + id);
      taken = take(picture.app, report, gone, app_state(report));
    } else {
      taken = take(picture.resources[report.name()], report,
                   gone && report.source("desiredManifest").empty(), resource_state(report));
    }
  }
  const auto* effect = taken ? " taken" : is_new ? " ignored" : " known";
  trails_[uid] += "  " + sender + " " + id + effect + "\n";
}

std::vector<std::string> HistoryModel::lost() const {
  std::vector<std::string> lost;
  for (const auto& [uid, app] : live_) {
    const auto found = pictures_.find(uid);
    const auto* picture = found == pictures_.end() ? nullptr : &found->second;
    if (app.deleting) {
      if (picture != nullptr && !picture->app.gone) {
        lost.push_back(uid + ": is being deleted, was not reported so");
      }
      continue;
    }
    compare(lost, uid, app.state, picture == nullptr ? nullptr : &picture->app);
    for (const auto& [name, truth] : app.resources) {
      const Received<ResourceTruth>* received = nullptr;
      if (picture != nullptr && picture->resources.contains(name)) {
        received = &picture->resources.at(name);
      }
      compare(lost, uid + " " + name, truth, received);
    }
  }
  for (const auto& [uid, picture] : pictures_) {
    const auto app = live_.find(uid);
    if (app == live_.end() && !picture.app.gone) {
      lost.push_back(uid + ": was deleted, was not reported gone");
    }
    if (app != live_.end() && app->second.deleting) continue;
    for (const auto& [name, resource] : picture.resources) {
      const bool exists = app != live_.end() && app->second.resources.contains(name);
      if (!exists && !resource.gone) {
        lost.push_back(uid + " " + name + ": was deleted, was not reported gone");
      }
    }
  }
  return lost;
}

std::string HistoryModel::trail(const std::string& uid) const {
  const auto found = trails_.find(uid);
  return found == trails_.end() ? std::string() : found->second;
}

std::vector<std::string> HistoryModel::wrong() const {
  return wrong_;
}

}  // namespace gitops::test
