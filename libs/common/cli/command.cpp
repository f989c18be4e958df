#include "common/cli/command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cli/completion.hpp"
#include "common/cli/man_pages.hpp"
#include "common/core/process.hpp"
#include "common/core/text.hpp"

namespace gitops::cli {

namespace {

constexpr std::string_view kCompletionSummary = "Print the completion script of a shell";
constexpr std::string_view kHelpSummary = "Explain a command";
constexpr std::string_view kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 4 not found, 5 refused, 130 "
    "interrupted.\n";

// Returns the group of a command of two words; empty for one word.
std::string_view group_of(const Command& command) {
  const auto blank = command.name.find(' ');
  return std::string_view(command.name).substr(0, blank == std::string::npos ? 0 : blank);
}

bool is_group(const Program& program, std::string_view word) {
  return std::ranges::any_of(program.commands, [&](const Command& command) {
    return !word.empty() && group_of(command) == word;
  });
}

const Command* find_command(const Program& program, std::string_view name) {
  const auto found = std::ranges::find_if(program.commands, [&](const Command& command) {
    return command.name == name || (!name.empty() && command.old_name == name);
  });
  return found == program.commands.end() ? nullptr : &*found;
}

// Returns the help of a program, or of one of its groups.
std::string commands_help(const Program& program, const std::string& group) {
  const auto lines = commands_of(program, group);
  const auto about = program.groups.find(group);
  const std::string name = program.name + (group.empty() ? "" : " " + group);
  const std::string summary = group.empty()                   ? program.summary
                              : about == program.groups.end() ? std::string()
                                                              : about->second;
  std::string out =
      name + ": " + summary + "\n\nUsage: " + name + " COMMAND [flags]\n\nCommands:\n";
  std::size_t widest = 0;
  for (const auto& line : lines) widest = std::max(widest, line.first.size());
  for (const auto& [word, what] : lines) {
    out += "  " + word + std::string(widest + 2 - word.size(), ' ') + what + '\n';
  }
  if (group.empty()) {
    out +=
        "\nFlags:\n  --help     Print this text, and end\n  --version  Print the version, and "
        "end\n";
  }
  out += "\nFor more about a command: " + program.name + " help " +
         (group.empty() ? "" : group + " ") + "COMMAND\n";
  return out + std::string(kExitCodes);
}

std::string command_help(const Program& program, const Command& command,
                         const ConfigReader& reader) {
  std::string out = program.name + " " + command.name + ": " + command.summary +
                    "\n\nUsage: " + program.name + " " + command.name;
  std::size_t widest = 0;
  for (const Operand& operand : command.operands) {
    out += operand.is_required ? " " + operand.name : " [" + operand.name + "]";
    widest = std::max(widest, operand.name.size());
  }
  out += " [flags]\n";
  if (!command.description.empty()) out += '\n' + command.description;
  if (!command.operands.empty()) out += "\nArguments:\n";
  for (const Operand& operand : command.operands) {
    out += "  " + operand.name + std::string(widest + 2 - operand.name.size(), ' ') + operand.help +
           '\n';
  }
  return out + reader.flags_help() + std::string(kExitCodes);
}

std::string completion_help(const Program& program) {
  const std::string& name = program.name;
  return name + " completion: " + std::string(kCompletionSummary) + "\n\nUsage: " + name +
         " completion bash|zsh|fish\n\nFor this session:  source <(" + name +
         " completion bash)\nFor every session: add that line to ~/.bashrc (zsh: to ~/.zshrc, "
         "after "
         "compinit;\nfish: " +
         name + " completion fish >~/.config/fish/completions/" + name + ".fish)\n";
}

// Prints the mistakes and a hint to the usage.
int wrong_usage(Console& console, const std::string& who, const std::vector<std::string>& mistakes,
                const std::string& help) {
  for (const std::string& mistake : mistakes) console.err << who << ": " << mistake << '\n';
  console.err << "Run '" << help << "' for usage.\n";
  return kWrongUsage;
}

int unknown_command(const Program& program, const std::string& group, const std::string& name,
                    Console& console) {
  const auto lines = commands_of(program, group);
  std::vector<std::string_view> known;
  for (const auto& line : lines) known.emplace_back(line.first);
  const auto meant = nearest(name, known);
  const std::string who = program.name + (group.empty() ? "" : " " + group);
  return wrong_usage(console, who,
                     {"unknown command \"" + name + '"' +
                      (meant ? ", did you mean " + std::string(*meant) + "?" : "")},
                     who + " --help");
}

int run_completion(const Program& program, const std::vector<std::string>& arguments,
                   Console& console) {
  const bool help = std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
  if (help) {
    console.out << completion_help(program);
    return kDone;
  }
  for (const auto& [shell, script] : {std::pair{"bash", &bash_completion},
                                      {"zsh", &zsh_completion},
                                      {"fish", &fish_completion}}) {
    if (arguments.size() != 1 || arguments[0] != shell) continue;
    console.out << script(program);
    return kDone;
  }
  return wrong_usage(console, program.name + " completion",
                     {"expected one argument: bash, zsh or fish"},
                     program.name + " completion --help");
}

// Returns whether the argument is a flag whose value is the next argument.
bool takes_next(const std::vector<ConfigReader::Flag>& flags, const std::string& argument) {
  if (argument.contains('=')) return false;
  const bool is_long = argument.starts_with("--");
  if (!is_long && argument.size() != 2) return false;
  const auto flag = std::ranges::find_if(flags, [&](const ConfigReader::Flag& known) {
    return is_long ? argument.substr(2) == known.name : argument[1] == known.letter;
  });
  return flag != flags.end() && !flag->kind.empty();
}

// Takes the operands out of the arguments, and returns the mistakes.
std::vector<std::string> take_operands(const Command& command,
                                       const std::vector<ConfigReader::Flag>& flags,
                                       std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with('-')) {
      rest.push_back(arguments[i]);
      if (takes_next(flags, arguments[i]) && i + 1 < arguments.size()) {
        rest.push_back(arguments[++i]);
      }
    } else if (taken < command.operands.size()) {
      *command.operands[taken++].target = arguments[i];
    } else {
      rest.push_back(arguments[i]);  // the reader names it
    }
  }
  arguments = std::move(rest);
  std::vector<std::string> mistakes;
  for (std::size_t i = 0; i < command.operands.size(); ++i) {
    const Operand& operand = command.operands[i];
    if (!operand.is_required || (i < taken && !operand.target->empty())) continue;
    mistakes.push_back("argument " + operand.name + ": missing");
  }
  return mistakes;
}

