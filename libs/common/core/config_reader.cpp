#include "common/core/config_reader.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <stdexcept>
#include <system_error>

#include "common/core/config_common.hpp"
#include "common/core/config_yaml.hpp"
#include "common/core/encoding.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/core/time.hpp"

namespace gitops {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxSecretFile = 64 * 1024;
constexpr std::string_view kConfigEnv = "GITOPS_CONFIG";
constexpr std::string_view kFileSuffix = "-file";

// Returns a value as quoted in a mistake: on one line and cut at the first blank, because an
// unclosed quote in YAML may have pulled other settings into the value.
std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 80;
  const std::string_view part = text.substr(0, std::min(kMax, text.find_first_of(" \t\r\n")));
  std::string out;
  append_json_string(out, part, JsonEscape::minimal);
  if (part.size() < text.size()) out.insert(out.size() - 1, "...");
  return out;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const auto comma = text.find(',');
    if (const auto item = trimmed(text.substr(0, comma)); !item.empty()) items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::optional<bool> parse_bool(std::string_view text) {
  std::string folded(text);
  std::ranges::transform(folded, folded.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view yes : {"true", "t", "1", "yes", "on"}) {
    if (folded == yes) return true;
  }
  for (const std::string_view no : {"false", "f", "0", "no", "off"}) {
    if (folded == no) return false;
  }
  return std::nullopt;
}

std::string_view without_line_end(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

// The values of the three sources, the weakest last, so that the strongest is assigned last.
struct ConfigReader::Sources {
  std::vector<Given> flags, environment, file;
  std::vector<std::string> flag_mistakes, environment_mistakes, file_mistakes;
  std::optional<std::string> config_path;
  std::set<Outcome::Action> actions;
};

ConfigReader::ConfigReader(std::string program, std::string summary, ProgramKind kind)
    : program_(std::move(program)), summary_(std::move(summary)), kind_(kind) {}

void ConfigReader::add(SettingNames names, std::string& target) {
  add_row(std::move(names),
          {.kind = "TEXT", .default_text = target, .assign = [&target](const std::string& text) {
             target = text;
             return std::string();
           }});
}

void ConfigReader::add(SettingNames names, bool& target) {
  add_row(std::move(names), {.kind = "BOOL",
                             .default_text = target ? "true" : "false",
                             .shape = Shape::boolean,
                             .assign = [&target](const std::string& text) -> std::string {
                               const auto value = parse_bool(text);
                               if (!value) return shown(text) + " is not true or false";
                               target = *value;
                               return {};
                             }});
}

void ConfigReader::add(SettingNames names, std::int64_t& target, std::int64_t min,
                       std::int64_t max) {
  const std::string range = std::to_string(min) + " to " + std::to_string(max);
  add_row(std::move(names),
          {.kind = "NUMBER",
           .default_text = std::to_string(target),
           .assign = [&target, min, max, range](const std::string& text) -> std::string {
             std::int64_t value = 0;
             const auto* end = text.data() + text.size();
             const auto parsed = std::from_chars(text.data(), end, value);
             if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) {
               return shown(text) + " is not a whole number, expected " + range;
             }
             if (parsed.ec != std::errc() || value < min || value > max) {
               return shown(text) + " is out of range, expected " + range;
             }
             target = value;
             return {};
           }});
}

void ConfigReader::add(SettingNames names, milliseconds& target, milliseconds min,
                       milliseconds max) {
  add_row(std::move(names), {.kind = "DURATION",
                             .default_text = format_duration(target),
                             .assign = [&target, min, max](const std::string& text) -> std::string {
                               const auto value = parse_duration(text);
                               if (!value) return shown(text) + ": " + value.error().message;
                               if (*value < min || *value > max) {
                                 return shown(text) + " is out of range, expected " +
                                        format_duration(min) + " to " + format_duration(max);
                               }
                               target = *value;
                               return {};
                             }});
}

void ConfigReader::add(SettingNames names, std::vector<std::string>& target) {
  add_list(std::move(names), join(target, ","), [&target](const std::vector<std::string>& items) {
    target = items;
    return std::string();
  });
}

void ConfigReader::add_list(
    SettingNames names, std::string default_text,
    std::function<std::string(const std::vector<std::string>& items)> assign) {
  const auto assign_list = [assign = std::move(assign)](const std::vector<std::string>& items) {
    std::vector<std::string> kept;
    for (const std::string& item : items) {
      if (const auto text = trimmed(item); !text.empty()) kept.emplace_back(text);
    }
    return assign(kept);
  };
  add_row(
      std::move(names),
      {.kind = "LIST",
       .default_text = std::move(default_text),
       .shape = Shape::list,
       .assign = [assign_list](const std::string& text) { return assign_list(split_list(text)); },
       .assign_list = assign_list});
}

void ConfigReader::add(SettingNames names, std::string kind, std::string default_text,
                       std::function<std::string(const std::string& text)> assign) {
  add_row(std::move(names), {.kind = std::move(kind),
                             .default_text = std::move(default_text),
                             .assign = std::move(assign)});
}

void ConfigReader::add_choice(SettingNames names, std::size_t& target,
                              std::vector<std::string_view> choices) {
  add_choice_row(std::move(names), target, choices,
                 [&target](std::size_t index) { target = index; });
}

void ConfigReader::add_choice_row(SettingNames names, std::size_t initial,
                                  const std::vector<std::string_view>& choices,
                                  std::function<void(std::size_t)> assign) {
  const std::vector<std::string> texts(choices.begin(), choices.end());
  add_row(std::move(names),
          {.kind = join(texts, "|"),
           .default_text = texts.at(initial),
           .assign = [texts, assign = std::move(assign)](const std::string& text) -> std::string {
             const auto found = std::ranges::find(texts, text);
             if (found == texts.end()) {
               return shown(text) + " is not one of " + join(texts, ", ");
             }
             assign(static_cast<std::size_t>(found - texts.begin()));
             return {};
           }});
}

void ConfigReader::add_secret(SettingNames names, Secret& target, std::string* file,
                              SecretFile presence) {
  const auto assign_value = [&target](std::string_view text) -> std::string {
    if (without_line_end(text).empty()) return "is empty";
    target = Secret(std::string(without_line_end(text)));
    return {};
  };
  const bool may_be_missing = file != nullptr && presence == SecretFile::may_come_later;
  const auto assign_path = [assign_value, file,
                            may_be_missing](const std::string& path) -> std::string {
    auto text = read_small_file(path, kMaxSecretFile);
    std::string mistake;
    if (!text && may_be_missing && text.error().code == ErrorCode::not_found) {
      *file = path;
    } else if (!text) {
      mistake = text.error().message;
    } else {
      const Secret content(std::move(*text));
      if (file != nullptr) {
        *file = path;
        if (without_line_end(content.reveal()).empty()) mistake = "is empty";
      } else {
        mistake = assign_value(content.reveal());
      }
    }
    return mistake.empty() ? mistake : "file " + shown(path) + " " + mistake;
  };
  const std::string flag = std::string(names.flag) + std::string(kFileSuffix);
  names.flag = flag;
  add_row(names,
          {.kind = "FILE",
           .shape = Shape::secret_file,
           .assign = assign_path,
           .assign_env = [assign_value](const std::string& text) { return assign_value(text); }});
}

void ConfigReader::check(std::vector<std::string> about, std::function<std::string()> rule) {
  for (const std::string& flag : about) {
    if (find_row(flag) == nullptr && find_secret(flag) == nullptr) {
      throw std::logic_error("a rule is about a setting that does not exist: " + flag);
    }
  }
  rules_.push_back({.about = std::move(about), .mistake = std::move(rule)});
}

void ConfigReader::add_row(SettingNames names, Row row) {
  row.group = group_;
  row.flag = names.flag;
  row.env.assign(names.env.begin(), names.env.end());
  row.help = names.help;
  row.letter = names.letter;
  row.repeats = names.repeats;
  const auto known_env = environment_names();
  for (const std::string& name : row.env) {
    if (std::ranges::find(known_env, name) != known_env.end()) {
      throw std::logic_error("two settings read the environment variable " + name);
    }
  }
  if (find_row(row.flag) != nullptr || find_common(row.flag, kind_) != nullptr) {
    throw std::logic_error("two settings have the flag --" + row.flag);
  }
  if (row.letter != 0 && (row.letter == 'h' || find_letter(row.letter) != nullptr)) {
    throw std::logic_error("two settings have the flag -" + std::string(1, row.letter));
  }
  rows_.push_back(std::move(row));
}

const ConfigReader::Row* ConfigReader::find_row(std::string_view flag) const {
  const auto found = std::ranges::find(rows_, flag, &Row::flag);
  return found == rows_.end() ? nullptr : &*found;
}

const ConfigReader::Row* ConfigReader::find_letter(char letter) const {
  const auto found = std::ranges::find(rows_, letter, &Row::letter);
  return found == rows_.end() ? nullptr : &*found;
}

const ConfigReader::Row* ConfigReader::find_secret(std::string_view stem) const {
  const Row* row = find_row(std::string(stem) + std::string(kFileSuffix));
  return row != nullptr && row->shape == Shape::secret_file ? row : nullptr;
}

std::string ConfigReader::suggestion(std::string_view name, std::string_view prefix) const {
  std::vector<std::string_view> known;
  for (const Row& row : rows_) known.push_back(row.flag);
  if (!prefix.empty()) {
    for (const CommonFlag& common : kCommonFlags) {
      if (is_shown(common, kind_)) known.push_back(common.flag);
    }
  }
  const auto meant = nearest(name, known);
  return meant ? ", did you mean " + std::string(prefix) + std::string(*meant) + "?" : "";
}

namespace {

// Returns the remedy for a secret given as a flag or in YAML.
std::string secret_hint(const std::string& file_flag, const std::vector<std::string>& env) {
  std::string hint =
      "a secret is not given here, others could read it; name a file by --" + file_flag;
  if (!env.empty()) hint += " or set the environment variable " + env.front();
  return hint;
}

}  // namespace

// Returns "-o json" and "-ojson" as "--output json" and "--output=json"; other arguments unchanged.
std::string ConfigReader::long_form(const std::string& argument) const {
  if (argument == "-h") return "--help";
  if (argument.size() < 2 || argument[0] != '-' || argument[1] == '-') return argument;
  const Row* row = find_letter(argument[1]);
  if (row == nullptr) return argument;
  const std::string_view value = std::string_view(argument).substr(2);
  if (value.empty()) return "--" + row->flag;
  if (!value.starts_with('=') && row->shape == Shape::boolean) return argument;
  return "--" + row->flag + (value.starts_with('=') ? "" : "=") + std::string(value);
}

void ConfigReader::read_flags(const std::vector<std::string>& arguments, Sources& out) const {
  std::set<std::string, std::less<>> seen;
  const auto mistake = [&](std::string_view name, std::string_view text) {
    out.flag_mistakes.push_back("flag --" + std::string(name) + ": " + std::string(text));
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = long_form(arguments[i]);
    if (!argument.starts_with("--") || argument.size() == 2) {
      out.flag_mistakes.push_back("argument " + shown(argument) +
                                  ": not expected, settings are given as --name=value");
      continue;
    }
    const auto equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);

    const std::map<std::string_view, Outcome::Action> actions = {
        {"help", Outcome::Action::help},
        {"version", Outcome::Action::version},
        {"check-config", Outcome::Action::check},
        {"print-config-table", Outcome::Action::table}};
    const auto action = actions.find(name);
    if (action != actions.end() && find_common(name, kind_) != nullptr) {
      if (value) {
        mistake(name, "takes no value");
      } else {
        out.actions.insert(action->second);
      }
      continue;
    }

    const Row* row = find_row(name);
    if (row == nullptr && name.starts_with("no-") && !value) {
      const Row* switched_off = find_row(std::string_view(name).substr(3));
      if (switched_off != nullptr && switched_off->shape == Shape::boolean) {
        row = switched_off;
        name = row->flag;
        value = "false";
      }
    }
    if (row == nullptr && name != "config") {
      if (const Row* secret = find_secret(name)) {
        mistake(name, secret_hint(secret->flag, secret->env));
        const bool detached =
            !value && i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
        if (detached) ++i;  // do not report its value as an unexpected argument
      } else {
        out.flag_mistakes.push_back("flag " + shown("--" + name) + ": unknown" +
                                    suggestion(name, "--"));
        const bool detached =
            !value && i + 1 < arguments.size() && !arguments[i + 1].starts_with("-");
        if (detached) ++i;
      }
      continue;
    }
    if (!value) {
      if (row != nullptr && row->shape == Shape::boolean) {
        value = "true";
      } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
        value = arguments[++i];
      } else {
        mistake(name, "needs a value");
        continue;
      }
    }
    const bool may_repeat = row != nullptr && row->repeats;
    if (!seen.insert(name).second && !may_repeat) {
      mistake(name, "given more than once");
    } else if (row == nullptr) {
      out.config_path = *value;
    } else {
      out.flags.push_back({.row = row, .source = "flag --" + name, .text = *value});
    }
  }
}

