#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace gitops::test {

/// One choice of a dimension: its name, and the values that make it.
struct Choice {
  std::string name;
  nlohmann::json values;
  std::string expected = {};  // access: the runtime's URL; Argo CD: the address of its server
};

/// The dimensions in which installations differ; each combination is a way to install the chart.
std::vector<Choice> access_modes();
std::vector<Choice> argo_cds();
std::vector<Choice> surroundings();

/// Values that every installation needs.
nlohmann::json least_values();

/// What Helm makes of two files of values, the second over the first: a null stays, and removes a
/// default.
nlohmann::json merged(nlohmann::json base, const nlohmann::json& over);

struct ValueSet {
  std::string name;
  nlohmann::json values;
};

/// What people install the chart with: every combination of the choices above, the files of the
/// chart's tests but hostile ones, the blocks of values in the documents, the older chart's own
/// examples, and one set with all daemons.
std::vector<ValueSet> value_sets();
/// The older chart's own examples alone (tests/chart/older_examples.json).
std::vector<ValueSet> older_examples();
/// Every daemon and every object.
nlohmann::json everything_at_once();

}  // namespace gitops::test
