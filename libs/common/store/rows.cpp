#include "common/store/rows.hpp"

#include <stdexcept>

namespace gitops::store {

const Rows::Cell& Rows::cell(std::size_t row, std::size_t column) const {
  if (column >= columns_ || row >= size()) throw std::logic_error("store: no such row or column");
  return cells_[row * columns_ + column];
}

std::int64_t Rows::number(std::size_t row, std::size_t column) const {
  const Cell& found = cell(row, column);
  if (found.kind == Cell::Kind::text) throw std::logic_error("store: a text is read as a number");
  return found.number;
}

std::string_view Rows::text(std::size_t row, std::size_t column) const {
  const Cell& found = cell(row, column);
  if (found.kind == Cell::Kind::null) return {};
  if (found.kind == Cell::Kind::number) throw std::logic_error("store: a number is read as a text");
  return std::string_view(texts_).substr(static_cast<std::size_t>(found.number), found.size);
}

bool Rows::is_null(std::size_t row, std::size_t column) const {
  return cell(row, column).kind == Cell::Kind::null;
}

void Rows::add_null() {
  cells_.emplace_back();
}

void Rows::add_number(std::int64_t number) {
  cells_.push_back({.kind = Cell::Kind::number, .number = number});
}

void Rows::add_text(std::string_view text) {
  cells_.push_back({.kind = Cell::Kind::text,
                    .number = static_cast<std::int64_t>(texts_.size()),
                    .size = text.size()});
  texts_ += text;
}

}  // namespace gitops::store
