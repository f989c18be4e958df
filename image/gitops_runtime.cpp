// All programs in one, for the image that holds all of them: what they share is there once. The name by which it is started
// chooses the program (the image has a link for each), or else its first argument.

#include <array>
#include <cstdio>
#include <string_view>

#include "app-proxy/app.hpp"
#include "common/cli/command.hpp"
#include "common/daemon/daemon.hpp"
#include "control-plane/program.hpp"
#include "event-reporter/app.hpp"
#include "event-reporter/memory.hpp"
#include "gitopsctl/program.hpp"
#include "request-router/app.hpp"
#include "request-router/memory.hpp"
#include "tunnel-client/app.hpp"
#include "tunnel-server/app.hpp"

namespace {

struct Program {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

template <gitops::DaemonSpec (*spec)()>
int run_daemon(int argc, char** argv) {
  return gitops::run_daemon(spec(), argc, argv);
}

constexpr std::array kPrograms{
    Program{"request-router",
            [](int argc, char** argv) {
              gitops::router::retain_freed_memory();
              return run_daemon<gitops::router::request_router>(argc, argv);
            }},
    Program{"event-reporter",
            [](int argc, char** argv) {
              gitops::reporter::retain_freed_memory_for_a_while();
              return run_daemon<gitops::reporter::event_reporter>(argc, argv);
            }},
    Program{"tunnel-client", run_daemon<gitops::tunnel_client::tunnel_client>},
    Program{"tunnel-server", run_daemon<gitops::tunnel_server::tunnel_server>},
    Program{"app-proxy", run_daemon<gitops::app_proxy::app_proxy>},
    Program{"control-plane", gitops::control_plane_server::run_program},
    Program{"gitopsctl",
            [](int argc, char** argv) {
              return gitops::cli::run_main(gitops::ctl::gitopsctl(), argc, argv);
            }},
};

const Program* find(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const auto& program : kPrograms) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0) {
    if (const auto* program = find(argv[0])) return program->run(argc, argv);
  }
  if (argc > 1) {
    if (const auto* program = find(argv[1])) return program->run(argc - 1, argv + 1);
  }
  std::fputs("usage: gitops-runtime PROGRAM [ARGUMENT...]\n\nPrograms:\n", stderr);
  for (const auto& program : kPrograms) std::fprintf(stderr, "  %s\n", program.name.data());
  return 2;
}
