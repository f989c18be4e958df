// Preloaded into a program under test to give it a machine of its own: the host name
// GITOPS_TEST_HOST_NAME, and a wall clock that is ahead of the real one by the number of seconds in
// the 8 bytes of GITOPS_TEST_CLOCK_FILE. Monotonic clocks stay as they are.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

const volatile std::int64_t* map_clock() {
  static const std::int64_t kNone = 0;
  const char* path = std::getenv("GITOPS_TEST_CLOCK_FILE");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &kNone;
  void* bytes = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return bytes == MAP_FAILED ? &kNone : static_cast<const volatile std::int64_t*>(bytes);
}

std::int64_t seconds_ahead() {
  static const volatile std::int64_t* const ahead = map_clock();
  return *ahead;
}

}  // namespace

extern "C" int gethostname(char* name, std::size_t size) noexcept {
  const char* own = std::getenv("GITOPS_TEST_HOST_NAME");
  const int length = std::snprintf(name, size, "%s", own == nullptr ? "localhost" : own);
  return length >= 0 && static_cast<std::size_t>(length) < size ? 0 : -1;
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += seconds_ahead();
  return result;
}

extern "C" std::time_t time(std::time_t* out) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
