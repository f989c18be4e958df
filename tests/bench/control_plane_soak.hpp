#pragma once

#include <chrono>

namespace gitops::bench {

// Lets 1,000 runtimes post to a control plane on SQLite, beside readers, and prints the rows: memory over time, the
// slowest runtime beside the fastest, and SQLite's write-ahead log.
int soak(std::chrono::minutes duration);

}  // namespace gitops::bench
