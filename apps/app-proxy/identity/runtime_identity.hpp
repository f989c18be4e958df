#pragma once

#include "common/core/async.hpp"
#include "common/core/credential.hpp"
#include "common/core/secret.hpp"

namespace gitops::app_proxy {

// Contents of the Secret codefresh-token. A missing part is empty.
struct RuntimeSecret {
  Secret token;  // of the runtime, for the control plane
  Secret iv;     // 16 bytes in hex; encrypts Git tokens, together with the token

  [[nodiscard]] bool is_whole() const { return !token.empty() && !iv.empty(); }
  bool operator==(const RuntimeSecret&) const = default;
};

// The Secret that identifies the runtime to the control plane. The configured one is used until the
// registration sets another one. Loop thread.
class RuntimeIdentity {
 public:
  RuntimeIdentity(const Executor& executor, Credential token, Credential iv);

  // Returns the present secret; without a token until the runtime is registered.
  [[nodiscard]] RuntimeSecret secret();
  [[nodiscard]] Secret token() { return secret().token; }
  // Returns the last secret passed to set(). secret() returns it once it has a token.
  [[nodiscard]] const RuntimeSecret& registered() const { return registered_; }
  void set(RuntimeSecret registered);
  // Notified when set() changes the secret. A configured file that is replaced sends no notification.
  [[nodiscard]] Event& changed() { return changed_; }

 private:
  Credential token_;
  Credential iv_;
  RuntimeSecret registered_;
  Event changed_;
};

}  // namespace gitops::app_proxy