int run_command(const Program& program, const Command& command, std::vector<std::string> arguments,
                const Environment& environment, Console& console) {
  const std::string full_name = program.name + " " + command.name;
  ConfigReader reader(full_name, command.summary, ProgramKind::command);
  if (command.bind) command.bind(reader);
  auto mistakes = take_operands(command, reader.flags(), arguments);
  const auto outcome = reader.load(arguments, environment);
  using Action = ConfigReader::Outcome::Action;
  if (outcome.action == Action::help) {
    console.out << command_help(program, command, reader);
    return kDone;
  }
  if (outcome.action == Action::table) {
    console.out << reader.markdown_table();
    return kDone;
  }
  mistakes.insert(mistakes.end(), outcome.mistakes.begin(), outcome.mistakes.end());
  if (!mistakes.empty()) return wrong_usage(console, full_name, mistakes, full_name + " --help");
  return command.run(environment, console);
}

// Runs the command that the first one or two words name.
int run_words(const Program& program, std::vector<std::string> words,
              const Environment& environment, Console& console) {
  const std::string name = words[0];
  words.erase(words.begin());
  if (is_group(program, name)) {
    const bool is_help = words.empty() || words[0] == "--help" || words[0] == "-h";
    if (is_help) {
      console.out << commands_help(program, name);
      return kDone;
    }
    const Command* command = find_command(program, name + " " + words[0]);
    if (command == nullptr) return unknown_command(program, name, words[0], console);
    return run_command(program, *command, {words.begin() + 1, words.end()}, environment, console);
  }
  const Command* command = find_command(program, name);
  if (command == nullptr) return unknown_command(program, {}, name, console);
  return run_command(program, *command, std::move(words), environment, console);
}

