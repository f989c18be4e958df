// The part of the scene in which an outside client sends a webhook and a request.
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "scene.hpp"
#include "support/run_on.hpp"

namespace gitops::demo {
namespace {

using nlohmann::json;

constexpr auto kTimeLimit = std::chrono::seconds(10);

}  // namespace

std::string describe_push(const std::string& body) {
  const auto push = json::parse(body, nullptr, false);
  if (!push.is_object()) return std::to_string(body.size()) + " bytes";
  return "push to " + push.value("ref", "?") + ", commit " + push.value("after", "?").substr(0, 7);
}

Task<test::RawResponse> Scene::send_webhook(std::string secret) {
  const auto body = json{{"ref", "refs/heads/main"}, {"after", last_revision_}}.dump();
  const auto signature =
      co_await test::run_on(pool_, [&] { return test::hmac_sha256(secret, body); });
  const auto bytes = test::RouterHarness::request(
      "POST", kWebhook,
      "Content-Type: application/json\r\nX-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=" +
          signature + "\r\n",
      body);
  co_return co_await test::run_on(pool_, [&] { return test::raw_call(router_->port(), bytes); });
}

Task<> Scene::send_inbound() {
  const auto secret = test::read_file(folder_ / "webhook-secret");
  const auto before = world_.events().size();
  const auto taken = co_await send_webhook(secret);
  check(taken.status == 200, "a signed webhook was answered with " + std::to_string(taken.status));
  const auto deadline = deadline_after(kTimeLimit);
  while (world_.events().size() == before) {
    check(Clock::now() < deadline, "no event came of a signed webhook");
    co_await sleep_for(std::chrono::milliseconds(5));
  }
  narrator_.step("webhook of GitHub with its signature: 200, event source received: " +
                 describe_push(world_.events().back()));

  const auto refused = co_await send_webhook("a guess");
  check(refused.status == 401,
        "a forged webhook was answered with " + std::to_string(refused.status));
  check(world_.events().size() == before + 1, "an event came of a forged webhook");
  narrator_.step("the same with a forged one: 401, event source received nothing");

  const auto answer = co_await test::run_on(pool_, [this] {
    return test::raw_call(
        router_->port(),
        test::RouterHarness::request(
            "POST", "/app-proxy/api/graphql",
            "Content-Type: application/json\r\nAuthorization: " + plane_.key() + "\r\n",
            json{{"query", "{ versionInfo { version } }"}}.dump()));
  });
  check(answer.status == 200, "app-proxy is not reached: " + answer.body);
  check(json::parse(answer.body).contains("/data/versionInfo/version"_json_pointer),
        "app-proxy does not know its version: " + answer.body);
  narrator_.step("POST /app-proxy/api/graphql: 200, app-proxy answers " + answer.body);
}

}  // namespace gitops::demo
