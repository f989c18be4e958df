#include "common/cli/completion.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "common/cli/command.hpp"
#include "common/core/text.hpp"

namespace gitops::cli {

namespace {

using Flag = ConfigReader::Flag;

std::vector<Flag> flags_of(const Program& program, const Command& command) {
  ConfigReader reader(program.name + " " + command.name, command.summary, ProgramKind::command);
  if (command.bind) command.bind(reader);
  return reader.flags();
}

// Returns "text|json" as "text json"; empty when any value is accepted.
std::string choices(const Flag& flag) {
  if (!flag.kind.contains('|')) return {};
  std::string out = flag.kind;
  for (char& c : out) {
    if (c == '|') c = ' ';
  }
  return out;
}

// A word of the command line, and its explanation.
using Word = std::pair<std::string, std::string>;

std::vector<std::string> groups_of(const Program& program) {
  std::vector<std::string> groups;
  for (const Command& command : program.commands) {
    const auto blank = command.name.find(' ');
    if (blank == std::string::npos) continue;
    const std::string group = command.name.substr(0, blank);
    if (groups.empty() || groups.back() != group) groups.push_back(group);
  }
  return groups;
}

std::string names_of(const std::vector<Word>& words) {
  std::string names;
  for (const auto& [word, about] : words) names += (names.empty() ? "" : " ") + word;
  return names;
}

// Returns the command that prints the values of this kind; empty when there is none.
std::string printer_of(const Program& program, const std::string& kind) {
  const auto found = program.names.find(kind);
  return found == program.names.end() ? std::string() : found->second;
}

// Returns the commands that print what the operands of a command may be.
std::vector<std::string> printers_of(const Program& program, const Command& command) {
  std::vector<std::string> printers;
  for (const Operand& operand : command.operands) {
    if (auto printer = printer_of(program, operand.name); !printer.empty()) {
      printers.push_back(std::move(printer));
    }
  }
  return printers;
}

// Returns a `case` pattern for the names of a flag: "-o|--output".
std::string case_pattern(const Flag& flag) {
  return (flag.letter == 0 ? "" : "-" + std::string(1, flag.letter) + "|") + "--" + flag.name;
}

std::string bash_command(const Program& program, const Command& command) {
  std::string names;
  std::string values;
  std::vector<std::string> files;
  std::vector<std::string> free;
  for (const Flag& flag : flags_of(program, command)) {
    names += (names.empty() ? "--" : " --") + flag.name;
    if (flag.kind.empty()) continue;
    if (const std::string words = choices(flag); !words.empty()) {
      values += "        " + case_pattern(flag) +
                ")\n          mapfile -t COMPREPLY < <(compgen -W '" + words +
                "' -- \"$current\")\n          return ;;\n";
    } else if (const auto printer = printer_of(program, flag.kind); !printer.empty()) {
      values += "        " + case_pattern(flag) + ") _" + program.name + "_names " + printer +
                "; return ;;\n";
    } else {
      (flag.kind == "FILE" ? files : free).push_back(case_pattern(flag));
    }
  }
  if (!files.empty()) {
    values += "        " + join(files, "|") +
              ")\n          compopt -o filenames\n"
              "          mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
              "          return ;;\n";
  }
  if (!free.empty()) values += "        " + join(free, "|") + ") return ;;\n";
  std::string operands;
  for (const std::string& printer : printers_of(program, command)) {
    operands += "      [ \"${current:0:1}\" = - ] || _" + program.name + "_names " + printer + "\n";
  }
  if (!operands.empty()) operands += "      [ \"${current:0:1}\" = - ] || return\n";
  const std::string pattern =
      command.name.contains(' ') ? "'" + command.name + "'" : "'" + command.name + " '*";
  return "    " + pattern + ")\n      words='" + names + "'\n" +
         (values.empty() ? "" : "      case $previous in\n" + values + "      esac\n") + operands +
         "      ;;\n";
}

// Escapes text for single quotes in a shell.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

// Escapes text for single quotes in fish.
std::string fish_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Escapes the help text of an option of _arguments, or of an item of _describe.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return in_quotes(out);
}

std::string zsh_option(const Program& program, const Flag& flag) {
  std::string action;
  if (!flag.kind.empty()) {
    const std::string words = choices(flag);
    action = ":" + (words.empty() ? flag.kind : "value") + ":";
    if (!words.empty()) action += "(" + words + ")";
    if (flag.kind == "FILE") action += "_files";
    if (const auto printer = printer_of(program, flag.kind); !printer.empty()) {
      action += "{_" + program.name + "_names " + printer + "}";
    }
  }
  const std::string explained = "[" + zsh_text(flag.help) + "]" + action + "'";
  const std::string name = "--" + flag.name;
  const std::string value = flag.kind.empty() ? "" : "=";
  if (flag.letter == 0) return "'" + name + value + explained;
  const std::string letter = "-" + std::string(1, flag.letter);
  return "'(" + letter + " " + name + ")'{" + letter + (flag.kind.empty() ? "" : "+") + "," + name +
         value + "}'" + explained;
}

std::string zsh_words(const std::string& array, const std::vector<Word>& words) {
  std::string out = "  local -a " + array + "=(\n";
  for (const auto& [word, about] : words) out += "    '" + word + ":" + zsh_text(about) + "'\n";
  return out + "  )\n";
}

// Returns the _arguments of each command of a group, or of none.
std::string zsh_commands(const Program& program, const std::string& group) {
  std::string out;
  for (const Command& command : program.commands) {
    if (group.empty() ? command.name.contains(' ') : !command.name.starts_with(group + " ")) {
      continue;
    }
    const auto word = group.empty() ? command.name : command.name.substr(group.size() + 1);
    out += "    " + word + ")\n      _arguments";
    for (const Flag& flag : flags_of(program, command)) {
      out += " \\\n        " + zsh_option(program, flag);
    }
    for (std::size_t i = 0; i < command.operands.size(); ++i) {
      const Operand& operand = command.operands[i];
      const auto printer = printer_of(program, operand.name);
      out += " \\\n        '" + std::to_string(i + 1) + ":" + operand.name + ":" +
             (printer.empty() ? "" : "{_" + program.name + "_names " + printer + "}") + "'";
    }
    out += "\n      ;;\n";
  }
  return out;
}

// Returns "-n CONDITION -a WORD -d TEXT" for each word of a level.
std::string fish_words(const Program& program, const std::string& group) {
  std::string out;
  for (const auto& [word, about] : commands_of(program, group)) {
    out += "complete -c " + program.name + " -n '__" + program.name + "_needs" +
           (group.empty() ? "" : " " + group) + "' -a " + word + " -d '" + fish_text(about) + "'\n";
  }
  return out;
}

std::string fish_command(const Program& program, const Command& command) {
  const std::string begin =
      "complete -c " + program.name + " -n '__" + program.name + "_is " + command.name + "'";
  std::string out;
  for (const Flag& flag : flags_of(program, command)) {
    out += begin + " -l " + flag.name;
    if (flag.letter != 0) out += std::string(" -s ") + flag.letter;
    if (flag.kind == "FILE") {
      out += " -r -F";
    } else if (!flag.kind.empty()) {
      const auto printer = printer_of(program, flag.kind);
      const auto words =
          printer.empty() ? choices(flag) : "(__" + program.name + "_names " + printer + ")";
      out += " -x" + (words.empty() ? "" : " -a '" + words + "'");
    }
    out += " -d '" + fish_text(flag.help) + "'\n";
  }
  for (const std::string& printer : printers_of(program, command)) {
    out += begin + " -a '(__" + program.name + "_names " + printer + ")'\n";
  }
  return out;
}

// Replaces each FLAG of a part of a script; without a flag the part is empty.
std::string with_flag(std::string_view part, const std::string& flag) {
  constexpr std::string_view kPlace = "FLAG";
  std::string out;
  if (flag.empty()) return out;
  for (auto at = part.find(kPlace); at != std::string_view::npos; at = part.find(kPlace)) {
    out += std::string(part.substr(0, at)) + "--" + flag;
    part.remove_prefix(at + kPlace.size());
  }
  return out + std::string(part);
}

// Parts of the functions that ask for names: they put the flag with its value into `of`. The word
// that is being completed is none.
constexpr std::string_view kBashOf = R"(  local -i i
  for ((i = 2; i + 1 < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == FLAG ]] || continue
    [[ ${COMP_WORDS[i + 1]} != '=' ]] || i+=1
    ((i + 1 >= COMP_CWORD)) || of=(FLAG "${COMP_WORDS[i + 1]}")
  done
)";
constexpr std::string_view kZshOf = R"(  local -i i=${words[(I)FLAG]}
  (( i > 0 && i + 1 < CURRENT )) && of=(FLAG "$words[i+1]")
  i=${words[(I)FLAG=*]}
  (( i > 0 && i < CURRENT )) && of=("$words[i]")
)";
constexpr std::string_view kFishOf = R"(    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        if string match -q -- 'FLAG=*' $words[$i]
            set of $words[$i]
        else if test "$words[$i]" = FLAG -a $i -lt (count $words)
            set of FLAG $words[(math $i + 1)]
        end
    end
)";

}  // namespace

