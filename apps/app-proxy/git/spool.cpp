#include "app-proxy/git/spool.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace gitops::app_proxy {
namespace {

std::unexpected<Error> refuse(int code) {
  Error error{.code = ErrorCode::unavailable,
              .message = "a request cannot be kept on the disk of the clones: " +
                         std::generic_category().message(code)};
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) error.subcode = kDiskFull;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<Spool> Spool::in(const std::filesystem::path& folder) {
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // The file system does not support unnamed files.
    std::string name = folder / "spool-XXXXXX";
    file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file >= 0) ::unlink(name.c_str());
  }
  if (file < 0) return refuse(errno);
  return Spool(file);
}

Spool::Spool(Spool&& other) noexcept
    : file_(std::exchange(other.file_, -1)), size_(std::exchange(other.size_, 0)) {}

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

Spool::~Spool() {
  if (file_ >= 0) ::close(file_);
}

Result<void> Spool::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return refuse(written < 0 ? errno : ENOSPC);
    size_ += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> Spool::each(const std::function<Result<void>(std::string_view)>& take) const {
  std::array<char, 64UL * 1024> part{};
  for (std::uint64_t at = 0; at < size_;) {
    const auto got = ::pread(file_, part.data(), part.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return refuse(got < 0 ? errno : EIO);
    at += static_cast<std::uint64_t>(got);
    if (auto taken = take({part.data(), static_cast<std::size_t>(got)}); !taken) return taken;
  }
  return {};
}

}  // namespace gitops::app_proxy
