#include "control-plane/views/application_view.hpp"

#include <charconv>
#include <system_error>
#include <utility>

#include "control-plane/projection/event.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr std::string_view kGroups = "codefresh.io/app-group";
constexpr std::string_view kProduct = "codefresh.io/product";
constexpr std::string_view kSyncThreshold = "codefresh.io/app-sync-warning-threshold";
constexpr std::string_view kGitSource = "git-source";
constexpr int kDefaultThreshold = 30;  // minutes
constexpr Micros kMinute = 60'000'000;

JsonView metadata_of(JsonView application) {
  return application["metadata"];
}

bool is_helm(JsonView application) {
  const auto status = application["status"];
  if (status["sourceType"].text() == "Helm") return true;
  for (const auto type : status["sourceTypes"].items()) {
    if (type.text() == "Helm") return true;
  }
  const auto source = main_source(application);
  return !source["chart"].text().empty() || source["helm"].exists();
}

int sync_threshold(JsonView application) {
  const auto text = metadata_of(application)["annotations"][kSyncThreshold].text();
  int minutes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minutes);
  const bool is_valid = error == std::errc() && end == text.data() + text.size() && minutes > 0;
  return is_valid ? minutes : kDefaultThreshold;
}

bool has_rollouts(JsonView application) {
  for (const auto resource : application["status"]["resources"].items()) {
    if (resource["kind"].text() == "Rollout" && resource["group"].text() == kArgoGroup) return true;
  }
  return false;
}

void write_long_sync(ArrayJson& out, const ObjectState& state, JsonView application,
                     const ViewContext& context) {
  const auto operation = application["status"]["operationState"];
  const auto started = time_of(operation["startedAt"].text());
  if (operation["phase"].text() != "Running" || started == 0) return;
  const auto minutes = (context.now - started) / kMinute;
  if (minutes < sync_threshold(application)) return;
  const auto message =
      "The synchronization has been running for " + std::to_string(minutes) + " minutes";
  write_error(out,
              {.is_warning = true,
               .title = "Long synchronization",
               .message = message,
               .suggestion = "Look at the result of the synchronization, or terminate it",
               .code = "LONG_SYNC"},
              std::max(context.now, state.seen_at));
}

void write_errors(ObjectJson& out, const ObjectState& state, const ParsedBody& body,
                  const ViewContext& context) {
  out.array("errors", [&](ArrayJson& errors) {
    write_reported_errors(errors, body.errors(), state.seen_at);
    write_long_sync(errors, state, body.live(), context);
    if (has_rollouts(body.live()) && !context.reports_rollouts(state.key.runtime)) {
      write_error(errors,
                  {.is_warning = true,
                   .title = "Argo Rollouts is not reported",
                   .message = "The application has Rollouts, and no reporter of Rollouts of this "
                              "runtime has been heard of",
                   .suggestion = "Install Argo Rollouts and the reporter of resources",
                   .code = "MISSING_ROLLOUTS_COMPONENT"},
                  state.seen_at);
    }
  });
}

void write_relations(ObjectJson& out, const ObjectState& state, JsonView application) {
  const auto& runtime = state.key.runtime;
  const auto write_ref = [&runtime](ObjectJson& ref, std::string_view name,
                                    std::string_view application_namespace) {
    ref.text("runtime", runtime);
    ref.text_or_null("namespace", application_namespace);
    ref.text("name", name);
  };
  out.object("appsRelations", [&](ObjectJson& relations) {
    if (state.manager.name.empty()) {
      relations.null("parent");
    } else {
      relations.object("parent", [&](ObjectJson& parent) {
        write_ref(parent, state.manager.name, state.manager.application_namespace);
      });
    }
    relations.array("children", [&](ArrayJson& children) {
      for (const auto resource : application["status"]["resources"].items()) {
        if (resource["kind"].text() != "Application" || resource["group"].text() != kArgoGroup) {
          continue;
        }
        children.object([&](ObjectJson& child) {
          write_ref(child, resource["name"].text(), resource["namespace"].text());
        });
      }
    });
  });
}

