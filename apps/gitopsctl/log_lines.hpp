#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

// Settings of commands that print logs through an app-proxy.
struct LogSettings {
  std::string pod;
  std::string container;
  std::string filter;
  std::int64_t tail = 100;
  bool follow = false;
  // `filter_help` explains the filter of this kind of log.
  void add_to(ConfigReader& reader, std::string_view filter_help);
};

// Prints the lines of a log as they come. `of` are the parameters that select it. Returns kNotKnown when a part of it
// could not be read.
Task<Result<int>> print_log(Call& call, const std::string& runtime,
                            std::vector<std::pair<std::string_view, std::string_view>> of,
                            const LogSettings& settings);

}  // namespace gitops::ctl
