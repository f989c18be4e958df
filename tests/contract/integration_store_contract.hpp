#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "k8s-client/client.hpp"

// What the Secrets of Git integrations rely on: one list of cases for FakeKubeApi and for a real API
// server (tests/peers).
namespace gitops::test {

struct IntegrationStoreCase {
  const char* name;
  // `ns` exists and holds no Secrets of integrations.
  std::function<Task<>(k8s::Client& cluster, std::string ns)> run;

  // The name that gtest shows.
  friend void PrintTo(const IntegrationStoreCase& contract_case, std::ostream* out) {
    *out << contract_case.name;
  }
};
std::vector<IntegrationStoreCase> integration_store_cases();

}  // namespace gitops::test
