// Any text as an Application and as Argo CD's answers about it: the events that are made from them
// are JSON, and cutting them down leaves JSON. Input: a line each for the Application,
// managed-resources, resource-tree, a commit's metadata, the parent's Application and its
// managed-resources; an empty line means that it could not be had.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "event-reporter/event/event_body.hpp"
#include "event-reporter/event/payload.hpp"
#include "event-reporter/event/questions.hpp"

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
  std::array<std::string_view, 6> lines;
  for (auto& line : lines) {
    const auto end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const TrackingSettings settings{.method = "annotation+label", .argocd_namespace = "argocd"};
  const auto material_of = [&](bool gone) -> std::optional<Material> {
    auto app = AppView::parse(std::string(lines[0]));
    if (!app) return std::nullopt;
    const auto questions = questions_about(*app, settings);
    Material material{.app = {.app = std::move(*app), .managed = known(lines[1])},
                      .tree = known(lines[2]),
                      .gone = gone};
    material.app.sync_revisions.emplace();
    for (const auto& commit : questions.sync_revisions) {
      material.app.sync_revisions->push_back(
          {.revision = commit.revision, .metadata = std::string(lines[3])});
    }
    if (lines[4].empty()) return material;
    auto parent = AppView::parse(std::string(lines[4]));
    if (!parent) return std::nullopt;
    material.parent = {.app = std::move(*parent), .managed = known(lines[5])};
    return material;
  };
  change_digest(lines[0]);
  tree_digest(lines[2]);
  const auto now = WallTime{} + std::chrono::seconds(1'772'615'727);
  for (const bool gone : {false, true}) {
    auto material = material_of(gone);
    if (!material) continue;
    const auto report = Report::read(std::move(*material), settings);
    if (!report) continue;
    check_event(report->application_event(now));
    for (std::size_t i = 0; i < report->resources().size() && i < 4; ++i) {
      check_event(report->resource_event(i, now));
      check_event(report->gone_event(report->resources()[i].id, now));
    }
  }
  return 0;
}
