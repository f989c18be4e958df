#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/applications_api.hpp"
#include "common/core/async.hpp"
#include "common/http/server.hpp"

namespace gitops::bench {

// A text with places for values, which stand as marks in the text that it is made from.
class Template {
 public:
  Template(std::string_view text, std::initializer_list<std::string_view> marks);
  // `values` in the order of the marks.
  [[nodiscard]] std::string fill(std::initializer_list<std::string_view> values) const;

 private:
  std::vector<std::pair<std::string, std::size_t>> parts_;  // a text and the value that follows it
};

// Many Applications of the same number of Deployments, for rates of changes that the doubles do not reach: a Kubernetes
// API and an argocd-server that do as little as they can. They are named app-0, app-1 and so on. Loop thread only; call
// stop() before the destructor.
class ChangingApplications {
 public:
  // Throws when they cannot listen.
  ChangingApplications(const Executor& executor, int applications, int resources);
  Task<> stop();

  [[nodiscard]] std::string kubeconfig() const { return cluster_.kubeconfig(); }
  [[nodiscard]] std::string argocd_url() const;
  [[nodiscard]] std::size_t size() const { return apps_.size(); }
  [[nodiscard]] const std::string& name(std::size_t index) const { return apps_[index].name; }
  [[nodiscard]] const std::string& uid(std::size_t index) const { return apps_[index].uid; }
  // Requests that argocd-server has answered.
  [[nodiscard]] std::size_t reads() const { return reads_; }

  struct Change {
    std::string commit;
    std::uint64_t version;  // resourceVersion
  };
  // Argo CD has synced a new commit, which changed one of the application's resources.
  Change change(std::size_t index);
  void remove_all();

 private:
  struct App {
    std::string name;
    std::string uid;
    Template text;
    std::uint64_t replicas = 1;  // of the first Deployment: those of its last change
  };
  void put(const App& app, std::string_view commit);
  Task<> answer(http::Exchange& exchange);

  ApplicationsApi cluster_;
  std::string tree_;
  Template managed_;
  http::Server argocd_;
  std::deque<App> apps_;
  std::uint64_t changes_ = 0;
  std::size_t reads_ = 0;
};

}  // namespace gitops::bench
