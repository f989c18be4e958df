#include "common/sqlite/sqlite_probe.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

namespace gitops::test {

struct SqlSession::State {
  sqlite3* handle = nullptr;
};

SqlSession::SqlSession(const std::filesystem::path& file) : state_(new State) {
  if (sqlite3_open(file.c_str(), &state_->handle) != SQLITE_OK) {
    const std::string reason = sqlite3_errmsg(state_->handle);
    sqlite3_close(state_->handle);
    delete state_;
    throw std::runtime_error(file.string() + ": " + reason);
  }
}

SqlSession::~SqlSession() {
  sqlite3_close(state_->handle);
  delete state_;
}

std::string SqlSession::run(const std::string& sql) {
  std::string last;
  const auto row = [](void* out, int columns, char** values, char**) {
    if (columns > 0 && values[0] != nullptr) *static_cast<std::string*>(out) = values[0];
    return 0;
  };
  if (sqlite3_exec(state_->handle, sql.c_str(), row, &last, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sql + ": " + sqlite3_errmsg(state_->handle));
  }
  return last;
}

namespace {

std::atomic<int> disk_error = 0;

bool refuses() {
  const int error = disk_error;
  if (error != 0) errno = error;
  return error != 0;
}

ssize_t write_or_fail(int fd, const void* bytes, size_t size) {
  return refuses() ? -1 : ::write(fd, bytes, size);
}
ssize_t pwrite_or_fail(int fd, const void* bytes, size_t size, off_t at) {
  return refuses() ? -1 : ::pwrite(fd, bytes, size, at);
}
int ftruncate_or_fail(int fd, off_t size) {
  return refuses() ? -1 : ::ftruncate(fd, size);
}

template <class Function>
void replace(const char* name, Function* function) {
  auto* vfs = sqlite3_vfs_find(nullptr);
  vfs->xSetSystemCall(vfs, name, reinterpret_cast<sqlite3_syscall_ptr>(function));
}

}  // namespace

BrokenDisk::BrokenDisk(int error) {
  [[maybe_unused]] static const bool replaced = [] {
    replace("write", write_or_fail);
    replace("pwrite", pwrite_or_fail);
    replace("pwrite64", pwrite_or_fail);
    replace("ftruncate", ftruncate_or_fail);
    return true;
  }();
  disk_error = error;
}

BrokenDisk::~BrokenDisk() {
  disk_error = 0;
}

void use_memory_for_temporary_files() {
  if (::access("/dev/shm", W_OK | X_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
}

}  // namespace gitops::test