// Writes the manual pages into a folder, for packages.
int write_man_pages(const Program& program, const std::string& folder, Console& console) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [name, text] : man_pages(program)) {
    std::ofstream file(std::filesystem::path(folder) / name, std::ios::binary);
    if (!(file << text).flush()) {
      console.err << program.name << ": " << folder << '/' << name << " cannot be written\n";
      return kFailed;
    }
  }
  return kDone;
}

int run_help(const Program& program, const std::vector<std::string>& about,
             const Environment& environment, Console& console) {
  if (!about.empty() && about[0] == "--man") {
    if (about.size() == 2) return write_man_pages(program, about[1], console);
    return wrong_usage(console, program.name + " help", {"--man takes a folder"},
                       program.name + " help");
  }
  if (about.empty() || about[0] == "help" || about[0].starts_with("-")) {
    console.out << commands_help(program, {});
    return kDone;
  }
  if (about[0] == "completion") return run_completion(program, {"--help"}, console);
  std::vector<std::string> words{about[0]};
  if (is_group(program, about[0]) && about.size() > 1) words.push_back(about[1]);
  words.emplace_back("--help");
  return run_words(program, std::move(words), environment, console);
}

// Returns the columns of the terminal; 0 when standard output is none.
std::size_t terminal_width() {
  if (::isatty(STDOUT_FILENO) != 1) return 0;
  winsize size{};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

// Whether standard output is a pipe that nobody reads any more.
bool has_lost_reader() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

bool shows_colours(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  return value("NO_COLOR").empty() && !value("TERM").empty() && value("TERM") != "dumb";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> commands_of(const Program& program,
                                                             const std::string& group) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Command& command : program.commands) {
    const std::string own(group_of(command));
    if (own == group) {
      lines.emplace_back(command.name.substr(group.empty() ? 0 : group.size() + 1),
                         command.summary);
    } else if (group.empty() && (lines.empty() || lines.back().first != own)) {
      const auto about = program.groups.find(own);
      lines.emplace_back(own, about == program.groups.end() ? "" : about->second);
    }
  }
  if (group.empty()) {
    lines.emplace_back("completion", kCompletionSummary);
    lines.emplace_back("help", kHelpSummary);
  }
  return lines;
}

int run(const Program& program, const std::vector<std::string>& arguments,
        const Environment& environment, Console& console) {
  if (arguments.empty()) return run_help(program, {}, environment, console);
  const std::string& first = arguments[0];
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (first == "--version") {
    console.out << program.name << ' ' << version() << '\n';
    return kDone;
  }
  if (first == "help" || first == "--help" || first == "-h") {
    return run_help(program, rest, environment, console);
  }
  if (first == "completion") return run_completion(program, rest, console);
  if (first.starts_with('-')) {
    return wrong_usage(console, program.name,
                       {"flag \"" + first.substr(0, first.find('=')) +
                        "\" comes before the command; flags follow it"},
                       program.name + " --help");
  }
  return run_words(program, arguments, environment, console);
}

int run_main(const Program& program, int argc, char** argv) {
  prepare_process();
  const Environment environment = process_environment();
  const std::size_t width = terminal_width();
  Console console{.out = std::cout,
                  .err = std::cerr,
                  .colour = width > 0 && shows_colours(environment),
                  .width = width};
  const int code = run(program, {argv + std::min(argc, 1), argv + argc}, environment, console);
  errno = 0;
  if (std::cout.flush()) return code;
  const int failure = errno;
  if (failure == EPIPE || has_lost_reader()) return kFailed;
  // A write that failed before leaves no reason behind.
  std::cerr << program.name << ": standard output: "
            << (failure == 0 ? "not all of it could be written" : std::strerror(failure)) << '\n';
  return kFailed;
}

}  // namespace gitops::cli
