#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gitops::ctl {

// A line of a difference: ' ' in both, '-' in the old text alone, '+' in the new one alone.
struct DiffLine {
  char side;
  std::string_view text;  // of the compared text, which must live as long
};
// Compares two texts by line, with few changes. Texts with more than 4,000 lines are taken as wholly different.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

// Returns the changes as `diff -u` prints them, with three lines around each and without a head. Empty when both are
// the same.
std::string unified_diff(std::string_view before, std::string_view after);

}  // namespace gitops::ctl
