#include "app-proxy/identity/leadership.hpp"

#include <utility>

#include "common/core/error.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::app_proxy {
namespace {

// Attempts of a write to a Lease that its holder renews meanwhile.
constexpr int kLeaseWrites = 5;

}  // namespace

Leadership::Leadership(const Executor& executor, k8s::Client& cluster, k8s::LeaseOptions lease)
    : changed_(executor), cluster_(&cluster) {
  election_.emplace(cluster, std::move(lease), [this](bool leads) { note(leads); });
}

void Leadership::start(TaskGroup& group) {
  if (election_) election_->start(group);
}

std::string Leadership::holder() const {
  return election_ ? election_->holder() : std::string();
}

std::optional<std::string> Leadership::annotation(std::string_view name) const {
  if (!election_ || !election_->lease().known()) return std::nullopt;
  return std::string(election_->lease().annotation(name));
}

Task<Result<void>> Leadership::annotate(std::string name,
                                        std::function<std::string(std::string_view current)> change,
                                        Deadline deadline) {
  if (!election_) co_return Result<void>();
  const k8s::ObjectKey key = election_->lease().key();
  const std::string context = "Lease " + key.name;
  for (int attempt = 1;; ++attempt) {
    auto stored = co_await cluster_->get(k8s::resources::kLeases, key, deadline);
    if (!stored && stored.error().code == ErrorCode::not_found && change("").empty()) {
      co_return Result<void>();
    }
    if (!stored) co_return fail(context, std::move(stored.error()));
    k8s::LeaseView lease(key);
    lease.see(*stored, Clock::now());
    if (!lease.known()) co_return fail(ErrorCode::invalid_data, context + ": is no Lease");
    const std::string current(lease.annotation(name));
    const auto wanted = change(current);
    if (wanted == current) co_return Result<void>();
    auto written = co_await cluster_->update(k8s::resources::kLeases, key,
                                             lease.with_annotation(name, wanted), deadline);
    if (written) co_return Result<void>();
    if (written.error().code != ErrorCode::conflict || attempt == kLeaseWrites) {
      co_return fail(context, std::move(written.error()));
    }
  }
}

void Leadership::set(bool leads) {
  leads_ = leads;
  note(leads);
}

void Leadership::note(bool leads) {
  log_.info("leader", {{"leads", leads}});
  ++term_;
  changed_.notify_all();
}

}  // namespace gitops::app_proxy
