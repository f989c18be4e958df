#include "gitopsctl/noun.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/core/text.hpp"
#include "gitopsctl/failure.hpp"

namespace gitops::ctl {

namespace {

constexpr std::int64_t kPage = 500;
constexpr auto kWatchPeriod = std::chrono::seconds(2);
constexpr auto kEndless = std::chrono::hours(24 * 365);

struct ListSettings {
  std::int64_t limit = 0;
  bool watch = false;
};

int run_noun(const NounCommand& command, const Common& common, const cli::Environment& environment,
             cli::Console& console) {
  auto context = find_context(common.server, environment);
  if (!context) {
    console.err << failure_text(context.error());
    return exit_code_of(context.error());
  }
  cli::LoopOptions loop = common.loop;
  if (command.is_endless()) loop.timeout = kEndless;
  return cli::run_on_loop(loop, console, [&](const cli::LoopContext& at) -> Task<int> {
    Server server(at, environment, *context, common.loop.timeout);
    Call call{.server = server,
              .console = console,
              .loop = at,
              .environment = environment,
              .look = {.form = common.form,
                       .colour = console.colour,
                       .width = console.width,
                       .now = wall_now()}};
    const auto code = co_await command.work(call);
    if (code) co_return *code;
    console.out.flush();
    console.err << failure_text(code.error());
    co_return exit_code_of(code.error());
  });
}

// Prints what has changed between two readings of a list, each as it would be in the list.
void print_changes(const Sheet& sheet, const std::vector<Json>& before,
                   const std::vector<Json>& after, Call& call) {
  // Names of keys and of open invitations may be there twice.
  std::multimap<std::string, const Json*> known;
  for (const Json& item : before) known.emplace(sheet.name(item), &item);
  call.look.now = wall_now();
  const bool is_table = call.look.form == Form::table || call.look.form == Form::wide;
  const auto lines = is_table ? table_lines(sheet, after, call.look) : std::vector<std::string>();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto [first, last] = known.equal_range(sheet.name(after[i]));
    const auto is_same = [&](const auto& one) { return *one.second == after[i]; };
    if (std::any_of(first, last, is_same)) continue;
    call.console.out << (is_table ? lines[i + 1] : render_item(sheet, after[i], call.look));
  }
  call.console.out.flush();
}

// Names what a list has no longer: it was deleted, or a filter does not match it any more.
void tell_gone(const Sheet& sheet, const std::vector<Json>& before, const std::vector<Json>& after,
               Call& call) {
  std::multiset<std::string> names;
  for (const Json& item : after) names.insert(sheet.name(item));
  for (const Json& item : before) {
    const auto name = sheet.name(item);
    if (const auto found = names.find(name); found != names.end()) {
      names.erase(found);
    } else {
      call.console.err << cli::printable(name) << " is not in the list any more\n";
    }
  }
  call.console.err.flush();
}

Task<Result<int>> watch(Call& call, const Sheet& sheet, const Fetch& fetch, std::int64_t limit,
                        std::vector<Json> shown) {
  bool has_failed = false;
  while (true) {
    co_await sleep_for(kWatchPeriod);
    auto items = co_await fetch(call.server, limit);
    if (!items && !is_away(items.error())) co_return std::unexpected(items.error());
    if (!items) {
      if (!has_failed) call.console.err << failure_text(items.error()) << kGoesOn << std::flush;
      has_failed = true;
      continue;
    }
    has_failed = false;
    print_changes(sheet, shown, items->all, call);
    // A list that is cut loses its last one with each that comes.
    if (limit == 0) tell_gone(sheet, shown, items->all, call);
    shown = std::move(items->all);
  }
}

}  // namespace

cli::Command noun_command(NounCommand command) {
  const auto common = std::make_shared<Common>();
  common->loop.timeout = command.timeout;
  cli::Command made{.name = command.name,
                    .summary = command.summary,
                    .description = command.description,
                    .operands = command.operands,
                    .run = {}};
  const auto shared = std::make_shared<NounCommand>(std::move(command));
  made.bind = [shared, common](ConfigReader& reader) {
    if (shared->bind) {
      reader.group("Command");
      shared->bind(reader);
    }
    if (shared->has_form) {
      reader.group("Output");
      add_form(reader, common->form);
    }
    common->server.add_to(reader);
    common->loop.add_to(reader);
  };
  made.run = [shared, common](const cli::Environment& environment, cli::Console& console) {
    return run_noun(*shared, *common, environment, console);
  };
  return made;
}

