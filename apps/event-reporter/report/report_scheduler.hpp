#pragma once

#include "event-reporter/report/dirty_set.hpp"

namespace gitops::reporter {

// The reports of a ChangeTracker's objects, as far as the tracker decides about them. ReportQueue
// implements it.
class ReportScheduler {
 public:
  virtual ~ReportScheduler() = default;
  // The objects whose reports are due.
  [[nodiscard]] virtual DirtySet& dirty() = 0;
  // Cancels the reports in flight of the keys that `which` selects. Their work is due again at once.
  virtual void cancel(const KeyFilter& which) = 0;
  // Returns whether the control plane takes events.
  [[nodiscard]] virtual bool takes_events() const = 0;
};

}  // namespace gitops::reporter
