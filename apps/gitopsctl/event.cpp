#include "gitopsctl/event.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "gitopsctl/app.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

constexpr auto kWaitPeriod = std::chrono::seconds(1);

struct Settings {
  std::string runtime;
  std::int64_t limit = 50;
  bool follow = false;
};

Sheet sheet() {
  return {.schema = "gitopsctl/events/v1",
          .columns = {age_column("AGE", {"application", "status", "syncStartedAt"}),
                      text_column("RUNTIME", {"applicationMetadata", "runtime"}),
                      text_column("APPLICATION", {"applicationMetadata", "name"}),
                      text_column("ID", {"historyId"}),
                      state_column("RESULT", {"operationState", "phase"}),
                      text_column("AUTHOR", {"application", "status", "commitAuthor"}),
                      text_column("MESSAGE", {"application", "status", "commitMessage"})},
          .name = [](const Json& item) {
            return text_at(item, {"applicationMetadata", "name"}) + "/" +
                   text_at(item, {"historyId"});
          }};
}

bool is_document(const Look& look) {
  return look.form == Form::json || look.form == Form::yaml;
}

// A row that a stream has shown. It tells only the uids of what is gone.
struct ShownRow {
  std::string runtime;
  std::string text;
};
using ShownRows = std::map<std::string, ShownRow>;  // by topic and uid

std::string row_key(const std::string& topic, const std::string& uid) {
  return topic + " " + uid;
}

// Returns a line for each object that is gone. One of another runtime has none, when that is known.
std::string gone_lines(const Json& data, const Settings& settings, const Look& look,
                       ShownRows& shown) {
  std::string out;
  const auto topic = string_at(data, {"topic"});
  for (const Json& uid : at(data, {"uids"})) {
    const auto id = uid.is_string() ? uid.get<std::string>() : std::string();
    ShownRow row{.runtime = topic == "runtimes" ? cli::printable(id) : "", .text = {}};
    if (const auto found = shown.find(row_key(topic, id)); found != shown.end()) {
      row = std::move(found->second);
      shown.erase(found);
    }
    const bool is_foreign = !settings.runtime.empty() && !row.runtime.empty() &&
                            row.runtime != cli::printable(settings.runtime);
    if (is_foreign) continue;
    if (is_document(look)) {
      out += cli::printable(to_text(Json{{"topic", at(data, {"topic"})}, {"gone", uid}})) + '\n';
    } else {
      out += "Gone  " + (row.text.empty() ? cli::printable(id) : row.text) + '\n';
    }
  }
  return out;
}

// Returns the lines of an event of the stream.
std::string lines_of(const http::ServerSentEvent& event, const Settings& settings, const Look& look,
                     ShownRows& shown) {
  const Json data = parse_json_object(event.data);
  std::string out;
  for (const Json& row : at(data, {"rows"})) {
    const auto topic = string_at(row, {"topic"});
    const bool is_runtime = topic == "runtimes";
    const auto runtime = text_at(row, {is_runtime ? "name" : "runtime"});
    const auto name =
        is_runtime ? runtime
                   : runtime + "/" + text_at(row, {"namespace"}) + "/" + text_at(row, {"name"});
    shown.insert_or_assign(row_key(topic, string_at(row, {is_runtime ? "name" : "uid"})),
                           ShownRow{.runtime = runtime, .text = name});
    if (!settings.runtime.empty() && runtime != cli::printable(settings.runtime)) continue;
    if (is_document(look)) {
      out += cli::printable(to_text(row)) + '\n';
      continue;
    }
    const auto time = text_at(row, {is_runtime ? "seenAt" : "changedAt"});
    out += time + "  " + (is_runtime ? "Runtime" : text_at(row, {"kind"})) + "  " + name;
    if (!is_runtime) {
      out += "  " + state_cell(text_at(row, {"sync"})).text + "  " +
             state_cell(text_at(row, {"health"})).text;
    }
    out += '\n';
  }
  return out + gone_lines(data, settings, look, shown);
}