// Writes the status, type ArgoCDApplicationStatus.
void write_status(ObjectJson& out, const ObjectState& state, JsonView application) {
  const auto status = application["status"];
  const auto operation = status["operationState"];
  const auto labels = metadata_of(application)["labels"];
  std::int64_t oldest = state.history_id;
  for (const auto entry : status["history"].items()) {
    oldest = std::min(oldest, entry["id"].number());
  }
  out.object("status", [&](ObjectJson& at) {
    write_states(at, state);
    at.text_or_null("syncStartedAt", operation["startedAt"].text());
    at.text_or_null("syncFinishedAt", operation["finishedAt"].text());
    at.text("revision", state.revision);
    at.text("version", "");
    at.text_or_null("commitAuthor", labels["app.meta.commit-author"].text());
    at.text_or_null("commitMessage", labels["app.meta.commit-message"].text());
    at.text_or_null("commitDate", labels["app.meta.commit-date"].text());
    at.text_or_null("commitUrl",
                    commit_url(main_source(application)["repoURL"].text(), state.revision));
    at.number("historyId", state.history_id);
    at.number("minHistoryId", oldest);
  });
}

void write_sync(ObjectJson& out, const ObjectState& state, JsonView application) {
  const auto sync = application["status"]["sync"];
  out.object("sync", [&](ObjectJson& at) {
    at.text("status", to_string(state.sync));
    at.text_or_null("revision", sync["revision"].text());
    at.array("revisions", [&](ArrayJson& revisions) {
      for (const auto revision : sync["revisions"].items()) revisions.text(revision.text());
    });
  });
}

// Writes the names of the products that the Application is assigned to.
void write_products(ObjectJson& out, JsonView application) {
  out.array("products", [&](ArrayJson& products) {
    for (const auto name : list_items(annotation_or_label(metadata_of(application), kProduct))) {
      products.object([&](ObjectJson& product) {
        product.text("id", name);
        product.text("name", name);
      });
    }
  });
}

void write_resource(ObjectJson& out, JsonView resource) {
  const auto health = resource["health"];
  out.text_or_null("group", resource["group"].text());
  out.text_or_null("version", resource["version"].text());
  out.text("kind", resource["kind"].text());
  out.text_or_null("namespace", resource["namespace"].text());
  out.text("name", resource["name"].text());
  const auto sync = resource["status"].text();
  out.text_or_null("syncStatus", sync.empty() ? "" : to_string(sync_status_of(sync)));
  const auto word = health["status"].text();
  out.text_or_null("healthStatus", word.empty() ? "" : to_string(health_status_of(word)));
  out.text_or_null("healthMessage", health["message"].text());
  out.flag("hook", resource["hook"].is_true());
  out.flag("requiresPruning", resource["requiresPruning"].is_true());
}

// Writes the resources of the status; null when none were ever reported.
void write_resources(ObjectJson& out, JsonView application, ApplicationParts parts) {
  const auto resources = application["status"]["resources"];
  if (parts != ApplicationParts::whole || !resources.exists()) {
    out.null("resources");
    return;
  }
  out.array("resources", [&](ArrayJson& items) {
    for (const auto resource : resources.items()) {
      items.object([&](ObjectJson& at) { write_resource(at, resource); });
    }
  });
}

void write_source_fields(ObjectJson& out, JsonView application) {
  const auto source = main_source(application);
  out.text_or_null("path", source["path"].text());
  out.text_or_null("repoURL", source["repoURL"].text());
  out.text_or_null("include", source["directory"]["include"].text());
  out.text_or_null("exclude", source["directory"]["exclude"].text());
  if (source["repoURL"].text().empty()) {
    out.null("specSource");
  } else {
    out.object("specSource", [&](ObjectJson& at) { write_spec_source(at, source); });
  }
  write_spec_sources(out, application);
}

}  // namespace

std::string_view sync_policy(JsonView application) {
  if (!application["spec"].exists()) return "Unknown";
  const auto automated = application["spec"]["syncPolicy"]["automated"];
  if (!automated.exists()) return "Manual";
  // Argo CD 3.1 and later can disable a policy.
  const bool is_off = automated["enabled"].exists() && !automated["enabled"].is_true();
  return is_off ? "Manual" : "Automated";
}

