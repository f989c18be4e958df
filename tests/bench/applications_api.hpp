#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/http/server.hpp"

namespace gitops::bench {

// An API server that has Applications and nothing else: it lists, watches and reads texts. For
// rates of changes that test::FakeKubeApi does not reach, since that keeps JSON trees. Everything
// else is 404. Loop thread only; call stop() before the destructor.
class ApplicationsApi {
 public:
  explicit ApplicationsApi(const Executor& executor);

  Result<void> listen() { return server_.listen(); }
  Task<> stop();
  [[nodiscard]] std::string kubeconfig() const;

  // The resourceVersion that the next put() must have in its text.
  [[nodiscard]] std::uint64_t next_version() const { return version_ + 1; }
  // Creates or replaces an Application.
  void put(const std::string& name, std::string text);
  void remove(const std::string& name);

 private:
  struct Object {
    std::uint64_t version = 0;
    std::string text;
  };
  struct Watch {
    explicit Watch(const Executor& executor) : changed(executor) {}
    std::string pending;  // events that are not sent yet
    Event changed;
  };

  Task<> handle(http::Exchange& exchange);
  Task<> watch(http::Exchange& exchange, std::uint64_t from);
  Task<> follow(http::Exchange& exchange, Watch& watch);
  [[nodiscard]] std::string list(std::string_view after, std::size_t limit) const;

  Executor executor_;
  http::Server server_;
  std::map<std::string, Object, std::less<>> objects_;
  std::list<Watch*> watches_;
  std::uint64_t version_ = 1;
};

}  // namespace gitops::bench
