#include "event-reporter/report/difference.hpp"

#include <string>
#include <unordered_set>

namespace gitops::reporter {

Difference diff(const LedgerEntry& entry, std::string_view uid, const Digest& application,
                const std::optional<std::span<const ApplicationEvents::Resource>>& resources) {
  static const LedgerEntry kNothing;
  const auto& known = entry.uid == uid ? entry : kNothing;
  Difference difference;
  difference.application = known.application != application;
  if (!resources) return difference;

  std::unordered_set<std::string> present;
  for (std::size_t i = 0; i < resources->size(); ++i) {
    const auto& resource = (*resources)[i];
    const auto& identity = *present.insert(resource.id.identity()).first;
    const auto acknowledged = known.resources.find(identity);
    if (acknowledged == known.resources.end() ||
        (acknowledged->second.digest != resource.digest &&
         acknowledged->second.digest != resource.final_digest)) {
      difference.changed.push_back(i);
    }
  }
  for (const auto& [identity, resource] : known.resources) {
    if (present.contains(identity)) continue;
    difference.gone.push_back(ResourceId::of_identity(identity, resource.version));
  }
  return difference;
}

}  // namespace gitops::reporter
