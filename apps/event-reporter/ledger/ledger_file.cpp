#include "event-reporter/ledger/ledger_file.hpp"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "common/sqlite/database.hpp"

namespace gitops::reporter {
namespace {

using sqlite::Fault;
using sqlite::Statement;

constexpr int kApplicationId = 0x674c6467;  // in the file's header; marks our files
constexpr std::string_view kSchemaVersion = "1";
constexpr std::string_view kSchemaName = "schema";
constexpr std::string_view kNotePrefix = "note.";
// The tables in the order of their names. WITHOUT ROWID stores each row once, so that a damaged row
// cannot disagree with an index.
constexpr std::array<const char*, 2> kTables = {
    "CREATE TABLE application(key TEXT PRIMARY KEY NOT NULL, checksum BLOB NOT NULL, "
    "entry BLOB NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, "
    "checksum BLOB NOT NULL) STRICT, WITHOUT ROWID"};
constexpr auto kMeasureEvery = std::chrono::seconds(1);
constexpr int kMaxValue = static_cast<int>(kMaxEntryBytes) + 64 * 1024;

std::string_view view(const RowChecksum& sum) {
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

}  // namespace

// The database with its two tables and prepared statements.
struct LedgerFile::Tables {
  explicit Tables(const std::string& path)
      : database({.path = path, .what = "ledger", .max_value_bytes = kMaxValue}) {}

  void set_meta(std::string_view name, std::string_view text) {
    const auto sum = row_checksum(name, text);
    put_meta.bind_text(1, name);
    put_meta.bind_text(2, text);
    put_meta.bind_blob(3, view(sum));
    put_meta.execute();
  }
  void erase(std::string_view key) {
    drop_row.bind_text(1, key);
    drop_row.execute();
  }
  void prepare_all() {
    put_row = database.prepare("REPLACE INTO application(key, checksum, entry) VALUES(?1, ?2, ?3)");
    drop_row = database.prepare("DELETE FROM application WHERE key = ?1");
    get_row = database.prepare("SELECT checksum, entry FROM application WHERE key = ?1");
    put_meta = database.prepare("REPLACE INTO meta(name, value, checksum) VALUES(?1, ?2, ?3)");
  }

  [[nodiscard]] Contents open();
  void create();
  void verify();
  [[nodiscard]] Contents read_all();
  void write(const LedgerBatch& batch);

