#pragma once

#ifdef GITOPS_MIMALLOC
#include <mimalloc.h>
#endif

namespace gitops::reporter {

// Keeps memory that a batch of reports has freed for the next batch, instead of returning it to the system within 25
// ms. Call it first in main(). Does nothing in builds that do not allocate by mimalloc.
inline void retain_freed_memory_for_a_while() {
#ifdef GITOPS_MIMALLOC
  mi_option_set(mi_option_decommit_delay,
                110);  // ms: a little more than ReportQueue's batch period
#endif
}

}  // namespace gitops::reporter
