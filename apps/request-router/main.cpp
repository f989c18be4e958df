#include "request-router/app.hpp"

int main(int argc, char** argv) {
  return gitops::run_daemon(gitops::router::request_router(), argc, argv);
}
