#include "plane.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "support/run_on.hpp"

namespace gitops::demo {
namespace {

using Json = nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr auto kAnswerLimit = std::chrono::seconds(10);
constexpr auto kQuiet = std::chrono::milliseconds(200);

// The flags of a control plane with tunnels, whose tunnel servers have the token of `token_file`.
std::vector<std::string> flags(const std::string& token_file) {
  return {"--first-start.account=acme", std::string("--first-start.administrator=") + Plane::kUser,
          "--first-start.email=dana@example.test", "--tunnel.domain=example.test",
          "--tunnel.plugin-token-file=" + token_file};
}

// The rest of the line behind `label`.
std::string behind(const std::string& text, const std::string& label) {
  const auto at = text.find(label);
  if (at == std::string::npos) throw Failure("the control plane did not print \"" + label + "\"");
  const auto begin = at + label.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::size_t count(const std::string& metrics, const std::string& sample) {
  const auto name = "\ngitops_control_plane_" + sample + " ";
  const auto at = metrics.find(name);
  if (at == std::string::npos) return 0;
  return static_cast<std::size_t>(std::strtod(metrics.c_str() + at + name.size(), nullptr));
}

}  // namespace

Plane::Plane(const Executor& executor, asio::thread_pool& pool, std::string database)
    : pool_(pool),
      resolver_(metrics_),
      client_(executor, resolver_, {}),
      folder_("gitops-demo-plane"),
      program_(std::move(database), flags((folder_ / "plugin-token").string())) {
  test::write_file(folder_ / "plugin-token", test::random_hex(32));
  program_.use_port(test::free_port());
}

Task<> Plane::start() {
  co_await start_again();
  password_ = behind(program_.log(), "Password (shown once): ");
  co_await log_in();
  const auto me = co_await ask("{ me { activeAccount { id } } }");
  account_id_ = me.at("/activeAccount/id"_json_pointer);
  // Without the console it is a plain page, which has no script.
  const auto page =
      co_await call(program_.port(), {.target = "/", .headers = {{"Accept", "text/html"}}});
  has_console_ = page.status == 200 && page.body.contains("<script");
}

Task<> Plane::log_in() {
  const auto login = co_await call(program_.port(),
                                   {.method = "POST",
                                    .target = "/console/api/v1/login",
                                    .headers = {{"Content-Type", "application/json"}},
                                    .body = Json{{"name", kUser}, {"password", password_}}.dump()});
  const auto cookie = login.headers.find("Set-Cookie");
  if (login.status >= 300 || !cookie) {
    throw Failure("the first administrator cannot log in: " + login.body);
  }
  const auto session = std::string(cookie->substr(0, cookie->find(';')));
  const auto key = co_await call(
      program_.port(), {.method = "POST",
                        .target = "/api/auth/key",
                        .headers = {{"Content-Type", "application/json"}, {"Cookie", session}},
                        .body = R"({"name":"demo"})"});
  if (key.status >= 300) throw Failure("no API key was made: " + key.body);
  key_ = key.body;
}

void Plane::kill() {
  client_.close_idle();
  program_.kill();
}

Task<> Plane::start_again() {
  program_.launch();
  co_await test::run_on(pool_, [this] { program_.wait_until_serving(); });
  is_started_ = true;
}

Task<http::Response> Plane::call(std::uint16_t port, http::Request request) {
  const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = port};
  auto answer = co_await client_.send(url, std::move(request), deadline_after(kAnswerLimit));
  if (!answer) throw Failure("the control plane does not answer: " + answer.error().message);
  co_return std::move(*answer);
}

Task<Json> Plane::ask(std::string document, Json variables) {
  const auto answer = co_await call(
      program_.port(),
      {.method = "POST",
       .target = "/2.0/api/graphql",
       .headers = {{"Content-Type", "application/json"}, {"Authorization", key_}},
       .body = Json{{"query", std::move(document)}, {"variables", std::move(variables)}}.dump()});
  const auto body = Json::parse(answer.body, nullptr, false);
  if (answer.status != 200 || !body.is_object() || body.contains("errors") ||
      !body.contains("data")) {
    throw Failure("the control plane refused a query: " + answer.body);
  }
  co_return body.at("data").begin().value();
}

Task<Plane::Events> Plane::events() {
  const auto answer = co_await call(program_.admin_port(), {.target = "/metrics"});
  const auto outcome = [&](const char* name) {
    return count(answer.body, R"(events_total{outcome=")" + std::string(name) + R"("})");
  };
  co_return Events{.stored = outcome("stored"),
                   .repeated = outcome("duplicate") + outcome("stale"),
                   .refused = count(answer.body, "events_quarantined_total")};
}

Task<> Plane::wait_until_quiet() {
  const auto deadline = deadline_after(kTimeLimit);
  auto stored = (co_await events()).stored;
  for (auto since = Clock::now(); Clock::now() < since + kQuiet;) {
    if (Clock::now() > deadline) throw Failure("events do not end");
    co_await sleep_for(kQuiet / 4);
    const auto now = (co_await events()).stored;
    if (std::exchange(stored, now) != now) since = Clock::now();
  }
}

std::string Plane::tunnel_plugin() const {
  return url() + "/tunnel-plugin/" + test::read_file(folder_ / "plugin-token");
}

}  // namespace gitops::demo
