#include "gitopsctl/status.hpp"

#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

constexpr std::size_t kMaxNamed = 10;

// Applications of a runtime, counted.
struct Counts {
  std::size_t all = 0;
  std::size_t out_of_sync = 0;
  std::size_t running = 0;
  std::map<std::string, std::size_t> health = {};
};

bool is_stale(const Json& app) {
  return text_at(app, {"presence"}) == "STALE";
}

bool is_bad(const Json& app) {
  const auto health = text_at(app, {"healthStatus"});
  return !is_stale(app) && (health == "DEGRADED" || health == "MISSING");
}

std::map<std::string, Counts> count(const std::vector<Json>& apps) {
  std::map<std::string, Counts> counts;
  for (const Json& app : apps) {
    Counts& of = counts[text_at(app, {"metadata", "runtime"})];
    ++of.all;
    // The state of one that is not reported any more is of then.
    if (is_stale(app)) continue;
    ++of.health[text_at(app, {"healthStatus"})];
    if (text_at(app, {"syncStatus"}) == "OUT_OF_SYNC") ++of.out_of_sync;
    if (text_at(app, {"operationState", "phase"}) == "Running") ++of.running;
  }
  return counts;
}

// A row of the table: the members that the columns show.
Json row_of(const Json& runtime, const Counts& counts) {
  const auto health = [&](const char* state) {
    const auto found = counts.health.find(state);
    return found == counts.health.end() ? std::size_t{0} : found->second;
  };
  return {{"name", text_at(runtime, {"metadata", "name"})},
          {"status", at(runtime, {"available"}) == true ? "ONLINE" : "OFFLINE"},
          {"version", at(runtime, {"runtimeVersion"})},
          {"seen", at(runtime, {"lastUpdated"})},
          {"applications", counts.all},
          {"healthy", health("HEALTHY")},
          {"degraded", health("DEGRADED") + health("MISSING")},
          {"progressing", health("PROGRESSING")},
          {"outOfSync", counts.out_of_sync},
          {"running", counts.running},
          {"errors", at(runtime, {"errors"}).size()}};
}

Sheet sheet() {
  return {.schema = "gitopsctl/status/v1",
          .columns = {text_column("RUNTIME", {"name"}), state_column("STATUS", {"status"}),
                      age_column("SEEN", {"seen"}), text_column("APPS", {"applications"}),
                      text_column("HEALTHY", {"healthy"}), text_column("DEGRADED", {"degraded"}),
                      text_column("PROGRESSING", {"progressing"}),
                      text_column("OUTOFSYNC", {"outOfSync"}), text_column("ERRORS", {"errors"}),
                      text_column("RUNNING", {"running"}, true),
                      text_column("VERSION", {"version"}, true)},
          .name = [](const Json& row) { return text_at(row, {"name"}); }};
}

std::string bad_ones(const std::vector<Json>& apps, const Look& look) {
  cli::Table table;
  std::size_t bad = 0;
  for (const Json& app : apps) {
    if (!is_bad(app) || ++bad > kMaxNamed) continue;
    table.add(
        {state_cell(text_at(app, {"healthStatus"})),
         {text_at(app, {"metadata", "runtime"}) + "/" + text_at(app, {"metadata", "namespace"}) +
          "/" + text_at(app, {"metadata", "name"})}});
  }
  if (bad == 0) return {};
  std::string out = '\n' + table.text(0, look.colour, look.width);
  if (bad > kMaxNamed) {
    out += "and " + std::to_string(bad - kMaxNamed) +
           " more: gitopsctl app list --health Degraded,Missing\n";
  }
  return out;
}

Task<Result<int>> show(Call& call) {
  const auto runtimes = co_await read_slices(call.server, kRuntimes, "runtimes", Json::object(), 0);
  if (!runtimes) co_return std::unexpected(runtimes.error());
  const auto apps =
      co_await read_slices(call.server, kApplications, "applications", Json::object(), 0);
  if (!apps) co_return std::unexpected(apps.error());
  auto counts = count(apps->all);
  std::vector<Json> rows;
  for (const Json& runtime : runtimes->all) {
    rows.push_back(row_of(runtime, counts[text_at(runtime, {"metadata", "name"})]));
  }
  call.console.out << render_list(sheet(), rows, call.look);
  if (call.look.form == Form::table || call.look.form == Form::wide) {
    call.console.out << bad_ones(apps->all, call.look);
  }
  co_return cli::kDone;
}

}  // namespace

std::vector<cli::Command> status_commands() {
  return {
      noun_command({.name = "status",
                    .summary = "Show the runtimes and what is wrong with their Applications",
                    .description = "Examples:\n  gitopsctl status\n  gitopsctl status -o json\n",
                    .work = show})};
}

}  // namespace gitops::ctl
