#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "common/core/async.hpp"
#include "common/core/error.hpp"

namespace gitops::control_plane_server::sso {

// A document of a peer that is read when it is needed, and kept. Calls at the same time share one read. Loop thread only;
// it outlives its calls.
template <class T>
class CachedDocument {
 public:
  using Pointer = std::shared_ptr<const T>;

  static constexpr std::chrono::hours kFresh{1};            // then it is read again
  static constexpr std::chrono::minutes kNewerPeriod{1};    // between reads for something newer
  static constexpr std::chrono::seconds kFailurePeriod{2};  // for which a failure is remembered

  explicit CachedDocument(const Executor& executor) : done_(executor) {}

  enum class Need {
    any,
    newer,  // the one that is kept lacks something; at most one read a minute
  };
  // Returns the document. `read()` is a coroutine that returns a Result<T>. When it fails, the document that is kept stays
  // in use; without one the error is returned.
  template <class Read>
  Task<Result<Pointer>> get(Need need, Deadline deadline, Read read) {
    while (is_due(need) && is_reading_) {
      if (!co_await done_.wait(deadline)) {
        co_return fail(ErrorCode::timeout, "the identity provider did not respond in time");
      }
      need = Need::any;
    }
    if (!is_due(need)) co_return document_;
    if (!document_ && error_ && Clock::now() < tried_at_ + kFailurePeriod) {
      co_return std::unexpected(*error_);
    }
    const Reading reading(*this);
    tried_at_ = Clock::now();
    if (need == Need::newer) asked_newer_at_ = tried_at_;
    auto found = co_await read();
    error_.reset();
    if (found) {
      document_ = std::make_shared<const T>(std::move(*found));
      read_at_ = Clock::now();
    } else {
      error_ = std::move(found.error());
      if (!document_) co_return std::unexpected(*error_);
    }
    co_return document_;
  }

  // Returns the error of the last read; nothing when it succeeded.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  // Ends a read on every path.
  class Reading {
   public:
    explicit Reading(CachedDocument& document) : document_(document) {
      document_.is_reading_ = true;
    }
    ~Reading() {
      document_.is_reading_ = false;
      document_.done_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    CachedDocument& document_;
  };

  [[nodiscard]] bool is_due(Need need) const {
    const auto now = Clock::now();
    if (!document_) return true;
    if (need == Need::newer) return !asked_newer_at_ || now >= *asked_newer_at_ + kNewerPeriod;
    // After a failure the next read waits, too.
    return now >= read_at_ + kFresh && (!error_ || now >= tried_at_ + kNewerPeriod);
  }

  Pointer document_;
  std::optional<Error> error_;
  Clock::time_point read_at_{};
  Clock::time_point tried_at_{};
  std::optional<Clock::time_point> asked_newer_at_;
  bool is_reading_ = false;
  gitops::Event done_;
};

}  // namespace gitops::control_plane_server::sso
