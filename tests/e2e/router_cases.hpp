#pragma once

#include <string>
#include <vector>

// The numbered cases of what a router in this place is asked that are one request with one outcome.
namespace gitops::test {

struct RouterCase {
  int number;
  std::string bytes;
  int status;
  std::string upstream = {};  // empty: no request reaches any
  std::string target = {};    // what that upstream gets
};

std::vector<RouterCase> router_cases();

}  // namespace gitops::test