JsonView main_source(JsonView application) {
  const auto spec = application["spec"];
  if (const auto hydrator = spec["sourceHydrator"]; hydrator.exists()) {
    // The sync source uses the repository of the dry source unless it has one of its own.
    const auto sync_source = hydrator["syncSource"];
    return sync_source["repoURL"].exists() ? sync_source : hydrator["drySource"];
  }
  for (const auto source : spec["sources"].items()) {
    if (source["ref"].text().empty()) return source;
  }
  return spec["source"];
}

void write_spec_source(ObjectJson& out, JsonView source) {
  out.text_or_null("path", source["path"].text());
  out.text("repoURL", source["repoURL"].text());
  out.text_or_null("targetRevision", source["targetRevision"].text());
  out.text_or_null("chart", source["chart"].text());
  out.text_or_null("ref", source["ref"].text());
}

void write_spec_sources(ObjectJson& out, JsonView application) {
  const auto sources = application["spec"]["sources"];
  if (sources.items().size() == 0) {
    out.null("specSources");
    return;
  }
  out.array("specSources", [&](ArrayJson& items) {
    for (const auto source : sources.items()) {
      items.object([&](ObjectJson& at) { write_spec_source(at, source); });
    }
  });
}

void write_destination(ObjectJson& out, const ObjectState& state, JsonView application) {
  const auto destination = application["spec"]["destination"];
  out.object("destination", [&](ObjectJson& at) {
    const auto server = destination["server"].text();
    at.text_or_null("name", destination["name"].text());
    at.text_or_null("server", server.empty() && !destination.exists()
                                  ? std::string_view(state.destination)
                                  : server);
    at.text_or_null("namespace", destination["namespace"].text());
  });
}

void write_operation_state(ObjectJson& out, JsonView application) {
  const auto operation = application["status"]["operationState"];
  if (!operation.is_object()) {
    out.null("operationState");
    return;
  }
  out.object("operationState", [&](ObjectJson& at) {
    const auto phase = to_string(phase_of(operation["phase"].text()));
    const bool is_known = phase == "Error" || phase == "Failed" || phase == "Running" ||
                          phase == "Succeeded" || phase == "Terminating";
    at.text("phase", is_known ? phase : "Unknown");
    at.text_or_null("message", operation["message"].text());
    at.text_or_null("startedAt", operation["startedAt"].text());
    at.text_or_null("finishedAt", operation["finishedAt"].text());
    const auto result = operation["syncResult"];
    auto revision = result["revision"].text();
    for (const auto one : result["revisions"].items()) {
      if (revision.empty()) revision = one.text();
    }
    at.text_or_null("revision", revision);
    at.text_or_null("initiatedBy", operation["operation"]["initiatedBy"]["username"].text());
  });
}

std::vector<std::string_view> application_groups(JsonView application) {
  return list_items(metadata_of(application)["annotations"][kGroups].text());
}

void append_application(std::string& out, const ObjectState& state, const ParsedBody& body,
                        const ViewContext& context, ApplicationParts parts) {
  const auto application = body.live();
  ObjectJson at(out);
  at.raw("metadata", metadata_json(state, metadata_of(application), context));
  write_states(at, state);
  write_errors(at, state, body, context);
  write_relations(at, state, application);
  at.flag("readPermission", true);
  at.flag("latest", true);
  write_entity_source(at, "source", body);
  at.time_or_null("updatedAt", state.changed_at);
  at.time_or_null("seenAt", state.seen_at);
  at.text("presence", to_string(state.presence));
  at.number("size", static_cast<std::int64_t>(application["status"]["resources"].items().size()));
  at.text_or_null("revision", state.revision);
  write_status(at, state, application);
  write_destination(at, state, application);
  write_source_fields(at, application);
  write_operation_state(at, application);
  write_sync(at, state, application);
  at.text("syncPolicy", sync_policy(application));
  at.flag("isHelmApp", is_helm(application));
  at.flag("isGitSource", state.entity == kGitSource);
  at.flag("isMultiSourced", application["spec"]["sources"].items().size() > 0);
  at.array("relatedGroups", [&](ArrayJson& groups) {
    for (const auto group : application_groups(application)) groups.text(group);
  });
  write_products(at, application);
  at.text_or_null("project", application["spec"]["project"].text());
  write_resources(at, application, parts);
  at.end();
}

}  // namespace gitops::control_plane_server
