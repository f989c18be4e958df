#include "event-reporter/event/event_body.hpp"

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/yaml_text.hpp"

namespace gitops::reporter {
namespace {

std::string as_yaml(std::string_view manifest) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (manifest.empty() ||
      parser.parse(manifest.data(), manifest.size()).get(document) != simdjson::SUCCESS) {
    return {};
  }
  return to_yaml(document);
}

void write_source(std::string& out, const EventBody& body, const TrackingSettings& settings) {
  const auto commit = body.commit.value_or(Commit{});
  ObjectWriter source(out);
  source.text("desiredManifest", body.desired_manifest);
  source.text("actualManifest", body.actual_manifest);
  source.text("gitManifest", as_yaml(body.desired_manifest));
  source.text("repoURL", body.repo_url);
  source.text("path", "");
  source.text("revision", body.revision);
  source.text("commitMessage", commit.message);
  source.text("commitAuthor", commit.author);
  if (commit.date) source.text("commitDate", format_rfc3339(*commit.date));
  source.text("appName", body.app_name);
  source.raw("appLabels", body.app_labels);
  source.text("syncStatus", body.sync_status);
  source.text("syncStartedAt", body.sync_started_at);
  if (!body.sync_finished_at.empty()) source.text("syncFinishedAt", body.sync_finished_at);
  if (body.health) {
    source.text("healthStatus", body.health->status);
    source.text("healthMessage", body.health->message);
  }
  source.text("cluster", body.cluster);
  source.raw("historyId", std::to_string(body.history_id));
  source.text("operationSyncRevision", body.operation_revision);
  source.text("appUID", body.app_uid);
  source.text("appNamespace", body.app_ns);
  source.text("appInstanceLabelKey", settings.instance_label_key);
  source.text("trackingMethod", settings.method);
  source.end();
}

std::string reduced_manifest(std::string_view manifest) {
  if (manifest.empty()) return {};
  const auto metadata = [](std::string_view text) {
    return keep_members(text, {{"name", {}},
                               {"namespace", {}},
                               {"uid", {}},
                               {"resourceVersion", {}},
                               {"deletionTimestamp", {}}});
  };
  const auto operation = [](std::string_view text) {
    return keep_members(text, {{"phase", {}}, {"startedAt", {}}, {"finishedAt", {}}});
  };
  const auto sync = [](std::string_view text) {
    return keep_members(text, {{"status", {}}, {"revision", {}}, {"revisions", {}}});
  };
  const auto status = [&](std::string_view text) {
    return keep_members(text, {{"health", {}}, {"sync", sync}, {"operationState", operation}});
  };
  return keep_members(
      manifest, {{"apiVersion", {}}, {"kind", {}}, {"metadata", metadata}, {"status", status}});
}

}  // namespace

std::string reduced_event(std::string_view body) {
  simdjson::dom::parser parser;
  const auto event = parse_object(parser, body, "event");
  if (!event) return {};
  const auto data = (*event)["data"];
  const auto object = base64_decode(data["object"].text());
  if (!object) return {};
  const auto reduced_text = [](JsonView text) {
    return json_string(reduced_manifest(text.text()));
  };
  auto out = edit_present_member(body, "data", [&](std::string_view payload) {
    auto smaller = edit_present_member(payload, "object", [&](std::string_view) {
      return json_string(base64_encode(reduced_manifest(*object)));
    });
    return edit_present_member(smaller, "source", [&](std::string_view source) {
      std::string kept(source);
      for (const auto* name : {"desiredManifest", "actualManifest"}) {
        kept = edit_present_member(
            kept, name, [&](std::string_view) { return reduced_text(data["source"][name]); });
      }
      return edit_present_member(kept, "gitManifest",
                                 [](std::string_view) { return std::string("\"\""); });
    });
  });
  return out.size() < body.size() ? out : std::string{};
}

std::string write_event(const EventBody& body, const ErrorList& errors,
                        const TrackingSettings& settings, WallTime now) {
  std::string out;
  out.reserve(2048 + 2 * body.object.size() + 2 * body.actual_manifest.size() +
              3 * body.desired_manifest.size());
  out += "{\"data\":";
  ObjectWriter payload(out);
  payload.text("timestamp", format_rfc3339_millis(now));
  payload.text("object", base64_encode(body.object));
  write_source(payload.begin("source"), body, settings);
  if (!errors.empty()) errors.write(payload.begin("errors"));
  payload.raw("appVersions", "{}");
  payload.end();
  out += '}';
  return out;
}

}  // namespace gitops::reporter
