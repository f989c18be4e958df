#include "event-reporter/acknowledged.hpp"

#include <unordered_set>

namespace gitops::reporter {
namespace {

ResourceId id_of(std::string_view identity, std::string_view version) {
  const auto slash = identity.find('/');
  std::string full(identity.substr(0, slash + 1));
  full.append(version).append(identity.substr(slash));
  return ResourceId::parse(full);
}

}  // namespace

const Acknowledged::Entry* Acknowledged::find(const std::string& key, std::string_view uid) const {
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.uid == uid ? &found->second : nullptr;
}

Acknowledged::Entry& Acknowledged::entry(const std::string& key, std::string_view uid) {
  auto& entry = entries_[key];
  if (entry.uid != uid) entry = Entry{.uid = std::string(uid), .application = {}, .resources = {}};
  return entry;
}

Acknowledged::Difference Acknowledged::diff(
    const std::string& key, std::string_view uid, const Digest& application,
    const std::optional<std::span<const Report::Resource>>& resources) const {
  const auto* known = find(key, uid);
  Difference difference;
  difference.application = known == nullptr || known->application != application;
  if (!resources) return difference;

  std::unordered_set<std::string> present;
  for (std::size_t i = 0; i < resources->size(); ++i) {
    const auto& resource = (*resources)[i];
    const auto& identity = *present.insert(resource.id.identity()).first;
    if (known != nullptr) {
      const auto acknowledged = known->resources.find(identity);
      if (acknowledged != known->resources.end() &&
          (acknowledged->second.digest == resource.digest ||
           acknowledged->second.digest == resource.settled_digest)) {
        continue;
      }
    }
    difference.changed.push_back(i);
  }
  if (known != nullptr) {
    for (const auto& [identity, resource] : known->resources) {
      if (!present.contains(identity)) {
        difference.gone.push_back(id_of(identity, resource.version));
      }
    }
  }
  return difference;
}

std::vector<ResourceId> Acknowledged::resources_of(const std::string& key,
                                                   std::string_view uid) const {
  std::vector<ResourceId> out;
  if (const auto* known = find(key, uid)) {
    for (const auto& [identity, resource] : known->resources) {
      out.push_back(id_of(identity, resource.version));
    }
  }
  return out;
}

bool Acknowledged::knows(const std::string& key, std::string_view uid) const {
  return find(key, uid) != nullptr;
}

void Acknowledged::commit_application(const std::string& key, std::string_view uid,
                                      const Digest& digest) {
  entry(key, uid).application = digest;
}

void Acknowledged::commit_resource(const std::string& key, std::string_view uid,
                                   const ResourceId& id, const Digest& digest) {
  entry(key, uid).resources.insert_or_assign(
      id.identity(), Entry::Resource{.version = id.version, .digest = digest});
}

void Acknowledged::forget_resource(const std::string& key, std::string_view uid,
                                   const ResourceId& id) {
  if (find(key, uid) != nullptr) entries_[key].resources.erase(id.identity());
}

void Acknowledged::forget(const std::string& key, std::string_view uid) {
  if (find(key, uid) != nullptr) entries_.erase(key);
}

}  // namespace gitops::reporter
