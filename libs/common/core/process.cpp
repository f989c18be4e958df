#include "common/core/process.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/core/log.hpp"

namespace gitops {
namespace {

// Logs the exception in place of the C++ library's message, which would wait for the reader of
// standard error.
[[noreturn]] void log_and_abort() {
  std::string why = "std::terminate";
  try {
    if (const auto failure = std::current_exception()) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
    why = "an unknown exception";
  }
  log_raw_line("the process aborts: " + why);
  flush_logging();
  std::abort();
}

}  // namespace

std::string_view version() {
  return GITOPS_VERSION;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

std::uint64_t raise_open_files(std::uint64_t needed) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= needed) return files.rlim_cur;
  auto more = files;
  more.rlim_cur = std::min<rlim_t>(files.rlim_max, needed);
  if (::setrlimit(RLIMIT_NOFILE, &more) != 0) return files.rlim_cur;
  return more.rlim_cur;
}

std::chrono::microseconds process_cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

void prepare_process() {
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(SIGPIPE, SIG_IGN);
  ::mallopt(M_ARENA_MAX, 2);
  std::set_terminate(log_and_abort);
}

void end_process(int exit_code) {
  flush_logging();
  std::_Exit(exit_code);
}

}  // namespace gitops
