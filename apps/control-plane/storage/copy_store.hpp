#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/store/connection.hpp"
#include "common/store/migration.hpp"

// Copies a whole database from one engine to the other.
namespace gitops::control_plane_server {

enum class ColumnType : std::uint8_t { number, text, bytes };

// A table as the migrations made it.
struct SchemaTable {
  struct Column {
    std::string name;
    ColumnType type = ColumnType::text;

    bool operator==(const Column&) const = default;
  };
  std::string name;
  std::vector<Column> columns;
  std::vector<std::string> key;  // columns of the primary key

  bool operator==(const SchemaTable&) const = default;
};

// The tables that a migration's text creates, in its order: a table for each CREATE TABLE, whose columns stand on a line
// each, and a column for each ALTER TABLE … ADD COLUMN. Pure; reads the texts of both engines alike.
std::vector<SchemaTable> schema_tables(std::span<const std::string_view> scripts);

struct CopyReport {
  std::int64_t tables = 0;
  std::int64_t rows = 0;
};
// Copies every table of these migrations, and compares what was written with what was read, row by row, by count and
// SHA-256. Both databases have the newest schema; the target has no rows, and nothing else may write to it. The copy is
// the source at one moment. `progress` is called for each table and each 10,000 rows: "object: 20000 rows".
//
// Errors: conflict when the target has rows, invalid_data when a table differs afterwards; both name the table. After an
// error the target is of no use.
Result<CopyReport> copy_store(store::Connection& from, store::Connection& to,
                              std::span<const store::Migration> migrations,
                              const std::function<void(std::string_view)>& progress = {});

}  // namespace gitops::control_plane_server
