#include "request-router/app.hpp"

#ifdef GITOPS_MIMALLOC
#include <mimalloc.h>
#endif

int main(int argc, char** argv) {
#ifdef GITOPS_MIMALLOC
  // Keep freed memory, in huge pages: with ten thousand connections, the memory of the next one is
  // in no cache of the CPU, and with small pages a miss in the TLB would come on top.
  mi_option_enable(mi_option_large_os_pages);
  mi_option_disable(mi_option_allow_decommit);
#endif
  return gitops::run_daemon(gitops::router::request_router(), argc, argv);
}