  sqlite::Database database;
  Statement put_row;
  Statement drop_row;
  Statement get_row;
  Statement put_meta;
};

LedgerFile::Contents LedgerFile::Tables::open() {
  database.run("PRAGMA locking_mode=EXCLUSIVE");
  database.run("PRAGMA temp_store=MEMORY");
  database.run("PRAGMA cell_size_check=ON");
  database.run("PRAGMA cache_size=-2000");
  database.run("PRAGMA synchronous=NORMAL");
  database.run("PRAGMA journal_size_limit=4194304");
  const auto id = database.value("PRAGMA application_id");
  const bool empty = database.value("SELECT count(*) FROM sqlite_schema") == "0";
  if (database.good() && id == "0" && empty) {
    create();
  } else if (database.good() && id != std::to_string(kApplicationId)) {
    database.fail(Fault::Kind::other,
                  "the file is a database of another program; it is left alone");
  } else {
    verify();
  }
  prepare_all();
  auto contents = read_all();
  // Our statements are correct, so an SQL error means a damaged file.
  database.take_statement_errors_for_damage();
  if (database.good()) database.write_at_close(true);
  return contents;
}

void LedgerFile::Tables::create() {
  database.run("PRAGMA page_size=8192");  // a row of 2 KB, some 50 resources, lies on one page
  database.run("PRAGMA auto_vacuum=FULL");
  database.run("PRAGMA journal_mode=WAL");
  database.transact([this] {
    database.run("PRAGMA application_id=" + std::to_string(kApplicationId));
    for (const auto* table : kTables) database.run(table);
    put_meta = database.prepare("INSERT INTO meta(name, value, checksum) VALUES(?1, ?2, ?3)");
    set_meta(kSchemaName, kSchemaVersion);
    put_meta = {};
  });
}

void LedgerFile::Tables::verify() {
  bool has_version = false;
  database.each("SELECT value, checksum FROM meta WHERE name = 'schema'", [&](Statement& row) {
    const auto version = row.column(0);
    has_version = row.column(1) == view(row_checksum(kSchemaName, version));
    if (has_version && version != kSchemaVersion) {
      database.fail(Fault::Kind::other, "the file was written by a newer version (schema " +
                                            std::string(version) + ", this version knows " +
                                            std::string(kSchemaVersion) + "); it is left alone");
    }
  });
  if (!has_version) database.fail(Fault::Kind::damaged, "the schema version is damaged");
  std::size_t tables = 0;
  database.each("SELECT sql FROM sqlite_schema ORDER BY name", [&](Statement& row) {
    if (tables >= kTables.size() || row.column(0) != kTables.at(tables)) {
      database.fail(Fault::Kind::damaged, "the schema is damaged");
    }
    ++tables;
  });
  if (tables != kTables.size()) database.fail(Fault::Kind::damaged, "the schema is damaged");
  database.each("PRAGMA integrity_check(1)", [&](Statement& row) {
    const auto verdict = row.column(0);
    if (verdict != "ok") database.fail(Fault::Kind::damaged, std::string(verdict));
  });
  // The path is known to be writable, so a database that is read-only is damaged.
  if (database.good() && database.is_read_only())
    database.fail(Fault::Kind::damaged, "its header is damaged");
  database.run("PRAGMA journal_mode=WAL");
}

LedgerFile::Contents LedgerFile::Tables::read_all() {
  Contents contents;
  std::vector<std::string> bad_rows;
  database.each("SELECT key, checksum, entry FROM application", [&](Statement& row) {
    const auto key = row.column(0);
    const auto entry = row.column(2);
    auto head = decode_head(entry);
    if (!head || row.column(1) != view(row_checksum(key, entry))) {
      bad_rows.emplace_back(key);
    } else {
      contents.heads.insert_or_assign(std::string(key), std::move(*head));
    }
  });
  std::vector<std::string> bad_notes;
  database.each("SELECT name, value, checksum FROM meta", [&](Statement& row) {
    const auto name = row.column(0);
    const auto text = row.column(1);
    if (row.column(2) != view(row_checksum(name, text))) {
      bad_notes.emplace_back(name);
    } else if (name.starts_with(kNotePrefix)) {
      contents.notes.insert_or_assign(std::string(name.substr(kNotePrefix.size())),
                                      std::string(text));
    }
  });
  contents.damaged_rows = bad_rows.size() + bad_notes.size();
  if (contents.damaged_rows == 0 || !database.good()) return contents;
  database.transact([&] {
    for (const auto& key : bad_rows) erase(key);
    auto drop_note = database.prepare("DELETE FROM meta WHERE name = ?1");
    for (const auto& name : bad_notes) {
      drop_note.bind_text(1, name);
      drop_note.execute();
    }
  });
  // The next start finds the rows again if they cannot be deleted now.
  database.forgive_all_but_damage();
  return contents;
}

void LedgerFile::Tables::write(const LedgerBatch& batch) {
  database.transact([&] {
    for (const auto& [key, entry] : batch.rows) {
      if (!entry) {
        erase(key);
        continue;
      }
      const auto sum = row_checksum(key, *entry);
      put_row.bind_text(1, key);
      put_row.bind_blob(2, view(sum));
      put_row.bind_blob(3, *entry);
      put_row.execute();
    }
    for (const auto& [name, text] : batch.notes) set_meta(std::string(kNotePrefix) + name, text);
  });
}

LedgerFile::LedgerFile(std::string path) : path_(std::move(path)), guard_(path_, "ledger") {}

LedgerFile::~LedgerFile() = default;

Result<LedgerFile::Contents> LedgerFile::open() {
  if (auto locked = guard_.lock(); !locked) {
    return std::unexpected(sqlite::error_of(std::move(locked.error())));
  }
  auto contents = open_or_rebuild();
  if (contents) {
    const auto mark = guard_.mark();
    std::from_chars(mark.data(), mark.data() + mark.size(), contents->lacks_below);
    return std::move(*contents);
  }
  guard_.unlock();
  return std::unexpected(sqlite::error_of(std::move(contents.error())));
}

std::expected<LedgerFile::Contents, Fault> LedgerFile::open_or_rebuild() {
  std::string rebuilt;
  while (true) {
    if (auto usable = guard_.prepare(); !usable) return std::unexpected(std::move(usable.error()));
    tables_ = std::make_unique<Tables>(path_);
    auto contents = tables_->open();
    if (tables_->database.good()) {
      contents.rebuilt = std::move(rebuilt);
      return contents;
    }
    auto fault = tables_->database.take_failure();
    tables_.reset();
    const bool again = rebuilt.empty() && fault.kind == Fault::Kind::damaged;
    if (!again) return std::unexpected(std::move(fault));
    if (auto moved = guard_.set_aside(); !moved) return std::unexpected(std::move(moved.error()));
    rebuilt = std::move(fault.message);
  }
}

std::expected<LedgerFile::Read, Fault> LedgerFile::read(const std::string& key) {
  if (auto ready = make_ready(); !ready) return std::unexpected(std::move(ready.error()));
  auto& row = tables_->get_row;
  Read out;
  row.bind_text(1, key);
  if (row.step()) {
    const auto entry = row.column(1);
    if (row.column(0) == view(row_checksum(key, entry))) {
      if (auto decoded = decode_entry(entry)) out.entry = std::move(*decoded);
    }
    out.damaged = !out.entry;
  }
  row.rewind();
  if (tables_->database.good()) return out;
  return std::unexpected(give_up());
}

std::expected<LedgerFile::Written, Fault> LedgerFile::write(const LedgerBatch& batch) {
  const auto begin = Clock::now();
  for (bool again = false;; again = true) {
    if (auto ready = make_ready(); !ready) return std::unexpected(std::move(ready.error()));
    tables_->write(batch);
    if (tables_->database.good()) break;
    auto fault = give_up();
    if (again || fault.kind != Fault::Kind::damaged) return std::unexpected(std::move(fault));
  }
  const auto end = Clock::now();
  if (end >= measure_at_) {
    bytes_ = bytes();
    measure_at_ = end + kMeasureEvery;
  }
  return Written{.rebuilt = std::exchange(damage_, {}), .took = end - begin, .file_bytes = bytes_};
}

// Returns the database's fault. A damaged file is no longer used.
Fault LedgerFile::give_up() {
  auto fault = tables_->database.take_failure();
  if (fault.kind == Fault::Kind::damaged) {
    damage_ = fault.message;
    tables_->database.write_at_close(false);
    tables_.reset();
  }
  return fault;
}

// Replaces the file when it was damaged while open.
sqlite::Outcome LedgerFile::make_ready() {
  if (tables_) return {};
  if (!damage_set_aside_) {
    if (auto moved = guard_.set_aside(); !moved) return moved;
    damage_set_aside_ = true;
  }
  auto opened = open_or_rebuild();
  if (!opened) return std::unexpected(std::move(opened.error()));
  damage_set_aside_ = false;
  return {};
}

sqlite::Outcome LedgerFile::set_lacks_below(Sequence sequence) {
  return guard_.set_mark(sequence == 0 ? std::string() : std::to_string(sequence));
}

std::uint64_t LedgerFile::bytes() const {
  if (!path_.empty()) return guard_.bytes();
  if (!tables_) return 0;
  const auto number = [this](const char* sql) {
    const auto text = tables_->database.value(sql);
    return text.empty() ? std::uint64_t{0} : std::stoull(text);
  };
  return number("PRAGMA page_count") * number("PRAGMA page_size");
}

}  // namespace gitops::reporter
