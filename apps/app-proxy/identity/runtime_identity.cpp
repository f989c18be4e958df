#include "app-proxy/identity/runtime_identity.hpp"

#include <utility>

namespace gitops::app_proxy {

RuntimeIdentity::RuntimeIdentity(const Executor& executor, Credential token, Credential iv)
    : token_(std::move(token)), iv_(std::move(iv)), changed_(executor) {}

RuntimeSecret RuntimeIdentity::secret() {
  if (!registered_.token.empty()) return registered_;
  return {.token = token_.current(), .iv = iv_.current()};
}

void RuntimeIdentity::set(RuntimeSecret registered) {
  if (registered == registered_) return;
  registered_ = std::move(registered);
  changed_.notify_all();
}

}  // namespace gitops::app_proxy
