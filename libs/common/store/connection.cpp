#include "common/store/connection.hpp"

#include <utility>

namespace gitops::store {
namespace {

// Rolls back unless it was dismissed.
struct RollBack {
  explicit RollBack(std::function<void()> f) : function(std::move(f)) {}
  ~RollBack() {
    if (function) function();
  }
  RollBack(const RollBack&) = delete;
  RollBack& operator=(const RollBack&) = delete;
  std::function<void()> function;
};

}  // namespace

Result<void> Connection::execute(const Statement& statement, const Params& params) {
  if (const auto rows = run(statement, params); !rows) return std::unexpected(rows.error());
  return {};
}

Result<void> Connection::transact(const std::function<Result<void>()>& body) {
  if (auto begun = begin(); !begun) return begun;
  RollBack undo([this] { roll_back(); });
  if (auto done = body(); !done) return done;
  if (auto committed = commit(); !committed) return committed;
  undo.function = nullptr;
  return {};
}

}  // namespace gitops::store
