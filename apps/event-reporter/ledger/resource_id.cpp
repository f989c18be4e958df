#include "event-reporter/ledger/resource_id.hpp"

#include <algorithm>

#include "common/core/json_text.hpp"

namespace gitops::reporter {
namespace {

std::string join(std::string_view group, std::string_view kind, std::string_view ns,
                 std::string_view name) {
  std::string out;
  out.reserve(group.size() + kind.size() + ns.size() + name.size() + 3);
  out.append(group).append("/").append(kind).append("/").append(ns).append("/").append(name);
  return out;
}

}  // namespace

std::string ResourceId::to_string() const {
  return group + '/' + version + '/' + kind + '/' + ns + '/' + name;
}

ResourceId ResourceId::parse(std::string_view text) {
  ResourceId id;
  for (auto* part : {&id.group, &id.version, &id.kind, &id.ns}) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) return id;
    *part = text.substr(0, slash);
    text.remove_prefix(slash + 1);
  }
  id.name = text;
  return id;
}

ResourceId ResourceId::of(JsonView object) {
  return {.group = std::string(object["group"].text()),
          .version = std::string(object["version"].text()),
          .kind = std::string(object["kind"].text()),
          .ns = std::string(object["namespace"].text()),
          .name = std::string(object["name"].text())};
}

std::string ResourceId::identity() const {
  return join(group, kind, ns, name);
}

ResourceId ResourceId::of_identity(std::string_view identity, std::string_view version) {
  std::string full(identity);
  full.insert(std::min(full.find('/'), full.size()), "/");
  auto id = parse(full);
  id.version = version;
  return id;
}

std::string identity_of(JsonView object) {
  return join(object["group"].text(), object["kind"].text(), object["namespace"].text(),
              object["name"].text());
}

ResourceId application_id(std::string_view ns, std::string_view name) {
  return {.group = std::string(kApplicationGroup),
          .version = std::string(kApplicationVersion),
          .kind = std::string(kApplicationKind),
          .ns = std::string(ns),
          .name = std::string(name)};
}

bool is_application(const ResourceId& id) {
  return id.group == kApplicationGroup && id.kind == kApplicationKind;
}

}  // namespace gitops::reporter
