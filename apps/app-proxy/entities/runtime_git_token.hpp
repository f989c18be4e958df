#pragma once

#include <string>
#include <utility>

#include "app-proxy/git/transport.hpp"
#include "common/core/credential.hpp"

namespace gitops::app_proxy {

// Git token of the runtime itself (GIT_USERNAME, GIT_PASSWORD). The runtime uses it to commit its
// own files and to promote. Loop thread.
class RuntimeGitToken {
 public:
  RuntimeGitToken(std::string username, Credential password)
      : username_(std::move(username)), password_(std::move(password)) {}

  // Returns the credential. Its password is empty when the runtime has no token.
  [[nodiscard]] GitCredential credential() {
    return {.username = username_, .password = password_.current()};
  }
  [[nodiscard]] bool is_set() { return !password_.current().empty(); }

 private:
  std::string username_;
  Credential password_;
};

}  // namespace gitops::app_proxy
