#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "daemons/control_plane_process.hpp"

namespace gitops::test {

// The real control plane with a state that real calls have made: its first start, a login, registrations, events of
// reporters and reports of app-proxies.
//
// Account "default" has the administrator admin, the user bob and the runtimes prod and stage; account "other" has the
// administrator eve and no runtime. On prod: the runtime's own Application gitops-runtime with the component
// cap-app-proxy and a failing component, the Git source prod-apps, the Application shop, the Sensor push with the
// Workflow uid-build, a PromotionTemplate for team a, and the clusters in-cluster and east.
class PopulatedControlPlane {
 public:
  // Throws when a call fails.
  explicit PopulatedControlPlane(bool is_on_postgres);

  [[nodiscard]] ControlPlaneProcess& program() { return program_; }

  std::string admin_id;
  std::string account_id;
  std::string admin_key;
  std::string bob_key;
  std::string eve_key;     // of the other account
  std::string prod_token;  // of the runtime prod
  std::string stage_token;

 private:
  void log_in();
  void add_people();
  void add_runtimes();
  void send_events();
  void send_reports();
  // Posts the body of an event with the token of prod.
  void post_event(const std::string& body);
  // Sends a document, and returns the response.
  std::string ask(const std::string& token, const std::string& query,
                  const std::string& variables = "{}") const;

  TempDir folder_;
  ControlPlaneProcess program_;
  std::int64_t sequence_ = 0;
};

// Returns a control plane on this engine that all tests of the program share. They read from it.
PopulatedControlPlane& shared_control_plane(bool is_on_postgres);

// The fixture of tests on both engines. The parameter: on PostgreSQL.
struct PopulatedControlPlaneTest : testing::TestWithParam<bool> {
  static PopulatedControlPlane& bed() { return shared_control_plane(GetParam()); }
};

}  // namespace gitops::test
