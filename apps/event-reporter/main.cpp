#include "common/daemon/daemon.hpp"
#include "event-reporter/app.hpp"
#include "event-reporter/memory.hpp"

int main(int argc, char** argv) {
  gitops::reporter::retain_freed_memory_for_a_while();
  return gitops::run_daemon(gitops::reporter::event_reporter(), argc, argv);
}
