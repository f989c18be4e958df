#pragma once

#include <span>
#include <string>
#include <string_view>

// The sections of docs/reference/gitopsctl-checks.md that explain the rows of a check. Pure.
namespace gitops::ctl {

struct Hint {
  std::string_view group;   // Group::id
  std::string_view name;    // Row::name; empty: all other rows of the group
  std::string_view anchor;  // of the section
};
// All of them; a test checks that the sections exist.
std::span<const Hint> all_hints();
// Returns "gitopsctl-checks.md#credentials"; empty when the group is not known.
std::string help_for(std::string_view group, std::string_view name);

}  // namespace gitops::ctl
