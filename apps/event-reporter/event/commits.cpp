#include "event-reporter/event/commits.hpp"

#include <string_view>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "event-reporter/ledger/resource_id.hpp"

namespace gitops::reporter {
namespace {

void append_revisions(std::string& out, const std::optional<std::vector<Revision>>& revisions) {
  if (!revisions || revisions->empty()) {
    out += "null";
    return;
  }
  out += '[';
  for (const auto& revision : *revisions) {
    if (&revision != revisions->data()) out += ',';
    ObjectWriter writer(out);
    writer.text("revision", revision.revision);
    if (!revision.metadata.empty()) {
      writer.raw("metadata", revision.metadata);
    } else if (revision.is_unknown) {
      writer.raw("metadata", "null");
    }
    writer.end();
  }
  out += ']';
}

std::string revisions_json(const AppSnapshot& snapshot) {
  std::string out;
  ObjectWriter writer(out);
  append_revisions(writer.begin("syncRevisions"), snapshot.sync_revisions);
  append_revisions(writer.begin("changeRevisions"), snapshot.change_revisions);
  writer.end();
  return out;
}

std::string with_commit_labels(std::string_view labels, const Commit& commit) {
  auto out = with_strings(labels, {{"app.meta.commit-author", commit.author},
                                   {"app.meta.commit-message", commit.message}});
  if (!commit.date) return out;
  return with_strings(out, {{"app.meta.commit-date", format_rfc3339_millis(*commit.date)}});
}

// Adds apiVersion and kind, which items of lists lack.
std::string typed(std::string application) {
  const auto add = [&application](std::string_view key, std::string_view value) {
    if (has_member(application, key)) return;
    application = edit_member(application, key, [value](auto) { return json_string(value); });
  };
  add("kind", kApplicationKind);
  add("apiVersion", std::string(kApplicationGroup).append("/").append(kApplicationVersion));
  return application;
}

}  // namespace

std::optional<Commit> main_commit(const AppSnapshot& snapshot) {
  if (!snapshot.sync_revisions) return std::nullopt;
  const auto index = snapshot.app.main_deployed();
  if (index >= snapshot.sync_revisions->size()) return std::nullopt;
  JsonParser parser;
  const auto metadata =
      parser.parse_object((*snapshot.sync_revisions)[index].metadata, "revision metadata");
  if (!metadata) return std::nullopt;
  Commit commit{.author = std::string((*metadata)["author"].text()),
                .message = std::string((*metadata)["message"].text()),
                .date = std::nullopt};
  if (const auto date = parse_rfc3339((*metadata)["date"].text())) commit.date = *date;
  return commit;
}

std::string annotated_application(const AppSnapshot& snapshot,
                                  const std::optional<Commit>& commit) {
  auto out = typed(std::string(snapshot.app.text()));
  if (!snapshot.sync_revisions && !snapshot.change_revisions) return out;
  const auto revisions = revisions_json(snapshot);
  return edit_member(out, "metadata", [&](std::string_view metadata) {
    auto edited = edit_member(metadata, "annotations", [&](std::string_view annotations) {
      return with_strings(annotations, {{"app.meta.revisions-metadata", revisions}});
    });
    if (!commit) return edited;
    return edit_member(edited, "labels", [&commit](std::string_view labels) {
      return with_commit_labels(labels, *commit);
    });
  });
}

}  // namespace gitops::reporter
