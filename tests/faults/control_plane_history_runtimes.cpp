#include "faults/control_plane_history_runtimes.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/http/url.hpp"
#include "support/process.hpp"

namespace gitops::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// All waits are shorter by far; a machine that is busy with other work may stand still.
constexpr auto kTimeLimit = std::chrono::minutes(3);
constexpr auto kAnswerLimit = seconds(30);
constexpr auto kPause = milliseconds(20);  // after an attempt that failed
constexpr std::size_t kRemembered = 12;    // events of an object, to be repeated
constexpr std::size_t kLarge = 20'000;     // bytes
constexpr int kUnavailable = 503;

json metadata(const std::string& name, const std::string& uid) {
  return {{"name", name}, {"namespace", "shop"}, {"uid", uid}};
}

// What an object has as its content, and its JSON.
std::string content_of(const json& object, const std::string& kind) {
  if (kind == "Application") return object["status"]["content"];
  return kind == "ConfigMap" ? object["data"]["content"] : object["spec"]["content"];
}

}  // namespace

ScriptedRuntimes::ScriptedRuntimes(const Executor& executor,
                                   ControlPlaneHistoryHarness& control_plane, std::uint64_t seed)
    : control_plane_(control_plane),
      random_(seed),
      client_(executor, names_, {.max_idle_per_host = 64}),
      changed_(executor),
      tasks_(executor) {}

std::string ScriptedRuntimes::identity(const Runtime& runtime, const Object& object) {
  constexpr std::array kKinds{"Application", "ConfigMap", "Rollout"};
  return runtime.name + "|" + object.owner + "|" +
         kKinds.at(static_cast<std::size_t>(object.kind)) + "|" + object.name;
}

void ScriptedRuntimes::start() {
  for (std::size_t i = 0; i < kRuntimes; ++i) {
    auto& runtime = runtimes_.emplace_back(Runtime{.name = "runtime-" + std::to_string(i)});
    runtime.token = control_plane_.register_runtime(runtime.name);
    for (std::size_t j = 0; j < kObjects; ++j) {
      auto& object = runtime.objects.emplace_back(
          Object{.kind = static_cast<Kind>(j % 3), .name = "object-" + std::to_string(j / 3)});
      if (object.kind == Kind::resource) object.owner = "owner-" + std::to_string(j % 2);
    }
  }
  for (auto& runtime : runtimes_) {
    for (std::size_t i = 0; i < kSenders; ++i) {
      tasks_.spawn(runtime.name, [this, &runtime] { return send(runtime); });
    }
  }
}

Task<> ScriptedRuntimes::send(Runtime& runtime) {
  while (!stops_) {
    if (is_paused_) {
      co_await changed_.wait();
      continue;
    }
    auto& object = runtime.objects[pick(runtime.objects.size())];
    ++in_flight_;
    for (const auto& event : next_events(runtime, object)) {
      if (!co_await post(runtime, object, event)) co_await sleep_for(kPause);
    }
    --in_flight_;
    changed_.notify_all();
  }
}

std::vector<PostedEvent> ScriptedRuntimes::next_events(const Runtime& runtime, Object& object) {
  if (!object.last.empty()) {
    switch (pick(10)) {
      case 0:
      case 1:
        return {object.last[pick(object.last.size())]};
      case 2: {
        auto first = next_event(runtime, object);
        return {next_event(runtime, object), std::move(first)};
      }
      case 3: {
        const auto event = next_event(runtime, object);
        return {event, event};
      }
      case 4:
        if (object.is_newest_acknowledged && object.is_live && !object.earlier_uid.empty()) {
          return {deletion_of_earlier_uid(runtime, object)};
        }
        break;
      default:
        break;
    }
  }
  return {next_event(runtime, object)};
}

PostedEvent ScriptedRuntimes::next_event(const Runtime& runtime, Object& object) {
  // As a reporter does, whose reports of one object do not overlap.
  if (!object.last.empty() && !object.is_live && !object.is_newest_acknowledged) {
    return object.last.back();
  }
  object.sequence += 1 + pick(3);
  object.is_newest_acknowledged = false;
  PostedEvent event{.object = identity(runtime, object), .sequence = object.sequence};
  if (object.is_live && pick(5) == 0) {
    object.is_live = false;
  } else {
    if (!object.is_live && (object.uid.empty() || pick(4) > 0)) {
      if (object.kind != Kind::resource) object.earlier_uid = object.uid;
      object.uid = "uid-" + std::to_string(++contents_);
    }
    object.is_live = true;
    event.content = "c" + std::to_string(++contents_) + " ";
    for (auto size = is_large_ ? kLarge : pick(200); size > 0; --size) {
      event.content += static_cast<char>('0' + pick(75));
    }
  }
  event.uid = object.uid;
  object.last.push_back(event);
  if (object.last.size() > kRemembered) object.last.pop_front();
  return event;
}

PostedEvent ScriptedRuntimes::deletion_of_earlier_uid(const Runtime& runtime, Object& object) {
  object.sequence += 1;
  return {.object = identity(runtime, object),
          .sequence = object.sequence,
          .uid = object.earlier_uid,
          .is_of_earlier_uid = true};
}

