#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <vector>

#include "common/http/message.hpp"
#include "doubles/double_server.hpp"
#include "doubles/fake_kube_store.hpp"
#include "doubles/kube_request.hpp"

namespace gitops::test {

// Answers lists of the Kubernetes API, whole or in pages that all show the state of the first.
class KubeLists {
 public:
  explicit KubeLists(const FakeKubeStore& store) : store_(store) {}

  http::Response list(const KubeTarget& target, const Query& query);

  // Lists that are under way cannot go on (410).
  void expire_pages() { snapshots_.clear(); }
  // Each list of the type (KubeType::id()) holds this text as its last item; empty ends it.
  void set_extra_item(const std::string& type, std::string text);

 private:
  struct Snapshot {
    std::uint64_t version = 0;
    std::vector<FakeKubeStore::Object> objects;
    std::string after{};  // the last key that was given out; empty: none
  };
  // A refusal is a whole answer: one of them carries a continue token.
  using Start = std::expected<Snapshot, http::Response>;
  Start begin(const KubeTarget& target, const std::string& version) const;
  Start go_on(const KubeTarget& target, const std::string& token) const;

  const FakeKubeStore& store_;
  std::map<std::string, Snapshot> snapshots_;  // by version, type and namespace
  std::map<std::string, std::string> extra_items_;
};

}  // namespace gitops::test