std::string bash_completion(const Program& program) {
  const std::string& name = program.name;
  std::string out = "# bash completion for " + name + "; load it with: source <(" + name +
                    " completion bash)\n_" + name + R"(_names() {
  local name found
  local -a of=()
)" + with_flag(kBashOf, program.names_of) +
                    "  mapfile -t found < <(command " + name +
                    R"( "$@" "${of[@]}" </dev/null 2>/dev/null)
  [[ $current == */* ]] || found=("${found[@]##*/}")
  for name in "${found[@]}"; do
    [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ && $name == "$current"* ]] && COMPREPLY+=("$name")
  done
  true
}
_)" + name + R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=''
  COMPREPLY=()
  case "$COMP_CWORD ${COMP_WORDS[1]}" in
    '1 '*) words=')" +
                    names_of(commands_of(program, {})) + R"( --help --version' ;;
)";
  for (const std::string& group : groups_of(program)) {
    out +=
        "    '2 " + group + "') words='" + names_of(commands_of(program, group)) + " --help' ;;\n";
  }
  out += R"(    '2 completion') words='bash zsh fish' ;;
    '2 help') words=')" +
         names_of(commands_of(program, {})) + "' ;;\n";
  for (const std::string& group : groups_of(program)) {
    out += "    \"3 help\") [ \"${COMP_WORDS[2]}\" = " + group + " ] && words='" +
           names_of(commands_of(program, group)) + "' ;;&\n";
  }
  out += R"(  esac
  if [ "$COMP_CWORD" -eq 1 ] || [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  if [ "$current" = '=' ]; then
    current=
  elif [ "$previous" = '=' ]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case "${COMP_WORDS[1]} ${COMP_WORDS[2]-}" in
)";
  for (const Command& command : program.commands) out += bash_command(program, command);
  out += "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n";
  return out + "complete -F _" + name + " " + name + "\n";
}

