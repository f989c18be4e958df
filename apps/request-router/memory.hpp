#pragma once

#ifdef GITOPS_MIMALLOC
#include <mimalloc.h>
#endif

namespace gitops::router {

// To be called first in main(). Keeps freed memory, in huge pages: with ten thousand connections, the
// memory of the next one is in no cache of the CPU, and with small pages a miss in the TLB would come
// on top. Nothing happens in builds that do not allocate by mimalloc.
inline void retain_freed_memory() {
#ifdef GITOPS_MIMALLOC
  mi_option_enable(mi_option_large_os_pages);
  mi_option_disable(mi_option_allow_decommit);
#endif
}

}  // namespace gitops::router
