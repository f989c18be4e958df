#include "common/sqlite/file_guard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/time.hpp"

namespace gitops::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptAside = 3;
constexpr std::array<const char*, 3> kSideFiles = {"-wal", "-journal", "-shm"};

std::unexpected<Fault> refused(const std::string& what, int error) {
  return std::unexpected(fault_of_errno(what, error));
}

bool is_side_file(const std::string& name) {
  return std::ranges::any_of(kSideFiles,
                             [&name](const char* suffix) { return name.ends_with(suffix); });
}

void remove_old_ones(const fs::path& folder, const std::string& prefix, const std::string& newest) {
  std::error_code error;
  std::vector<std::string> aside;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    auto name = it->path().string();
    if (name.starts_with(prefix) && !is_side_file(name) && name != newest) {
      aside.push_back(std::move(name));
    }
  }
  // The order by name is that by time, unless the clock went back.
  std::ranges::sort(aside);
  for (std::size_t i = 0; i + kKeptAside <= aside.size(); ++i) {
    fs::remove(aside[i], error);
    for (const auto* side : kSideFiles) fs::remove(aside[i] + side, error);
  }
}

}  // namespace

FileGuard::FileGuard(std::string path, std::string what)
    : path_(std::move(path)), name_(std::move(what) + " " + path_) {}

FileGuard::~FileGuard() {
  unlock();
}

Outcome FileGuard::lock() {
  if (path_.empty()) return {};
  lock_ = ::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) return refused(name_ + ".lock", errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    // Reserves the room for a mark while there is free space.
    struct stat found{};
    if (::fstat(lock_, &found) == 0 && found.st_size == 0) std::ignore = set_mark({});
    return {};
  }
  const int error = errno;
  unlock();
  if (error != EWOULDBLOCK) return refused(name_ + ".lock", error);
  return std::unexpected(
      Fault{.kind = Fault::Kind::locked, .message = name_ + ": in use by another process"});
}

void FileGuard::unlock() {
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

std::string FileGuard::mark() const {
  std::array<char, kMaxMark> bytes{};
  const auto size = lock_ < 0 ? 0 : ::pread(lock_, bytes.data(), bytes.size(), 0);
  std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

Outcome FileGuard::set_mark(std::string_view text) {
  if (path_.empty()) return {};
  std::string bytes(text.substr(0, kMaxMark));
  bytes.resize(kMaxMark, ' ');
  const auto size = ::pwrite(lock_, bytes.data(), bytes.size(), 0);
  if (size == static_cast<ssize_t>(bytes.size())) return {};
  return refused(name_ + ".lock", size < 0 ? errno : ENOSPC);
}

Outcome FileGuard::prepare() const {
  if (path_.empty()) return {};
  const int made = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) {
    ::close(made);
    return {};
  }
  struct stat found{};
  if (errno != EEXIST) return refused(name_, errno);
  if (::stat(path_.c_str(), &found) != 0) return refused(name_, errno);
  if (!S_ISREG(found.st_mode)) {
    return std::unexpected(Fault{.message = name_ + ": not a regular file"});
  }
  if (::faccessat(AT_FDCWD, path_.c_str(), R_OK | W_OK, AT_EACCESS) != 0) {
    return refused(name_, errno);
  }
  return {};
}

Outcome FileGuard::set_aside() const {
  if (path_.empty()) return {};
  const fs::path file = fs::absolute(path_);
  const auto prefix = file.string() + ".corrupt-";
  auto stamp = format_rfc3339_millis(wall_now());
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  std::error_code error;
  auto target = prefix + stamp;
  for (int i = 2; fs::exists(fs::symlink_status(target, error)); ++i) {
    target = prefix + stamp + "-" + std::to_string(i);
  }
  // The side files are renamed first, since the new file must never meet them.
  for (const auto* side : kSideFiles) fs::rename(file.string() + side, target + side, error);
  fs::rename(file, target, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return refused(name_ + ": set aside", error.value());
  }
  remove_old_ones(file.parent_path(), prefix, target);
  return {};
}

std::uint64_t FileGuard::bytes() const {
  if (path_.empty()) return 0;
  std::uint64_t sum = 0;
  for (const auto& name : {path_, path_ + "-wal"}) {
    std::error_code error;
    const auto size = fs::file_size(name, error);
    if (!error) sum += size;
  }
  return sum;
}

}  // namespace gitops::sqlite
