#include "app-proxy/identity/leadership.hpp"

#include <utility>

namespace gitops::app_proxy {

Leadership::Leadership(const Executor& executor, k8s::Client& cluster, k8s::LeaseOptions lease)
    : changed_(executor) {
  election_.emplace(cluster, std::move(lease), [this](bool leads) { note(leads); });
}

void Leadership::start(TaskGroup& group) {
  if (election_) election_->start(group);
}

std::string Leadership::holder() const {
  return election_ ? election_->holder() : std::string();
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
