#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops {

// How one setting is named in each source. The YAML key is the flag's name, dots nest:
// flag "argocd-server" is key argocd-server in the file given by --config.
struct SettingNames {
  std::string_view flag;              // without dashes
  std::vector<std::string_view> env;  // first is the documented one, the rest are aliases
  std::string_view help;              // one sentence, ends without a full stop
};

// The configuration table of one daemon: each row binds a setting to a field of the daemon's plain
// Config struct; the field's value at that time is the default. --help, docs/configuration.md and
// the loader are all made from these rows.
//
// Precedence: flag > environment > YAML file (--config FILE) > default. An empty environment value
// counts as not set. Every mistake is reported, each with its source, never only the first.
class ConfigReader {
 public:
  // `program` as in the usage line, `summary` one sentence for --help.
  ConfigReader(std::string program, std::string summary);

  void add(SettingNames names, std::string& target);
  void add(SettingNames names, bool& target);
  // Inclusive range.
  void add(SettingNames names, std::int64_t& target, std::int64_t min, std::int64_t max);
  void add(SettingNames names, std::chrono::milliseconds& target, std::chrono::milliseconds min,
           std::chrono::milliseconds max);
  // Comma separated in flag and environment, a sequence in YAML; blanks trimmed, empty items
  // dropped.
  void add(SettingNames names, std::vector<std::string>& target);
  // One of the names in `choices`; target is the index in it.
  void add_choice(SettingNames names, std::size_t& target, std::vector<std::string_view> choices);
  // Never as a flag and never in YAML (design: secrets only from files or the API). `names.flag` is
  // the name of the flag "<flag>-file" that names a file holding it; environment: the value itself
  // under the given names, as the peers' charts hand it over by secretKeyRef.
  void add_secret(SettingNames names, Secret& target);
  // A rule over several fields, run after all values were read when none of them was wrong; returns
  // the text of the mistake or an empty string.
  void check(std::function<std::string()> rule);

  struct Outcome {
    enum class Action { run, help, version, check, table } action = Action::run;
    std::vector<std::string>
        mistakes;  // "flag --port: ...", "environment LISTEN_PORT: ...", "config.yaml:12 port: ..."
  };
  // argv without the program name. Flags: --name=value or --name value; booleans also --name and
  // --no-name. Unknown flags and unknown YAML keys are mistakes (with the nearest known name).
  // Environment variables that no row names are ignored.
  Outcome load(const std::vector<std::string>& arguments,
               const std::map<std::string, std::string>& environment);

  // The text of --help.
  [[nodiscard]] std::string help() const;
  // The rows as a Markdown table: Flag | Environment | Default | Meaning. Printed by
  // --print-config-table for docs/configuration.md.
  [[nodiscard]] std::string markdown_table() const;
  // The environment names of all rows, aliases included; the chart test compares with them.
  [[nodiscard]] std::vector<std::string> environment_names() const;

 private:
  struct Row {
    std::string flag;
    std::vector<std::string> env;
    std::string help;
    std::string kind;  // shown in --help: TEXT, BOOL, NUMBER, DURATION, LIST, a|b|c, FILE
    std::string default_text;
    bool secret = false;
    // Parses one source's text into the target; returns the mistake or an empty string.
    std::function<std::string(const std::string& text)> assign;
    std::function<std::string(const std::vector<std::string>& items)> assign_list;  // lists only
  };
  void add_row(SettingNames names, Row row);

  std::string program_;
  std::string summary_;
  std::vector<Row> rows_;
  std::vector<std::function<std::string()>> rules_;
};

}  // namespace gitops
