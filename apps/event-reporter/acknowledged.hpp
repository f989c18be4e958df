#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event-reporter/digest.hpp"
#include "event-reporter/payload.hpp"
#include "event-reporter/resource_id.hpp"

namespace gitops::reporter {

// What the control plane has acknowledged, per application: the digest of the application itself
// and of each of its resources. The difference to what is live now is the work. Kept in memory, so
// a restart reports everything once more. Loop thread only.
//
// `key` is "namespace/name". A record belongs to one uid: an application that was made anew under
// the same name starts from nothing.
class Acknowledged {
 public:
  struct Difference {
    bool application = false;          // its own event is due
    std::vector<std::size_t> changed;  // indices of resources whose event is due
    std::vector<ResourceId> gone;      // acknowledged, and not among the resources any more
  };
  // `resources` absent: they are not known now, so nothing about them is due.
  [[nodiscard]] Difference diff(
      const std::string& key, std::string_view uid, const Digest& application,
      const std::optional<std::span<const Report::Resource>>& resources) const;

  // Everything that was acknowledged for that uid; for an application that does not exist any more.
  [[nodiscard]] std::vector<ResourceId> resources_of(const std::string& key,
                                                     std::string_view uid) const;
  [[nodiscard]] bool knows(const std::string& key, std::string_view uid) const;

  void commit_application(const std::string& key, std::string_view uid, const Digest& digest);
  void commit_resource(const std::string& key, std::string_view uid, const ResourceId& id,
                       const Digest& digest);
  // The deletion was acknowledged.
  void forget_resource(const std::string& key, std::string_view uid, const ResourceId& id);
  void forget(const std::string& key, std::string_view uid);

  [[nodiscard]] std::size_t applications() const { return entries_.size(); }

 private:
  struct Entry {
    std::string uid;
    std::optional<Digest> application;
    // By ResourceId::identity(); the version is what it was last reported with.
    struct Resource {
      std::string version;
      Digest digest;
    };
    std::map<std::string, Resource, std::less<>> resources;
  };
  [[nodiscard]] const Entry* find(const std::string& key, std::string_view uid) const;
  Entry& entry(const std::string& key, std::string_view uid);

  std::map<std::string, Entry> entries_;
};

}  // namespace gitops::reporter
