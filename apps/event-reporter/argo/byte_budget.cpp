#include "event-reporter/argo/byte_budget.hpp"

#include <algorithm>

namespace gitops::reporter {

void ByteBudget::Share::resize(std::size_t bytes) {
  if (budget_ == nullptr) return;
  const bool smaller = bytes < bytes_;
  budget_->used_ -= bytes_;
  budget_->used_ += bytes;
  bytes_ = bytes;
  if (smaller) budget_->line_.wake_first();
}

Task<ByteBudget::Share> ByteBudget::take(std::size_t bytes) {
  bytes = std::min(bytes, limit_);
  const auto fits = [&] { return used_ + bytes <= limit_; };
  if (line_.empty() && fits()) co_return Share(*this, bytes);
  WaitLine::Ticket place(line_);
  while (!place.is_first() || !fits()) co_await place.wait();
  co_return Share(*this, bytes);
}

}  // namespace gitops::reporter
