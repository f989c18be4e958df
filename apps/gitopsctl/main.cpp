#include "gitopsctl/program.hpp"

int main(int argc, char** argv) {
  return gitops::cli::run_main(gitops::ctl::gitopsctl(), argc, argv);
}
