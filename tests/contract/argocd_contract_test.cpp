#include "contract/argocd_contract.hpp"

#include <exception>

#include <gtest/gtest.h>

#include "doubles/fake_argocd.hpp"
#include "doubles/fake_kube_api.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {
namespace {

// Shared by all cases, because starting it takes longer than a case.
GitServer& git_server() {
  static GitServer server;
  return server;
}

Task<> run_on_double(const ArgoCdCase& contract_case, FakeKubeApi& cluster, FakeArgoCd& argocd) {
  const std::string repository = contract_case.name;
  auto& git = git_server();
  FakeArgoCd::App app{.name = "guestbook", .repo_url = git.create_repository(repository)};
  app.git_username = git.username();
  app.git_password = git.password();
  app.destination_namespace = "contract";
  git.commit(repository, argocd_contract_files(), kArgoCdContractMessage, kArgoCdContractAuthor);
  CO_ASSERT_OK(argocd.start());
  CO_ASSERT_OK(co_await argocd.create_app(app));
  const auto revision = co_await argocd.sync(app.name);
  CO_ASSERT_OK(revision);

  const FakeArgoCd::Options options;
  const ArgoCdPeer peer{
      .url = argocd.url(),
      .token = options.token,
      .username = options.username,
      .password = options.password,
      .app = app.name,
      .ns = options.ns,
      .destination = app.destination_namespace,
      .revision = *revision,
      .read_app =
          [&] {
            const k8s::ObjectKey key{options.ns, app.name};
            return cluster.find(k8s::resources::kApplications, key)
                .value_or(nlohmann::json::object());
          },
      .change = [&](FileChanges changes, std::string message) -> Task<> {
        git.commit(repository, changes, message, kArgoCdContractAuthor);
        CO_ASSERT_OK(co_await argocd.refresh(app.name));
      },
  };
  co_await contract_case.run(peer);
}

struct FakeArgoCdContract : testing::TestWithParam<ArgoCdCase> {};

TEST_P(FakeArgoCdContract, Holds) {
  run_coro(
      []() -> Task<> {
        const auto executor = co_await asio::this_coro::executor;
        FakeKubeApi cluster(executor);
        FakeArgoCd argocd(executor, cluster);
        std::exception_ptr failure;
        try {
          co_await run_on_double(GetParam(), cluster, argocd);
        } catch (...) {
          failure = std::current_exception();
        }
        co_await argocd.stop();
        if (failure) std::rethrow_exception(failure);
      },
      std::chrono::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(ArgoCd, FakeArgoCdContract, testing::ValuesIn(argocd_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gitops::test
