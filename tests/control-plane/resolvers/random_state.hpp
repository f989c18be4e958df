#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "control-plane/runtimes/runtime_store.hpp"
#include "control-plane/views/seed.hpp"

namespace gitops::control_plane_server {

// Events and rows in which parts are missing, empty, of another type, or words that no version of Argo has.
class RandomState {
 public:
  using Json = nlohmann::json;

  explicit RandomState(std::mt19937& random) : random_(random) {}

  [[nodiscard]] int below(int bound) {
    return static_cast<int>(random_() % static_cast<unsigned>(bound));
  }
  [[nodiscard]] bool one_in(int count) { return below(count) == 0; }
  // A name of an object; few, so that events meet objects that exist.
  [[nodiscard]] std::string name() { return "n" + std::to_string(below(6)); }
  [[nodiscard]] std::string runtime() {
    static constexpr std::array<const char*, 3> kRuntimes{"prod", "stage", "edge"};
    return kRuntimes.at(static_cast<std::size_t>(below(3)));
  }
  // A word of some enum, or of none.
  [[nodiscard]] std::string word() {
    static const std::vector<std::string> kWords{"Synced",
                                                 "OutOfSync",
                                                 "Healthy",
                                                 "Running",
                                                 "Succeeded",
                                                 "Failed",
                                                 "Error",
                                                 "Paused",
                                                 "Unknown",
                                                 "unknown",
                                                 "Pending",
                                                 "SYNCED",
                                                 "DEGRADED",
                                                 "nonsense",
                                                 "",
                                                 " ",
                                                 "null",
                                                 "Missing",
                                                 "Skipped",
                                                 "Terminating",
                                                 "\xc3\xa9\xe2\x98\x83",
                                                 "a\nb\"c",
                                                 std::string("a\0b", 3)};
    return kWords.at(static_cast<std::size_t>(below(static_cast<int>(kWords.size()))));
  }
  // The body of an event of either reporter.
  [[nodiscard]] std::string event() {
    switch (below(7)) {
      case 0:
        return app_event(damaged(application()), source(), errors());
      case 1:
        return app_event(damaged(owner()), source(), errors());
      case 2:
        return app_event(damaged(workload()), managed_by(name()), errors());
      case 3:
        return app_event(damaged(sensor()), managed_by(name()));
      case 4:
        return app_event(damaged(promotion_template()), managed_by(name()));
      case 5:
        return resource_event(damaged(rollout()), one_in(9));
      default:
        return resource_event(damaged(workflow()), one_in(9));
    }
  }
  // The arguments of a registration.
  [[nodiscard]] std::string registration() {
    Json arguments{{"runtimeName", "prod"},
                   {"runtimeVersion", one_in(2) ? "1.2.3" : word()},
                   {"installationType", one_in(2) ? "HELM_HOSTED" : word()},
                   {"accessMode", one_in(2) ? "TUNNEL" : word()},
                   {"managed", one_in(2)},
                   {"gitProvider", word()},
                   {"ingressHost", one_in(2) ? "https://a.tunnels.example" : word()},
                   {"ingressClass", word()}};
    damage(arguments);
    return arguments.dump();
  }
  [[nodiscard]] std::string status() {
    Json status{{"runtimeGitToken", {{"status", one_in(2) ? "SUCCESSFUL" : word()}}},
                {"syncMode", word()},
                {"argoCdState", {{"status", word()}, {"description", word()}}}};
    damage(status);
    return status.dump();
  }
  [[nodiscard]] std::string reported_errors() {
    Json list{{{"level", word()}, {"message", word()}}};
    damage(list);
    return list.dump();
  }
  [[nodiscard]] std::string permissions() {
    Json list{{{"userId", word()}, {"read", one_in(2)}, {"write", one_in(2)}}};
    damage(list);
    return list.dump();
  }
  [[nodiscard]] ClusterReport clusters(const std::string& of) {
    ClusterReport report;
    for (int i = below(4); i >= 0; --i) {
      Json info{{"connectionState", {{"status", word()}, {"message", word()}}},
                {"serverVersion", word()},
                {"cacheInfo", {{"resourcesCount", below(9)}, {"apisCount", 3e9}}},
                {"apiVersions", {word(), 7}}};
      damage(info);
      const auto cluster = name();
      report.present.push_back({.runtime = of,
                                .server = "https://" + cluster,
                                .name = cluster,
                                .info = info.dump(),
                                .connection = static_cast<ClusterConnection>(below(3))});
    }
    return report;
  }

