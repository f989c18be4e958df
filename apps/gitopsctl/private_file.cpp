#include "gitopsctl/private_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gitops::ctl {

namespace {

Result<void> failed_to_write(const std::string& path) {
  return fail(errno == EEXIST ? ErrorCode::conflict : ErrorCode::unavailable,
              path + " cannot be written: " + std::strerror(errno));
}

}  // namespace

Result<void> create_private_file(const std::string& path, std::string_view content) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return failed_to_write(path);
  std::size_t written = 0;
  while (written < content.size()) {
    const auto some = ::write(file, content.data() + written, content.size() - written);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) break;
    written += static_cast<std::size_t>(some);
  }
  const bool is_whole = written == content.size();
  if (is_whole && ::close(file) == 0) return {};
  auto failure = failed_to_write(path);
  if (!is_whole) ::close(file);
  ::unlink(path.c_str());
  return failure;
}

}  // namespace gitops::ctl
