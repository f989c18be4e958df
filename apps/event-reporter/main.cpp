#include "common/daemon/daemon.hpp"
#include "event-reporter/app.hpp"

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::reporter::event_reporter(), argc, argv);
}
