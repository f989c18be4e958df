#pragma once

#ifdef GITOPS_MIMALLOC
#include <mimalloc.h>
#endif

namespace gitops::router {

// Keeps freed memory, in huge pages. Call it first in main(). With ten thousand connections, the
// memory of the next one is in no cache of the CPU, and small pages would add TLB misses. Does
// nothing in builds without mimalloc.
inline void retain_freed_memory() {
#ifdef GITOPS_MIMALLOC
  mi_option_enable(mi_option_large_os_pages);
  mi_option_disable(mi_option_allow_decommit);
#endif
}

}  // namespace gitops::router
