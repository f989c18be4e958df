#include "contract/integration_store_contract.hpp"

#include <gtest/gtest.h>

#include "app-proxy/integrations/integration_store.hpp"
#include "common/core/task_group.hpp"
#include "support/run_coro.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using namespace app_proxy;

Integration sample(std::string name) {
  return {.name = std::move(name),
          .account_id = "5f0a",
          .root = *make_api_root("GITLAB", ""),
          .sharing = SharingPolicy::account_admins,
          .users = {}};
}

UserToken token_of(std::string user) {
  return {.user_id = std::move(user), .sealed = {"key", "nonce-12byte", std::string("\0\xff", 2)}};
}

Task<> comes_back_as_it_was_stored(k8s::Client& cluster, std::string ns) {
  IntegrationStore store(cluster, ns);
  CO_ASSERT_OK(co_await store.create(sample("b"), soon()));
  CO_ASSERT_OK(co_await store.create(sample("a"), soon()));
  CO_ASSERT_OK(co_await store.apply(
      "a", "5f0a",
      [](Integration& stored) -> Result<bool> {
        return register_token(stored, token_of("u/1")).has_value();
      },
      soon()));
  const auto read = co_await store.get("a", "5f0a", soon());
  CO_ASSERT_OK(read);
  CO_ASSERT_EQ(read->users.size(), 1U);
  EXPECT_EQ(read->users[0].sealed, token_of("").sealed);
  EXPECT_EQ(read->root.text(), "https://gitlab.com/api/v4");
  const auto all = co_await store.list(soon());
  CO_ASSERT_OK(all);
  CO_ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at(0).name, "a");
  EXPECT_EQ(all->at(1).name, "b");
}

Task<> names_are_given_once(k8s::Client& cluster, std::string ns) {
  IntegrationStore store(cluster, ns);
  CO_ASSERT_OK(co_await store.create(sample("a"), soon()));
  const auto again = co_await store.create(sample("a"), soon());
  CO_ASSERT_TRUE(!again);
  EXPECT_EQ(again.error().subcode, integration_errors::kExists);
}

Task<> what_is_unknown_is_not_found(k8s::Client& cluster, std::string ns) {
  IntegrationStore store(cluster, ns);
  const auto got = co_await store.get("absent", "5f0a", soon());
  CO_ASSERT_TRUE(!got);
  EXPECT_EQ(got.error().subcode, integration_errors::kUnknown);
  const auto applied = co_await store.apply(
      "absent", "5f0a", [](Integration&) -> Result<bool> { return true; }, soon());
  CO_ASSERT_TRUE(!applied);
  EXPECT_EQ(applied.error().subcode, integration_errors::kUnknown);
  const auto removed = co_await store.remove("absent", "5f0a", soon());
  CO_ASSERT_TRUE(!removed);
  EXPECT_EQ(removed.error().subcode, integration_errors::kUnknown);
  const auto all = co_await store.list(soon());
  CO_ASSERT_OK(all);
  EXPECT_TRUE(all->empty());
}

Task<> parallel_changes_are_all_kept(k8s::Client& cluster, std::string ns) {
  IntegrationStore store(cluster, ns);
  CO_ASSERT_OK(co_await store.create(sample("a"), soon()));
  TaskGroup group(co_await asio::this_coro::executor);
  int calls = 0;
  for (int i = 0; i < 6; ++i) {
    group.spawn("change", [&, i]() -> Task<> {
      CO_ASSERT_OK(co_await store.apply(
          "a", "5f0a",
          [&, i](Integration& stored) -> Result<bool> {
            ++calls;
            return register_token(stored, token_of("u" + std::to_string(i))).has_value();
          },
          soon()));
    });
  }
  co_await group.join();
  const auto read = co_await store.get("a", "5f0a", soon());
  CO_ASSERT_OK(read);
  EXPECT_EQ(read->users.size(), 6U);
  EXPECT_GT(calls, 6) << "some met a newer version";
}

Task<> a_secret_of_another_program_is_taken_over(k8s::Client& cluster, std::string ns) {
  CO_ASSERT_OK(co_await cluster.create(
      k8s::resources::kSecrets, ns,
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"git-a-5f0a","labels":{"io.codefresh.integration-type":"git","team":"x"}},"data":{"layout":"dW5rbm93bg=="}})",
      soon()));
  IntegrationStore store(cluster, ns);
  const auto before = co_await store.list(soon());
  CO_ASSERT_OK(before);
  EXPECT_TRUE(before->empty());
  CO_ASSERT_OK(co_await store.create(sample("a"), soon()));
  CO_ASSERT_OK(co_await store.get("a", "5f0a", soon()));
  const auto object = co_await cluster.get(k8s::resources::kSecrets, {ns, "git-a-5f0a"}, soon());
  CO_ASSERT_OK(object);
  EXPECT_TRUE(object->contains("dW5rbm93bg=="));
  EXPECT_TRUE(object->contains("\"team\":\"x\""));
  CO_ASSERT_OK(co_await store.remove("a", "5f0a", soon()));
  CO_ASSERT_TRUE(!co_await store.get("a", "5f0a", soon()));
}

Task<> a_thousand_users_fit(k8s::Client& cluster, std::string ns) {
  IntegrationStore store(cluster, ns);
  auto full = sample("a");
  for (int i = 0; i < 1'000; ++i) {
    auto token = token_of("5f0a0000000000000000" + std::to_string(1'000 + i));
    token.sealed.key_id = "0123456789abcdef";
    token.sealed.text = std::string(120, 'x');
    token.login = "a-login-of-some-length";
    token.name = "A Name Of Some Length";
    token.mail = "1234567+a-login-of-some-length@users.noreply.github.com";
    CO_ASSERT_OK(register_token(full, token));
  }
  CO_ASSERT_OK(co_await store.create(full, soon()));
  const auto read = co_await store.get("a", "5f0a", soon());
  CO_ASSERT_OK(read);
  EXPECT_EQ(read->users.size(), 1'000U);
}

}  // namespace

std::vector<IntegrationStoreCase> integration_store_cases() {
  return {
      {"ComesBackAsItWasStored", comes_back_as_it_was_stored},
      {"NamesAreGivenOnce", names_are_given_once},
      {"WhatIsUnknownIsNotFound", what_is_unknown_is_not_found},
      {"ParallelChangesAreAllKept", parallel_changes_are_all_kept},
      {"ASecretOfAnotherProgramIsTakenOver", a_secret_of_another_program_is_taken_over},
      {"AThousandUsersFit", a_thousand_users_fit},
  };
}

}  // namespace gitops::test
