#pragma once

#include <string>
#include <vector>

// The numbered router cases that consist of one request with one outcome.
namespace gitops::test {

struct RouterCase {
  int number;
  std::string bytes;
  int status;
  std::string upstream = {};  // empty: no upstream gets a request
  std::string target = {};    // the target that this upstream gets
};

std::vector<RouterCase> router_cases();

}  // namespace gitops::test
