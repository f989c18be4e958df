#pragma once

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/process.hpp"

namespace gitops::test {

// A folder on a file system of so many KiB where mounting is allowed; elsewhere a limit of this
// process on the size of a file. make_room() lifts it. One at a time.
class TinyDisk {
 public:
  explicit TinyDisk(std::size_t kib = 256) {
    const std::string size = "size=" + std::to_string(kib) + "k";
    mounted_ = ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (mounted_) return;
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    limit(kib * 1024);
  }
  ~TinyDisk() {
    if (mounted_) {
      ::umount2(folder_.path().c_str(), MNT_DETACH);
    } else {
      limit(RLIM_INFINITY);
      std::signal(SIGXFSZ, before_);
    }
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  void make_room() {
    if (!mounted_) {
      limit(RLIM_INFINITY);
    } else if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m") != 0) {
      throw std::runtime_error("the file system cannot be enlarged");
    }
  }
  // Leaves so many KiB. Where mounting is not allowed this does nothing.
  void fill_up_to(std::size_t free_kib) const {
    if (!mounted_) return;
    const auto space = std::filesystem::space(folder_.path()).available;
    if (space > free_kib * 1024) {
      write_file(folder_ / "filler", std::string(space - free_kib * 1024, 'x'));
    }
  }
  // Leaves nothing, until clear(). Where mounting is not allowed this does nothing.
  void fill() const {
    if (!mounted_) return;
    const int file = ::open((folder_ / "filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    auto size = static_cast<off_t>(std::filesystem::file_size(folder_ / "filler"));
    // Others write meanwhile, so the free space is only the first guess.
    auto part = static_cast<off_t>(std::filesystem::space(folder_.path()).available);
    while (part > 0) {
      if (::posix_fallocate(file, size, part) == 0) {
        size += part;
      } else {
        part /= 2;
      }
    }
    ::close(file);
  }
  void clear() const { std::filesystem::remove(folder_ / "filler"); }
  [[nodiscard]] bool is_file_system() const { return mounted_; }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path(); }

 private:
  static void limit(rlim_t bytes) {
    rlimit now{};
    ::getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = bytes;
    if (::setrlimit(RLIMIT_FSIZE, &now) != 0) throw std::runtime_error("no limit of files");
  }
  TempDir folder_;
  bool mounted_ = false;
  void (*before_)(int) = SIG_DFL;
};

}  // namespace gitops::test
