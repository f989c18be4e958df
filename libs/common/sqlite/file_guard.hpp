#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/sqlite/fault.hpp"

namespace gitops::sqlite {

// Guards the file of a database: locks it for one process, checks its type, and sets a damaged file
// aside. Every call blocks; one thread at a time. An empty path means a database in memory, for
// which there is nothing to do.
class FileGuard {
 public:
  // `what` begins every message: "ledger".
  FileGuard(std::string path, std::string what);
  // Unlocks the file.
  ~FileGuard();
  FileGuard(const FileGuard&) = delete;
  FileGuard& operator=(const FileGuard&) = delete;

  // Locks `<file>.lock`, which stays there. It is a file of its own, so that the lock also covers
  // the moment in which a damaged database is replaced.
  Outcome lock();
  void unlock();
  // Maximum size of a mark: a text in the lock file, kept through restarts; empty: there is none.
  // It is overwritten in place, so that it can be written on a full disk. Requires lock().
  static constexpr std::size_t kMaxMark = 32;
  [[nodiscard]] std::string mark() const;
  Outcome set_mark(std::string_view text);
  // Makes a missing file (mode 0600, in an existing folder). Fails when it is no regular file or
  // can't be read and written; the file is not changed then.
  [[nodiscard]] Outcome prepare() const;
  // Renames a damaged file, with SQLite's files beside it, to `<file>.corrupt-<UTC time>`, and
  // removes all but the newest 3 of these. The database must be closed.
  [[nodiscard]] Outcome set_aside() const;
  // Returns the bytes on disk, including the write-ahead log.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::string path_;
  std::string name_;  // in messages
  int lock_ = -1;
};

}  // namespace gitops::sqlite
