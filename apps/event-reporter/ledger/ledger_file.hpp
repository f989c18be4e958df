#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/core/error.hpp"
#include "common/core/time.hpp"
#include "common/sqlite/fault.hpp"
#include "common/sqlite/file_guard.hpp"
#include "event-reporter/ledger/ledger_entry.hpp"

namespace gitops::reporter {

// The changes of one transaction.
struct LedgerBatch {
  std::map<std::string, std::optional<std::string>> rows;  // key → encoded entry; absent: erase
  std::map<std::string, std::string> notes;
};

// The SQLite file behind the ledger (docs/adr/0006-ledger-on-sqlite.md). Every call blocks; one thread
// at a time. An empty path keeps everything in memory.
//
// Two tables: `application` (key, checksum, entry) and `meta` (name, value, checksum), which holds the
// version of this schema under "schema" and notes under "note.<name>". Each row carries a checksum.
// Beside the file are its -wal and `<file>.lock`, which is locked while the file is open.
class LedgerFile {
 public:
  explicit LedgerFile(std::string path);
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  struct Contents {
    std::unordered_map<std::string, LedgerHead> heads;  // heads by key
    std::map<std::string, std::string> notes;
    std::size_t damaged_rows = 0;  // number of dropped rows
    std::string rebuilt;           // why the file was replaced; empty: it was not
    Sequence lacks_below = 0;      // see set_lacks_below()
  };
  // Creates a missing file (mode 0600; the folder must exist). A damaged file is renamed to
  // `<file>.corrupt-<UTC time>`, of which the newest 3 are kept, and replaced. Fails when another
  // process uses the file, when another program or a newer version made it, and when it cannot be
  // read or written.
  Result<Contents> open();

  struct Read {
    std::optional<LedgerEntry> entry;  // absent: no row, or a damaged one
    bool damaged = false;
  };
  std::expected<Read, sqlite::Fault> read(const std::string& key);

  struct Written {
    std::string rebuilt;  // the reason why a file with this batch alone replaced the file
    std::chrono::duration<double> took{0};
    std::uint64_t file_bytes = 0;  // size at most a second ago, including its write-ahead log
  };
  // Writes a batch atomically. A damaged file is set aside and replaced.
  std::expected<Written, sqlite::Fault> write(const LedgerBatch& batch);

  // Marks the file, in the lock file, as one that lacks events with sequences below this; 0 removes
  // the mark. Works on a full disk, too.
  sqlite::Outcome set_lacks_below(Sequence sequence);

  // Returns the size on disk, or in memory without a file.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Tables;
  std::expected<Contents, sqlite::Fault> open_or_rebuild();
  sqlite::Outcome make_ready();
  sqlite::Fault give_up();

  std::string path_;
  sqlite::FileGuard guard_;         // unlocks after the database is closed
  std::unique_ptr<Tables> tables_;  // null from damage until the file is replaced
  std::string damage_;              // found since the last write
  bool damage_set_aside_ = false;
  std::uint64_t bytes_ = 0;
  Clock::time_point measure_at_{};
};

}  // namespace gitops::reporter
