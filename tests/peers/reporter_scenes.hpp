#pragma once

#include "peers/reporter_bed.hpp"

// Scenes that hold with every release of Argo CD, one per function, for play(). Each uses its own
// application.
namespace gitops::test {

Task<> reports_an_application_and_its_resources(ReporterBed& bed);
Task<> reports_a_commit(ReporterBed& bed);
/// A resource that leaves Git, then an application that takes its resources along.
Task<> reports_what_is_removed(ReporterBed& bed);
/// An application without finalizer, whose resources stay in the cluster.
Task<> reports_an_application_removed_alone(ReporterBed& bed);
Task<> reads_argocd_twice_per_event(ReporterBed& bed);

}  // namespace gitops::test