Task<Result<Items>> read_slices(Server& server, Document document, std::string member,
                                Json variables, std::int64_t limit) {
  Items items;
  std::string after;
  while (true) {
    const auto got = static_cast<std::int64_t>(items.all.size());
    variables["first"] = limit == 0 ? kPage : std::min(kPage, limit - got);
    variables["after"] = after;
    const auto data = co_await server.ask(document.text, variables);
    if (!data) co_return std::unexpected(data.error());
    const Json& slice = value_at(*data, {member});
    const Json& edges = value_at(slice, {"edges"});
    if (!edges.is_array()) co_return fail(ErrorCode::protocol, "the answer has no " + member);
    for (const Json& edge : edges) items.all.push_back(value_at(edge, {"node"}));
    if (value_at(slice, {"pageInfo", "hasNextPage"}) != true) co_return items;
    if (limit > 0 && static_cast<std::int64_t>(items.all.size()) >= limit) {
      items.has_more = true;
      co_return items;
    }
    auto next = string_at(slice, {"pageInfo", "endCursor"});
    if (next.empty() || next == after) {
      co_return fail(ErrorCode::protocol, "the list of " + member + " does not come to its end");
    }
    after = std::move(next);
  }
}

Result<Items> whole_list(const Json& list, std::int64_t limit) {
  if (!list.is_array()) return fail(ErrorCode::protocol, "the answer is no list");
  const auto most = limit == 0 ? list.size() : static_cast<std::size_t>(limit);
  Items items{.has_more = list.size() > most};
  for (const Json& item : list) {
    if (items.all.size() < most) items.all.push_back(item);
  }
  return items;
}

cli::Command list_command(NounCommand command, Sheet sheet, Fetch fetch, Remark remark) {
  const auto settings = std::make_shared<ListSettings>();
  command.bind = [settings, own = std::move(command.bind)](ConfigReader& reader) {
    if (own) own(reader);
    reader.add({.flag = "limit", .help = "Most objects to list; 0 means all"}, settings->limit, 0,
               1'000'000);
    reader.add({.flag = "watch", .help = "Print what changes, until Ctrl-C", .letter = 'w'},
               settings->watch);
  };
  command.is_endless = [settings] { return settings->watch; };
  command.work = [settings, sheet = std::move(sheet), fetch = std::move(fetch),
                  remark = std::move(remark)](Call& call) -> Task<Result<int>> {
    auto items = co_await fetch(call.server, settings->limit);
    if (!items) co_return std::unexpected(items.error());
    const bool is_table = call.look.form == Form::table || call.look.form == Form::wide;
    if (items->all.empty() && is_table) {
      call.console.err << "No resources found\n";
    } else {
      call.console.out << render_list(sheet, items->all, call.look);
    }
    if (items->has_more) tell_more(call, *items);
    if (remark && is_table && !items->all.empty()) co_await remark(call, items->all);
    if (!settings->watch) co_return cli::kDone;
    call.console.out.flush();
    co_return co_await watch(call, sheet, fetch, settings->limit, std::move(items->all));
  };
  return noun_command(std::move(command));
}

void tell_more(Call& call, const Items& items) {
  call.console.err << items.all.size()
                   << " are shown, and there are more; with --limit 0 all are listed\n";
}

void add_runtime_flag(ConfigReader& reader, std::string& target, std::string_view help) {
  reader.add({.flag = "runtime", .help = help}, "RUNTIME", "", [&target](const std::string& text) {
    target = text;
    return std::string();
  });
}

std::unexpected<Error> not_found(std::string_view kind, std::string_view name) {
  return std::unexpected(
      Error{.code = ErrorCode::not_found,
            .message = std::string(kind) + " \"" + cli::printable(name) + "\" not found"});
}

std::unexpected<Error> usage_error(std::string message) {
  return std::unexpected(
      Error{.code = ErrorCode::invalid_argument, .message = std::move(message), .subcode = kUsage});
}

void add_yes(ConfigReader& reader, bool& yes) {
  reader.add({.flag = "yes", .help = "Do it; without, nothing is done", .letter = 'y'}, yes);
}

std::unexpected<Error> needs_yes(const std::string& effect) {
  return usage_error(effect + "; add --yes to do it");
}

Result<Json> one_of(const std::vector<Json>& items, const Sheet& sheet, std::string_view kind,
                    const std::string& text) {
  std::vector<const Json*> found;
  std::vector<std::string> names;
  for (const Json& item : items) {
    const auto name = sheet.name(item);
    if (name != text && !name.ends_with("/" + text)) continue;
    found.push_back(&item);
    names.push_back(name);
  }
  if (text.empty() || found.empty()) return not_found(kind, text);
  if (found.size() == 1) return Json(*found[0]);
  return usage_error("several are called " + text + ": " + join(names, ", "));
}

int tell_outcome(Call& call, const Result<Json>& answer, const std::string& done,
                 const std::string& look) {
  if (answer) {
    call.console.out << "Done: " << cli::printable(done) << '\n';
    return cli::kDone;
  }
  call.console.err << outcome_text(answer.error(), cli::printable(look));
  const int code = exit_code_of(answer.error());
  // A request that was one too many was refused like any other.
  const bool is_refused = outcome_of(answer.error()) == Outcome::refused;
  return is_refused && code == cli::kNotKnown ? int{cli::kRefused} : code;
}

}  // namespace gitops::ctl
