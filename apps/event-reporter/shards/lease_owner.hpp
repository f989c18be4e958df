#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "k8s-client/lease.hpp"

namespace gitops::reporter {

// The annotation by which the owner of a Lease requests its release from the holder; holds an
// identity. It concerns one term of the holder: each write of the record removes it.
inline constexpr const char* kWantedBy = "gitops-runtime.io/wanted-by";

// Returns the identity of the owner that requests the Lease; empty when none does.
[[nodiscard]] inline std::string_view wanted_by(const k8s::LeaseView& lease) {
  return lease.annotation(kWantedBy);
}

// The decisions of the owner of a Lease: those of a candidate, which also requests its Lease when
// another process holds it (failover.hpp), and which is punctual.
class LeaseOwnerSteps final : public k8s::LeaseSteps {
 public:
  LeaseOwnerSteps(k8s::LeaseOptions options, std::uint64_t seed);

 protected:
  [[nodiscard]] std::optional<std::string> annotate() const override;
  [[nodiscard]] bool is_punctual() const override { return true; }
};

// The election of a Lease's owner.
class LeaseOwner final : public k8s::LeaseElection {
 public:
  // Takes the arguments of LeaseElection.
  LeaseOwner(k8s::Client& client, k8s::LeaseOptions options, std::function<void(bool)> on_change);
};

}  // namespace gitops::reporter
