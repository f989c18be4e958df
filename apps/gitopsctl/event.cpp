#include "gitopsctl/event.hpp"

#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

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

// Returns the lines of an event of the stream.
std::string lines_of(const http::ServerSentEvent& event, const Settings& settings,
                     const Look& look) {
  const Json data = parse_json_object(event.data);
  std::string out;
  for (const Json& row : at(data, {"rows"})) {
    const bool is_runtime = at(row, {"topic"}) == "runtimes";
    const auto runtime = text_at(row, {is_runtime ? "name" : "runtime"});
    if (!settings.runtime.empty() && runtime != cli::printable(settings.runtime)) continue;
    if (look.form == Form::json || look.form == Form::yaml) {
      out += cli::printable(to_text(row)) + '\n';
      continue;
    }
    const auto time = text_at(row, {is_runtime ? "seenAt" : "changedAt"});
    out += time + "  " + (is_runtime ? "Runtime" : text_at(row, {"kind"})) + "  " + runtime;
    if (!is_runtime) {
      out += "/" + text_at(row, {"namespace"}) + "/" + text_at(row, {"name"}) + "  " +
             state_cell(text_at(row, {"sync"})).text + "  " +
             state_cell(text_at(row, {"health"})).text;
    }
    out += '\n';
  }
  for (const Json& uid : at(data, {"uids"})) {
    out += "Gone  " + (uid.is_string() ? cli::printable(uid.get<std::string>()) : "") + '\n';
  }
  return out;
}

Task<Result<int>> follow(Call& call, const Settings& settings) {
  while (true) {
    bool is_ended = false;
    const auto followed = co_await call.server.follow(
        "/console/api/v1/stream?topics=index,runtimes", [&](const http::ServerSentEvent& event) {
          if (event.event == "end") is_ended = true;
          if (event.event == "stale") {
            call.console.err
                << "The control plane cannot read its database; what follows is late\n";
          }
          call.console.out << lines_of(event, settings, call.look) << std::flush;
          return !is_ended;
        });
    if (!followed) co_return std::unexpected(followed.error());
    if (is_ended) {
      co_return std::unexpected(Error{
          .code = ErrorCode::unauthenticated, .message = "the key has ended", .http_status = 401});
    }
    // A server that stops ends its streams.
    co_await sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

std::vector<cli::Command> event_commands() {
  const auto settings = std::make_shared<Settings>();
  return {noun_command(
      {.name = "events",
       .summary = "Show the latest deployments, or follow what changes",
       .description =
           "Without --follow: deployments, the newest first. With it: Applications and runtimes as "
           "they\n"
           "change, a line each, until Ctrl-C; -o json prints an object on each line.\n\n"
           "Examples:\n"
           "  gitopsctl events\n"
           "  gitopsctl events --follow --runtime prod\n",
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
         co_return cli::kDone;
       }})};
}

}  // namespace gitops::ctl
