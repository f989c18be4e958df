#include "event-reporter/report/tracked_applications.hpp"

#include "event-reporter/event/app_view.hpp"
#include "event-reporter/event/manifest.hpp"
#include "event-reporter/report/application_reporter.hpp"

namespace gitops::reporter {

std::string TrackedApplications::tombstone(const std::string& key, const std::string& uid) const {
  return application_stub(application_key(key), uid, "");
}

std::vector<ResourceId> TrackedApplications::parts(std::string_view text) const {
  const auto app = AppView::parse(std::string(text));
  return app ? app->resource_ids() : std::vector<ResourceId>{};
}

}  // namespace gitops::reporter
