// Any text as an Application and as Argo CD's answers about it: the events that are made from them
// are JSON, and cutting them down leaves JSON. Input: a line each for the Application,
// managed-resources, resource-tree, a commit's metadata, the parent's Application and its
// managed-resources, and app-proxy's answer about files in Git; an empty line means that it could not be had.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "event-reporter/event/application_events.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/read_plan.hpp"

namespace {

using namespace gitops;
using namespace gitops::reporter;
using Json = nlohmann::json;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_event(const std::string& body) {
  const auto event = Json::parse(body, nullptr, false);
  require(event.is_object() && event.contains("/data/source"_json_pointer));
  // A manifest is passed on as it was received.
  require(base64_decode(event["data"]["object"].get<std::string>()).has_value());
  const auto reduced = reduced_event(body);
  require(reduced.empty() || Json::accept(reduced));
}

std::optional<std::string> known(std::string_view line) {
  return line.empty() ? std::nullopt : std::optional<std::string>(line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 7> lines;
  for (auto& line : lines) {
    const auto end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const TrackingSettings settings{.method = "annotation+label", .argocd_namespace = "argocd"};
  const auto snapshot_of = [&](bool gone) -> std::optional<Snapshot> {
    auto app = AppView::parse(std::string(lines[0]));
    if (!app) return std::nullopt;
    const auto plan = plan_reads(*app, settings);
    Snapshot snapshot{.app = {.app = std::move(*app), .managed = known(lines[1])},
                      .tree = known(lines[2]),
                      .gone = gone};
    snapshot.app.sync_revisions.emplace();
    for (const auto& commit : plan.sync_revisions) {
      snapshot.app.sync_revisions->push_back(
          {.revision = commit.revision, .metadata = std::string(lines[3])});
    }
    (void)source_files_request(snapshot.app.app);
    if (auto files = GitFiles::parse(lines[6])) {
      snapshot.git_files = std::make_shared<const GitFiles>(std::move(*files));
    }
    if (lines[4].empty()) return snapshot;
    auto parent = AppView::parse(std::string(lines[4]));
    if (!parent) return std::nullopt;
    snapshot.parent = {.app = std::move(*parent), .managed = known(lines[5])};
    return snapshot;
  };
  change_digest(lines[0]);
  tree_digest(lines[2]);
  const auto now = WallTime{} + std::chrono::seconds(1'772'615'727);
  for (const bool gone : {false, true}) {
    auto snapshot = snapshot_of(gone);
    if (!snapshot) continue;
    const auto events = ApplicationEvents::make(std::move(*snapshot), settings);
    if (!events) continue;
    check_event(events->application_event(now));
    for (std::size_t i = 0; i < events->resources().size() && i < 4; ++i) {
      check_event(events->resource_event(i, now));
      check_event(events->gone_event(events->resources()[i].id, now));
    }
  }
  return 0;
}
