#pragma once

#include <string>
#include <vector>

#include "common/cli/command.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

// `gitopsctl app list|get|tree|history|wait`: what the control plane knows of Applications.
std::vector<cli::Command> app_commands();

// Which Application a command is about.
struct AppName {
  std::string runtime = {};  // empty: any
  std::string ns = {};       // empty: any
  std::string name = {};
  [[nodiscard]] std::string text() const;
  // The members by which documents name it.
  [[nodiscard]] Json variables() const;
};
// Reads NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME.
AppName parse_app_name(const std::string& text);
// Finds the one Application of that name. Errors: not_found; kUsage, with their names, for several.
Task<Result<AppName>> find_app(Server& server, AppName wanted);
// Reads one Application with its resources; not_found when it is not there any more.
Task<Result<Json>> read_app(Server& server, AppName name);

// Returns seven characters of a commit. Other revisions, such as the version of a chart, stay whole: a part of one may
// be another one.
std::string short_revision(const std::string& revision);

// Settings of commands about one Application.
struct AppSettings {
  std::string app;
  std::string runtime;
  std::string ns;
  [[nodiscard]] cli::Operand operand();
  void add_to(ConfigReader& reader);
  [[nodiscard]] AppName wanted() const;
};

}  // namespace gitops::ctl
