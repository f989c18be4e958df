#include "app-proxy/actions/applications.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "app-proxy/actions/entities.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kPeer = "Argo CD";
constexpr std::string_view kRolloutGroup = "argoproj.io";
// Interval of checks that an Application is gone.
constexpr auto kPruneStep = std::chrono::milliseconds(500);

Error refused(std::string_view subcode, std::string message) {
  return {.code = ErrorCode::conflict, .message = std::move(message), .subcode = subcode};
}

Error shown(Error error) {
  return public_action_error(std::move(error), kPeer);
}

bool is_object(std::string_view text) {
  JsonParser parser;
  return parser.parse_object(text, "answer").has_value();
}

// Checks that an answer is an Application. An object without a name comes from something else.
bool is_application(std::string_view text) {
  JsonParser parser;
  const auto root = parser.parse_object(text, "answer");
  return root && !(*root)["metadata"]["name"].text().empty();
}

Error no_application() {
  return shown(Error{.code = ErrorCode::protocol, .message = "the answer is no Application"});
}

// Error for a change whose answer is not that of argocd-server.
Error unconfirmed(std::string_view what) {
  return {.code = ErrorCode::unavailable,
          .message = std::string(kPeer) + " has not answered with the " + std::string(what) +
                     "; look at it before you repeat this",
          .subcode = action_errors::kNotAvailable};
}

// Returns the result of an operation that was asked for: argocd-server answers with the
// Application.
Result<void> begun(const Result<std::string>& answer) {
  if (!answer) return std::unexpected(shown(answer.error()));
  if (is_application(*answer)) return {};
  return std::unexpected(unconfirmed("application"));
}

Error no_json() {
  return shown(Error{.code = ErrorCode::protocol, .message = "the answer is no JSON object"});
}

Result<void> check(const argo::AppRef& app) {
  if (auto name = check_object_name("name of the application", app.name); !name) return name;
  return app.ns.empty() ? Result<void>()
                        : check_object_name("namespace of the application", app.ns);
}

Error in_progress(const argo::AppRef& app) {
  return refused(
      action_errors::kInProgress,
      "an operation of " + app.name + " is in progress; wait until it has ended, or terminate it");
}

std::string destination_namespace(std::string_view application) {
  JsonParser parser;
  const auto root = parser.parse_object(application, "Application");
  return root ? std::string((*root)["spec"]["destination"]["namespace"].text()) : std::string();
}

// Error after the deadline of a deletion. `last` is Argo CD's last response.
Error still_pruning(const std::string& git_source, const Result<std::string>& last) {
  std::string why = "Argo CD has not pruned it yet";
  if (!is_pruned(last, false)) {
    why = "Argo CD does not tell whether it has pruned it";
    if (!last && last.error().code == ErrorCode::forbidden) {
      why += ": its account needs the right to get all applications";
    }
  }
  return {.code = ErrorCode::timeout,
          .message = "Git source " + git_source + " is removed from Git, and " + why +
                     "; repeat this to wait on",
          .subcode = action_errors::kPruning};
}

// Fails for users who are not administrators. For operations without a rule.
Result<void> needs_admin(const User& user, std::string_view what) {
  if (user.is_admin) return {};
  return std::unexpected(
      forbidden_action("only an administrator of the account may " + std::string(what)));
}

}  // namespace

ApplicationActions::ApplicationActions(argo::ArgoCdClient& argocd, Credential& token,
                                       const Rules& rules, std::string runtime)
    : argocd_(argocd), token_(token), rules_(rules), runtime_(std::move(runtime)) {}

template <class Ask>
auto ApplicationActions::with_token(Ask ask) -> decltype(ask()) {
  const Secret sent = token_.current();
  auto answer = co_await ask();
  // Another request may have fetched the newer token already.
  if (!answer && answer.error().code == ErrorCode::unauthenticated &&
      (!(token_.current() == sent) || co_await token_.refused())) {
    answer = co_await ask();
  }
  co_return answer;
}

