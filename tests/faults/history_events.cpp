#include "faults/history_events.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using namespace nlohmann::literals;

std::string text_at(const Json& object, const Json::json_pointer& path,
                    const std::string& otherwise = {}) {
  return object.is_object() && object.contains(path) && object.at(path).is_string()
             ? object.at(path).get<std::string>()
             : otherwise;
}

ReceivedEvent read_label(const FakePlatform::Report& report) {
  return {.object = {},
          .id = report.event_id,
          .sequence = report.sequence,
          .sender = std::string(report.headers.find("User-Agent").value_or(""))};
}

std::string errors_of(const FakePlatform::Report& report) {
  std::vector<std::string> errors;
  for (const auto& error : report.data.value("errors", Json::array())) {
    auto text = error.value("type", "") + " " + error.value("level", "") + ": " +
                error.value("message", "");
    const auto source = error.value("sourceReference", Json::object());
    if (!source.empty())
      text += " in " + source.value("namespace", "") + "/" + source.value("name", "");
    errors.push_back(std::move(text));
  }
  return describe_errors(std::move(errors));
}

}  // namespace

std::string identity_of(const std::string& app_uid, const std::string& kind, const std::string& ns,
                        const std::string& name) {
  return app_uid + " " + kind + " " + ns + " " + name;
}

std::string describe_errors(std::vector<std::string> errors) {
  std::ranges::sort(errors);
  std::string out = "[";
  for (const auto& error : errors) out += (out.size() > 1 ? ", " : "") + error;
  return out + "]";
}

std::string describe_manager(const std::string& name, const std::string& ns,
                             const std::string& uid) {
  return name.empty() && ns.empty() && uid.empty() ? std::string("root")
                                                   : "of " + ns + "/" + name + " " + uid;
}

ReceivedEvent read_application_event(const FakePlatform::Report& report) {
  auto event = read_label(report);
  const bool is_application =
      report.kind() == "Application" &&
      text_at(report.object, "/apiVersion"_json_pointer).starts_with("argoproj.io/");
  const auto uid = is_application ? text_at(report.object, "/metadata/uid"_json_pointer)
                                  : report.source("appUID");
  event.object =
      identity_of(uid, report.kind(), text_at(report.object, "/metadata/namespace"_json_pointer),
                  report.name());
  const auto actual = report.source("actualManifest");
  if (actual.empty() && report.source("desiredManifest").empty()) return event;
  const auto manifest = Json::parse(actual, nullptr, false);
  const auto manager = describe_manager(report.source("appName"), report.source("appNamespace"),
                                        report.source("appUID"));
  const auto sync = report.source("syncStatus");
  const auto health = report.source("healthStatus");
  if (is_application) {
    const auto revision = text_at(manifest, "/status/sync/revision"_json_pointer);
    const auto phase = text_at(manifest, "/status/operationState/phase"_json_pointer);
    auto milestone = revision + " " + sync + " " + health + " " + phase;
    event.state = ObjectState{.content = text_at(manifest, "/status/content"_json_pointer),
                              .rest = milestone + " " + manager + " " + errors_of(report),
                              .milestone = std::move(milestone)};
  } else {
    event.state = ObjectState{.content = text_at(manifest, "/data/content"_json_pointer),
                              .rest = sync + " " + health + " (" + report.source("healthMessage") +
                                      ") " + manager + " " + errors_of(report)};
  }
  return event;
}

ReceivedEvent read_resource_event(const FakePlatform::Report& report) {
  auto event = read_label(report);
  const auto& object = report.object;
  event.object = text_at(object, "/metadata/uid"_json_pointer);
  if (report.data.value("deleted", false)) return event;
  const auto phase = text_at(object, "/status/phase"_json_pointer);
  const bool deleting = object.contains("/metadata/deletionTimestamp"_json_pointer);
  event.state =
      ObjectState{.content = text_at(object, "/spec/content"_json_pointer),
                  .rest = report.data.value("cluster", "own") + " " + report.kind() + " " +
                          text_at(object, "/metadata/namespace"_json_pointer) + "/" +
                          report.name() + " " + phase + (deleting ? " deleting" : ""),
                  .milestone = phase};
  return event;
}

}  // namespace gitops::test
