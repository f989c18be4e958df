#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "faults/history.hpp"

namespace gitops::test {

// A history of mode `resource`: the reported kinds on the runtime's own cluster and on a managed one,
// among objects that are not to be reported.
class ResourceHistory : public History {
 public:
  ResourceHistory(const Executor& executor, std::uint64_t seed, std::size_t replicas);

  void change() override;
  void change_all() override;
  void create_all() override;

  FakeKubeApi managed;

 protected:
  Kinds own_faults() override;
  Task<> prepare() override;
  [[nodiscard]] ReceivedEvent read(const FakePlatform::Report& report) const override;
  void make_milestones() override;
  void finish_deletions() override;
  void end_own_faults() override;
  std::function<void()> back_up() override;
  [[nodiscard]] std::size_t events_of(std::size_t shard, std::size_t replicas) const override;
  [[nodiscard]] std::size_t events_of_change() const override { return 2; }

 private:
  // A place where an object may be.
  struct Place {
    bool managed = false;
    const k8s::Resource* kind = nullptr;
    std::string ns;
    std::string name;
    bool reported = true;
  };
  struct Object {
    std::string uid;
    std::string content;
    int phase = 0;
    bool finalizer = false;
    bool deleting = false;  // the finalizer holds it
    bool owned = true;      // a ReplicaSet of a Rollout
  };
  using Objects = std::map<std::size_t, Object>;  // by index in places_

  [[nodiscard]] FakeKubeApi& cluster(const Place& place) { return place.managed ? managed : kube; }
  [[nodiscard]] std::string managed_server();
  void change(std::size_t place);
  void create(std::size_t place);
  void end(std::size_t place);
  void write(std::size_t place);
  void record(std::size_t place);
  void put_managed_secret(bool unusable);
  [[nodiscard]] std::function<void()> back_up(bool of_managed);

  // -- faults --
  Task<> managed_restored();
  Task<> managed_watches();
  Task<> managed_refused();
  Task<> secret_unusable();
  Task<> secret_removed();

  std::vector<Place> places_;
  Objects objects_;
  bool managed_is_known_ = true;  // its cluster Secret is there
  std::size_t incarnations_ = 0;
};

}  // namespace gitops::test