Task<Result<std::string>> ApplicationActions::permitted(const User& user, Action action,
                                                        argo::AppRef app, Deadline deadline) {
  if (auto checked = check(app); !checked) co_return std::unexpected(checked.error());
  auto found =
      co_await with_token([&] { return argocd_.application(app, argo::Refresh::none, deadline); });
  if (!found) {
    const auto code = found.error().code;
    if (code != ErrorCode::forbidden && code != ErrorCode::not_found) {
      co_return std::unexpected(shown(std::move(found.error())));
    }
    if (action == Action::view || !user.is_admin) {
      co_return std::unexpected(forbidden_action("no such application, or no right for it"));
    }
    co_return std::unexpected(
        Error{.code = ErrorCode::not_found,
              .message = "application \"" + app.name +
                         "\" not found, or the runtime's Argo CD account may not get it",
              .http_status = 404,
              .subcode = action_errors::kNotFound});
  }
  if (!is_application(*found)) co_return std::unexpected(no_application());
  if (auto allowed = rules_.check(user, action, application_entity(*found, runtime_)); !allowed) {
    co_return std::unexpected(allowed.error());
  }
  co_return std::move(*found);
}

Task<Result<void>> ApplicationActions::sync(const User& user, argo::AppRef app, std::string options,
                                            Deadline deadline) {
  const auto found = co_await permitted(user, Action::sync, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  if (application_state(*found).has_operation) co_return std::unexpected(in_progress(app));
  co_return begun(co_await with_token([&] { return argocd_.sync(app, options, deadline); }));
}

Task<Result<void>> ApplicationActions::refresh(const User& user, argo::AppRef app,
                                               argo::Refresh how, Deadline deadline) {
  const auto found = co_await permitted(user, Action::refresh, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  auto done = co_await with_token([&] { return argocd_.application(app, how, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  if (!is_application(*done)) co_return std::unexpected(no_application());
  co_return Result<void>();
}

Task<Result<void>> ApplicationActions::rollback(const User& user, argo::AppRef app, Rollback to,
                                                Deadline deadline) {
  const auto found = co_await permitted(user, Action::app_rollback, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  const auto state = application_state(*found);
  if (state.is_automated) {
    co_return std::unexpected(
        refused(action_errors::kAutoSync,
                app.name + " syncs by itself, so a rollback would be undone; switch auto-sync off, "
                           "or revert the commit"));
  }
  if (state.has_operation) co_return std::unexpected(in_progress(app));
  std::string options;
  ObjectWriter writer(options);
  writer.raw("id", std::to_string(to.history_id));
  writer.raw("dryRun", to.dry_run ? "true" : "false");
  writer.raw("prune", to.prune ? "true" : "false");
  writer.end();
  co_return begun(co_await with_token([&] { return argocd_.rollback(app, options, deadline); }));
}

Task<Result<Outcome>> ApplicationActions::terminate(const User& user, argo::AppRef app,
                                                    Deadline deadline) {
  const auto found = co_await permitted(user, Action::terminate_sync, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  const Outcome nothing{.changed = false, .note = "no operation is in progress"};
  if (!application_state(*found).has_operation) co_return nothing;
  auto done = co_await with_token([&] { return argocd_.terminate_operation(app, deadline); });
  if (done) co_return Outcome();
  // The operation ended in the meantime.
  if (done.error().code == ErrorCode::invalid_argument) co_return nothing;
  co_return std::unexpected(shown(std::move(done.error())));
}

Task<Result<void>> ApplicationActions::remove(const User& user, argo::AppRef app, bool cascade,
                                              std::string propagation, Deadline deadline) {
  if (auto admin = needs_admin(user, "delete an application"); !admin) co_return admin;
  const auto found = co_await permitted(user, Action::delete_resource, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  auto done =
      co_await with_token([&] { return argocd_.remove(app, cascade, propagation, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Result<void>();
}

Task<Result<bool>> ApplicationActions::wait_until_pruned(std::string git_source,
                                                         std::vector<argo::AppRef> parents,
                                                         Deadline deadline) {
  if (parents.empty()) co_return false;
  const argo::AppRef app{.name = git_source, .ns = parents.front().ns};
  bool sees_all = false;
  bool was_there = false;  // as far as Argo CD has told
  while (true) {
    const auto found = co_await with_token(
        [&] { return argocd_.application(app, argo::Refresh::none, deadline); });
    if (!sees_all && !found && found.error().code == ErrorCode::forbidden) {
      const auto allowed = co_await with_token(
          [&] { return argocd_.can_i("applications", "get", "*/*", deadline); });
      sees_all = allowed && *allowed;
    }
    if (is_pruned(found, sees_all).value_or(false)) co_return was_there;
    was_there = true;
    if (deadline - Clock::now() <= kPruneStep) {
      co_return std::unexpected(still_pruning(git_source, found));
    }
    for (const auto& parent : parents) {
      // The response comes after the comparison. A missing parent cannot be compared, so errors are
      // ignored.
      (void)co_await with_token(
          [&] { return argocd_.application(parent, argo::Refresh::normal, deadline); });
    }
    co_await sleep_for(std::min<Clock::duration>(kPruneStep, deadline - Clock::now()));
  }
}

Task<Result<std::string>> ApplicationActions::resource(const User& user, argo::AppRef app,
                                                       argo::ResourceRef which, Deadline deadline) {
  const auto found = co_await permitted(user, Action::view, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  if (complete(which, *found)) {
    const argo::ObjectFilter only{
        .group = which.group, .kind = which.kind, .ns = which.ns, .name = which.name};
    auto managed =
        co_await with_token([&] { return argocd_.managed_resources(app, deadline, only); });
    if (!managed) co_return std::unexpected(shown(std::move(managed.error())));
    if (!is_object(*managed)) co_return std::unexpected(no_json());
    std::string item;
    for_each_item(member_text(*managed, "items"), [&](std::string_view text) {
      if (item.empty()) item = text;
    });
    if (!item.empty()) co_return item;
  }
  auto live = co_await with_token([&] { return argocd_.resource(app, which, deadline); });
  if (!live) co_return std::unexpected(shown(std::move(live.error())));
  if (!is_object(*live)) co_return std::unexpected(no_json());
  co_return edit_present_member(*live, "manifest", [](std::string_view text) {
    return std::string(text) + ",\"liveState\":" + std::string(text);
  });
}

Task<Result<std::string>> ApplicationActions::patch_resource(const User& user, argo::AppRef app,
                                                             argo::ResourceRef which,
                                                             std::string patch_type,
                                                             std::string patch, Deadline deadline) {
  if (auto admin = needs_admin(user, "patch an object"); !admin) {
    co_return std::unexpected(admin.error());
  }
  const auto found = co_await permitted(user, Action::sync, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  (void)complete(which, *found);
  auto done = co_await with_token(
      [&] { return argocd_.patch_resource(app, which, patch_type, patch, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  JsonParser parser;
  const auto json = parser.parse_object(*done, "answer of Argo CD");
  std::string manifest(json ? (*json)["manifest"].text() : std::string_view());
  if (manifest.empty()) co_return std::unexpected(unconfirmed("object"));
  co_return manifest;
}

Task<Result<void>> ApplicationActions::delete_resource(const User& user, argo::AppRef app,
                                                       argo::ResourceRef which, argo::Removal how,
                                                       Deadline deadline) {
  const auto found = co_await permitted(user, Action::delete_resource, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  (void)complete(which, *found);
  auto done =
      co_await with_token([&] { return argocd_.delete_resource(app, which, how, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Result<void>();
}

Task<Result<std::string>> ApplicationActions::resource_actions(const User& user, argo::AppRef app,
                                                               argo::ResourceRef which,
                                                               Deadline deadline) {
  const auto found = co_await permitted(user, Action::view, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  (void)complete(which, *found);
  auto answer = co_await with_token([&] { return argocd_.actions(app, which, deadline); });
  if (!answer) co_return std::unexpected(shown(std::move(answer.error())));
  if (!is_object(*answer)) co_return std::unexpected(no_json());
  const auto list = member_text(*answer, "actions");
  co_return list.starts_with('[') ? std::string(list) : "[]";
}

Task<Result<void>> ApplicationActions::run_action(const User& user, argo::AppRef app,
                                                  argo::ResourceRef which, std::string action,
                                                  std::string parameters, Deadline deadline) {
  const auto right = right_for(which, action);
  if (!right) {
    if (auto admin = needs_admin(user, "run this action"); !admin) co_return admin;
  }
  const auto found = co_await permitted(user, right.value_or(Action::sync), app, deadline);
  if (!found) co_return std::unexpected(found.error());
  (void)complete(which, *found);
  auto done = co_await with_token(
      [&] { return argocd_.run_action(app, which, action, parameters, deadline); });
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Result<void>();
}

Task<Result<OpenedLogs>> ApplicationActions::logs(const User& user, argo::AppRef app,
                                                  argo::AppLogOptions options, Deadline deadline) {
  const auto found = co_await permitted(user, Action::view_pod_logs, app, deadline);
  if (!found) co_return std::unexpected(found.error());
  if (options.of.ns.empty()) {
    options.of.ns = destination_namespace(*found);
  }
  auto opened = co_await argocd_.logs(app, std::move(options), deadline);
  if (!opened) co_return std::unexpected(shown(std::move(opened.error())));
  co_return OpenedLogs{.exchange = std::move(*opened),
                       .is_allowed = still_allowed(Action::view_pod_logs, *found)};
}

StillAllowed ApplicationActions::still_allowed(Action action, std::string_view application) const {
  return [this, action, entity = application_entity(application, runtime_)](const User& user) {
    return rules_.check(user, action, entity);
  };
}

Task<Result<std::string>> ApplicationActions::permitted_object(const User& user, argo::AppRef app,
                                                               argo::ResourceRef of,
                                                               Deadline deadline) {
  auto found = co_await permitted(user, Action::view, app, deadline);
  if (!found) co_return std::unexpected(std::move(found.error()));
  auto tree = co_await with_token([&] { return argocd_.resource_tree(app, deadline); });
  if (!tree) co_return std::unexpected(shown(std::move(tree.error())));
  if (has_object(*tree, of)) co_return std::move(*found);
  co_return std::unexpected(forbidden_action("the application has no such object"));
}

ApplicationState application_state(std::string_view application) {
  JsonParser parser;
  const auto root = parser.parse_object(application, "Application");
  if (!root) return {};
  const std::string_view phase = (*root)["status"]["operationState"]["phase"].text();
  const JsonView automated = (*root)["spec"]["syncPolicy"]["automated"];
  // Argo CD 3 can turn it off in place: spec.syncPolicy.automated.enabled.
  const JsonView enabled = automated["enabled"];
  return {.has_operation =
              (*root)["operation"].exists() || phase == "Running" || phase == "Terminating",
          .is_automated = automated.exists() && (!enabled.exists() || enabled.is_true())};
}

std::optional<bool> is_pruned(const Result<std::string>& answer, bool sees_all) {
  if (answer) {
    JsonParser parser;
    const auto root = parser.parse_object(*answer, "Application");
    if (!root || (*root)["metadata"]["name"].text().empty()) return std::nullopt;
    return (*root)["metadata"]["labels"]["codefresh.io/entity"].text() != "git-source";
  }
  if (answer.error().code == ErrorCode::not_found) return true;
  // Argo CD sends 404 for a missing Application only when the request names its project, which the
  // runtime does not know. Without a project it sends 403 both for a missing Application and for
  // one that the account may not get (argocd-server, getAppEnforceRBAC). For an account that may
  // get all Applications, 403 means that it is missing.
  if (answer.error().code == ErrorCode::forbidden && sees_all) return true;
  return std::nullopt;
}

bool complete(argo::ResourceRef& which, std::string_view application) {
  JsonParser parser;
  const auto root = parser.parse_object(application, "Application");
  if (!root) return false;
  std::optional<argo::ResourceRef> match;
  for (const auto item : (*root)["status"]["resources"].items()) {
    const bool fits = item["kind"].text() == which.kind && item["name"].text() == which.name &&
                      item["group"].text() == which.group &&
                      (which.ns.empty() || item["namespace"].text() == which.ns);
    if (!fits) continue;
    if (match) return false;
    match = which;
    match->ns = item["namespace"].text();
    if (which.version.empty()) match->version = item["version"].text();
  }
  if (!match) {
    // Objects that others created from these keep their namespaces.
    if (which.ns.empty()) which.ns = (*root)["spec"]["destination"]["namespace"].text();
    return false;
  }
  which = std::move(*match);
  return true;
}

bool has_object(std::string_view tree, const argo::ResourceRef& of) {
  JsonParser parser;
  const auto root = parser.parse_object(tree, "resource tree");
  if (!root) return false;
  for (const auto node : (*root)["nodes"].items()) {
    if (node["kind"].text() == of.kind && node["group"].text() == of.group &&
        node["namespace"].text() == of.ns && node["name"].text() == of.name) {
      return true;
    }
  }
  return false;
}

std::optional<Action> right_for(const argo::ResourceRef& which, std::string_view action) {
  constexpr std::array kOfRollouts = {
      std::pair{std::string_view("pause"), Action::rollout_pause},
      std::pair{std::string_view("resume"), Action::rollout_resume},
      std::pair{std::string_view("promote-full"), Action::rollout_promote_full},
      std::pair{std::string_view("skip-current-step"), Action::rollout_skip_current_step},
      std::pair{std::string_view("abort"), Action::rollout_abort},
      std::pair{std::string_view("retry"), Action::rollout_retry},
  };
  if (action == "restart") return Action::restart;
  if (which.group != kRolloutGroup || which.kind != "Rollout") return std::nullopt;
  for (const auto& [name, right] : kOfRollouts) {
    if (name == action) return right;
  }
  return std::nullopt;
}

}  // namespace gitops::app_proxy