 private:
  Json source() {
    Json source{{"syncStatus", word()}, {"healthStatus", word()}, {"historyId", below(3)}};
    if (one_in(3)) source.update(managed_by(name()));
    if (one_in(3)) {
      for (auto& member : source) damage(member);
    }
    return source;
  }
  Json errors() {
    if (!one_in(3)) return Json::array();
    Json list{{{"type", one_in(2) ? "health" : "sync"},
               {"level", one_in(2) ? "warning" : word()},
               {"message", word()},
               {"lastSeen", word()}},
              one_in(2) ? Json(7) : Json()};
    return list;
  }
  Json application() {
    auto object = application_of(name());
    object["status"]["sync"]["status"] = word();
    object["status"]["health"] = {{"status", word()}, {"message", word()}};
    object["status"]["history"] = {
        {{"id", below(4)}, {"revision", word()}, {"deployedAt", word()}}};
    object["status"]["operationState"] = {{"phase", word()}, {"startedAt", word()}};
    object["status"]["resources"] = {{{"kind", "Rollout"}, {"group", "argoproj.io"}},
                                     {{"kind", "Application"}, {"group", "argoproj.io"}}};
    object["status"]["summary"]["images"] = {word(), "a/b:c"};
    return object;
  }
  // An Application with a role in its runtime.
  Json owner() {
    static constexpr std::array<const char*, 4> kEntities{"git-source", "runtime", "component",
                                                          "internal-config"};
    auto object = application();
    object["metadata"]["labels"]["codefresh.io/entity"] =
        kEntities.at(static_cast<std::size_t>(below(4)));
    return object;
  }
  Json workload() {
    auto object = object_of("apps/v1", one_in(2) ? "Deployment" : "StatefulSet", "gitops", name());
    object["metadata"]["labels"]["app.kubernetes.io/version"] = word();
    object["spec"]["template"]["spec"]["containers"] = {{{"image", "a/b:" + word()}}};
    return object;
  }
  Json sensor() {
    auto object = object_of("argoproj.io/v1alpha1", "Sensor", "ci", name());
    object["metadata"]["annotations"]["codefresh.io/project"] = "shop, " + word();
    object["spec"]["triggers"] = {{{"template", {{"name", word()}}}}};
    return object;
  }
  Json promotion_template() {
    auto object = object_of("codefresh.io/v1beta1", "PromotionTemplate", "gitops", name());
    object["spec"] = {{"priority", below(3)},
                      {"applicationSourceSelector", Json::object()},
                      {"versionSource", {{"file", word()}, {"jsonPath", word()}}}};
    return object;
  }
  Json rollout() {
    auto object = object_of("argoproj.io/v1alpha1", "Rollout", "shop", name());
    object["spec"] = {{"strategy", {{"canary", {{"steps", {{{"setWeight", 20}}}}}}}}};
    object["status"] = {{"phase", word()}, {"currentStepIndex", below(3)}};
    return object;
  }
  Json workflow() {
    auto object = object_of("argoproj.io/v1alpha1", "Workflow", "ci", name());
    object["metadata"]["labels"] = {{"events.argoproj.io/sensor", word()},
                                    {"events.argoproj.io/trigger", word()}};
    object["spec"] = {{"entrypoint", "m"},
                      {"templates", {{{"name", "m"}}}},
                      {"workflowTemplateRef", {{"name", word()}, {"clusterScope", one_in(2)}}}};
    object["status"] = {
        {"phase", word()},
        {"progress", word()},
        {"nodes", {{"x", {{"type", "Pod"}, {"name", word()}, {"phase", word()}}}, {"y", nullptr}}}};
    return object;
  }

  // Removes or replaces some members; most events keep what identifies their object.
  Json damaged(Json object) {
    for (const auto* part : {"spec", "status"}) {
      if (object.contains(part)) damage(object[part]);
    }
    auto& metadata = object["metadata"];
    for (const auto* part : {"uid", "namespace", "creationTimestamp", "labels", "annotations"}) {
      if (one_in(8)) metadata.erase(part);
    }
    for (const auto* part : {"uid", "labels", "annotations", "creationTimestamp", "name"}) {
      if (one_in(24)) metadata[part] = other();
    }
    if (one_in(40)) damage(object);
    return object;
  }
  Json other() {
    static const std::array<Json, 8> kOthers{
        Json(),        Json(7),        Json(-1),     Json("text"),
        Json::array(), Json::object(), Json(9.5e30), Json({nullptr, {{"a", true}}})};
    return kOthers.at(static_cast<std::size_t>(below(8)));
  }
  void damage(Json& at) {
    if (one_in(10)) {
      at = other();
      return;
    }
    if (!at.is_structured()) return;
    for (auto& member : at) damage(member);
  }

  std::mt19937& random_;
};

}  // namespace gitops::control_plane_server
