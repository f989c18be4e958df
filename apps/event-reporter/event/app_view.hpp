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
  // Parses an Application; invalid_data when the text is no JSON object or names no application.
  static Result<AppView> parse(std::string text);

  [[nodiscard]] std::string_view text() const { return *text_; }
  [[nodiscard]] JsonView metadata() const { return root_["metadata"]; }
  [[nodiscard]] JsonView status() const { return root_["status"]; }
  // The entries of status.resources without child applications, which have events of their own.
  [[nodiscard]] std::vector<ResourceId> resource_ids() const;
  [[nodiscard]] JsonView operation_state() const { return status()["operationState"]; }
  [[nodiscard]] std::string_view name() const { return metadata()["name"].text(); }
  [[nodiscard]] std::string_view ns() const { return metadata()["namespace"].text(); }
  [[nodiscard]] std::string_view uid() const { return metadata()["uid"].text(); }
  [[nodiscard]] bool deleting() const { return metadata()["deletionTimestamp"].exists(); }
  [[nodiscard]] std::string_view project() const { return root_["spec"]["project"].text(); }
  [[nodiscard]] std::string_view cluster() const;

  // Returns start and end of its operation as Go prints times; empty when they are not known.
  [[nodiscard]] std::string started_at() const;
  [[nodiscard]] std::string finished_at() const;

  // Returns the repository of this source, from which the application is synced: that of
  // spec.sourceHydrator, else of the entry of spec.sources, else of spec.source.
  [[nodiscard]] std::string_view repo_url(std::size_t source) const;
  // Returns the repository of the main source: the one that single-value fields describe, the first
  // that is not merely a `ref` for the others.
  [[nodiscard]] std::string_view repo_url() const;

  // A revision, and its source.
  struct SourceRevision {
    std::string_view revision;
    JsonView source;
  };
  // Returns the revisions that the last sync was performed to, by the index of the source, else
  // those compared last. The revisions that an operation requests are not used, since they may be
  // branches or may not have been reached.
  [[nodiscard]] std::vector<SourceRevision> deployed() const;
  // Returns the index of the main source in deployed().
  [[nodiscard]] std::size_t main_deployed() const;
  // Returns the change revisions of the last operation, else of the requested one, by the index of
  // the source.
  [[nodiscard]] std::vector<SourceRevision> change_revisions() const;
  // Returns the id of the last entry of its history that has this revision of this repository at
  // this index.
  [[nodiscard]] std::optional<std::int64_t> find_in_history(std::size_t source,
                                                            const SourceRevision& revision) const;

  // Returns the main source's revision that was deployed last, else the one compared with.
  [[nodiscard]] std::string_view latest_revision() const;
  // Returns the main source's revision that the last operation was performed to, else the one that
  // the last or the requested operation requests.
  [[nodiscard]] std::string_view operation_revision() const;
  // Returns false while latest_revision() is still the previous one: Argo CD writes the history
  // after the sync.
  [[nodiscard]] bool names_synced_revision() const;
  // Returns the main source's repository in the last comparison.
  [[nodiscard]] std::string_view compared_repo_url() const;
  // Returns the id of the last entry of its history; 0 without one.
  [[nodiscard]] std::int64_t history_id() const;

  // Returns false while one of its conditions reports that Argo CD could not compare it. Argo CD
  // then may know neither its desired nor its live objects, and writes unknown objects as absent:
  // resources are missing in status.resources, in the resource tree and in the managed resources.
  [[nodiscard]] bool was_compared() const;

 private:
  [[nodiscard]] std::optional<JsonView> last_history() const;
  // Returns the entry of spec.sources, or spec.source when there is no such list.
  [[nodiscard]] JsonView source(std::size_t index) const;
  // Returns the revisions, or the revision, in `object`, with their sources in `sources`; when
  // there are none, with the application's present sources.
  [[nodiscard]] std::vector<SourceRevision> revisions_in(JsonView object, JsonView sources) const;
  // Returns the index of the main one of these sources, which are or were the application's. If
  // they are the present ones, they show which of them are a `ref`.
  [[nodiscard]] std::size_t main_of(const std::vector<JsonView>& sources) const;
  // Returns `object`'s revision, or that of the main one of the sources in `sources` when it has
  // several.
  [[nodiscard]] std::string_view revision_in(JsonView object, JsonView sources) const;

  std::unique_ptr<const std::string> text_ = std::make_unique<const std::string>();
  Document document_;
  JsonView root_;  // of the document
};

// Returns whether the revision may be a commit of a Git repository. False for versions of charts
// and digests of OCI artifacts, and for names that only the repository could resolve, such as HEAD.
[[nodiscard]] bool may_be_commit(const AppView::SourceRevision& revision);

// The results of an Application's last sync, by ResourceId::identity(). Borrows from the AppView.
class SyncResults {
 public:
  void read(const AppView& app);

  // Returns the result; absent when the sync did not include the resource.
  [[nodiscard]] JsonView find(const std::string& identity) const;

 private:
  std::unordered_map<std::string, JsonView> by_identity_;
};

// Returns a time as Go prints metav1.Time: UTC, whole seconds. An unreadable time gives an empty
// text, or `otherwise`.
std::string go_time(std::string_view text);
std::string go_time_or(std::string_view text, WallTime otherwise);

}  // namespace gitops::reporter
