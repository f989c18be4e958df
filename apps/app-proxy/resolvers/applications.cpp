#include "app-proxy/resolvers/applications.hpp"

#include <optional>
#include <utility>

#include "app-proxy/resolvers/arguments.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;
using graphql::InputView;
using graphql::Json;

argo::AppRef app_of(Call& call, std::string_view name) {
  return {.name = text_of(call[name]),
          .ns = text_of(call["appNamespace"]),
          .trace = call.context<Caller>().trace};
}

argo::ResourceRef resource_of(Call& call) {
  const auto name = call["resourceName"];
  return {.group = text_of(call["group"]),
          .version = text_of(call["version"]),
          .kind = text_of(call["kind"]),
          .ns = text_of(call["namespace"]),
          .name = text_of(name.exists() ? name : call["name"])};
}

// Returns {"metadata":{"name":…}}.
Json named(const std::string& name) {
  return Json::trusted("{\"metadata\":{\"name\":" + json_string(name) + "}}");
}

// Copies the members of an input that are set, under other names where `renamed` has one.
void copy_given(ObjectWriter& to, InputView from,
                std::initializer_list<std::pair<std::string_view, std::string_view>> names) {
  for (const auto& [name, sent] : names) {
    if (from[name].exists()) to.raw(sent, from[name].json());
  }
}

// Returns the object with a string member converted to the form of the schema's enums.
std::string with_enum(std::string_view object, std::string_view name, std::string_view otherwise) {
  const std::string base(object.empty() || object == "null" ? "{}" : object);
  return edit_member(base, name, [&](std::string_view value) {
    const bool is_text = value.size() > 2 && value.front() == '"';
    return json_string(is_text ? enum_word(value.substr(1, value.size() - 2)) : otherwise);
  });
}

std::string with_default(std::string_view object, std::string_view name,
                         const std::string& value_if_absent) {
  return edit_member(object, name, [&](std::string_view value) {
    return value.empty() || value == "null" ? value_if_absent : std::string(value);
  });
}

}  // namespace

std::string enum_word(std::string_view word) {
  std::string out;
  bool was_small = false;
  for (const char c : word) {
    const bool is_small = c >= 'a' && c <= 'z';
    if (was_small && c >= 'A' && c <= 'Z') out += '_';
    out += is_small ? static_cast<char>(c - 'a' + 'A') : c;
    was_small = is_small;
  }
  return out;
}

std::string sync_options(InputView options) {
  std::string out;
  ObjectWriter writer(out);
  copy_given(writer, options,
             {{"dryRun", "dryRun"},
              {"manifests", "manifests"},
              {"prune", "prune"},
              {"resources", "resources"},
              {"retryStrategy", "retryStrategy"},
              {"revision", "revision"},
              {"strategy", "strategy"},
              {"syncOptions", "syncOptions"}});
  if (options["infos"].exists()) {
    std::string list = "[";
    for (const auto info : options["infos"].items()) {
      if (list.size() > 1) list += ',';
      std::string one;
      ObjectWriter pair(one);
      copy_given(pair, info, {{"name", "name"}, {"valus", "value"}});
      pair.end();
      list += one;
    }
    writer.raw("infos", list + "]");
  }
  writer.end();
  return out;
}

