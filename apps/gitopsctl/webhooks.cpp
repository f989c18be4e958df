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

namespace gitops::ctl {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxAnswer = 1024 * 1024;

struct Settings {
  std::string url = "http://localhost:8087";
  cli::OutputFormat output = cli::OutputFormat::text;
  cli::LoopOptions loop{.timeout = std::chrono::seconds(5)};
};

std::string url_mistake(const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return url.error().message;
  return url->scheme == "http" || url->scheme == "https" ? std::string() : "not http or https";
}

// Requests the router's page. Errors contain a remedy.
Task<Result<json>> ask(const Settings& settings, const cli::Environment& environment,
                       const cli::LoopContext& context) {
  const auto url = http::parse_url(settings.url).value();
  net::Resolver resolver(context.metrics);
  http::Client client(context.executor, resolver,
                      {.proxy = http::proxy_settings(environment),
                       .user_agent = "gitopsctl/" + std::string(version())});
  auto answer = co_await client.send(url, {.target = "/webhooks"}, context.deadline, kMaxAnswer);
  if (!answer) co_return fail(settings.url, std::move(answer.error()));
  auto page = parse_json_object(answer->body);
  if (answer->status != 200 || !page.contains("kept")) {
    co_return fail(ErrorCode::protocol,
                   settings.url + " is not the admin port of a request-router (it answered " +
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

}  // namespace

cli::Command webhooks_command() {
  const auto settings = std::make_shared<Settings>();
  return {
      .name = "webhooks",
      .summary = "Show the webhooks that a request-router keeps, and those that it lost",
      .description =
          "Asks the admin port of one pod, for example behind\n"
          "kubectl port-forward -n NAMESPACE deployment/internal-router 8087\n",
      .bind =
          [settings](ConfigReader& reader) {
            reader.group("Request-router");
            reader.add({"router-url", {"ROUTER_URL"}, "URL of its admin port"}, settings->url);
            reader.check({"router-url"}, [settings] { return url_mistake(settings->url); });
            settings->loop.add_to(reader);
            cli::add_output_row(reader, settings->output);
          },
      .run =
          [settings](const cli::Environment& environment, cli::Console& console) {
            return cli::run_on_loop(
                settings->loop, console, [&](const cli::LoopContext& context) -> Task<int> {
                  const auto page = co_await ask(*settings, environment, context);
                  if (!page) {
                    console.err << "gitopsctl: " << cli::printable(page.error().message) << '\n';
                    co_return cli::kNotKnown;
                  }
                  const bool as_json = settings->output == cli::OutputFormat::json;
                  console.out << (as_json
                                      ? page->dump(2, ' ', false, json::error_handler_t::replace) +
                                            '\n'
                                      : to_text(*page, console.colour));
                  co_return cli::kDone;
                });
          }};
}

}  // namespace gitops::ctl
