#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "doubles/double_server.hpp"

namespace gitops::test {

// The calls of argocd-server that a runtime makes for itself: the login, the tokens of accounts and
// the list of clusters. FakeArgoCd is the double for Applications. The members are the state, which
// a test reads and writes. Faults: see DoubleServer.
class FakeArgoCdServer : public DoubleServer {
 public:
  explicit FakeArgoCdServer(const Executor& executor) : DoubleServer(executor, {}) {}

  struct Cluster {
    std::string name;
    std::string server;
  };

  // False: knows no path but the list of clusters, which needs no token then.
  bool has_accounts = true;
  bool refuses_logins = false;
  bool refuses_tokens = false;   // makes none
  std::set<std::string> tokens;  // valid values of Authorization
  int tokens_made = 0;
  std::function<void()> on_token = [] {};  // after a token was made, before the response

  bool lists_clusters = true;
  std::vector<std::string> clusters;  // with servers such as https://edge.example.test
  std::function<std::vector<Cluster>()> more = {};  // clusters with other servers
  std::string failed;                               // name of a cluster that cannot be reached

 protected:
  Task<> handle(http::Exchange& exchange) override;
  [[nodiscard]] http::Response failure(int status) const override;

 private:
  [[nodiscard]] http::Response respond(const std::string& path, const std::string& authorization);
  [[nodiscard]] std::string cluster_list() const;
};

}  // namespace gitops::test
