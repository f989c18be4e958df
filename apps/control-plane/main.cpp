#include "control-plane/program.hpp"

int main(int argc, char** argv) {
  return gitops::control_plane_server::run_program(argc, argv);
}
