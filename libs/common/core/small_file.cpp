#include "common/core/small_file.hpp"

#include <cerrno>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gitops {

namespace {

std::unexpected<Error> unreadable(int error) {
  const auto code =
      error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::unavailable;
  return fail(code, "cannot be read: " + std::generic_category().message(error));
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return unreadable(errno);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file,
                                                                [](const int* f) { ::close(*f); });
  struct stat info{};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::invalid_data, "is not a file");
  }
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > limit) {
    return fail(ErrorCode::too_large, "is larger than " + std::to_string(limit / 1024) + " KiB");
  }
  text.resize(size);
  return text;
}

std::string file_fingerprint(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return std::to_string(info.st_dev) + ':' + std::to_string(info.st_ino) + ':' +
         std::to_string(info.st_size) + ':' + std::to_string(info.st_mtim.tv_sec) + '.' +
         std::to_string(info.st_mtim.tv_nsec);
}

bool EmptyFileWatch::stays_empty(bool is_empty, const std::string& fingerprint) {
  if (!is_empty) {
    seen_.clear();
    return false;
  }
  const bool is_same = !fingerprint.empty() && seen_ == fingerprint;
  seen_ = fingerprint;
  return is_same;
}

}  // namespace gitops
