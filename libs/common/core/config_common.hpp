#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "common/core/config_reader.hpp"

namespace gitops {

// The flags that every program has in addition to its settings.
struct CommonFlag {
  std::string_view flag, kind, help;
  bool of_commands;  // a command of a command-line program has it, too
  bool in_their_help = of_commands;
};
inline constexpr std::array<CommonFlag, 5> kCommonFlags = {{
    {"config", "FILE", "YAML file with settings, named as the flags (env GITOPS_CONFIG)", true},
    {"check-config", "", "Check the configuration, print every mistake, and end", false},
    {"print-config-table", "", "Print all settings as a Markdown table, and end", true, false},
    {"version", "", "Print the version, and end", false},
    {"help", "", "Print this text, and end", true},
}};

inline const CommonFlag* find_common(std::string_view flag, ProgramKind kind) {
  const auto* found = std::ranges::find(kCommonFlags, flag, &CommonFlag::flag);
  if (found == kCommonFlags.end()) return nullptr;
  return kind == ProgramKind::daemon || found->of_commands ? found : nullptr;
}

inline bool is_shown(const CommonFlag& flag, ProgramKind kind) {
  return kind == ProgramKind::daemon || flag.in_their_help;
}

}  // namespace gitops
