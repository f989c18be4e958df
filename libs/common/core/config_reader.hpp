#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/secret.hpp"

namespace gitops {

// The names of one setting in each source. The YAML key is the flag's name, dots nest: flag
// "argocd-server" is key argocd-server in the file given by --config, flag "tls.ca-file" is key
// ca-file under tls.
struct SettingNames {
  std::string_view flag;                   // without dashes
  std::vector<std::string_view> env = {};  // first is the documented one, the rest are aliases
  std::string_view help = {};              // one sentence, ends without a full stop
  char letter = '\0';                      // of a short flag: 'o' for -o
  bool repeats = false;  // the flag may be given several times: `assign` is called for each
};

// The kind of program that a table belongs to. A command of a command-line program has no
// --check-config and no --version.
enum class ProgramKind { daemon, command };

// The configuration table of one program: each row binds a setting to a field of its plain Config
// struct; the field's value at that time is the default. --help, docs/reference/configuration and the
// loader are all made from these rows.
//
// Precedence: flag > environment > YAML file (--config FILE) > default. An empty environment value
// counts as not set, and of several names of one row the first that is set counts. Every mistake is
// reported, each with its source, also when a stronger source would hide it.
class ConfigReader {
 public:
  // `program` as in the usage line, `summary` one sentence for --help.
  ConfigReader(std::string program, std::string summary, ProgramKind kind = ProgramKind::daemon);

  // Begins a group: --help lists the rows that follow under this title.
  void group(std::string title) { group_ = std::move(title); }

  void add(SettingNames names, std::string& target);
  void add(SettingNames names, bool& target);
  // Adds an integer; the range is inclusive.
  void add(SettingNames names, std::int64_t& target, std::int64_t min, std::int64_t max);
  void add(SettingNames names, std::chrono::milliseconds& target, std::chrono::milliseconds min,
           std::chrono::milliseconds max);
  // Adds a list: comma separated in flag and environment, a sequence in YAML; blanks trimmed, empty
  // items dropped.
  void add(SettingNames names, std::vector<std::string>& target);
  // Adds a setting of any other type: `assign` stores the value, or returns the mistake and stores
  // nothing. `kind` and `default_text` are shown in --help.
  void add(SettingNames names, std::string kind, std::string default_text,
           std::function<std::string(const std::string& text)> assign);
  // Adds a list of any other type: `assign` gets the items.
  void add_list(SettingNames names, std::string default_text,
                std::function<std::string(const std::vector<std::string>& items)> assign);
  // Adds a text or a list that `parse` converts. It returns a Result, whose error is the mistake.
  template <class T, class Parse>
  void add_parsed(SettingNames names, T& target, std::string default_text, Parse parse) {
    add(std::move(names), "TEXT", std::move(default_text),
        [&target, parse](const std::string& text) { return store(target, parse(text)); });
  }
  template <class T, class Parse>
  void add_parsed_list(SettingNames names, T& target, std::string default_text, Parse parse) {
    add_list(std::move(names), std::move(default_text),
             [&target, parse](const std::vector<std::string>& items) {
               return store(target, parse(items));
             });
  }
  // Adds one of the names in `choices`; target is the index in it, or the enumerator of that value.
  void add_choice(SettingNames names, std::size_t& target, std::vector<std::string_view> choices);
  template <class Enum>
    requires std::is_enum_v<Enum>
  void add_choice(SettingNames names, Enum& target, const std::vector<std::string_view>& choices) {
    add_choice_row(std::move(names), static_cast<std::size_t>(target), choices,
                   [&target](std::size_t index) { target = static_cast<Enum>(index); });
  }
  // Adds a secret, which is never a flag or a YAML value (design: secrets only from files or the
  // API). `names.flag` is the stem of the flag and key "<flag>-file" that names a file holding it;
  // environment: the value itself under the given names, as the peers' charts pass it by
  // secretKeyRef. Line ends behind the text are dropped. When `file` is given, it gets the path,
  // and the caller reads the file (again whenever it rotates); then `target` is filled from the
  // environment only. A file that does not exist is a mistake, unless it may come later: then the
  // caller waits for it, as for the mounted Secret that is created after the pod.
  enum class SecretFile : std::uint8_t { must_exist, may_come_later };
  void add_secret(SettingNames names, Secret& target, std::string* file = nullptr,
                  SecretFile presence = SecretFile::must_exist);
  // Adds a rule over settings, named by their flags (a secret by its stem): returns the text of the
  // mistake, or an empty one. It runs after all values were read when none of these settings was
  // wrong; its mistake begins with their sources.
  void check(std::vector<std::string> about, std::function<std::string()> rule);

