#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/sqlite/fault.hpp"

namespace gitops::sqlite {

// Keeps the file of a database: for one process at a time, of the right sort, and out of the way
// when it is damaged. Every call blocks; one thread at a time. An empty path stands for a database
// in memory, for which there is nothing to keep.
class FileGuard {
 public:
  // `what` begins every message: "ledger".
  FileGuard(std::string path, std::string what);
  // Unlocks.
  ~FileGuard();
  FileGuard(const FileGuard&) = delete;
  FileGuard& operator=(const FileGuard&) = delete;

  // Locks `<file>.lock`, which stays there. It is a file of its own, so that the lock also covers
  // the moment in which a damaged database is replaced.
  Outcome lock();
  void unlock();
  // A text of at most kMaxMark bytes in the lock file, kept through restarts; empty: there is none.
  // It is overwritten in place, so a full disk takes it, too. Requires lock().
  static constexpr std::size_t kMaxMark = 32;
  [[nodiscard]] std::string mark() const;
  Outcome set_mark(std::string_view text);
  // Makes a missing file (mode 0600, in a folder that exists). An error for what is no regular file
  // or can't be read and written; it is left alone.
  [[nodiscard]] Outcome prepare() const;
  // Renames a damaged file, with what SQLite keeps beside it, to `<file>.corrupt-<UTC time>`, and
  // removes all but the newest 3 of these. The database must be closed.
  [[nodiscard]] Outcome set_aside() const;
  // Bytes on disk, with the write-ahead log.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::string path_;
  std::string name_;  // in messages
  int lock_ = -1;
};

}  // namespace gitops::sqlite
