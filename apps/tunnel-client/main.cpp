#include "common/daemon/daemon.hpp"
#include "tunnel-client/app.hpp"

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::tunnel_client::tunnel_client(), argc, argv);
}
