#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

// What every program of the suite does with its own process, daemon or not.
namespace gitops {

// "0.1.0"; chart and programs carry the same version.
std::string_view version();

// A copy of the environment; programs read it once at start and pass it down.
std::map<std::string, std::string> process_environment();

// Raises the limit of open files (RLIMIT_NOFILE) to `needed`, as far as the system allows, and
// returns the limit that holds then.
std::uint64_t raise_open_files(std::uint64_t needed);

// The CPU time that this process has used since its start, all threads.
std::chrono::microseconds process_cpu_time();

// Switches off core files, which would hold secrets, and SIGPIPE, and keeps malloc from taking an
// arena per thread. From then on an uncaught exception is the last log line, and then ends the
// process. Call it first, before any thread starts.
void prepare_process();

// Ends the process without destructors, after its log lines: they get a second at most.
[[noreturn]] void end_process(int exit_code);

}  // namespace gitops
