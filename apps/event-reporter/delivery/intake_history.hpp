#pragma once

#include <functional>
#include <string>

#include "common/core/async.hpp"

namespace gitops::reporter {

// The history of the control plane's database, as its answers tell it (docs/reference/event-guarantees.md, "A database that goes back in time"):
// the reporter returns the last position with each event, and is asked for a resync when the database does not have it.
// A control plane that tells nothing is never asked for anything. Loop thread only.
class IntakeHistory {
 public:
  explicit IntakeHistory(const Executor& executor) : asked_(executor) {}

  // Sets the reporter's name, the position that it was told in an earlier process, and a function that keeps a new one
  // for the next process. Without a call no event has a name.
  using Keep = std::function<void(const std::string& position)>;
  void begin(std::string reporter, std::string position, Keep keep);

  [[nodiscard]] const std::string& reporter() const { return reporter_; }
  // The last position, as text; empty: none.
  [[nodiscard]] const std::string& position() const { return position_; }

  // Takes the heads of an acknowledgement; empty ones are absent.
  void acknowledged(const std::string& position, const std::string& resync);

  // Waits until a resync is asked for that has not ended, and returns its token.
  Task<std::string> next_resync();
  void end_resync(const std::string& token);
  // The token of the resync that is asked for; empty: none.
  [[nodiscard]] const std::string& resync() const { return resync_; }

 private:
  std::string reporter_;
  std::string position_;
  Keep keep_;
  std::string resync_;
  std::string ended_;  // the last token that was served; answers under way may still have it
  Event asked_;
};

}  // namespace gitops::reporter
