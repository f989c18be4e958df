#include "request-router/app.hpp"

#ifdef GITOPS_MIMALLOC
#include <mimalloc.h>
#endif

int main(int argc, char** argv) {
#ifdef GITOPS_MIMALLOC
  // What a load has needed once is kept for the next one, in pages of 2 MiB: of ten thousand
  // connections the next is in no cache of the CPU, and its page in no other.
  mi_option_enable(mi_option_large_os_pages);
  mi_option_disable(mi_option_allow_decommit);
#endif
  return gitops::run_daemon(gitops::router::request_router(), argc, argv);
}
