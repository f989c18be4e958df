// Preloaded into a benchmark and the programs that it starts: fsync() and fdatasync() take at least
// GITOPS_DISK_WAIT_US microseconds, as on a slower disk.

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr long kSecond = 1'000'000'000;  // ns

long least_ns() {
  static const long ns = [] {
    const char* text = std::getenv("GITOPS_DISK_WAIT_US");
    return text == nullptr ? 0L : std::strtol(text, nullptr, 10) * 1000;
  }();
  return ns;
}

// Makes the system call, and waits until it has taken long enough.
int slowly(long number, int file) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const auto result = static_cast<int>(::syscall(number, file));
  const int error = errno;
  const long ns = until.tv_nsec + least_ns();
  until.tv_sec += ns / kSecond;
  until.tv_nsec = ns % kSecond;
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  errno = error;
  return result;
}

}  // namespace

extern "C" int fsync(int file) {
  return slowly(SYS_fsync, file);
}

extern "C" int fdatasync(int file) {
  return slowly(SYS_fdatasync, file);
}
