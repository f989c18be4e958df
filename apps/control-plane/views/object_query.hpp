#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "common/store/connection.hpp"
#include "control-plane/projection/object.hpp"
#include "control-plane/views/page.hpp"

// Queries of the table `object` for pages. Every function blocks and sees the rows of one account.
namespace gitops::control_plane_server {

inline constexpr std::string_view kArgoGroup = "argoproj.io";

// The conditions of a list. All conditions must hold; the values of one condition are alternatives; an empty one is
// ignored.
struct ObjectFilter {
  std::string kind = "Application";
  std::optional<Origin> origin = {};
  std::vector<std::string> groups = {std::string(kArgoGroup)};  // of APIs
  std::vector<std::string> versions = {};
  std::vector<std::string> runtimes = {};
  std::vector<std::string> names = {};
  std::string name_part = {};  // a part of the name
  std::vector<std::string> namespaces = {};
  std::vector<std::string> destinations = {};  // clusters: URLs or names
  std::vector<SyncStatus> syncs = {};
  std::vector<HealthStatus> healths = {};
  std::vector<Phase> phases = {};
  std::vector<std::string> entities = {};
  std::vector<std::string> other_entities = {};  // entities that it does not have
  std::vector<std::string> labels = {};          // "key" or "key=value"
  bool is_inactive = false;  // only gone and stale objects; else live and stale ones
};

struct ObjectRow {
  ObjectState state;
  std::optional<ObjectBody> body = {};  // when it was requested and exists
};

enum class BodyUse : std::uint8_t { skip, read };

// Returns at most window.limit rows, sorted by name and id in the direction of the window. The sort key has the id as
// number.
Result<std::vector<ObjectRow>> list_objects(store::Connection& connection, std::int64_t account,
                                            const ObjectFilter& filter, const PageWindow& window,
                                            BodyUse bodies);
inline constexpr std::size_t kObjectKeyNumbers = 1;
SortKey sort_key_of(const ObjectState& state);

// The name of an object; an empty runtime or namespace matches any. Live objects come before stale ones; gone objects
// are not found.
struct ObjectName {
  std::string kind = "Application";
  std::string runtime = {};
  std::string object_namespace = {};
  std::string name = {};
  std::optional<Origin> origin = {};
  std::string group = std::string(kArgoGroup);
};
Result<std::optional<ObjectRow>> find_object(store::Connection& connection, std::int64_t account,
                                             const ObjectName& name, BodyUse bodies);
// Returns the objects with these ids, also when they are gone, in any order; absent ones are left out.
Result<std::vector<ObjectRow>> objects_of_ids(store::Connection& connection, std::int64_t account,
                                              std::span<const std::int64_t> ids, BodyUse bodies);
// Returns the object with this uid, also when it is gone.
Result<std::optional<ObjectRow>> find_object_by_uid(store::Connection& connection,
                                                    std::int64_t account, std::string_view kind,
                                                    std::string_view uid, BodyUse bodies);

// The children of an object: the resources of an Application, the ReplicaSets of a Rollout. Sorted by kind and name.
struct Children {
  std::string runtime = {};
  std::string manager_namespace = {};
  std::string manager_name = {};
  std::string manager_uid = {};         // empty: any
  std::vector<std::string> kinds = {};  // empty: all
  std::optional<Origin> origin = {};
  std::size_t limit = kMaxPage;
};
Result<std::vector<ObjectRow>> list_children(store::Connection& connection, std::int64_t account,
                                             const Children& children, BodyUse bodies);

// Returns the runtimes with a reporter of Rollouts and Workflows, sorted.
Result<std::vector<std::string>> runtimes_with_resource_reporter(store::Connection& connection,
                                                                 std::int64_t account);

// The parsed texts of one object. The next read() invalidates the views.
class ParsedBody {
 public:
  ParsedBody() { read(std::nullopt); }
  // Parses a body. No body and malformed JSON count as empty texts.
  void read(const std::optional<ObjectBody>& body);
  [[nodiscard]] const ObjectBody& texts() const { return *texts_; }
  // Returns the object in the cluster.
  [[nodiscard]] JsonView live() const { return live_; }
  // Return the event's `source`, and its `errors`.
  [[nodiscard]] JsonView source() const { return source_; }
  [[nodiscard]] JsonView errors() const { return errors_; }

 private:
  JsonParser live_parser_;
  JsonParser source_parser_;
  JsonParser errors_parser_;
  const ObjectBody* texts_ = nullptr;
  JsonView live_;
  JsonView source_;
  JsonView errors_;
};

// The query of a list and its rendering as the JSON of a slice.
struct ObjectList {
  ObjectFilter filter = {};
  PageWindow window = {};
  BodyUse bodies = BodyUse::read;
  std::size_t max_read = 100'000;  // rows for one page when `accepts` refuses some
  // Condition that the statement cannot check; without it every row counts.
  std::function<bool(const ObjectState&, const ParsedBody&)> accepts = {};
  // Appends the node's JSON.
  std::function<void(std::string&, const ObjectState&, const ParsedBody&)> append = {};
};
Result<std::string> object_slice(store::Connection& connection, std::int64_t account,
                                 const ObjectList& list);

// Returns every statement of this file, for the test that prepares them.
std::span<const store::Statement> object_statements();

}  // namespace gitops::control_plane_server
