#include "control-plane/storage/copy_store.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/text.hpp"
#include "common/store/postgres_connection.hpp"

namespace gitops::control_plane_server {
namespace {

using store::Connection;
using store::Engine;
using store::Param;
using store::Params;
using store::Rows;
using store::Statement;

constexpr std::int64_t kPageRows = 500;
constexpr std::int64_t kProgressRows = 10'000;

// --- Reading the schema's text ---

std::optional<ColumnType> type_of(std::string_view word) {
  if (word == "INTEGER" || word == "BIGINT") return ColumnType::number;
  if (word == "TEXT") return ColumnType::text;
  if (word == "BLOB" || word == "BYTEA") return ColumnType::bytes;
  return std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line = trimmed(line);
    if (line.empty()) return words;
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    auto word = line.substr(0, end);
    line.remove_prefix(end);
    while (word.ends_with(',') || word.ends_with(';')) word.remove_suffix(1);
    words.push_back(word);
  }
}

// The names between the first parentheses: "PRIMARY KEY (account, id)".
std::vector<std::string> names_between(std::string_view line) {
  const auto begin = line.find('(');
  const auto end = line.find(')');
  std::vector<std::string> names;
  if (begin == std::string_view::npos || end == std::string_view::npos) return names;
  auto rest = line.substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    names.emplace_back(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

void add_column(SchemaTable& table, std::span<const std::string_view> words,
                std::string_view line) {
  if (words.size() < 2) return;
  const auto type = type_of(words[1]);
  if (!type) return;
  table.columns.push_back({.name = std::string(words[0]), .type = *type});
  if (line.find("PRIMARY KEY") != std::string_view::npos) {
    table.key = {std::string(words[0])};
  }
}

// --- Statements of a table ---

// A column's placeholder.
std::string place(std::size_t number) {
  return '$' + std::to_string(number);
}

// The statements of one table. Their texts live as long as the program, since connections know prepared statements by
// their names.
struct TableStatements {
  SchemaTable table;
  std::string names;  // of the columns
  std::array<std::string, 4> labels;
  std::array<std::string, 4> texts;
  Statement first;  // page, by key
  Statement next;   // page behind a key
  Statement insert;
  Statement count;
};

void build(TableStatements& made) {
  const auto& table = made.table;
  std::string values;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    made.names += (i == 0 ? "" : ", ") + table.columns[i].name;
    values += (i == 0 ? "" : ", ") + place(i + 1);
  }
  const auto key = join(table.key, ", ");
  std::string behind;
  for (std::size_t i = 0; i < table.key.size(); ++i) behind += (i == 0 ? "" : ", ") + place(i + 2);
  const auto select = "SELECT " + made.names + " FROM " + table.name;
  made.texts = {select + " ORDER BY " + key + " LIMIT $1",
                select + " WHERE (" + key + ") > (" + behind + ") ORDER BY " + key + " LIMIT $1",
                "INSERT INTO " + table.name + " (" + made.names + ") VALUES (" + values + ")",
                "SELECT count(*) FROM " + table.name};
  made.labels = {"copy.first." + table.name, "copy.next." + table.name, "copy.insert." + table.name,
                 "copy.count." + table.name};
  const std::array<Statement*, 4> statements{&made.first, &made.next, &made.insert, &made.count};
  for (std::size_t i = 0; i < statements.size(); ++i) {
    *statements[i] = {.name = made.labels[i], .sql = made.texts[i]};
  }
}

const TableStatements& statements_of(const SchemaTable& table) {
  static std::mutex mutex;
  static std::deque<TableStatements> all;
  const std::lock_guard lock(mutex);
  for (const auto& known : all) {
    if (known.table == table) return known;
  }
  auto& made = all.emplace_back();
  made.table = table;
  build(made);
  return made;
}

Param param_of(const Rows& rows, std::size_t row, std::size_t column, ColumnType type) {
  if (rows.is_null(row, column)) return {};
  switch (type) {
    case ColumnType::number:
      return rows.number(row, column);
    case ColumnType::text:
      return rows.text(row, column);
    case ColumnType::bytes:
      return Param::bytes(rows.text(row, column));
  }
  return {};
}

Params params_of(const Rows& rows, std::size_t row, const SchemaTable& table) {
  Params params;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    params.push_back(param_of(rows, row, column, table.columns[column].type));
  }
  return params;
}

// The pages of a table in the order of its key, which both engines compare as numbers and bytes.
class TablePages {
 public:
  TablePages(Connection& connection, const TableStatements& statements)
      : connection_(connection), statements_(statements) {}

