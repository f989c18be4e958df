#include "control-plane/resolvers/visible.hpp"

#include <algorithm>
#include <utility>

namespace gitops::control_plane_server {
namespace {

// Limits a condition to these values. False: no value is left.
bool intersect(std::vector<std::string>& condition, std::vector<std::string> values) {
  if (condition.empty()) {
    condition = std::move(values);
  } else {
    std::erase_if(condition, [&values](const std::string& value) {
      return std::ranges::find(values, value) == values.end();
    });
  }
  return !condition.empty();
}

}  // namespace

bool limit_to_visible(ObjectList& list, const Visibility& visibility) {
  if (visibility.is_everything()) return true;
  if (visibility.is_nothing()) return false;
  auto& filter = list.filter;
  for (const auto& [attribute, condition] :
       {std::pair("RUNTIME", &filter.runtimes), std::pair("NAMESPACE", &filter.namespaces),
        std::pair("CLUSTER", &filter.destinations)}) {
    auto values = visibility.values_of(attribute);
    if (values && !intersect(*condition, std::move(*values))) return false;
  }
  // Labels are alternatives in a filter, so it cannot have those of the caller and those of the rules.
  if (auto labels = visibility.values_of("LABEL"); labels && filter.labels.empty()) {
    filter.labels = std::move(*labels);
  }
  if (visibility.needs_body()) list.bodies = BodyUse::read;
  list.accepts = [visibility, others = std::move(list.accepts)](const ObjectState& state,
                                                                const ParsedBody& body) {
    return visibility.shows(state, body.live()) && (!others || others(state, body));
  };
  return true;
}

Result<std::optional<ObjectRow>> find_visible(store::Connection& connection, std::int64_t account,
                                              const ObjectName& name,
                                              const Visibility& visibility) {
  auto found = find_object(connection, account, name, BodyUse::read);
  if (!found || !*found || visibility.is_everything()) return found;
  ParsedBody body;
  body.read((*found)->body);
  if (visibility.shows((*found)->state, body.live())) return found;
  // Another Application of that name may be visible when the caller does not name the runtime or the namespace.
  ObjectFilter filter{
      .kind = name.kind, .origin = name.origin, .groups = {name.group}, .names = {name.name}};
  if (!name.runtime.empty()) filter.runtimes = {name.runtime};
  if (!name.object_namespace.empty()) filter.namespaces = {name.object_namespace};
  auto rows = list_objects(connection, account, filter, {}, BodyUse::read);
  if (!rows) return std::unexpected(std::move(rows.error()));
  for (auto& row : *rows) {
    body.read(row.body);
    if (visibility.shows(row.state, body.live())) return std::optional(std::move(row));
  }
  return std::optional<ObjectRow>();
}

}  // namespace gitops::control_plane_server
