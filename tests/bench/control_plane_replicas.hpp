#pragma once

#include <chrono>

namespace gitops::bench {

// Compares one, two and four control planes on one PostgreSQL, whose runtimes are disjoint, and times how long a change at
// one takes to the stream of another. Prints the rows S6 and S7. A measurement takes `slice`.
int compare_replicas(std::chrono::milliseconds slice, int rounds);

}  // namespace gitops::bench
