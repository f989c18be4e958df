#include "common/daemon/daemon.hpp"
#include "tunnel-server/app.hpp"

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::tunnel_server::tunnel_server(), argc, argv);
}