Task<Result<int>> follow(Call& call, const Settings& settings) {
  std::string last_id;
  ShownRows shown;
  bool was_open = false;
  bool has_failed = false;
  while (true) {
    bool is_ended = false;
    const auto followed = co_await call.server.follow(
        "/console/api/v1/stream?topics=index,runtimes",
        [&](const http::ServerSentEvent& event) {
          was_open = true;
          has_failed = false;
          if (event.event == "end") is_ended = true;
          // The first connection begins with one.
          if (event.event == "reset" && !last_id.empty()) {
            call.console.err << "The control plane could not tell all changes; some are missing "
                                "here: gitopsctl app list\n";
          }
          if (!event.id.empty()) last_id = event.id;
          if (event.event == "stale") {
            call.console.err
                << "The control plane cannot read its database; what follows is late\n";
          }
          call.console.out << lines_of(event, settings, call.look, shown) << std::flush;
          return !is_ended;
        },
        last_id);
    if (!followed && (!was_open || !is_away(followed.error()))) {
      co_return std::unexpected(followed.error());
    }
    if (!followed && !has_failed) {
      call.console.err << failure_text(followed.error()) << kGoesOn << std::flush;
      has_failed = true;
    }
    if (is_ended) {
      co_return std::unexpected(Error{
          .code = ErrorCode::unauthenticated, .message = "the key has ended", .http_status = 401});
    }
    // A server that stops ends its streams, and is away while it starts again.
    co_await sleep_for(std::chrono::seconds(1));
  }
}

struct RedeliverSettings : AppSettings {
  bool wait = false;
};

// Returns the highest sequence among the newest events of the Application; 0 when none has one.
Task<Result<std::int64_t>> newest_sequence(Server& server, const AppName& name) {
  const auto data = co_await server.ask(kNewestDeliveries.text, name.variables());
  if (!data) co_return std::unexpected(data.error());
  std::int64_t newest = 0;
  for (const Json& edge : at(*data, {"applicationJournal", "edges"})) {
    const auto text = text_at(edge, {"node", "sequence"});
    std::int64_t sequence = 0;
    const auto* const end = text.data() + text.size();
    const auto [read_to, error] = std::from_chars(text.data(), end, sequence);
    if (error == std::errc() && read_to == end) newest = std::max(newest, sequence);
  }
  co_return newest;
}

// Waits until the Application has a newer event, for the command's --timeout at most.
Task<Result<void>> wait_for_event(Call& call, const AppName& name, std::int64_t after) {
  call.console.err << name.text() << ": no newer event yet" << std::endl;
  while (true) {
    const auto newest = co_await newest_sequence(call.server, name);
    if (newest && *newest > after) co_return Result<void>();
    if (!newest && is_away(newest.error()) && !call.server.ends_within(kWaitPeriod)) {
      co_await sleep_for(kWaitPeriod);
      continue;
    }
    const bool is_over = newest || newest.error().code == ErrorCode::timeout;
    if (!is_over) co_return std::unexpected(newest.error());
    if (!newest || call.server.ends_within(kWaitPeriod)) {
      co_return std::unexpected(Error{.code = ErrorCode::timeout,
                                      .message = "no newer event of " + name.text() +
                                                 " has arrived in time; the request "
                                                 "goes on for 10 minutes from its beginning",
                                      .subcode = kNotReached});
    }
    co_await sleep_for(kWaitPeriod);
  }
}

Sheet request_sheet() {
  return {
      .schema = "gitopsctl/report-request/v1",
      .columns = {text_column("APPLICATION", {"application"}), state_column("STATE", {"state"}),
                  text_column("REQUESTED", {"requestedAt"}), text_column("EXPIRES", {"expiresAt"})},
      .name = [](const Json& item) { return text_at(item, {"application"}); }};
}

