#include "app-proxy/app.hpp"
#include "common/daemon/daemon.hpp"

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::app_proxy::app_proxy(), argc, argv);
}
