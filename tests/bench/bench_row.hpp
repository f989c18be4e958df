#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

// Rows of a benchmark, as tests/bench/table.py reads them.
namespace gitops::bench {

inline std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2g" : value < 100 ? "%.1f" : "%.0f", value);
  return text;
}

namespace detail {
inline void print(const std::string& name, const std::string& unit, double ours,
                  const nlohmann::json& peer, const nlohmann::json& ratio, const std::string& goal,
                  const nlohmann::json& holds, const std::string& note) {
  const nlohmann::ordered_json row = {{"name", name},   {"unit", unit},   {"ours", ours},
                                      {"peer", peer},   {"ratio", ratio}, {"goal", goal},
                                      {"holds", holds}, {"note", note}};
  std::puts(row.dump().c_str());
  std::fflush(stdout);
}
}  // namespace detail

// A row whose ratio to its peer is to be at least `goal`; 0: there is no goal.
inline void print_at_least(const std::string& name, const std::string& unit, double ours,
                           double peer, double goal, const std::string& note) {
  detail::print(name, unit, ours, peer, ours / peer, goal > 0 ? ">= " + rounded(goal) : "",
                goal > 0 ? nlohmann::json(ours / peer >= goal) : nlohmann::json(), note);
}

// A row whose ratio to its peer is to be at most `goal`.
inline void print_at_most(const std::string& name, const std::string& unit, double ours,
                          double peer, double goal, const std::string& note) {
  detail::print(name, unit, ours, peer, ours / peer, "<= " + rounded(goal), ours / peer <= goal,
                note);
}

// A row with a peer and without a goal.
inline void print_ratio(const std::string& name, const std::string& unit, double ours, double peer,
                        const std::string& note) {
  detail::print(name, unit, ours, peer, ours / peer, "", nullptr, note);
}

// A row without a peer and without a goal.
inline void print_measured(const std::string& name, const std::string& unit, double ours,
                           const std::string& note) {
  detail::print(name, unit, ours, nullptr, nullptr, "", nullptr, note);
}

// A row without a peer, of at most `limit`.
inline void print_limit(const std::string& name, const std::string& unit, double ours, double limit,
                        const std::string& note) {
  detail::print(name, unit, ours, nullptr, nullptr, "<= " + rounded(limit) + " " + unit,
                ours <= limit, note);
}

}  // namespace gitops::bench
