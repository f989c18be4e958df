#include "common/cli/command.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>

#include <unistd.h>

#include "common/cli/completion.hpp"
#include "common/core/process.hpp"
#include "common/core/text.hpp"

namespace gitops::cli {

namespace {

constexpr std::string_view kCompletionSummary = "Print the completion script of a shell";
constexpr std::string_view kHelpSummary = "Explain a command";
constexpr std::string_view kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not known, 130 interrupted.\n";

const Command* find_command(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.commands, name, &Command::name);
  return found == program.commands.end() ? nullptr : &*found;
}

std::string program_help(const Program& program) {
  std::vector<std::pair<std::string_view, std::string_view>> lines;
  for (const Command& command : program.commands) lines.emplace_back(command.name, command.summary);
  lines.emplace_back("completion", kCompletionSummary);
  lines.emplace_back("help", kHelpSummary);
  std::size_t widest = 0;
  for (const auto& line : lines) widest = std::max(widest, line.first.size());
  std::string out = program.name + ": " + program.summary + "\n\nUsage: " + program.name +
                    " COMMAND [flags]\n\nCommands:\n";
  for (const auto& [name, summary] : lines) {
    out += "  " + std::string(name) + std::string(widest + 2 - name.size(), ' ') +
           std::string(summary) + '\n';
  }
  out +=
      "\nFlags:\n  --help     Print this text, and end\n  --version  Print the version, and end\n";
  out += "\nFor more about a command: " + program.name + " help COMMAND\n";
  return out + std::string(kExitCodes);
}

std::string command_help(const Program& program, const Command& command,
                         const ConfigReader& reader) {
  std::string out = program.name + " " + command.name + ": " + command.summary +
                    "\n\nUsage: " + program.name + " " + command.name + " [flags]\n";
  if (!command.description.empty()) out += '\n' + command.description;
  return out + reader.flags_help() + std::string(kExitCodes);
}

std::string completion_help(const Program& program) {
  const std::string& name = program.name;
  return name + " completion: " + std::string(kCompletionSummary) + "\n\nUsage: " + name +
         " completion bash|zsh\n\nFor this session:  source <(" + name +
         " completion bash)\nFor every session: add that line to ~/.bashrc (zsh: to ~/.zshrc, "
         "after "
         "compinit)\n";
}

// Prints the mistakes and a hint to the usage.
int wrong_usage(Console& console, const std::string& who, const std::vector<std::string>& mistakes,
                const std::string& help) {
  for (const std::string& mistake : mistakes) console.err << who << ": " << mistake << '\n';
  console.err << "Run '" << help << "' for usage.\n";
  return kWrongUsage;
}

int unknown_command(const Program& program, const std::string& name, Console& console) {
  std::vector<std::string_view> known;
  for (const Command& command : program.commands) known.emplace_back(command.name);
  known.insert(known.end(), {"completion", "help"});
  const auto meant = nearest(name, known);
  return wrong_usage(console, program.name,
                     {"unknown command \"" + name + '"' +
                      (meant ? ", did you mean " + std::string(*meant) + "?" : "")},
                     program.name + " --help");
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
  if (arguments.size() == 1 && arguments[0] == "bash") {
    console.out << bash_completion(program);
    return kDone;
  }
  if (arguments.size() == 1 && arguments[0] == "zsh") {
    console.out << zsh_completion(program);
    return kDone;
  }
  return wrong_usage(console, program.name + " completion", {"expected one argument: bash or zsh"},
                     program.name + " completion --help");
}

int run_command(const Program& program, const Command& command,
                const std::vector<std::string>& arguments, const Environment& environment,
                Console& console) {
  const std::string full_name = program.name + " " + command.name;
  ConfigReader reader(full_name, command.summary, ProgramKind::command);
  if (command.bind) command.bind(reader);
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
  if (!outcome.mistakes.empty()) {
    return wrong_usage(console, full_name, outcome.mistakes, full_name + " --help");
  }
  return command.run(environment, console);
}

int run_help(const Program& program, const std::vector<std::string>& about,
             const Environment& environment, Console& console) {
  if (about.empty() || about[0] == "help" || about[0].starts_with("-")) {
    console.out << program_help(program);
    return kDone;
  }
  if (about[0] == "completion") return run_completion(program, {"--help"}, console);
  const Command* command = find_command(program, about[0]);
  if (command == nullptr) return unknown_command(program, about[0], console);
  return run_command(program, *command, {"--help"}, environment, console);
}

bool shows_colours(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  return ::isatty(STDOUT_FILENO) == 1 && value("NO_COLOR").empty() && !value("TERM").empty() &&
         value("TERM") != "dumb";
}

}  // namespace

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
  const Command* command = find_command(program, first);
  if (command == nullptr) return unknown_command(program, first, console);
  return run_command(program, *command, rest, environment, console);
}

int run_main(const Program& program, int argc, char** argv) {
  prepare_process();
  const Environment environment = process_environment();
  Console console{.out = std::cout, .err = std::cerr, .colour = shows_colours(environment)};
  const int code = run(program, {argv + std::min(argc, 1), argv + argc}, environment, console);
  errno = 0;
  if (std::cout.flush()) return code;
  if (errno != EPIPE) {
    std::cerr << program.name << ": standard output: " << std::strerror(errno) << '\n';
  }
  return kFailed;
}

}  // namespace gitops::cli