  // The next rows, empty at the end; then there is no next call. The ones before end.
  Result<const Rows*> next() {
    Params params{kPageRows};
    if (page_) add_key(params);
    auto rows = connection_.run(page_ ? statements_.next : statements_.first, params);
    if (!rows) return std::unexpected(std::move(rows.error()));
    page_ = std::move(*rows);
    return &*page_;
  }

 private:
  // Adds the key of the last row.
  void add_key(Params& params) const {
    const auto& table = statements_.table;
    for (const auto& name : table.key) {
      const auto column = static_cast<std::size_t>(
          std::ranges::find(table.columns, name, &SchemaTable::Column::name) -
          table.columns.begin());
      params.push_back(param_of(*page_, page_->size() - 1, column, table.columns.at(column).type));
    }
  }

  Connection& connection_;
  const TableStatements& statements_;
  std::optional<Rows> page_;
};

// A transaction in which all tables are read as of one moment, although a control plane that was
// not stopped may write to them: a database of PostgreSQL belongs to no process.
class SourceSnapshot {
 public:
  explicit SourceSnapshot(Connection& from) : from_(from) {}
  SourceSnapshot(const SourceSnapshot&) = delete;
  SourceSnapshot& operator=(const SourceSnapshot&) = delete;
  ~SourceSnapshot() {
    if (is_begun_) static_cast<void>(from_.run_script("ROLLBACK"));
  }

  Result<void> begin() {
    // The transaction is idle while rows are written to the target and compared there.
    auto begun = from_.run_script(from_.engine() == Engine::sqlite
                                      ? "BEGIN"
                                      : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
                                        "SET LOCAL idle_in_transaction_session_timeout = 0");
    is_begun_ = begun.has_value();
    return begun;
  }

 private:
  Connection& from_;
  bool is_begun_ = false;
};

// Count and digest of rows.
class TableDigest {
 public:
  void add(const Rows& rows, const SchemaTable& table) {
    std::string text;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (std::size_t column = 0; column < table.columns.size(); ++column) {
        if (rows.is_null(row, column)) {
          text += "-;";
        } else if (table.columns[column].type == ColumnType::number) {
          text += std::to_string(rows.number(row, column)) + ';';
        } else {
          const auto value = rows.text(row, column);
          text += std::to_string(value.size()) + ':';
          text += value;
        }
      }
      text += '\n';
    }
    sum_.add(text);
    rows_ += static_cast<std::int64_t>(rows.size());
  }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] Sha256Sum finish() { return sum_.finish(); }

 private:
  Sha256 sum_;
  std::int64_t rows_ = 0;
};

Result<void> insert_rows(Connection& to, const TableStatements& statements, const Rows& rows) {
  const auto& table = statements.table;
  return to.transact([&]() -> Result<void> {
    auto* postgres = dynamic_cast<store::PostgresConnection*>(&to);
    if (postgres == nullptr) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto put = to.run(statements.insert, params_of(rows, row, table));
        if (!put) return std::unexpected(put.error());
      }
      return {};
    }
    std::vector<store::PostgresConnection::Step> steps;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      auto& step = steps.emplace_back();
      step.statement = &statements.insert;
      for (const auto& param : params_of(rows, row, table)) step.params.emplace_back(param);
    }
    const auto put = postgres->run_pipeline(steps);
    if (!put) return std::unexpected(put.error());
    return {};
  });
}

// Ids of new objects and numbers of new accounts come from sequences on PostgreSQL, which rows that bring theirs do not
// move on, and behind the largest one on SQLite.
Result<void> set_next_ids(Connection& to) {
  if (to.engine() != Engine::postgres) return {};
  static constexpr std::array<Statement, 2> kSetNext{
      {{.name = "copy.next_id",
        .sql = "SELECT setval('object_id', coalesce(max(id), 0) + 1, false) FROM object"},
       {.name = "copy.next_account",
        .sql = "SELECT setval(pg_get_serial_sequence('account', 'number'), "
               "coalesce(max(number), 0) + 1, false) FROM account"}}};
  for (const auto& statement : kSetNext) {
    const auto set = to.run(statement);
    if (!set) return std::unexpected(set.error());
  }
  return {};
}

