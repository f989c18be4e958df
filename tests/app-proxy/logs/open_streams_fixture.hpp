#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/logs/log_streams.hpp"
#include "app-proxy/users_fixture.hpp"
#include "common/core/task_group.hpp"
#include "common/http/server.hpp"
#include "doubles/fake_kube_api.hpp"

namespace gitops::app_proxy {

// Bob may VIEW what lies in "argocd" and "web". The Application "shop" and the Workflow "w" have the pod "ui-1".
struct OpenStreamsFixture {
  explicit OpenStreamsFixture(UsersFixture& on, LogStreams::Options options)
      : users(on),
        cluster(on.executor),
        server(on.executor, {}, [this](http::Exchange& exchange) { return serve(exchange); }),
        released(on.executor),
        rules(on.executor, on.control_plane, [] { return std::string("a1"); }, on.metrics,
              {.refresh = std::chrono::seconds(60), .max_age = std::chrono::seconds(900)}) {
    EXPECT_TRUE(server.listen());
    EXPECT_TRUE(cluster.start());
    cluster.add_type(events);
    put_pod("web", "ui-1", {{"workflows.argoproj.io/workflow", "w"}});
    const http::Url here{.scheme = "http", .host = "127.0.0.1", .port = server.port()};
    const auto token_now = [] { return Secret("token"); };
    argocd.emplace(on.http, argo::ArgoCdClient::Options{.server = here}, token_now);
    workflows_client.emplace(on.http, argo::WorkflowsClient::Options{.server = here}, token_now);
    applications.emplace(*argocd, token, rules, "prod");
    workflows.emplace(*workflows_client, token, rules, "prod");
    client.emplace(on.executor, on.resolver, cluster.cluster_config(), http::ProxySettings{},
                   "test");
    streams.emplace(on.executor, &*applications, &*workflows, &*client, std::move(options));
    on.platform.accounts().set_team("t1", {"u-bob"});
  }
  Task<> stop() {
    co_await streams->stop();
    users.http.close_idle();
    client.reset();
    co_await server.stop(Clock::now());
    co_await rules.stop();
    co_await cluster.stop();
  }

  Task<> allow(std::vector<std::string> actions) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& [type, ns] :
         {std::pair("gitopsApplications", "argocd"), {"workflows", "web"}}) {
      all.push_back({{"id", type},
                     {"accountId", "a1"},
                     {"entityType", type},
                     {"teams", {"t1"}},
                     {"actions", actions},
                     {"attributes", {{{"name", "NAMESPACE"}, {"value", ns}}}}});
    }
    users.platform.accounts().set_rules(std::move(all));
    EXPECT_TRUE(co_await rules.refresh());
  }
  void put_pod(const std::string& ns, const std::string& name,
               nlohmann::json labels = nlohmann::json::object()) {
    nlohmann::json pod{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", {{"name", name}, {"namespace", ns}, {"labels", std::move(labels)}}},
        {"spec", {{"containers", {{{"name", "main"}}}}}}};
    if (ns == "runtime") {
      pod["metadata"]["ownerReferences"] = nlohmann::json::array(
          {{{"kind", "StatefulSet"}, {"name", "reporter"}, {"controller", true}}});
    }
    cluster.put(k8s::resources::kPods, std::move(pod));
  }
  void put_event(const std::string& name) {
    cluster.put(events, {{"apiVersion", "v1"},
                         {"kind", "Event"},
                         {"metadata", {{"name", name}, {"namespace", "web"}}},
                         {"involvedObject", {{"kind", "Pod"}, {"name", "ui-1"}}},
                         {"message", name}});
  }

  Task<> serve(http::Exchange& exchange) {
    const std::string path(exchange.path());
    ++asked;
    while (!is_released) co_await released.wait();
    if (path.ends_with("/log")) {
      log_query = exchange.query();
      const std::string time = log_query.contains("timestamps=true") ? "2026-03-04T09:15:2" : "";
      (void)co_await exchange.start({.status = 200});
      for (const char* content : {"7Z one", "8Z two"}) {
        const nlohmann::json line{
            {"result",
             {{"content", time.empty() ? content + 3 : time + content}, {"podName", "w-1"}}}};
        (void)co_await exchange.write(line.dump() + "\n");
      }
      (void)co_await exchange.finish();
      co_return;
    }
    if (path.ends_with("/logs")) {
      (void)co_await exchange.start({.status = 200});
      (void)co_await exchange.finish();
      co_return;
    }
    nlohmann::json answer{
        {"metadata", {{"name", "shop"}, {"namespace", "argocd"}}},
        {"spec", {{"destination", {{"server", "https://kubernetes.default.svc"}}}}}};
    if (path.contains("/workflows/")) answer["metadata"] = {{"name", "w"}, {"namespace", "web"}};
    if (path.ends_with("/resource-tree")) {
      answer = {{"nodes", {{{"kind", "Pod"}, {"namespace", "web"}, {"name", "ui-1"}}}}};
    }
    (void)co_await exchange.reply(
        {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = answer.dump()});
  }

  const k8s::Resource events{"", "v1", "events", "Event"};
  UsersFixture& users;
  test::FakeKubeApi cluster;
  http::Server server;
  Event released;
  bool is_released = true;
  std::size_t asked = 0;  // the servers of Argo
  std::string log_query;  // of the last log of a workflow
  Rules rules;
  Credential token = Credential::fixed(Secret("token"));
  std::optional<argo::ArgoCdClient> argocd;
  std::optional<argo::WorkflowsClient> workflows_client;
  std::optional<ApplicationActions> applications;
  std::optional<WorkflowActions> workflows;
  std::optional<k8s::Client> client;
  std::optional<LogStreams> streams;
  const Caller bob{
      .user = std::make_shared<User>(User{.id = "u-bob", .name = "Bob", .account_id = "a1"})};
  const Caller ann{.user = std::make_shared<User>(
                       User{.id = "u-ann", .name = "Ann", .account_id = "a1", .is_admin = true})};
};

inline void with_streams(LogStreams::Options options,
                         const std::function<Task<>(OpenStreamsFixture&)>& body) {
  with_users_fixture([&](UsersFixture& on) -> Task<> {
    OpenStreamsFixture fixture(on, std::move(options));
    co_await body(fixture);
    co_await fixture.stop();
  });
}

}  // namespace gitops::app_proxy
