#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/json_text.hpp"
#include "common/core/time.hpp"
#include "event-reporter/event/document.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {

// One Application: its JSON text, parsed once, and its fields. A field that is absent or of another
// type reads as empty, as does every field of a default-constructed one. Can be moved but not
// copied; views stay valid when it moves.
class AppView {
 public:
  // invalid_data when the text is no JSON object or names no application.
  static Result<AppView> parse(std::string text);

  [[nodiscard]] std::string_view text() const { return *text_; }
  [[nodiscard]] JsonView metadata() const { return root_["metadata"]; }
  [[nodiscard]] JsonView status() const { return root_["status"]; }
  // The entries of status.resources.
  [[nodiscard]] std::vector<ResourceId> resource_ids() const;
  [[nodiscard]] JsonView operation_state() const { return status()["operationState"]; }
  [[nodiscard]] std::string_view name() const { return metadata()["name"].text(); }
  [[nodiscard]] std::string_view ns() const { return metadata()["namespace"].text(); }
  [[nodiscard]] std::string_view uid() const { return metadata()["uid"].text(); }
  [[nodiscard]] bool deleting() const { return metadata()["deletionTimestamp"].exists(); }
  [[nodiscard]] std::string_view project() const { return root_["spec"]["project"].text(); }
  [[nodiscard]] std::string_view cluster() const;

  // Start and end of its operation as Go prints times; empty when they are not known.
  [[nodiscard]] std::string started_at() const;
  [[nodiscard]] std::string finished_at() const;

  // The entry of spec.sources, or spec.source when there is no such list.
  [[nodiscard]] JsonView source(std::size_t index) const;
  // The index of the source that single-value fields describe: the first that is not merely a `ref`
  // for the others. 0 when there is only one source.
  [[nodiscard]] std::size_t main_source() const;

  // The sync operation that revisions are taken from: the last one, else the requested one.
  [[nodiscard]] JsonView sync_operation() const;
  // The main source's revision that was deployed last, else the one compared with.
  [[nodiscard]] std::string_view latest_revision() const;
  // The main source's revision in the last or the requested operation.
  [[nodiscard]] std::string_view operation_revision() const;
  // False while latest_revision() is still the previous one: Argo CD writes the history after the
  // sync.
  [[nodiscard]] bool names_synced_revision() const;
  // The main source's repository in the last comparison.
  [[nodiscard]] std::string_view compared_repo_url() const;
  // The id of the last entry of its history; 0 without one.
  [[nodiscard]] std::int64_t history_id() const;

  // False while one of its conditions says that Argo CD could not compare it. Argo CD then may know
  // neither its desired nor its live objects, and writes what it does not know as absent: resources
  // are missing in status.resources, in the resource tree and in the managed resources.
  [[nodiscard]] bool was_compared() const;

 private:
  [[nodiscard]] std::optional<JsonView> last_history() const;
  // `object`'s revision, or that of the main source when it has several.
  [[nodiscard]] std::string_view revision_in(JsonView object) const;

  std::unique_ptr<const std::string> text_ = std::make_unique<const std::string>();
  Document document_;
  JsonView root_;  // of the document
};

// The results of an Application's last sync, by ResourceId::identity(). Borrows from the AppView.
class SyncResults {
 public:
  void read(const AppView& app);

  // Absent when the sync did not include the resource.
  [[nodiscard]] JsonView find(const std::string& identity) const;

 private:
  std::unordered_map<std::string, JsonView> by_identity_;
};

// A time as Go prints metav1.Time: UTC, whole seconds. An unreadable time gives an empty text, or
// `otherwise`.
std::string go_time(std::string_view text);
std::string go_time_or(std::string_view text, WallTime otherwise);

}  // namespace gitops::reporter
