#include "app-proxy/integrations/integration_store.hpp"

#include <algorithm>
#include <utility>

#include "app-proxy/integrations/integration_secret.hpp"
#include "common/core/backoff.hpp"
#include "common/core/json_text.hpp"
#include "k8s-client/resource.hpp"
#include "k8s-client/status.hpp"

namespace gitops::app_proxy {
namespace {

constexpr int kAttempts = 10;

// Returns the error for a Secret that was not read.
std::unexpected<Error> not_read(const std::string& name, Error error) {
  if (error.code == ErrorCode::not_found) return std::unexpected(unknown_integration(name));
  return fail("Git integration " + name, std::move(error));
}

}  // namespace

// Evicts the cached integration before and after a write.
struct IntegrationStore::Forgets {
  IntegrationStore& store;
  std::string key;
  ~Forgets() {
    ++store.writes_;
    store.recent_.erase(key);
  }
};

IntegrationStore::IntegrationStore(k8s::Client& cluster, std::string ns)
    : cluster_(cluster), ns_(std::move(ns)) {}

k8s::ObjectKey IntegrationStore::key_of(std::string_view name, std::string_view account_id) const {
  return {ns_, secret_name(name, account_id)};
}

Task<Result<std::vector<Integration>>> IntegrationStore::list(Deadline deadline) {
  std::vector<Integration> out;
  const auto take = [&](std::string_view item) {
    auto integration = read_integration(item);
    if (integration) {
      out.push_back(std::move(*integration));
    } else if (unreadable_.check(integration.error().message, Clock::now()).pass) {
      log_.warning("a Secret with the label of Git integrations was left out",
                   {{"reason", integration.error().message}});
    }
  };
  const auto listed = co_await cluster_.list_pages(
      k8s::resources::kSecrets, ns_, {.label_selector = kIntegrationSelector, .limit = 100},
      deadline, [&](std::string_view page) {
        for_each_item(member_text(page, "items"), take);
        return Result<void>();
      });
  if (!listed) co_return fail("Git integrations", listed.error());
  std::ranges::sort(out, {}, &Integration::name);
  co_return out;
}

Task<Result<Integration>> IntegrationStore::get(std::string name, std::string account_id,
                                                Deadline deadline) {
  auto object = co_await cluster_.get(k8s::resources::kSecrets, key_of(name, account_id), deadline);
  if (!object) co_return not_read(name, std::move(object.error()));
  auto integration = read_integration(*object);
  if (!integration) co_return std::unexpected(unknown_integration(name));
  co_return std::move(*integration);
}

Task<Result<std::shared_ptr<const Integration>>> IntegrationStore::recent(std::string name,
                                                                          std::string account_id,
                                                                          Deadline deadline) {
  const auto key = secret_name(name, account_id);
  if (const auto found = recent_.find(key); found != recent_.end()) {
    if (found->second.until > Clock::now()) co_return found->second.integration;
    recent_.erase(found);
  }
  const auto asked = Clock::now();
  const auto writes = writes_;
  auto integration = co_await get(std::move(name), std::move(account_id), deadline);
  if (!integration) co_return std::unexpected(std::move(integration.error()));
  auto kept = std::make_shared<const Integration>(std::move(*integration));
  if (writes != writes_) co_return kept;
  if (recent_.size() >= kMaxRecent) {
    std::erase_if(recent_, [&](const auto& entry) { return entry.second.until <= Clock::now(); });
  }
  if (recent_.size() < kMaxRecent) recent_.insert_or_assign(key, Recent{kept, asked + kRecent});
  co_return kept;
}

Task<Result<void>> IntegrationStore::create(Integration integration, Deadline deadline) {
  const Forgets forgets{*this, secret_name(integration.name, integration.account_id)};
  const std::string context = "Git integration " + integration.name;
  auto created = co_await cluster_.create(k8s::resources::kSecrets, ns_,
                                          new_integration_secret(ns_, integration), deadline);
  if (created) co_return Result<void>();
  if (created.error().reason != k8s::reasons::kAlreadyExists) {
    co_return fail(context, std::move(created.error()));
  }
  const auto key = key_of(integration.name, integration.account_id);
  auto object = co_await cluster_.get(k8s::resources::kSecrets, key, deadline);
  if (!object) co_return fail(context, std::move(object.error()));
  if (read_integration(*object)) {
    co_return std::unexpected(Error{.code = ErrorCode::conflict,
                                    .message = "there is a Git integration \"" + integration.name +
                                               "\" already; edit it, or choose another name",
                                    .subcode = integration_errors::kExists});
  }
  // As of a newer version, whose tokens would be lost.
  if (has_users(*object)) {
    co_return std::unexpected(
        Error{.code = ErrorCode::conflict,
              .message = "the Secret " + key.to_string() + " of the Git integration \"" +
                         integration.name +
                         "\" cannot be read and has tokens of users; it was left as it is. "
                         "Remove the integration, or choose another name",
              .subcode = integration_errors::kExists});
  }
  auto adopted = with_integration(*object, integration);
  if (!adopted) co_return std::unexpected(std::move(adopted.error()));
  auto updated =
      co_await cluster_.update(k8s::resources::kSecrets, key, std::move(*adopted), deadline);
  if (!updated) co_return fail(context, std::move(updated.error()));
  co_return Result<void>();
}

Task<Result<void>> IntegrationStore::remove(std::string name, std::string account_id,
                                            Deadline deadline) {
  const Forgets forgets{*this, secret_name(name, account_id)};
  auto removed =
      co_await cluster_.remove(k8s::resources::kSecrets, key_of(name, account_id), deadline);
  if (removed) co_return Result<void>();
  co_return not_read(name, std::move(removed.error()));
}

Task<Result<Integration>> IntegrationStore::apply(std::string name, std::string account_id,
                                                  Change change, Deadline deadline) {
  const Forgets forgets{*this, secret_name(name, account_id)};
  const auto key = key_of(name, account_id);
  Backoff backoff({.initial = std::chrono::milliseconds(20), .max = std::chrono::milliseconds(500)},
                  random_seed());
  for (int attempt = 1;; ++attempt) {
    auto object = co_await cluster_.get(k8s::resources::kSecrets, key, deadline);
    if (!object) co_return not_read(name, std::move(object.error()));
    auto integration = read_integration(*object);
    if (!integration) co_return std::unexpected(unknown_integration(name));
    const auto changed = change(*integration);
    if (!changed) co_return std::unexpected(changed.error());
    if (!*changed) co_return std::move(*integration);
    auto next = with_integration(*object, *integration);
    if (!next) co_return std::unexpected(std::move(next.error()));
    auto updated =
        co_await cluster_.update(k8s::resources::kSecrets, key, std::move(*next), deadline);
    if (updated) co_return std::move(*integration);
    if (updated.error().code != ErrorCode::conflict || attempt == kAttempts) {
      co_return fail("Git integration " + name, std::move(updated.error()));
    }
    co_await sleep_for(backoff.next());
  }
}

}  // namespace gitops::app_proxy
