#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "doubles/fake_platform.hpp"

namespace gitops::test {

// What Git itself says about a commit.
struct CommitFacts {
  std::string id;
  std::string author;   // "Name <mail>"
  std::string message;  // whole, without the newline at the end
  std::string date;     // of the commit, UTC: 2026-03-04T09:12:02Z

  // `git` runs the git program with these arguments in the repository and returns its output.
  static CommitFacts read(const std::function<std::string(std::vector<std::string>)>& git,
                          const std::string& revision);
};

// What others than the reporter know about one application that was synced to a commit. Events are
// compared with it.
struct ApplicationFacts {
  nlohmann::json application;  // as the API server has it
  nlohmann::json tree;         // Argo CD's answer of resource-tree
  CommitFacts commit;
  std::string not_before;  // events were made at or after this, 2026-03-04T09:12:02Z
  std::string tracking_method = "annotation";  // or "label"
  std::string instance_label_key = "app.kubernetes.io/instance";
};

// The manifest in Git as Argo CD wants it in the cluster: with namespace and its tracking mark.
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
// A resource that the application had and has no more.
void expect_gone_event(const FakePlatform::Report& report, const ApplicationFacts& facts);

// The time now as an event's fields have it, in whole seconds.
std::string utc_now();

}  // namespace gitops::test
