#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/http/url.hpp"

// The behaviour of a control plane that app-proxy relies on when it asks about users, runtimes and
// rules: one list of cases for FakePlatform and for every other control plane.
namespace gitops::test {

// A control plane as the cases use it. The account has one runtime, an administrator, another user in
// one team, and these rules: the team may SYNC the gitopsApplications with the label team=a on the
// cluster "c1". The runtime has `git_sources` Git sources, of which nobody's permissions are known.
struct ControlPlanePeer {
  http::Url url;
  std::string ca_file = {};        // for https
  std::string cookie = "session";  // name of the session cookie
  std::string account;             // id
  std::string runtime;             // name
  std::string runtime_token;
  std::string admin;  // id
  std::string admin_token;
  std::string user;  // id; has no e-mail address
  std::string user_token;
  std::string team;
  std::string stranger_token;  // of a user of another account
  std::size_t git_sources = 0;
};

struct ControlPlaneCase {
  const char* name;
  std::function<Task<>(const ControlPlanePeer&)> run;

  // The name that gtest shows.
  friend void PrintTo(const ControlPlaneCase& contract_case, std::ostream* out) {
    *out << contract_case.name;
  }
};
std::vector<ControlPlaneCase> control_plane_cases();

}  // namespace gitops::test
