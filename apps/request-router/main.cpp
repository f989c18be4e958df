#include "common/daemon/daemon.hpp"
#include "request-router/app.hpp"
#include "request-router/memory.hpp"

int main(int argc, char** argv) {
  gitops::router::retain_freed_memory();
  return gitops::run_daemon(gitops::router::request_router(), argc, argv);
}
