#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/cli/command.hpp"
#include "common/cli/loop_runner.hpp"
#include "gitopsctl/documents.hpp"
#include "gitopsctl/server.hpp"
#include "gitopsctl/sheet.hpp"

// The frame of commands that ask a control plane.
namespace gitops::ctl {

// Settings of all of them.
struct Common {
  ServerSettings server;
  cli::LoopOptions loop;
  Form form = Form::table;
};

// The arguments of the work of a command. They outlive the work.
struct Call {
  Server& server;
  cli::Console& console;
  const cli::LoopContext& loop;
  const cli::Environment& environment;
  Look look;
};
// Returns the exit code. An error is told on standard error by the frame.
using Work = std::function<Task<Result<int>>(Call&)>;

struct NounCommand {
  std::string name;  // "app list"
  std::string summary;
  std::string description;  // with examples
  std::vector<cli::Operand> operands = {};
  std::function<void(ConfigReader&)> bind = {};  // of its own settings
  bool has_form = true;                          // it has -o
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  // Whether this run goes on until it is interrupted; --timeout is for each request then.
  std::function<bool()> is_endless = [] { return false; };
  Work work = {};
};
cli::Command noun_command(NounCommand command);

struct Items {
  std::vector<Json> all = {};
  bool has_more = false;
};
// Reads a list. `limit` 0: all of it.
using Fetch = std::function<Task<Result<Items>>(Server&, std::int64_t limit)>;
// Reads the pages of a slice, which is the member `member` of the document's data.
Task<Result<Items>> read_slices(Server& server, Document document, std::string member,
                                Json variables, std::int64_t limit);

// A list that came whole, cut to the limit. `protocol` when it is none.
Result<Items> whole_list(const Json& list, std::int64_t limit);

// Says on standard error, once, what is to be known of the items of a table.
using Remark = std::function<Task<>(Call&, const std::vector<Json>& items)>;
// A command that prints a list, with --limit and --watch. `command.work` and `is_endless` are filled here.
cli::Command list_command(NounCommand command, Sheet sheet, Fetch fetch, Remark remark = {});

// Said on standard error by commands that go on until Ctrl-C, behind the failure.
inline constexpr const char* kGoesOn = "The server is asked again until it answers.\n";

// Says on standard error that a list was cut.
void tell_more(Call& call, const Items& items);

// Adds a flag for the name of a runtime, which shells complete.
void add_runtime_flag(ConfigReader& reader, std::string& target, std::string_view help);

// Returns `kind "name" not found`.
std::unexpected<Error> not_found(std::string_view kind, std::string_view name);
// Returns the error of a mistake in what the user wrote.
std::unexpected<Error> usage_error(std::string message);

// The end of a request to change something, for the description of a command.
inline constexpr const char* kOutcomeHelp =
    "Ends with Done (0), Refused (5, or 4 when it is not there): nothing was changed, Failed (1), "
    "or\n"
    "Unknown (3): the answer was lost, so it may have been done.\n\n";
// Adds the flag --yes of commands whose effect cannot be undone.
void add_yes(ConfigReader& reader, bool& yes);
// Returns the error of such a command without --yes; `effect` is "this deletes team a".
std::unexpected<Error> needs_yes(const std::string& effect);
// Finds the one item whose name parts end with those of `text`; -o name of a list prints such names. Errors: not_found;
// kUsage, with their names, for several.
Result<Json> one_of(const std::vector<Json>& items, const Sheet& sheet, std::string_view kind,
                    const std::string& text);

// Runs a request that changes something: prints `done`, or tells the outcome on standard error. `look` is the command
// that shows the state.
int tell_outcome(Call& call, const Result<Json>& answer, const std::string& done,
                 const std::string& look);

}  // namespace gitops::ctl