std::string zsh_completion(const Program& program) {
  const std::string& name = program.name;
  std::string out = "#compdef " + name + "\n# zsh completion for " + name +
                    "; load it with: source <(" + name + " completion zsh)\n_" + name +
                    R"(_names() {
  local -a found of
)" + with_flag(kZshOf, program.names_of) +
                    "  found=(\"${(@f)$(command " + name +
                    R"( "$@" $of </dev/null 2>/dev/null)}")
  [[ $PREFIX == */* ]] || found=("${found[@]##*/}")
  compadd -a found
}
)";
  for (const std::string& group : groups_of(program)) {
    out += "_" + name + "_" + group + "() {\n" +
           zsh_words("commands", commands_of(program, group)) +
           R"(  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)" + zsh_commands(program, group) +
           "  esac\n}\n";
  }
  out += "_" + name + "() {\n" + zsh_words("commands", commands_of(program, {})) +
         R"(  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)" + zsh_commands(program, {});
  for (const std::string& group : groups_of(program)) {
    out += "    " + group + ") _" + name + "_" + group + " ;;\n";
  }
  out += R"(    completion) _arguments '1:shell:(bash zsh fish)' ;;
    help) (( CURRENT == 2 )) && _describe -t commands command commands ;;
  esac
}
)";
  return out + "if [[ $funcstack[1] == _" + name + " ]]; then\n  _" + name +
         " \"$@\"\nelse\n  compdef _" + name + " " + name + "\nfi\n";
}

std::string fish_completion(const Program& program) {
  const std::string& name = program.name;
  std::string out = "# fish completion for " + name + "; put it into ~/.config/fish/completions/" +
                    name + ".fish\nfunction __" + name + R"(_needs
    set -l words (commandline -opc)
    test "$words[2..-1]" = "$argv"
end
function __)" + name +
                    R"(_is
    set -l words (commandline -opc)
    test (count $words) -gt (count $argv)
    and test "$words[2..$(math 1 + (count $argv))]" = "$argv"
end
function __)" + name +
                    R"(_names
    set -l of
)" + with_flag(kFishOf, program.names_of) +
                    "    set -l found (command " + name + R"( $argv $of </dev/null 2>/dev/null)
    string match -q '*/*' -- (commandline -ct); or set found (string replace -r '.*/' '' -- $found)
    string match -r '^[A-Za-z0-9][A-Za-z0-9._:/@-]*$' -- $found
end
complete -c )" + name +
                    " -f\n" + fish_words(program, {});
  for (const std::string& group : groups_of(program)) out += fish_words(program, group);
  out += "complete -c " + name + " -n '__" + name + "_needs completion' -a 'bash zsh fish'\n";
  for (const Command& command : program.commands) out += fish_command(program, command);
  return out;
}

}  // namespace gitops::cli
