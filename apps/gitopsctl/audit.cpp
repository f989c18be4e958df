#include "gitopsctl/audit.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/json_value.hpp"
#include "common/http/url.hpp"
#include "gitopsctl/noun.hpp"

namespace gitops::ctl {

namespace {

constexpr std::int64_t kPage = 1'000;

struct Settings {
  std::string action;
  std::string result;
  std::string since;
  std::string until;
};

Task<Result<Items>> read_audit(Server& server, const Settings& settings, std::int64_t limit) {
  Items items;
  std::string before;
  while (true) {
    const auto got = static_cast<std::int64_t>(items.all.size());
    // One more than is shown, to know whether there is more.
    const auto wanted = limit == 0 ? kPage : std::min(kPage, limit - got + 1);
    const auto page = co_await server.call(
        "GET", "/console/api/v1/audit?" + http::query_string({{"limit", std::to_string(wanted)},
                                                              {"before", before},
                                                              {"action", settings.action},
                                                              {"result", settings.result},
                                                              {"from", settings.since},
                                                              {"until", settings.until}}));
    if (!page) co_return std::unexpected(page.error());
    const Json& entries = value_at(*page, {"entries"});
    if (!entries.is_array()) co_return fail(ErrorCode::protocol, "the answer has no entries");
    items.all.insert(items.all.end(), entries.begin(), entries.end());
    if (limit > 0 && static_cast<std::int64_t>(items.all.size()) > limit) {
      items.all.resize(static_cast<std::size_t>(limit));
      items.has_more = true;
      co_return items;
    }
    if (static_cast<std::int64_t>(entries.size()) < wanted) co_return items;
    auto next = value_at(entries.back(), {"no"}).dump();
    if (next == before)
      co_return fail(ErrorCode::protocol, "the audit log does not come to its end");
    before = std::move(next);
  }
}

}  // namespace

std::vector<cli::Command> audit_commands() {
  const auto settings = std::make_shared<Settings>();
  const Sheet sheet{
      .schema = "gitopsctl/audit/v1",
      .columns = {age_column("AGE", {"time"}), text_column("CALLER", {"caller"}),
                  text_column("ACTION", {"action"}), text_column("TARGET", {"target"}),
                  state_column("RESULT", {"result"}), text_column("NO", {"no"}, true),
                  text_column("ADDRESS", {"address"}, true),
                  text_column("DETAIL", {"detail"}, true)},
      .name = [](const Json& item) { return text_at(item, {"no"}); }};
  return {list_command(
      {.name = "audit",
       .summary = "List who has changed what, the newest first (administrators)",
       .description = "Examples:\n"
                      "  gitopsctl audit --limit 20\n"
                      "  gitopsctl audit --result refused --since 2026-03-01T00:00:00Z -o json\n",
       .bind =
           [settings](ConfigReader& reader) {
             reader.add({.flag = "action", .help = "Only this action"}, settings->action);
             reader.add({.flag = "result", .help = "Only done, refused, failed or \"not known\""},
                        settings->result);
             reader.add({.flag = "since", .help = "Only from this time on (RFC 3339)"},
                        settings->since);
             reader.add({.flag = "until", .help = "Only before this time (RFC 3339)"},
                        settings->until);
           }},
      sheet, [settings](Server& server, std::int64_t limit) {
        return read_audit(server, *settings, limit);
      })};
}

}  // namespace gitops::ctl
