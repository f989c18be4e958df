#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

// Set-up, facts and end of the own process, for every program of the suite.
namespace gitops {

// The version, "0.1.0"; chart and programs carry the same one.
std::string_view version();

// Returns a copy of the environment; programs read it once at start and pass it down.
std::map<std::string, std::string> process_environment();

// Returns the name of this host: of the pod in Kubernetes. Empty when it cannot be read.
std::string host_name();

// Raises the limit of open files (RLIMIT_NOFILE) to `needed`, as far as the system allows, and
// returns the limit that holds then.
std::uint64_t raise_open_files(std::uint64_t needed);

// Returns the CPU time that all threads of this process have used since its start.
std::chrono::microseconds process_cpu_time();

// Switches off core files, which would hold secrets, and SIGPIPE, and keeps malloc from taking an
// arena per thread. Afterwards an uncaught exception is logged as the last line and ends the
// process. Call it first, before any thread starts.
void prepare_process();

// Ends the process without destructors, after its log lines are written, which takes at most a
// second.
[[noreturn]] void end_process(int exit_code);

}  // namespace gitops
