#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::cli {

// Exit codes of every command-line program of the suite.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,         // the command or a check failed
  kWrongUsage = 2,     // unknown command, wrong flag or setting
  kNotKnown = 3,       // the result is not known; no failure was found
  kInterrupted = 130,  // SIGINT, as shells report it
  kTerminated = 143,   // SIGTERM
};

// Output of a command: results go to `out`, problems to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;  // `out` is a terminal that supports colours
};

using Environment = std::map<std::string, std::string>;

// One command of a program: `gitopsctl check`.
struct Command {
  std::string name;              // one word, lower case
  std::string summary;           // one line without a full stop, for the list of commands
  std::string description = {};  // for its --help, in lines of at most 100 columns
  // Adds its settings. Called once before run(), and for completion scripts and help.
  std::function<void(ConfigReader&)> bind = {};
  // Called when every setting is valid; returns the exit code.
  std::function<int(const Environment&, Console&)> run;
};

// A command-line program: the table of its commands. Every program also has `completion SHELL`,
// `help [COMMAND]`, --help and --version.
struct Program {
  std::string name;     // "gitopsctl"
  std::string summary;  // one line without a full stop
  std::vector<Command> commands;
};

// Finds the command, reads its settings (flag > environment > YAML file > default) and runs it.
// Unknown commands and flags give a message with the nearest known name and exit code 2.
int run(const Program& program, const std::vector<std::string>& arguments,
        const Environment& environment, Console& console);

// The body of main(): run() with the arguments, the environment and the standard streams of this
// process. Colours are used on terminals, unless NO_COLOR is set or TERM is "dumb". A failure to
// write standard output gives kFailed, with a message unless the reader closed the pipe.
int run_main(const Program& program, int argc, char** argv);

}  // namespace gitops::cli