Result<std::int64_t> copy_table(Connection& from, Connection& to, const SchemaTable& table,
                                const std::function<void(std::string_view)>& progress) {
  const auto& statements = statements_of(table);
  const auto there = to.run(statements.count);
  if (!there) return std::unexpected(there.error());
  if (there->number(0, 0) > 0) {
    return fail(ErrorCode::conflict,
                "the target's table " + table.name + " has rows: copy into an empty database");
  }
  const auto tell = [&](std::int64_t rows) {
    if (progress) progress(table.name + ": " + std::to_string(rows) + " rows");
  };
  TableDigest read;
  TablePages source(from, statements);
  std::int64_t told = 0;
  while (true) {
    const auto rows = source.next();
    if (!rows) return std::unexpected(rows.error());
    if ((*rows)->empty()) break;
    read.add(**rows, table);
    if (auto put = insert_rows(to, statements, **rows); !put) {
      return std::unexpected(std::move(put.error()));
    }
    if (read.rows() - told >= kProgressRows) tell(told = read.rows());
  }
  TableDigest written;
  TablePages target(to, statements);
  while (true) {
    const auto rows = target.next();
    if (!rows) return std::unexpected(rows.error());
    if ((*rows)->empty()) break;
    written.add(**rows, table);
  }
  if (written.rows() != read.rows() || written.finish() != read.finish()) {
    return fail(ErrorCode::invalid_data,
                "the copy of the table " + table.name + " differs: " + std::to_string(read.rows()) +
                    " rows were read, " + std::to_string(written.rows()) + " are there");
  }
  tell(read.rows());
  return read.rows();
}

}  // namespace

std::vector<SchemaTable> schema_tables(std::span<const std::string_view> scripts) {
  std::vector<SchemaTable> tables;
  const auto table_of = [&tables](std::string_view name) {
    return std::ranges::find(tables, name, &SchemaTable::name);
  };
  for (auto script : scripts) {
    bool is_inside = false;
    while (!script.empty()) {
      const auto end = std::min(script.find('\n'), script.size());
      auto line = script.substr(0, end);
      script.remove_prefix(std::min(end + 1, script.size()));
      line = trimmed(line.substr(0, line.find("--")));
      const auto words = words_of(line);
      if (line.starts_with("CREATE TABLE ") && words.size() > 2) {
        tables.push_back({.name = std::string(words[2]), .columns = {}, .key = {}});
        is_inside = true;
      } else if (line.starts_with("ALTER TABLE ") && words.size() > 6 && words[3] == "ADD" &&
                 words[4] == "COLUMN") {
        if (const auto table = table_of(words[2]); table != tables.end()) {
          add_column(*table, std::span(words).subspan(5), {});
        }
      } else if (is_inside && line.starts_with("PRIMARY KEY")) {
        tables.back().key = names_between(line);
      } else if (is_inside && line.starts_with(')')) {
        is_inside = false;
      } else if (is_inside) {
        add_column(tables.back(), words, line);
      }
    }
  }
  return tables;
}

Result<CopyReport> copy_store(Connection& from, Connection& to,
                              std::span<const store::Migration> migrations,
                              const std::function<void(std::string_view)>& progress) {
  std::vector<std::string_view> scripts;
  for (const auto& migration : migrations) scripts.push_back(migration.sqlite);
  SourceSnapshot snapshot(from);
  if (auto begun = snapshot.begin(); !begun) return std::unexpected(std::move(begun.error()));
  CopyReport report;
  for (const auto& table : schema_tables(scripts)) {
    const auto rows = copy_table(from, to, table, progress);
    if (!rows) return std::unexpected(rows.error());
    ++report.tables;
    report.rows += *rows;
  }
  if (auto set = set_next_ids(to); !set) return std::unexpected(std::move(set.error()));
  // The room in the files of the source; the target's are new.
  static constexpr Statement kForgetRoom{.name = "copy.forget_room",
                                         .sql = "DELETE FROM storage_room"};
  if (auto done = to.execute(kForgetRoom); !done) return std::unexpected(std::move(done.error()));
  return report;
}

}  // namespace gitops::control_plane_server
