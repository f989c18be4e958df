#include "control-plane/views/component_view.hpp"

#include <utility>

#include "control-plane/views/application_view.hpp"
#include "control-plane/views/image_name.hpp"

namespace gitops::control_plane_server {

std::string component_version(JsonView object) {
  const auto label = object["metadata"]["labels"]["app.kubernetes.io/version"].text();
  if (!label.empty()) return std::string(label);
  for (const auto container : object["spec"]["template"]["spec"]["containers"].items()) {
    return image_name(container["image"].text()).tag;
  }
  return {};
}

void append_component(std::string& out, const ObjectState& state, const ParsedBody& body,
                      const ViewContext& context) {
  ObjectJson at(out);
  at.raw("metadata", metadata_json(state, body.live()["metadata"], context));
  append_application(at.begin("self"), state, body, context);
  write_states(at, state);
  at.text("version", component_version(body.live()));
  at.end();
}

Result<std::string> component_slice(store::Connection& connection, std::int64_t account,
                                    std::string_view runtime, const PageWindow& window,
                                    const ViewContext& context) {
  ObjectFilter filter{.entities = {"runtime"}};
  if (!runtime.empty()) filter.runtimes = {std::string(runtime)};
  const auto owners = list_objects(connection, account, filter, {}, BodyUse::skip);
  if (!owners) return std::unexpected(owners.error());
  filter.entities = {"component"};
  auto rows = list_objects(connection, account, filter, {}, BodyUse::read);
  if (!rows) return std::unexpected(rows.error());
  for (const auto& owner : *owners) {
    const auto& key = owner.state.key;
    auto workloads = list_children(connection, account,
                                   {.runtime = key.runtime,
                                    .manager_namespace = key.object_namespace,
                                    .manager_name = key.name,
                                    .kinds = {"Deployment", "StatefulSet", "DaemonSet"},
                                    .origin = Origin::application},
                                   BodyUse::read);
    if (!workloads) return std::unexpected(workloads.error());
    for (auto& workload : *workloads) rows->push_back(std::move(workload));
  }
  std::vector<PageItem> items;
  ParsedBody parsed;
  for (const auto& row : *rows) {
    parsed.read(row.body);
    auto& item = items.emplace_back();
    item.key = sort_key_of(row.state);
    append_component(item.node, row.state, parsed, context);
  }
  return slice_json(window, items_in(window, std::move(items)));
}

}  // namespace gitops::control_plane_server
