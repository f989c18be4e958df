#pragma once

#include "peers/peer_world.hpp"

// Scenes that hold with every release of Argo CD, one per function, for play(). Each uses its own
// application.
namespace gitops::test {

Task<> reports_an_application_and_its_resources(PeerWorld& world);
Task<> reports_a_commit(PeerWorld& world);
/// A resource that leaves Git, then an application that takes its resources along.
Task<> reports_what_is_removed(PeerWorld& world);
/// An application without finalizer, whose resources stay in the cluster.
Task<> reports_an_application_removed_alone(PeerWorld& world);
Task<> reads_argocd_twice_per_event(PeerWorld& world);

}  // namespace gitops::test
