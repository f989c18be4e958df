#include "gitopsctl/log_lines.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"

namespace gitops::ctl {

namespace {

bool is_between(char c, char first, char last) {
  return c >= first && c <= last;
}

// Returns a line without the colours and movements of terminals (ECMA-48, 5.4), of which
// printable() would leave "[31m".
std::string without_colours(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i + 2;
    if (line.substr(i).starts_with("\x1b[")) {
      while (end < line.size() && is_between(line[end], '0', '?')) ++end;
      while (end < line.size() && is_between(line[end], ' ', '/')) ++end;
      if (end < line.size() && is_between(line[end], '@', '~')) {
        i = end + 1;
        continue;
      }
    }
    out += line[i++];
  }
  return out;
}

}  // namespace

void LogSettings::add_to(ConfigReader& reader, std::string_view filter_help) {
  reader.add({.flag = "follow", .help = "Go on with new lines, until Ctrl-C", .letter = 'f'},
             follow);
  reader.add({.flag = "pod", .help = "Only this pod"}, pod);
  reader.add({.flag = "container", .help = "Only this container", .letter = 'c'}, container);
  reader.add({.flag = "filter", .help = filter_help}, filter);
  reader.add({.flag = "tail", .help = "Last lines of each pod to begin with"}, tail, 0, 1'000'000);
}

Task<Result<int>> print_log(Call& call, const std::string& runtime,
                            std::vector<std::pair<std::string_view, std::string_view>> of,
                            const LogSettings& settings) {
  const std::string tail = std::to_string(settings.tail);
  of.insert(of.end(), {{"podName", settings.pod},
                       {"container", settings.container},
                       {"filter", settings.filter},
                       {"tailLines", tail},
                       {"follow", settings.follow ? "true" : ""}});
  bool is_partial = false;
  bool is_whole = false;
  const auto followed = co_await call.server.follow_runtime(
      runtime, "/api/applications/logs?" + http::query_string(of),
      [&](const http::ServerSentEvent& event) {
        if (event.event == "end") {
          is_whole = true;
          return false;
        }
        if (event.event == "trouble") {
          is_partial = true;
          call.console.err << cli::printable(event.data) << '\n';
          return true;
        }
        const Json line = parse_json_object(event.data);
        if (line.is_object()) {
          call.console.out << text_at(line, {"podName"}) << "  "
                           << cli::printable(without_colours(string_at(line, {"content"})))
                           << std::endl;
        }
        return true;
      });
  if (!followed) co_return std::unexpected(followed.error());
  if (!is_whole) co_return fail(ErrorCode::unavailable, "the stream ended before the logs did");
  co_return is_partial ? cli::kNotKnown : cli::kDone;
}

}  // namespace gitops::ctl