Task<Result<int>> redeliver(Call& call, const RedeliverSettings& settings) {
  const auto name = co_await find_app(call.server, settings.wanted());
  if (!name) co_return std::unexpected(name.error());
  const auto before =
      settings.wait ? co_await newest_sequence(call.server, *name) : Result<std::int64_t>(0);
  if (!before) co_return std::unexpected(before.error());
  const auto answer = co_await call.server.ask(kReportAgain.text, name->variables());
  if (!answer) {
    co_return tell_outcome(call, answer, "", "gitopsctl app get " + name->text());
  }
  Json request = at(*answer, {"reportApplicationAgain"});
  if (!request.is_object()) co_return fail(ErrorCode::protocol, "the answer has no request");
  request["application"] = name->runtime + "/" + name->ns + "/" + name->name;
  const bool is_text = call.look.form == Form::table;
  if (is_text) {
    call.console.out << "Done: " << name->text() << " is to be reported again\n"
                     << text_at(request, {"message"}) << std::endl;
  }
  if (settings.wait) {
    const auto arrived = co_await wait_for_event(call, *name, *before);
    if (!arrived) co_return std::unexpected(arrived.error());
    if (is_text) call.console.out << "Done: a newer event of " << name->text() << " has arrived\n";
  }
  if (!is_text) call.console.out << render_item(request_sheet(), request, call.look);
  co_return cli::kDone;
}

cli::Command redeliver_command() {
  const auto settings = std::make_shared<RedeliverSettings>();
  return noun_command(
      {.name = "event redeliver",
       .summary = "Have the events of an Application reported again",
       .description =
           "Asks the reporter of the runtime, which hears of it with its next contact: at most\n"
           "its heartbeat away (9 minutes unless it is set otherwise). Receivers then see the\n"
           "present state of the Application and of its resources once more, with new ids and\n"
           "higher sequences.\n"
           "With --wait it ends when a newer event has arrived, or with 1 after --timeout.\n\n" +
           std::string(kOutcomeHelp) +
           "Examples:\n"
           "  gitopsctl event redeliver shop\n"
           "  gitopsctl event redeliver shop --runtime prod --wait\n",
       .operands = {settings->operand()},
       .bind =
           [settings](ConfigReader& reader) {
             settings->add_to(reader);
             reader.add({.flag = "wait", .help = "Wait until a newer event has arrived"},
                        settings->wait);
           },
       .timeout = std::chrono::minutes(10),
       .work = [settings](Call& call) { return redeliver(call, *settings); }});
}

cli::Command list_events() {
  const auto settings = std::make_shared<Settings>();
  auto command = noun_command(
      {.name = "event list",
       .summary = "Show the latest deployments, or follow what changes",
       .description =
           "Without --follow: deployments, the newest first. With it: Applications and runtimes as "
           "they\n"
           "change, a line each, until Ctrl-C; -o json prints an object on each line.\n\n"
           "Examples:\n"
           "  gitopsctl event list\n"
           "  gitopsctl event list --follow --runtime prod\n",
       .bind =
           [settings](ConfigReader& reader) {
             add_runtime_flag(reader, settings->runtime, "Only those of this runtime");
             reader.add({.flag = "limit", .help = "Most deployments to show; 0 means all"},
                        settings->limit, 0, 1'000'000);
             reader.add({.flag = "follow", .help = "Go on with what changes", .letter = 'f'},
                        settings->follow);
           },
       .is_endless = [settings] { return settings->follow; },
       .work = [settings](Call& call) -> Task<Result<int>> {
         if (settings->follow) co_return co_await follow(call, *settings);
         const auto items = co_await read_slices(
             call.server, kReleases, "gitopsReleases",
             Json{{"filters", {{"runtime", settings->runtime}}}}, settings->limit);
         if (!items) co_return std::unexpected(items.error());
         call.console.out << render_list(sheet(), items->all, call.look);
         if (items->has_more) tell_more(call, *items);
         co_return cli::kDone;
       }});
  command.old_name = "events";
  return command;
}

}  // namespace

std::vector<cli::Command> event_commands() {
  return {list_events(), redeliver_command()};
}

}  // namespace gitops::ctl