std::string render_application(std::string_view application, std::string_view runtime) {
  const std::string_view spec = member_text(application, "spec");
  const std::string_view status = member_text(application, "status");
  const std::string_view destination = member_text(spec, "destination");
  std::string cluster = member_string(destination, "server");
  if (cluster.empty()) cluster = member_string(destination, "name");
  const std::string_view operation_state = member_text(status, "operationState");
  const bool is_syncing = !member_text(application, "operation").empty() ||
                          member_string(operation_state, "phase") == "Running";
  const std::string sync = with_enum(member_text(status, "sync"), "status", "UNKNOWN");
  const std::string sync_status = is_syncing ? "SYNCING" : member_string(sync, "status");
  const std::string_view sources = member_text(spec, "sources");
  std::string first_source(member_text(spec, "source"));
  if (first_source.empty() && sources.starts_with('[')) {
    for_each_item(sources, [&](std::string_view source) {
      if (first_source.empty()) first_source = source;
    });
  }
  if (first_source.empty()) first_source = R"({"repoURL":""})";
  const std::string_view metadata = member_text(application, "metadata");
  const std::string_view labels = member_text(metadata, "labels");
  const std::string_view automated = member_text(member_text(spec, "syncPolicy"), "automated");
  // Argo CD 3.1 and later can disable a policy.
  const bool is_automated = !automated.empty() && member_text(automated, "enabled") != "false";
  std::int64_t oldest = -1;
  for_each_item(member_text(status, "history"), [&](std::string_view entry) {
    const std::string_view id = member_text(entry, "id");
    const std::int64_t number = id.empty() ? 0 : std::atoll(std::string(id).c_str());
    if (oldest < 0 || number < oldest) oldest = number;
  });

  std::string info;
  ObjectWriter calculated(info);
  calculated.raw("isHelmApp", !member_text(first_source, "chart").empty() ||
                                      !member_text(first_source, "helm").empty()
                                  ? "true"
                                  : "false");
  calculated.raw(
      "isControlledByAppSet",
      member_text(metadata, "ownerReferences").contains("\"ApplicationSet\"") ? "true" : "false");
  calculated.raw("isGitSource",
                 member_string(labels, "codefresh.io/entity") == "git-source" ? "true" : "false");
  calculated.text("syncPolicy", is_automated ? "Automated" : "Manual");
  calculated.text("targetRevision", member_string(first_source, "targetRevision"));
  calculated.raw("specSource", first_source);
  calculated.text("syncStatus", sync_status);
  calculated.end();

  std::string out;
  ObjectWriter writer(out);
  writer.raw("metadata", with_strings(metadata, {{"runtime", runtime},
                                                 {"cluster", cluster},
                                                 {"group", "argoproj.io"},
                                                 {"version", "v1alpha1"},
                                                 {"kind", "Application"}}));
  if (const auto operation = member_text(application, "operation"); !operation.empty()) {
    writer.raw("operation", operation);
  }
  writer.raw("spec", with_default(spec.empty() ? "{}" : spec, "syncPolicy", "{}"));
  std::string rendered_status(status.empty() ? "{}" : status);
  rendered_status = edit_member(rendered_status, "health", [](std::string_view health) {
    return with_enum(health, "status", "UNKNOWN");
  });
  rendered_status = edit_member(rendered_status, "sync", [&](std::string_view) {
    return with_strings(sync, {{"status", sync_status}});
  });
  rendered_status = with_default(rendered_status, "reconciledAt", "\"\"");
  rendered_status = with_default(rendered_status, "summary", "{}");
  writer.raw("status", rendered_status);
  writer.raw("calculatedInfo", info);
  writer.raw("calculatedStatus",
             oldest < 0 ? "{}" : "{\"minHistoryId\":" + std::to_string(oldest) + "}");
  writer.end();
  return out;
}

Task<Result<Json>> application_proxy_query(ApplicationActions& applications, Call& call) {
  const auto found = co_await applications.permitted(user_of(call), Action::view,
                                                     app_of(call, "name"), call.deadline());
  if (!found) co_return std::unexpected(found.error());
  co_return Json::trusted(render_application(*found, applications.runtime()));
}

