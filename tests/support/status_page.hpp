#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/status_report.hpp"

namespace gitops::test {

// The path of the page in JSON.
inline constexpr const char* kStatusPath = "/statusz?format=json";

// The entries of /statusz with their details, for tests that compare states and values. An entry is
// found by its name at any depth; of several with one name, the first counts.
class StatusPage {
 public:
  // The answer to /statusz?format=json. Without entries when it is something else.
  explicit StatusPage(std::string_view body);
  // The entries of a part.
  explicit StatusPage(const StatusReport& report);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  // "ok", "failed", …; empty without such an entry.
  [[nodiscard]] std::string state(std::string_view name) const;
  [[nodiscard]] std::string message(std::string_view name) const;
  // RFC 3339.
  [[nodiscard]] std::string since(std::string_view name) const;
  // A number among the values, by its key in JSON; -1 when it is absent.
  [[nodiscard]] std::int64_t count(std::string_view name, const std::string& key) const;
  // A text among the values; empty when it is absent.
  [[nodiscard]] std::string text(std::string_view name, const std::string& key) const;
  // The number of entries that `is_wanted` selects.
  [[nodiscard]] std::size_t count_if(
      const std::function<bool(const nlohmann::json& entry)>& is_wanted) const;
  // Entries whose name begins with `prefix` and that have this state.
  [[nodiscard]] std::size_t count_in_state(std::string_view prefix, std::string_view state) const;

  friend std::ostream& operator<<(std::ostream& out, const StatusPage& page);

 private:
  void add(const nlohmann::json& entries);
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;
  [[nodiscard]] nlohmann::json value(std::string_view name, const std::string& key) const;

  std::vector<nlohmann::json> entries_;  // in the order of the page
  std::string body_;
};

}  // namespace gitops::test