void ConfigReader::read_environment(const std::map<std::string, std::string>& environment,
                                    Sources& out) const {
  if (!out.config_path) {
    const auto path = environment.find(std::string(kConfigEnv));
    if (path != environment.end() && !path->second.empty()) out.config_path = path->second;
  }
  for (const Row& row : rows_) {
    for (const std::string& name : row.env) {
      const auto found = environment.find(name);
      if (found == environment.end() || found->second.empty()) continue;
      out.environment.push_back(
          {.row = &row, .source = "environment " + name, .text = found->second, .from_env = true});
      break;
    }
  }
}

void ConfigReader::read_file(const std::string& path, Sources& out) const {
  const auto mistake = [&](std::optional<int> line, const std::string& key,
                           const std::string& text) {
    out.file_mistakes.push_back(path + (line ? ":" + std::to_string(*line) : "") +
                                (key.empty() ? "" : " " + std::string(trimmed(key))) + ": " + text);
  };
  const auto setting = [&](const YamlSetting& found) {
    using Kind = YamlSetting::Kind;
    const Row* row = find_row(found.key);
    if (row == nullptr) {
      if (const Row* secret = find_secret(found.key)) {
        return mistake(found.line, found.key, secret_hint(secret->flag, secret->env));
      }
      const std::string quoted = shown(found.key);
      return mistake(found.line, quoted.substr(1, quoted.size() - 2),
                     "unknown setting" + suggestion(found.key, ""));
    }
    if (found.kind == Kind::null) return;
    Given given{.row = row,
                .source = path + ":" + std::to_string(found.line) + " " + found.key,
                .text = found.text};
    if (row->shape == Shape::list) {
      if (found.kind != Kind::texts) {
        return mistake(found.line, found.key, "must be a sequence of texts, as in [a, b]");
      }
      given.items = found.texts;
    } else if (found.kind != Kind::text) {
      return mistake(found.line, found.key, "must be a single value");
    }
    out.file.push_back(std::move(given));
  };
  const auto is_prefix = [&](const std::string& key) {
    return find_row(key) == nullptr && std::ranges::any_of(rows_, [&](const Row& row) {
             return row.flag.starts_with(key + '.');
           });
  };
  read_yaml_settings(path, {.setting = setting, .mistake = mistake, .is_prefix = is_prefix});
}

