#include "event-reporter/shards/lease_owner.hpp"

#include <memory>
#include <utility>

#include "common/core/backoff.hpp"

namespace gitops::reporter {
namespace {

k8s::LeaseOptions with_request(k8s::LeaseOptions options) {
  options.cleared_annotation = kWantedBy;
  return options;
}

}  // namespace

LeaseOwnerSteps::LeaseOwnerSteps(k8s::LeaseOptions options, std::uint64_t seed)
    : LeaseSteps(with_request(std::move(options)), seed) {}

// Returns the Lease with the owner's request, once in each term.
std::optional<std::string> LeaseOwnerSteps::annotate() const {
  if (wanted_by(lease()) == options().identity) return std::nullopt;
  return lease().with_annotation(kWantedBy, options().identity);
}

LeaseOwner::LeaseOwner(k8s::Client& client, k8s::LeaseOptions options,
                       std::function<void(bool)> on_change)
    : LeaseElection(client, with_request(options), std::move(on_change),
                    std::make_unique<LeaseOwnerSteps>(options, random_seed())) {}

}  // namespace gitops::reporter
