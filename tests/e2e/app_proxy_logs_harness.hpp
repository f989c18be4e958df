#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <netinet/tcp.h>

#include "common/core/race.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/sse.hpp"
#include "common/http/websocket.hpp"
#include "e2e/git_harness.hpp"
#include "test_http/responses.hpp"

// app-proxy with doubles that stream the lines of pods.
namespace gitops::test {

using namespace std::chrono_literals;

// argocd-server and argo-server, as far as logs are concerned.
struct ArgoDouble {
  explicit ArgoDouble(const Executor& executor)
      : server(executor, {.address = "127.0.0.1"},
               [this](http::Exchange& exchange) { return serve(exchange); }) {
    EXPECT_TRUE(server.listen());
  }
  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server.port());
  }

  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    if (path.ends_with("/logs") || path.ends_with("/log")) {
      asked.push_back(std::string(exchange.query()));
      co_await stream(exchange);
      co_return;
    }
    if (path.ends_with("/resource-tree")) {
      const nlohmann::json tree{
          {"nodes",
           {{{"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-1"}, {"version", "v1"}}}}};
      (void)co_await exchange.reply(json_ok(tree.dump()));
      co_return;
    }
    nlohmann::json object{
        {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
        {"spec",
         {{"destination", {{"server", "https://kubernetes.default.svc"}, {"namespace", "web"}}}}}};
    if (path.contains("/workflows/")) object["metadata"] = {{"name", "w"}, {"namespace", "web"}};
    (void)co_await exchange.reply(json_ok(object.dump()));
  }

  static std::string line(const std::string& content) {
    return nlohmann::json{{"result",
                           {{"content", content},
                            {"podName", "ui-1"},
                            {"timeStampStr", "2026-03-04T09:15:27Z"},
                            {"last", false}}}}
               .dump() +
           "\n";
  }

  // Three lines and the end; with ?tailLines=0 lines without end, as fast as they are read.
  Task<> stream(http::Exchange& exchange) {
    (void)co_await exchange.start({.status = 200});
    if (!exchange.query().contains("tailLines=0")) {
      for (const char* content : {"one", "two", "three"}) {
        (void)co_await exchange.write(line(content));
      }
      (void)co_await exchange.write(R"({"result":{"content":"","last":true}})");
      (void)co_await exchange.finish();
      co_return;
    }
    std::string many;
    while (many.size() < 12'000) many += line(std::string(4'000, 'x'));
    std::size_t& count = written[std::string(exchange.query())];
    co_await exchange.stream(
        [](http::Exchange& to, const std::string& text, std::size_t& written_to) -> Task<> {
          while (co_await to.write(text)) written_to += text.size();
        }(exchange, many, count));
  }

  std::vector<std::string> asked;              // queries of requests for logs
  std::map<std::string, std::size_t> written;  // bytes, by query
  http::Server server;
};

struct LogHarness {
  LogHarness(GitHarness& w, const Executor& executor) : base(w), argo(executor) {
    base.cluster.add_type({"", "v1", "events", "Event"});
    const auto pod = [&](const std::string& ns, const std::string& name, nlohmann::json metadata) {
      metadata["name"] = name;
      metadata["namespace"] = ns;
      base.cluster.put(k8s::resources::kPods, {{"apiVersion", "v1"},
                                               {"kind", "Pod"},
                                               {"metadata", std::move(metadata)},
                                               {"spec", {{"containers", {{{"name", "main"}}}}}}});
    };
    const auto owned = [](const char* kind, const char* name) {
      return nlohmann::json::array({{{"apiVersion", "apps/v1"},
                                     {"kind", kind},
                                     {"name", name},
                                     {"uid", "u"},
                                     {"controller", true}}});
    };
    pod("default", "cap-app-proxy-6d4-x2x7k",
        {{"labels", {{"pod-template-hash", "6d4"}}},
         {"ownerReferences", owned("ReplicaSet", "cap-app-proxy-6d4")}});
    pod("default", "event-reporter-0",
        {{"ownerReferences", owned("StatefulSet", "event-reporter")}});
    pod("web", "w-1", {{"labels", {{"workflows.argoproj.io/workflow", "w"}}}});
    base.cluster.append_pod_log("2026-03-04T09:15:27Z a line of a pod\n");
  }
  Task<> start(Environment more = {}) {
    more.insert({{"ARGO_CD_URL", argo.url()},
                 {"ARGO_CD_TOKEN", "argocd.double.token"},
                 {"ARGO_WORKFLOWS_URL", argo.url()},
                 {"MAX_OPERATIONS_PER_USER", "10000"}});
    base.start(std::move(more));
    co_await base.base.account_known();
    const auto deadline = deadline_after(20s);
    while (base.base.daemon->status().count_in_state("rules for ", "pending") > 0 &&
           Clock::now() < deadline) {
      co_await sleep_for(20ms);
    }
  }
  // Bob may do this with what is in these namespaces.
  void allow(std::vector<std::string> actions) {
    nlohmann::json rules = nlohmann::json::array();
    for (const auto& [type, ns] :
         {std::pair{"gitopsApplications", "argocd"}, {"workflows", "web"}}) {
      rules.push_back({{"id", type},
                       {"accountId", "acc-1"},
                       {"entityType", type},
                       {"teams", {"t1"}},
                       {"actions", actions},
                       {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}});
    }
    base.base.platform.accounts().set_team("t1", {"u-bob"});
    base.base.platform.accounts().set_rules(std::move(rules));
  }