  struct Outcome {
    // run: start the daemon; the others: print and end (--help, --version, --check-config,
    // --print-config-table).
    enum class Action { run, help, version, check, table } action = Action::run;
    // "flag --port: ...", "environment LISTEN_PORT: ...", "config.yaml:12 port: ...". Always empty
    // for help, version and table.
    std::vector<std::string> mistakes = {};
    // The file named by --config; empty: none.
    std::string file = {};
  };
  // argv without the program name. Flags: --name=value or --name value, with a letter also -n
  // value, -n=value and -nvalue; booleans also --name, --no-name and -n. Unknown flags and unknown
  // YAML keys are mistakes (with the nearest known name), and so is a setting that stands twice in
  // one source, unless its flag repeats. Environment variables that no row names are ignored. The
  // file named by --config (or GITOPS_CONFIG) is one YAML document of at most 1 MiB.
  Outcome load(const std::vector<std::string>& arguments,
               const std::map<std::string, std::string>& environment);

  // Returns the text of --help, at most 100 columns wide.
  [[nodiscard]] std::string help() const;
  // Returns the part of help() about the flags, without program, summary and usage.
  [[nodiscard]] std::string flags_help() const;
  // Returns the rows as a Markdown table: Flag | Environment | Default | Meaning. Printed by
  // --print-config-table for docs/reference/configuration.
  [[nodiscard]] std::string markdown_table() const;
  // Returns the environment names of all rows, aliases included; the chart test compares with them.
  [[nodiscard]] std::vector<std::string> environment_names() const;
  // A flag that --help shows; flags() returns them in its order, and shells complete them.
  struct Flag {
    std::string name;
    char letter;
    std::string kind;  // as in --help; empty when it takes no value
    std::string help;
  };
  [[nodiscard]] std::vector<Flag> flags() const;

 private:
  using Assign = std::function<std::string(const std::string& text)>;
  using AssignList = std::function<std::string(const std::vector<std::string>& items)>;
  enum class Shape { value, boolean, list, secret_file };

  struct Row {
    std::string group = {};
    std::string flag = {};  // of a secret: "<flag>-file"
    char letter = '\0';
    bool repeats = false;
    std::vector<std::string> env = {};
    std::string help = {};
    std::string
        kind;  // shown in --help: TEXT, NUMBER, DURATION, LIST, a|b|c, FILE; BOOL is implied
    std::string default_text = {};
    Shape shape = Shape::value;
    Assign assign = {};
    AssignList assign_list = {};  // lists only: a sequence in YAML
    Assign assign_env = {};       // secrets only: the environment holds the value, not a path
  };
  // The unparsed value of a setting in one source.
  struct Given {
    const Row* row;
    std::string source;  // as mistakes begin: "flag --port"
    std::string text;
    std::optional<std::vector<std::string>> items = {};
    bool from_env = false;
  };
  struct Rule {
    std::vector<std::string> about;
    std::function<std::string()> mistake;
  };
  struct Sources;  // the .cpp's working set while loading

  template <class T, class Parsed>
  static std::string store(T& target, Parsed parsed) {
    if (!parsed) return std::move(parsed.error().message);
    target = std::move(*parsed);
    return {};
  }
  void add_row(SettingNames names, Row row);
  void add_choice_row(SettingNames names, std::size_t initial,
                      const std::vector<std::string_view>& choices,
                      std::function<void(std::size_t)> assign);
  [[nodiscard]] const Row* find_row(std::string_view flag) const;
  [[nodiscard]] const Row* find_letter(char letter) const;
  [[nodiscard]] std::string long_form(const std::string& argument) const;
  // Returns the secret of this stem, for a value that was given in a wrong place.
  [[nodiscard]] const Row* find_secret(std::string_view stem) const;
  // Returns ", did you mean --port?" or an empty text.
  [[nodiscard]] std::string suggestion(std::string_view name, std::string_view prefix) const;
  void read_flags(const std::vector<std::string>& arguments, Sources& out) const;
  void read_environment(const std::map<std::string, std::string>& environment, Sources& out) const;
  void read_file(const std::string& path, Sources& out) const;

  std::string program_;
  std::string summary_;
  ProgramKind kind_;
  std::string group_;
  std::vector<Row> rows_;
  std::vector<Rule> rules_;
};

// Parses each item, for ConfigReader::add_parsed_list(). Returns the first error, if any.
template <class Parse>
auto parse_each(const std::vector<std::string>& items, Parse parse) {
  using Item = typename std::invoke_result_t<Parse, const std::string&>::value_type;
  std::vector<Item> all;
  for (const auto& item : items) {
    auto parsed = parse(item);
    if (!parsed) return Result<std::vector<Item>>(std::unexpected(std::move(parsed.error())));
    all.push_back(std::move(*parsed));
  }
  return Result<std::vector<Item>>(std::move(all));
}

}  // namespace gitops
