#pragma once

#include <array>
#include <string_view>

namespace gitops {

// The flags every program has beside its settings.
struct CommonFlag {
  std::string_view flag, kind, help;
};
inline constexpr std::array<CommonFlag, 5> kCommonFlags = {{
    {"config", "FILE", "YAML file with settings, named as the flags (env GITOPS_CONFIG)"},
    {"check-config", "", "Check the configuration, print every mistake, and end"},
    {"print-config-table", "", "Print all settings as a Markdown table, and end"},
    {"version", "", "Print the version, and end"},
    {"help", "", "Print this text, and end"},
}};

}  // namespace gitops
