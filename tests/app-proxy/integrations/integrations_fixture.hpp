#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "app-proxy/identity/leadership.hpp"
#include "app-proxy/integrations/git_integrations.hpp"
#include "app-proxy/integrations/oauth_client.hpp"
#include "common/core/encoding.hpp"
#include "common/core/task_group.hpp"
#include "doubles/fake_git_hosts.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::app_proxy {

inline const Actor kAdmin{"admin-1", "acc", true};
inline const Actor kUser{"user-1", "acc", false};

// The word of settings and of the API.
inline std::string provider_name(ProviderKind kind) {
  return kind == ProviderKind::gitea ? "GITEA" : std::string(wire_name(kind));
}

// Git integrations on doubles of an API server and of a Git host.
struct IntegrationsFixture {
  explicit IntegrationsFixture(const Executor& executor, ProviderKind kind = ProviderKind::github)
      : provider(provider_name(kind)),
        cluster(executor),
        host(executor, kind),
        kube(executor, resolver, started(cluster), {}, "test"),
        http(executor, resolver, {}),
        hosts(executor, http, metrics),
        store(kube, "default"),
        integrations(store, seal, hosts, {.plain_http = PlainHttp::insecure_allowed}),
        oauth(kube, http,
              {.own_namespace = "default",
               .plain_http = PlainHttp::insecure_allowed,
               .public_url = "https://runtime.example.test"}),
        renewals(executor),
        leadership(executor) {
    EXPECT_TRUE(host.start());
    integrations.renew_with(oauth, renewals);
    seal.use(Secret("runtime-token"), Secret("iv"));
  }

  static k8s::ClusterConfig started(test::FakeKubeApi& cluster) {
    EXPECT_TRUE(cluster.start());
    return cluster.cluster_config();
  }
  Task<Result<Integration>> add(std::string name = "",
                                SharingPolicy sharing = SharingPolicy::all_users) {
    return integrations.add(kAdmin,
                            {.name = std::move(name),
                             .provider = provider,
                             .api_url = host.api_root().text(),
                             .sharing = sharing},
                            test::soon());
  }
  Task<Result<Integration>> register_user(Actor actor, std::string token, std::string name = "") {
    return integrations.register_user(std::move(actor), std::move(name), {Secret(std::move(token))},
                                      test::soon());
  }

  std::string provider;
  test::FakeKubeApi cluster;
  test::FakeGitHost host;
  Metrics metrics;
  net::Resolver resolver{metrics};
  k8s::Client kube;
  http::Client http;
  GitHostClient hosts;
  TokenSeal seal;
  IntegrationStore store;
  GitIntegrations integrations;
  OauthClient oauth;
  TaskGroup renewals;
  Leadership leadership;  // without a Lease
};

inline void with_integrations(const std::function<Task<>(IntegrationsFixture&)>& body,
                              ProviderKind kind = ProviderKind::github) {
  test::run_in_test_time([&]() -> Task<> {
    IntegrationsFixture fixture(co_await asio::this_coro::executor, kind);
    co_await body(fixture);
    co_await fixture.renewals.join();
    fixture.http.close_idle();
    co_await fixture.host.stop();
    co_await fixture.cluster.stop();
  });
}

}  // namespace gitops::app_proxy