ConfigReader::Outcome ConfigReader::load(const std::vector<std::string>& arguments,
                                         const std::map<std::string, std::string>& environment) {
  using Action = Outcome::Action;
  Sources sources;
  read_flags(arguments, sources);
  for (const Action action : {Action::help, Action::version, Action::table}) {
    if (sources.actions.contains(action)) return {.action = action};
  }
  read_environment(environment, sources);
  if (sources.config_path) read_file(*sources.config_path, sources);

  std::map<const Row*, std::string> source_of;  // the strongest source with a value
  std::set<const Row*> wrong;
  const auto assign = [&](const std::vector<Given>& values, std::vector<std::string>& mistakes) {
    for (const Given& given : values) {
      const Row& row = *given.row;
      source_of[&row] = given.source;
      std::string mistake;
      if (given.items) {
        mistake = row.assign_list(*given.items);
      } else {
        mistake = (given.from_env && row.assign_env ? row.assign_env : row.assign)(given.text);
      }
      if (mistake.empty()) continue;
      wrong.insert(&row);
      mistakes.push_back(given.source + ": " + mistake);
    }
  };
  assign(sources.file, sources.file_mistakes);
  assign(sources.environment, sources.environment_mistakes);
  assign(sources.flags, sources.flag_mistakes);

  Outcome outcome;
  if (sources.config_path) outcome.file = *sources.config_path;
  if (sources.actions.contains(Action::check)) outcome.action = Action::check;
  for (const auto* mistakes :
       {&sources.flag_mistakes, &sources.environment_mistakes, &sources.file_mistakes}) {
    outcome.mistakes.insert(outcome.mistakes.end(), mistakes->begin(), mistakes->end());
  }
  for (const Rule& rule : rules_) {
    std::vector<std::string> given;
    bool all_good = true;
    for (const std::string& flag : rule.about) {
      const Row* row = find_row(flag) != nullptr ? find_row(flag) : find_secret(flag);
      all_good = all_good && !wrong.contains(row);
      if (const auto source = source_of.find(row); source != source_of.end()) {
        given.push_back(source->second);
      }
    }
    if (!all_good) continue;
    const std::string mistake = rule.mistake();
    if (mistake.empty()) continue;
    if (given.empty()) given.push_back("default of " + join(rule.about, ", "));
    outcome.mistakes.push_back(join(given, ", ") + ": " + mistake);
  }
  return outcome;
}

std::vector<ConfigReader::Flag> ConfigReader::flags() const {
  std::vector<Flag> flags;
  for (const Row& row : rows_) {
    flags.push_back({.name = row.flag,
                     .letter = row.letter,
                     .kind = row.shape == Shape::boolean ? "" : row.kind,
                     .help = row.help});
  }
  for (const CommonFlag& common : kCommonFlags) {
    if (!is_shown(common, kind_)) continue;
    flags.push_back({.name = std::string(common.flag),
                     .letter = common.flag == "help" ? 'h' : '\0',
                     .kind = std::string(common.kind),
                     .help = std::string(common.help)});
  }
  return flags;
}

std::vector<std::string> ConfigReader::environment_names() const {
  std::vector<std::string> names;
  for (const Row& row : rows_) names.insert(names.end(), row.env.begin(), row.env.end());
  names.emplace_back(kConfigEnv);
  return names;
}

}  // namespace gitops
