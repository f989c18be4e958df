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

  // The repository that it is synced from, of this source: that of spec.sourceHydrator, else of the
  // entry of spec.sources, else of spec.source.
  [[nodiscard]] std::string_view repo_url(std::size_t source) const;
  // The same of its main source: the one that single-value fields describe, the first that is not
  // merely a `ref` for the others.
  [[nodiscard]] std::string_view repo_url() const;

  // A revision, and the source that it is of.
  struct SourceRevision {
    std::string_view revision;
    JsonView source;
  };
  // What the last sync was performed to, by the index of the source; else what was compared last.
  // Not what an operation asked for, which may be a branch, or may not have been reached.
  [[nodiscard]] std::vector<SourceRevision> deployed() const;
  // The index of the main source in deployed().
  [[nodiscard]] std::size_t main_deployed() const;
  // The change revisions of the last operation, else of the requested one, by the index of the
  // source.
  [[nodiscard]] std::vector<SourceRevision> change_revisions() const;
  // The id of the last entry of its history that has this revision of this repository at this
  // index.
  [[nodiscard]] std::optional<std::int64_t> find_in_history(std::size_t source,
                                                            const SourceRevision& revision) const;

  // The main source's revision that was deployed last, else the one compared with.
  [[nodiscard]] std::string_view latest_revision() const;
  // The main source's revision that the last operation was performed to, else the one that it or
  // the requested one asks for.
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
  // The entry of spec.sources, or spec.source when there is no such list.
  [[nodiscard]] JsonView source(std::size_t index) const;
  // The revisions in `object`, or its revision, of the sources, or the source, in `sources`; of its
  // present sources where there is none.
  [[nodiscard]] std::vector<SourceRevision> revisions_in(JsonView object, JsonView sources) const;
  // The index of the main one of these sources, which are or were the application's. Where they are
  // the present ones, these tell which are a `ref`.
  [[nodiscard]] std::size_t main_of(const std::vector<JsonView>& sources) const;
  // `object`'s revision, or that of the main one of the sources in `sources` when it has several.
  [[nodiscard]] std::string_view revision_in(JsonView object, JsonView sources) const;

  std::unique_ptr<const std::string> text_ = std::make_unique<const std::string>();
  Document document_;
  JsonView root_;  // of the document
};

// Whether the revision may be a commit of a Git repository. False for versions of charts and
// digests of OCI artifacts, and for names that only the repository could resolve, such as HEAD.
[[nodiscard]] bool may_be_commit(const AppView::SourceRevision& revision);

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
