#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "doubles/kube_failure.hpp"
#include "doubles/kube_types.hpp"
#include "k8s-client/resource.hpp"

namespace gitops::test {

// The objects of an API server, without HTTP: all registered types, one resourceVersion for all of
// them, a history for watches, and the rules of create, update, patch and delete. Not thread-safe.
class FakeKubeStore {
 public:
  using Json = nlohmann::json;
  // An object as stored, and its text.
  struct Stored {
    Json json;
    std::string text;
  };
  using Object = std::shared_ptr<const Stored>;

  using Failure = KubeFailure;
  template <class T>
  using Outcome = std::expected<T, Failure>;

  enum class ChangeKind { added, modified, deleted };
  struct Change {
    ChangeKind kind = ChangeKind::added;
    std::uint64_t version = 0;
    std::string type;  // KubeType::id()
    std::string ns;
    Object object;  // as it is now; when deleted: as it was, with the version of the deletion
    Object before;  // nothing when added
  };

  enum class PatchType { merge, json, apply };

  // `history` changes are kept for watches; older versions are gone.
  explicit FakeKubeStore(std::size_t history);

  void add_type(KubeType type);
  // Deletes its objects, too.
  void remove_type(const std::string& id);
  [[nodiscard]] const KubeType* find_type(std::string_view group, std::string_view version,
                                          std::string_view plural) const;
  [[nodiscard]] const std::map<std::string, KubeType>& types() const { return types_; }

  Outcome<Object> get(const KubeType& type, const k8s::ObjectKey& key) const;
  // In the order of namespace and name; an empty namespace means all.
  std::vector<Object> list(const KubeType& type, std::string_view ns) const;
  Outcome<Object> create(const KubeType& type, const std::string& ns, Json object);
  Outcome<Object> update(const KubeType& type, const k8s::ObjectKey& key, Json object,
                         std::string_view subresource = {});
  struct Patched {
    Object object;
    bool created = false;
  };
  Outcome<Patched> patch(const KubeType& type, const k8s::ObjectKey& key, PatchType patch,
                         const Json& body, std::string_view subresource = {});
  struct Removed {
    Object object;
    bool gone = true;  // false: a finalizer holds it
  };
  Outcome<Removed> remove(const KubeType& type, const k8s::ObjectKey& key,
                          const Json& options = nullptr);
  // While the handle lives, changes are answered as usual but not made.
  struct DryRun {
    explicit DryRun(FakeKubeStore& of) : store(of) { store.dry_run_ = true; }
    ~DryRun() { store.dry_run_ = false; }
    DryRun(const DryRun&) = delete;
    DryRun& operator=(const DryRun&) = delete;
    FakeKubeStore& store;
  };
  // Stores the object as given, status included, and replaces an existing one. Creates a missing
  // namespace.
  Object put(const KubeType& type, Json object);

  [[nodiscard]] std::uint64_t version() const { return version_; }
  // The changes that are kept for watches, oldest first.
  [[nodiscard]] const std::deque<Change>& history() const { return history_; }
  // Watches from before this version are too old.
  [[nodiscard]] std::uint64_t oldest_version() const { return oldest_version_; }
  // Drops the history: every version so far is too old.
  void compact();
  // The objects and the version of one moment.
  struct Backup {
    std::map<std::string, std::map<k8s::ObjectKey, Object>> tables;
    std::uint64_t version = 0;
  };
  [[nodiscard]] Backup back_up() const { return {tables_, version_}; }
  // Restores that moment. Older versions are too old for watches, newer ones are assigned a second
  // time.
  void restore(Backup backup);
  // Called after each change.
  void on_change(std::function<void()> function) { on_change_ = std::move(function); }

 private:
  using Table = std::map<k8s::ObjectKey, Object>;

  [[nodiscard]] const Object* find(const KubeType& type, const k8s::ObjectKey& key) const;
  Outcome<Object> replace(const KubeType& type, const k8s::ObjectKey& key, Object current,
                          Json object, std::string_view subresource);
  // Sets the version of the object and reports the change.
  Object store(const KubeType& type, ChangeKind kind, Json object, Object before);
  Object drop(const KubeType& type, const Object& current);
  void follow_definition(const Json& definition, bool gone);
  std::string random_suffix();
  std::string new_uid();

  std::size_t history_limit_;
  std::map<std::string, KubeType> types_;
  std::map<std::string, Table> tables_;
  std::deque<Change> history_;
  std::uint64_t version_ = 100;
  std::uint64_t oldest_version_ = 100;
  std::mt19937_64 random_{std::random_device{}()};
  std::function<void()> on_change_;
  bool dry_run_ = false;
};

}  // namespace gitops::test
