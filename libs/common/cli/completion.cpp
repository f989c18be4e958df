#include "common/cli/completion.hpp"

#include <string_view>
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

std::string command_names(const Program& program) {
  std::string names;
  for (const Command& command : program.commands) names += command.name + ' ';
  return names + "completion help";
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
      values += "        " + case_pattern(flag) + ") words='" + words + "' ;;\n";
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
  return "    " + command.name + ")\n      words='" + names + "'\n" +
         (values.empty() ? "" : "      case $previous in\n" + values + "      esac\n") +
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

// Escapes the help text of an option of _arguments, or of an item of _describe.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return in_quotes(out);
}

std::string zsh_option(const Flag& flag) {
  std::string action;
  if (!flag.kind.empty()) {
    const std::string words = choices(flag);
    action = ":" + (words.empty() ? flag.kind : "value") + ":";
    if (!words.empty()) action += "(" + words + ")";
    if (flag.kind == "FILE") action += "_files";
  }
  const std::string explained = "[" + zsh_text(flag.help) + "]" + action + "'";
  const std::string name = "--" + flag.name;
  const std::string value = flag.kind.empty() ? "" : "=";
  if (flag.letter == 0) return "'" + name + value + explained;
  const std::string letter = "-" + std::string(1, flag.letter);
  return "'(" + letter + " " + name + ")'{" + letter + (flag.kind.empty() ? "" : "+") + "," + name +
         value + "}'" + explained;
}

}  // namespace

std::string bash_completion(const Program& program) {
  const std::string& name = program.name;
  std::string out = "# bash completion for " + name + "; load it with: source <(" + name +
                    " completion bash)\n_" + name + R"(() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W ')" +
                    command_names(program) + R"( --help --version' -- "$current")
    return
  fi
  if [ "$current" = '=' ]; then
    current=
  elif [ "$previous" = '=' ]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case ${COMP_WORDS[1]} in
)";
  for (const Command& command : program.commands) out += bash_command(program, command);
  out += "    completion) [ \"$COMP_CWORD\" -eq 2 ] && words='bash zsh' ;;\n";
  out += "    help) [ \"$COMP_CWORD\" -eq 2 ] && words='" + command_names(program) + "' ;;\n";
  out += "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n";
  return out + "complete -F _" + name + " " + name + "\n";
}

std::string zsh_completion(const Program& program) {
  const std::string& name = program.name;
  std::string out = "#compdef " + name + "\n# zsh completion for " + name +
                    "; load it with: source <(" + name + " completion zsh)\n_" + name +
                    "() {\n  local -a commands=(\n";
  for (const Command& command : program.commands) {
    out += "    '" + command.name + ":" + zsh_text(command.summary) + "'\n";
  }
  out += R"(    'completion:Print the completion script of a shell'
    'help:Explain a command'
  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)";
  for (const Command& command : program.commands) {
    out += "    " + command.name + ")\n      _arguments";
    for (const Flag& flag : flags_of(program, command)) {
      out += " \\\n        " + zsh_option(flag);
    }
    out += "\n      ;;\n";
  }
  out += R"(    completion) _arguments '1:shell:(bash zsh)' ;;
    help) (( CURRENT == 2 )) && _describe -t commands command commands ;;
  esac
}
)";
  return out + "if [[ $funcstack[1] == _" + name + " ]]; then\n  _" + name +
         " \"$@\"\nelse\n  compdef _" + name + " " + name + "\nfi\n";
}

}  // namespace gitops::cli
