#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gitops::store {

// The rows that a statement returned, copied out of the engine. Columns are numbered from 0. A NULL column reads as 0
// and as an empty text. Throws std::logic_error for a row or a column that does not exist, and for reading a number as
// a text or a text as a number. Such errors are in the program's table of statements, whose test finds them.
class Rows {
 public:
  [[nodiscard]] std::size_t size() const { return columns_ == 0 ? 0 : cells_.size() / columns_; }
  [[nodiscard]] bool empty() const { return cells_.empty(); }
  [[nodiscard]] std::int64_t number(std::size_t row, std::size_t column) const;
  // Returns a text or bytes, valid as long as this object.
  [[nodiscard]] std::string_view text(std::size_t row, std::size_t column) const;
  [[nodiscard]] std::string string(std::size_t row, std::size_t column) const {
    return std::string(text(row, column));
  }
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const;
  // Returns the number of rows that an INSERT, UPDATE or DELETE changed; 0 for a query.
  [[nodiscard]] std::int64_t changed() const { return changed_; }

  // Makes an empty result. Connections fill it column by column, row after row.
  explicit Rows(std::size_t columns = 0) : columns_(columns) {}
  void add_null();
  void add_number(std::int64_t number);
  void add_text(std::string_view text);
  void set_changed(std::int64_t changed) { changed_ = changed; }

 private:
  struct Cell {
    enum class Kind : std::uint8_t { null, number, text } kind = Kind::null;
    std::int64_t number = 0;  // or the offset of the text
    std::size_t size = 0;     // of the text
  };
  [[nodiscard]] const Cell& cell(std::size_t row, std::size_t column) const;

  std::size_t columns_ = 0;
  std::vector<Cell> cells_;
  std::string texts_;
  std::int64_t changed_ = 0;
};

}  // namespace gitops::store
