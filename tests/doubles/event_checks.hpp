#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "doubles/fake_platform.hpp"

namespace gitops::test {

// A commit as Git shows it.
struct CommitFacts {
  std::string id;
  std::string author;   // "Name <mail>"
  std::string message;  // complete, without the final newline
  std::string date;     // commit time, UTC: 2026-03-04T09:12:02Z

  // `git` runs the git program with these arguments in the repository and returns its output.
  static CommitFacts read(const std::function<std::string(std::vector<std::string>)>& git,
                          const std::string& revision);
};

// Facts about one synced application from other sources than the reporter. Events are compared with
// them.
struct ApplicationFacts {
  nlohmann::json application;  // as the API server has it
  nlohmann::json tree;         // Argo CD's resource-tree
  CommitFacts commit;
  std::string not_before;                      // earliest time of events, 2026-03-04T09:12:02Z
  std::string tracking_method = "annotation";  // or "label"
  std::string instance_label_key = "app.kubernetes.io/instance";
};

// The manifest in Git as Argo CD applies it: with namespace and tracking mark.
nlohmann::json desired_state(nlohmann::json manifest, const nlohmann::json& application,
                             const std::string& tracking_method = "annotation");

// Each checks every field of an event's body against the contract with the control plane and fails
// the test (EXPECT) for each that differs, is missing, or does not belong there. For applications
// without errors and without a parent.
void expect_application_event(const FakePlatform::Report& report, const ApplicationFacts& facts);
// `live` is the object in the cluster, with its managedFields. Of a Secret every value must be a
// text of plus signs.
void expect_resource_event(const FakePlatform::Report& report, const ApplicationFacts& facts,
                           const nlohmann::json& desired, const nlohmann::json& live);
// A resource that was removed from the application.
void expect_gone_event(const FakePlatform::Report& report, const ApplicationFacts& facts);

// The current time in the format of an event's fields, in whole seconds.
std::string utc_now();

}  // namespace gitops::test
