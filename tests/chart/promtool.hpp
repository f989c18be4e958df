#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace gitops::test {

// The groups of alert rules of both charts, as the real helm renders them, by name: an object of Prometheus each.
std::map<std::string, nlohmann::json> alert_groups();

// Series of samples, one each `interval` from the time 0 on, and what they make of rules, by the real promtool.
class PromtoolCase {
 public:
  explicit PromtoolCase(std::chrono::seconds interval) : interval_(interval) {}

  // One line that says what a machine lacks; nullopt when it lacks nothing.
  static std::optional<std::string> missing();

  // `series`: name and labels. `values`: in promtool's notation.
  void add_series(const std::string& series, const std::string& values);
  // Expects that the expression yields these samples at a time, such as "15m": values, or none.
  void expect(const std::string& expression, const std::string& at, std::vector<double> values);

  [[nodiscard]] nlohmann::json json() const;

 private:
  std::chrono::seconds interval_;
  nlohmann::json series_ = nlohmann::json::array();
  nlohmann::json expectations_ = nlohmann::json::array();
};

// Runs cases on rules. Empty: all held. Otherwise what promtool printed.
std::string run_promtool(const std::vector<nlohmann::json>& groups,
                         const std::vector<PromtoolCase>& cases);

}  // namespace gitops::test