Task<Result<Json>> sync_application(ApplicationActions& applications, Call& call) {
  const auto app = app_of(call, "applicationName");
  auto done = co_await applications.sync(user_of(call), app, sync_options(call["options"]),
                                         call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return named(app.name);
}

Task<Result<Json>> refresh_application(ApplicationActions& applications, Call& call) {
  const auto app = app_of(call, "applicationName");
  const bool is_hard = call["options"]["refresh"].text() == "hard";
  auto done = co_await applications.refresh(
      user_of(call), app, is_hard ? argo::Refresh::hard : argo::Refresh::normal, call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return named(app.name);
}

Task<Result<Json>> rollback_application(ApplicationActions& applications, Call& call) {
  const auto app = app_of(call, "appName");
  auto done = co_await applications.rollback(user_of(call), app,
                                             {.history_id = call["historyId"].integer(),
                                              .dry_run = call["dryRun"].is_true(),
                                              .prune = call["prune"].is_true()},
                                             call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return named(app.name);
}

Task<Result<Json>> terminate_application_operation(ApplicationActions& applications, Call& call) {
  auto done = co_await applications.terminate(user_of(call), app_of(call, "applicationName"),
                                              call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Json::trusted(done->changed ? R"({"terminated":true})" : R"({"terminated":false})");
}

Task<Result<void>> delete_argo_application(ApplicationActions& applications, Call& call) {
  const auto cascade = call["cascade"];
  co_return co_await applications.remove(user_of(call), app_of(call, "applicationName"),
                                         !cascade.exists() || cascade.is_true(),
                                         text_of(call["propagationPolicy"]), call.deadline());
}

Task<Result<Json>> application_resource(ApplicationActions& applications, Call& call) {
  auto found = co_await applications.resource(user_of(call), app_of(call, "application"),
                                              resource_of(call), call.deadline());
  if (!found) co_return std::unexpected(std::move(found.error()));
  co_return Json::trusted(std::move(*found));
}

Task<Result<Json>> patch_application_resource(ApplicationActions& applications, Call& call) {
  const std::string_view type = call["patchType"].text_or("application/merge-patch+json");
  if (type != "application/merge-patch+json" && type != "application/json-patch+json" &&
      type != "application/strategic-merge-patch+json") {
    co_return fail(ErrorCode::invalid_argument, "patchType: not a media type of patches");
  }
  auto done = co_await applications.patch_resource(user_of(call), app_of(call, "application"),
                                                   resource_of(call), std::string(type),
                                                   text_of(call["patch"]), call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Json::trusted("{\"manifest\":" + json_string(*done) + "}");
}

Task<Result<void>> delete_application_resource(ApplicationActions& applications, Call& call) {
  co_return co_await applications.delete_resource(
      user_of(call), app_of(call, "application"), resource_of(call),
      {.force = call["force"].is_true(), .orphan = call["orphan"].is_true()}, call.deadline());
}

Task<Result<Json>> resource_actions(ApplicationActions& applications, Call& call) {
  auto list = co_await applications.resource_actions(user_of(call), app_of(call, "application"),
                                                     resource_of(call), call.deadline());
  if (!list) co_return std::unexpected(std::move(list.error()));
  // argocd-server omits "disabled" when it is false.
  std::string shown = "[";
  for_each_item(*list, [&](std::string_view action) {
    if (shown.size() > 1) shown += ',';
    shown += with_default(action, "disabled", "false");
  });
  co_return Json::trusted(shown + "]");
}

Task<Result<Json>> run_resource_action(ApplicationActions& applications, Call& call) {
  const auto app = app_of(call, "application");
  auto done = co_await applications.run_action(
      user_of(call), app, resource_of(call), text_of(call["action"]),
      call["parameters"].exists() ? call["parameters"].json() : std::string(), call.deadline());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return named(app.name);
}

void add_application_types(graphql::Resolvers& to) {
  for (const char* type : {"SyncResponse",
                           "RefreshResponse",
                           "NameOnly",
                           "TerminateApplicationOperationResponse",
                           "Resource",
                           "AppResoureActionMetadata",
                           "AppResourceActionMetadataParam",
                           "AppProxyK8sEntityMetadataInfo",
                           "ApplicationItemSpecInfo",
                           "ApplicationFormDestination",
                           "ApplicationFormSource",
                           "ApplicationFormIgnoreDifferences",
                           "ApplicationFormSyncPolicy",
                           "ApplicationFormSyncAutomatedPolicy",
                           "ApplicationFormSyncRetryOptions",
                           "ApplicationFormSyncRetryBackoff",
                           "ArgoCdDTOInfo",
                           "ApplicationItemStatusInfo",
                           "ApplicationSyncDetails",
                           "ApplicationSyncDetailsComparedTo",
                           "ApplicationHistory",
                           "ApplicationStatusSummary",
                           "ApplicationOperationState",
                           "ApplicationOperation",
                           "ArgoCdDTOApplicationCondition",
                           "ApplicationItemCalculatedInfo",
                           "ApplicationItemCalculatedStatusInfo",
                           "ApplicationItemInfo"}) {
    to.json(type);
  }
  const auto in_words = [](std::string_view object, std::string_view name) {
    const std::string word = member_string(object, name);
    return word.empty() ? std::string("UNKNOWN") : enum_word(word);
  };
  // Resources still have Argo CD's terms.
  to.json("ApplicationResourceHealthStatusInfo",
          {{"status", [in_words](const graphql::JsonSlice& health) {
              return in_words(health.text, "status");
            }}});
  to.json("ApplicationResourceItem", {{"status", [in_words](const graphql::JsonSlice& item) {
                                         return in_words(item.text, "status");
                                       }}});
  to.json("ManagedResource", {{"managed",
                               [](const graphql::JsonSlice& item) {
                                 const auto target = member_text(item.text, "targetState");
                                 return !target.empty() && target != "\"null\"";
                               }},
                              {"status", [](const graphql::JsonSlice& item) -> std::string {
                                 const auto target = member_text(item.text, "targetState");
                                 if (target.empty()) return "UNKNOWN";
                                 const auto modified = member_text(item.text, "modified");
                                 const auto live = member_text(item.text, "liveState");
                                 return modified == "true" || live == "\"null\"" ? "OUT_OF_SYNC"
                                                                                 : "SYNCED";
                               }}});
}

}  // namespace gitops::app_proxy
