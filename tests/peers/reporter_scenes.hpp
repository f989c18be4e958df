#pragma once

#include "peers/reporter_world.hpp"

// What holds with every release of Argo CD: one scene a function, for play(). Each uses an
// application of its own.
namespace gitops::test {

Task<> reports_an_application_and_its_resources(ReporterWorld& world);
Task<> reports_a_commit(ReporterWorld& world);
/// A resource that leaves Git, then an application that takes its resources along.
Task<> reports_what_is_removed(ReporterWorld& world);
/// An application without finalizer, whose resources stay in the cluster.
Task<> reports_an_application_removed_alone(ReporterWorld& world);
Task<> reads_argocd_twice_per_event(ReporterWorld& world);

}  // namespace gitops::test
