#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/core/config_reader.hpp"

namespace gitops::cli {

// Exit codes of every command-line program of the suite.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,         // the command or a check failed
  kWrongUsage = 2,     // unknown command, wrong flag or setting
  kNotKnown = 3,       // the result is not known: a peer is not reachable, or its answer was lost
  kNotFound = 4,       // a peer has no object of that name
  kRefused = 5,        // a peer refused the credential or the request, and changed nothing
  kInterrupted = 130,  // SIGINT, as shells report it
  kTerminated = 143,   // SIGTERM
};

// Output of a command: results go to `out`, problems to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;    // `out` is a terminal that supports colours
  std::size_t width = 0;  // columns of the terminal; 0: `out` is none
};

using Environment = std::map<std::string, std::string>;

// A word that a command takes besides its flags: the name in `gitopsctl app get NAME`.
struct Operand {
  std::string name;     // in capitals, as in the usage line; see Program::names
  std::string help;     // one line without a full stop
  std::string* target;  // of the settings that bind() and run() share
  bool is_required = true;
};

// One command of a program: `gitopsctl check`, `gitopsctl app list`.
struct Command {
  std::string name;              // one or two words, lower case; the first of two is a group
  std::string summary;           // one line without a full stop, for the list of commands
  std::string description = {};  // for its --help, in lines of at most 100 columns
  std::vector<Operand> operands = {};
  // Adds its settings. Called once before run(), and for completion scripts and help.
  std::function<void(ConfigReader&)> bind = {};
  // Called when every setting is valid; returns the exit code.
  std::function<int(const Environment&, Console&)> run;
  // Its name in earlier versions, which still works and is not listed.
  std::string old_name = {};
};

// A command-line program: the table of its commands. Every program also has `completion SHELL`,
// `help [COMMAND]`, --help and --version.
struct Program {
  std::string name;     // "gitopsctl"
  std::string summary;  // one line without a full stop
  std::vector<Command> commands;
  // Explanations of groups, for the list of commands.
  std::map<std::string, std::string> groups = {};
  // Commands, with their flags, that print the names that an operand or the value of a flag may have: by the name of
  // the operand and the kind of the flag. Shells complete with what they print.
  std::map<std::string, std::string> names = {};
  // A flag, without dashes, that says whose names are meant: those commands get its value. Empty: there is none.
  std::string names_of = {};
};

// Returns the second words of the commands of a group, with their summaries. For an empty name: the commands of one
// word and the groups, in the order of the table, then `completion` and `help`.
std::vector<std::pair<std::string, std::string>> commands_of(const Program& program,
                                                             const std::string& group);

// Finds the command, reads its settings (flag > environment > YAML file > default) and runs it.
// Unknown commands and flags give a message with the nearest known name and exit code 2.
int run(const Program& program, const std::vector<std::string>& arguments,
        const Environment& environment, Console& console);

// The body of main(): run() with the arguments, the environment and the standard streams of this
// process. Colours are used on terminals, unless NO_COLOR is set or TERM is "dumb". A failure to
// write standard output gives kFailed, with a message unless the reader closed the pipe.
int run_main(const Program& program, int argc, char** argv);

}  // namespace gitops::cli
