#include "event-reporter/report/difference.hpp"

#include <string>
#include <unordered_set>

namespace gitops::reporter {

namespace {

bool waits(const LedgerEntry& entry, std::string_view part, const Digest& content,
           Refused refused) {
  return refused == Refused::wait && entry.is_refused(part, content);
}

}  // namespace

Difference diff(const LedgerEntry& entry, std::string_view uid, const Digest& application,
                const std::optional<std::span<const ApplicationEvents::Resource>>& resources,
                Refused refused) {
  static const LedgerEntry kNothing;
  const auto& known = entry.uid == uid ? entry : kNothing;
  Difference difference;
  difference.application = (!known.application || !known.application->has(application)) &&
                           !waits(known, {}, application, refused);
  if (!resources) return difference;

  std::unordered_set<std::string> present;
  for (std::size_t i = 0; i < resources->size(); ++i) {
    const auto& resource = (*resources)[i];
    const auto& identity = *present.insert(resource.id.identity()).first;
    const auto found = known.resources.find(identity);
    const bool has = found != known.resources.end() &&
                     (found->second.last.has(resource.digest) ||
                      (resource.final_digest && found->second.last.has(*resource.final_digest)));
    if (!has && !waits(known, identity, resource.digest, refused)) difference.changed.push_back(i);
  }
  for (const auto& [identity, resource] : known.resources) {
    if (present.contains(identity) || waits(known, identity, kGone, refused)) continue;
    difference.gone.push_back(ResourceId::of_identity(identity, resource.version));
  }
  return difference;
}

Difference diff_gone(const LedgerEntry& entry, Refused refused) {
  Difference difference;
  difference.application =
      (!entry.application || !entry.application->has(kGone)) && !waits(entry, {}, kGone, refused);
  for (const auto& [identity, resource] : entry.resources) {
    if (waits(entry, identity, kGone, refused)) continue;
    difference.gone.push_back(ResourceId::of_identity(identity, resource.version));
  }
  return difference;
}

}  // namespace gitops::reporter
