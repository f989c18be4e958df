#pragma once

#include <cstddef>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/wait_line.hpp"

namespace gitops::reporter {

// Limits the bytes that the coroutines of one loop hold together. First come, first served, so that
// small shares do not overtake a large one for ever. Outlives its shares.
class ByteBudget {
 public:
  // A part of the budget, returned by the destructor.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() { resize(0); }

    // Changes the size of the share. A larger share may exceed the budget; others then wait.
    void resize(std::size_t bytes);

   private:
    friend class ByteBudget;
    Share(ByteBudget& budget, std::size_t bytes) : budget_(&budget) { resize(bytes); }
    ByteBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  ByteBudget(const Executor& executor, std::size_t limit) : limit_(limit), line_(executor) {}

  // Waits until `bytes` are free. A request for more than the whole budget waits for all of it.
  Task<Share> take(std::size_t bytes);

  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t limit_;
  std::size_t used_ = 0;
  WaitLine line_;
};

}  // namespace gitops::reporter
