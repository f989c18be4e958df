#include "gitopsctl/webhooks.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/json_value.hpp"
#include "common/core/process.hpp"
#include "common/http/client.hpp"
#include "common/http/proxy_settings.hpp"
#include "common/http/url.hpp"
#include "common/net/resolve.hpp"
#include "gitopsctl/sheet.hpp"

namespace gitops::ctl {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxAnswer = 1024 * 1024;
constexpr std::string_view kAdminPortHelp =
    "Asks the admin port of one pod, for example behind\n"
    "kubectl port-forward -n NAMESPACE deployment/internal-router 8087\n\n";

// Settings of commands that ask the admin port of a request-router.
struct RouterSettings {
  std::string url = "http://localhost:8087";
  cli::OutputFormat output = cli::OutputFormat::text;
  cli::LoopOptions loop{.timeout = std::chrono::seconds(5)};

  void add_to(ConfigReader& reader);
};

std::string url_mistake(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  return url->scheme == "http" || url->scheme == "https" ? std::string() : "not http or https";
}

void RouterSettings::add_to(ConfigReader& reader) {
  reader.group("Request-router");
  reader.add({"router-url", {"ROUTER_URL"}, "URL of its admin port"}, url);
  reader.check({"router-url"}, [this] { return url_mistake(url); });
  loop.add_to(reader);
  cli::add_output_row(reader, output);
}

// Sends a request to the router, and returns its page, which has the member `member`. Errors contain a remedy.
Task<Result<json>> ask(const RouterSettings& settings, const cli::Environment& environment,
                       const cli::LoopContext& context, http::Request request,
                       std::string_view member) {
  const auto url = http::parse_url(settings.url).value();
  net::Resolver resolver(context.metrics);
  http::Client client(context.executor, resolver,
                      {.proxy = http::proxy_settings(environment),
                       .user_agent = "gitopsctl/" + std::string(version())});
  auto answer = co_await client.send(url, std::move(request), context.deadline, kMaxAnswer);
  if (!answer) co_return fail(settings.url, std::move(answer.error()));
  auto page = parse_json_object(answer->body);
  if (answer->status != 200 || !page.contains(member)) {
    co_return fail(ErrorCode::protocol, settings.url +
                                            " is not the admin port of a request-router that "
                                            "knows this request (it answered " +
                                            std::to_string(answer->status) + ")");
  }
  co_return page;
}

std::string number_at(const json& object, std::string_view name) {
  return std::to_string(integer_at(object, {name}).value_or(0));
}

std::string text_at(const json& object, std::string_view name) {
  return cli::printable(string_at(object, {name}));
}

std::string source_of(const json& object) {
  return text_at(object, "namespace") + "/" + text_at(object, "event_source");
}

std::string to_text(const json& page, bool colour) {
  std::string text = number_at(page, "kept") + " webhooks are kept, " + number_at(page, "bytes") +
                     " bytes, the oldest for " + number_at(page, "oldest_seconds") + " s\n";
  cli::Table kept;
  for (const auto& source : value_at(page, {"sources"})) {
    const bool reachable = value_at(source, {"reachable"}) == true;
    kept.add(
        {{source_of(source)},
         {number_at(source, "kept") + " kept"},
         {reachable ? "reachable" : "not reachable", reachable ? cli::Tone::good : cli::Tone::bad},
         {text_at(source, "last_error")}});
  }
  text += kept.text(2, colour);
  const auto& all_lost = value_at(page, {"lost"});
  if (all_lost.empty()) return text;
  text += "\nLost lately\n";
  cli::Table lost;
  for (const auto& webhook : all_lost) {
    lost.add({{text_at(webhook, "time")},
              {source_of(webhook)},
              {text_at(webhook, "reason"), cli::Tone::bad},
              {text_at(webhook, "request_id")}});
  }
  return text + lost.text(2, colour);
}

// Prints a page, or why there is none.
int print(const Result<json>& page, const RouterSettings& settings, cli::Console& console,
          const std::function<std::string(const json&)>& text) {
  if (!page) {
    console.err << "gitopsctl: " << cli::printable(page.error().message) << '\n';
    return cli::kNotKnown;
  }
  const bool as_json = settings.output == cli::OutputFormat::json;
  console.out << (as_json ? render_document(*page, Form::json) : text(*page));
  return cli::kDone;
}

cli::Command list() {
  const auto settings = std::make_shared<RouterSettings>();
  return {.name = "webhook list",
          .summary = "Show the webhooks that a request-router keeps, and those that it lost",
          .description = std::string(kAdminPortHelp) +
                         "Examples:\n"
                         "  gitopsctl webhook list\n"
                         "  gitopsctl webhook list -o json\n",
          .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
          .run =
              [settings](const cli::Environment& environment, cli::Console& console) {
                return cli::run_on_loop(
                    settings->loop, console, [&](const cli::LoopContext& context) -> Task<int> {
                      const auto page = co_await ask(*settings, environment, context,
                                                     {.target = "/webhooks"}, "kept");
                      co_return print(page, *settings, console, [&](const json& read) {
                        return to_text(read, console.colour);
                      });
                    });
              },
          .old_name = "webhooks"};
}

struct RedeliverSettings : RouterSettings {
  std::string event_source;
};

std::string_view attempt_text(std::string_view attempt) {
  if (attempt == "now") return "tried now";
  if (attempt == "too_soon") return "not again: tried less than a second ago";
  return "no webhook waits for a later attempt";
}

std::string redelivery_text(const json& page, bool colour) {
  const auto& sources = value_at(page, {"sources"});
  if (sources.empty()) return "No webhooks are kept\n";
  cli::Table table;
  for (const auto& source : sources) {
    table.add({{source_of(source)},
               {number_at(source, "kept") + " kept"},
               {std::string(attempt_text(string_at(source, {"attempt"})))}});
  }
  return table.text(0, colour);
}

Task<int> redeliver_webhooks(const RedeliverSettings& settings, const cli::Environment& environment,
                             cli::Console& console, const cli::LoopContext& context) {
  std::string target = "/webhooks/redeliver";
  if (!settings.event_source.empty()) {
    target += "?" + http::query_string({{"event_source", settings.event_source}});
  }
  const auto page = co_await ask(settings, environment, context,
                                 {.method = "POST", .target = std::move(target)}, "sources");
  if (page && !settings.event_source.empty() && value_at(*page, {"sources"}).empty()) {
    console.err << "gitopsctl: no webhooks are kept for event source "
                << cli::printable(settings.event_source) << '\n';
    co_return cli::kNotFound;
  }
  co_return print(page, settings, console,
                  [&](const json& read) { return redelivery_text(read, console.colour); });
}

cli::Command redeliver() {
  const auto settings = std::make_shared<RedeliverSettings>();
  return {
      .name = "webhook redeliver",
      .summary = "Let a request-router try now what it keeps",
      .description =
          std::string(kAdminPortHelp) +
          "One webhook of each event source is tried, at most once a second; the others follow\n"
          "when it is delivered. gitopsctl webhook list shows the result.\n\n"
          "Examples:\n"
          "  gitopsctl webhook redeliver\n"
          "  gitopsctl webhook redeliver argo/github\n",
      .operands = {{.name = "EVENT_SOURCE",
                    .help = "NAME or NAMESPACE/NAME; default: all",
                    .target = &settings->event_source,
                    .is_required = false}},
      .bind = [settings](ConfigReader& reader) { settings->add_to(reader); },
      .run =
          [settings](const cli::Environment& environment, cli::Console& console) {
            return cli::run_on_loop(settings->loop, console, [&](const cli::LoopContext& context) {
              return redeliver_webhooks(*settings, environment, console, context);
            });
          }};
}

}  // namespace

std::vector<cli::Command> webhook_commands() {
  return {list(), redeliver()};
}

}  // namespace gitops::ctl