std::string ScriptedRuntimes::body_of(const Object& object, const PostedEvent& event) {
  const bool is_gone = event.content.empty();
  json text{{"metadata", metadata(object.name, event.uid)}};
  if (object.kind == Kind::rollout) {
    text["apiVersion"] = "argoproj.io/v1alpha1";
    text["kind"] = "Rollout";
    text["spec"] = {{"content", event.content}};
    text["status"] = {{"phase", event.content.size() % 2 == 0 ? "Healthy" : "Progressing"}};
    json data{{"object", text.dump()}};
    if (is_gone) data["deleted"] = true;
    return json{{"data", std::move(data)}}.dump();
  }
  json source{{"desiredManifest", ""}, {"gitManifest", ""}, {"syncStatus", "Synced"}};
  if (object.kind == Kind::application) {
    const auto revision = event.content.substr(0, event.content.find(' '));
    text["apiVersion"] = "argoproj.io/v1alpha1";
    text["kind"] = "Application";
    text["metadata"]["labels"] = {{"content", revision}};
    text["status"] = {{"content", event.content},
                      {"sync", {{"status", "Synced"}, {"revision", revision}}},
                      {"health", {{"status", "Healthy"}}}};
  } else {
    text["apiVersion"] = "v1";
    text["kind"] = "ConfigMap";
    text["data"] = {{"content", event.content}};
    if (is_gone) text["metadata"].erase("uid");  // as of a resource that no manifest is left of
    source["appUID"] = object.owner;
    source["appName"] = "shop";
  }
  source["actualManifest"] = is_gone ? std::string() : text.dump();
  return json{{"data", {{"object", base64_encode(text.dump())}, {"source", std::move(source)}}}}
      .dump();
}

Task<bool> ScriptedRuntimes::post(Runtime& runtime, Object& object, const PostedEvent& event) {
  model.post(event);
  const auto url = http::parse_url(control_plane_.url() + "/2.0/api/events");
  const auto sequence = std::to_string(event.sequence);
  const auto response =
      co_await client_.send(*url,
                            {.method = "POST",
                             .target = url->path,
                             .headers = {{"Authorization", runtime.token},
                                         {"Content-Type", "application/json"},
                                         {"X-Event-Id", event.object + "/" + sequence},
                                         {"X-Event-Sequence", sequence}},
                             .body = body_of(object, event)},
                            deadline_after(kAnswerLimit));
  const int status = response ? response->status : 0;
  ++statuses[status];
  ++attempts_;
  if (status == 200) {
    model.acknowledge(event);
    ++acknowledgements_;
    if (event.sequence == object.sequence) object.is_newest_acknowledged = true;
  } else if (status != 0 && status != 429 && status != kUnavailable) {
    refusal = std::to_string(status) + " " + response->body;
  }
  changed_.notify_all();
  co_return status == 200;
}

Task<bool> ScriptedRuntimes::wait_for(const std::size_t& counter, std::size_t count) {
  const auto wanted = counter + count;
  const auto deadline = deadline_after(kTimeLimit);
  while (counter < wanted) {
    if (!co_await changed_.wait(deadline)) co_return counter >= wanted;
  }
  co_return true;
}

Task<bool> ScriptedRuntimes::wait_for_attempts(std::size_t count) {
  co_return co_await wait_for(attempts_, count);
}

Task<bool> ScriptedRuntimes::wait_for_acknowledgements(std::size_t count) {
  co_return co_await wait_for(acknowledgements_, count);
}

Task<bool> ScriptedRuntimes::wait_for_unavailable() {
  co_return co_await wait_for(statuses[kUnavailable], 1);
}

Task<> ScriptedRuntimes::pause() {
  is_paused_ = true;
  while (in_flight_ > 0) co_await changed_.wait();
}

void ScriptedRuntimes::resume() {
  is_paused_ = false;
  changed_.notify_all();
}

Task<bool> ScriptedRuntimes::post_newest() {
  const auto deadline = deadline_after(kTimeLimit);
  for (auto& runtime : runtimes_) {
    for (auto& object : runtime.objects) {
      if (object.last.empty()) continue;
      const auto event = object.last.back();
      while (!co_await post(runtime, object, event)) {
        if (Clock::now() > deadline) co_return false;
        co_await sleep_for(kPause);
      }
    }
  }
  co_return true;
}

Task<> ScriptedRuntimes::stop() {
  stops_ = true;
  changed_.notify_all();
  co_await tasks_.join();
  client_.close_idle();
}

std::vector<StoredObject> ScriptedRuntimes::stored() const {
  std::vector<StoredObject> stored;
  for (auto& row : control_plane_.rows()) {
    const auto& state = row.state;
    const auto& key = state.key;
    const auto live = json::parse(row.body.live, nullptr, false);
    stored.push_back({.object = key.runtime + "|" + key.owner_uid + "|" + key.kind + "|" + key.name,
                      .sequence = static_cast<std::uint64_t>(state.sequence),
                      .content = live.is_object() ? content_of(live, key.kind) : "no body",
                      .uid = state.uid,
                      .is_gone = state.presence == control_plane_server::Presence::gone,
                      .milestones = std::move(row.milestones)});
  }
  return stored;
}

std::map<std::string, std::vector<std::string>> ScriptedRuntimes::live_applications() const {
  std::map<std::string, std::vector<std::string>> live;
  for (const auto& runtime : runtimes_) {
    auto& names = live[runtime.name];
    for (const auto& object : runtime.objects) {
      if (object.kind == Kind::application && object.is_live) names.push_back(object.name);
    }
    std::ranges::sort(names);
  }
  return live;
}

}  // namespace gitops::test