  // Everything that a subscription says, until `enough`.
  Task<std::vector<nlohmann::json>> subscribe(
      const char* token, std::string query,
      std::function<bool(const std::vector<nlohmann::json>&)> enough = [](const auto&) {
        return false;
      }) {
    std::vector<nlohmann::json> all;
    const http::Url url{.scheme = "ws", .host = "127.0.0.1", .port = base.base.daemon->port()};
    const auto ended = co_await http::connect_websocket(
        base.base.client, url, {.target = "/app-proxy/api/graphql"}, graphql::kSocketProtocols, {},
        deadline_after(20s), [&](http::WebSocket& socket) -> Task<> {
          (void)co_await socket.send(
              nlohmann::json{{"type", "connection_init"}, {"payload", {{"Authorization", token}}}}
                  .dump());
          while (auto message = co_await socket.receive()) {
            nlohmann::json json = nlohmann::json::parse(message->data, nullptr, false);
            if (json["type"] == "connection_ack") {
              (void)co_await socket.send(nlohmann::json{
                  {"id", "1"}, {"type", "subscribe"}, {"payload", {{"query", query}}}}
                                             .dump());
            }
            if (json["type"] == "complete") co_return;
            if (json["type"] == "error") {
              all.push_back(json["payload"][0]);
              co_return;
            }
            if (json["type"] != "next") continue;
            all.push_back(json["payload"]["data"].is_object()
                              ? json["payload"]["data"].begin().value()
                              : json["payload"]);
            if (enough(all)) co_return;
          }
        });
    EXPECT_TRUE(ended);
    co_return all;
  }

  // A request for server-sent events that was answered.
  Task<std::optional<http::ClientExchange>> open_events(const char* token, std::string query) {
    const http::Url url{.scheme = "http", .host = "127.0.0.1", .port = base.base.daemon->port()};
    auto exchange = co_await base.base.client.open(
        url,
        {.method = "GET",
         .target = "/app-proxy/api/applications/logs?" + query,
         .headers = {{"Authorization", token}, {"Accept", "text/event-stream"}}},
        deadline_after(60s));
    if (!exchange) co_return std::nullopt;
    auto head = co_await exchange->read_head();
    EXPECT_TRUE(head && head->status == 200)
        << query << ": " << (head ? std::to_string(head->status) : head.error().message);
    co_return std::optional(std::move(*exchange));
  }

  Task<> stop() {
    base.base.client.close_idle();
    co_await argo.server.stop(Clock::now());
  }

  GitHarness& base;
  ArgoDouble argo;
};

inline void in_log_harness(const std::function<Task<>(LogHarness&)>& body) {
  run_coro(
      [&]() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        GitHarness harness(executor);
        co_await play_in(harness, [&](GitHarness& base) -> Task<> {
          LogHarness logs(base, executor);
          co_await play_in(logs, body);
        });
      },
      std::getenv("GITOPS_LONG") != nullptr ? 900s : 200s);
}

// "content" of each answer, "error: …" and "done".
inline std::vector<std::string> told(const std::vector<nlohmann::json>& answers) {
  std::vector<std::string> all;
  for (const nlohmann::json& answer : answers) {
    if (answer.contains("message")) {
      all.push_back(answer.value("message", ""));
    } else if (answer.value("done", nlohmann::json()).is_boolean()) {
      all.emplace_back("done");
    } else if (answer.value("data", nlohmann::json()).is_object()) {
      all.push_back(answer["data"].value("podName", "") + ": " +
                    answer["data"].value("content", answer["data"].value("message", "")));
    } else {
      all.push_back("error: " + answer.value("error", ""));
    }
  }
  return all;
}

}  // namespace gitops::test
