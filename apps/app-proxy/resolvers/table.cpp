#include "app-proxy/resolvers/table.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "app-proxy/resolvers/applications.hpp"
#include "app-proxy/resolvers/clusters.hpp"
#include "app-proxy/resolvers/commits.hpp"
#include "app-proxy/resolvers/git_integrations.hpp"
#include "app-proxy/resolvers/logs.hpp"
#include "app-proxy/resolvers/repositories.hpp"
#include "app-proxy/resolvers/rollouts.hpp"
#include "app-proxy/resolvers/workflows.hpp"
#include "common/core/log.hpp"
#include "common/graphql/response.hpp"

namespace gitops::app_proxy {
namespace {

using graphql::Call;

// Returns the reason for which the caller is refused; nullopt when the call is permitted.
std::optional<Error> refusal(Permission permission, const Caller& caller) {
  if (permission == Permission::anyone) return std::nullopt;
  if (!caller.user) {
    return Error{.code = ErrorCode::unauthenticated,
                 .message = "Unauthorized: Invalid token.",
                 .http_status = 401};
  }
  // Permissions of fields are public (docs/reference/app-proxy/api.md), so the reason may be shown.
  if (permission == Permission::admin && !caller.user->is_admin) {
    return Error{.code = ErrorCode::forbidden,
                 .message = "only an administrator of the account may do this",
                 .http_status = 403,
                 .subcode = graphql::kPublicRefusal};
  }
  return std::nullopt;
}

// Refuses calls before their resolver runs.
struct Guard {
  // Returns the reason of a refusal; nullopt when the resolver may run.
  [[nodiscard]] std::optional<Error> check(const Caller& caller) const {
    auto refused = refusal(permission, caller);
    return refused ? refused : missing;
  }

  Permission permission;
  std::optional<Error> missing;  // for a feature that the runtime lacks
};

graphql::Value failure(Error error) {
  return graphql::Value(std::make_unique<Error>(std::move(error)));
}

// Returns the value of an argument named by a path, as "args.name".
std::string argument(Call& call, std::string_view path) {
  graphql::InputView at = call.arguments();
  while (true) {
    const auto dot = path.find('.');
    at = at[path.substr(0, dot)];
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  if (!at.exists()) return {};
  const auto kind = at.input()->kind;
  const bool is_text =
      kind == graphql::Input::Kind::string || kind == graphql::Input::Kind::enumeration;
  return is_text ? std::string(at.text()) : at.json();
}

// Writes one change of state to the audit stream on destruction, also after an interruption.
class AuditScope {
 public:
  AuditScope(Audit& audit, const std::vector<std::string_view>& subject, Call& call)
      : audit_(audit), caller_(call.context<Caller>()), action_(call.field()) {
    for (const auto path : subject) {
      if (auto value = argument(call, path); !value.empty()) {
        subject_.emplace_back(path.substr(path.rfind('.') + 1), std::move(value));
      }
    }
  }
  ~AuditScope() {
    audit_.write({.caller = caller_,
                  .action = action_,
                  .subject = std::move(subject_),
                  .result = result_,
                  .took = Clock::now() - begun_});
  }
  AuditScope(const AuditScope&) = delete;
  AuditScope& operator=(const AuditScope&) = delete;

  void end(const graphql::Value& value) {
    const auto* failure = value.get<graphql::Value::Failure>();
    result_ = failure ? to_string((*failure)->code) : "ok";
  }

 private:
  Audit& audit_;
  Caller caller_;
  std::string_view action_;
  std::vector<std::pair<std::string_view, std::string>> subject_;
  std::string_view result_ = "unknown";
  Clock::time_point begun_ = Clock::now();
};

Task<graphql::Value> resolve(const graphql::Row& row, const graphql::Root& root, Call& call) {
  if (row.later) co_return co_await row.later(&root, call);
  co_return row.now(&root, call);
}

// Checks for a failure that operators need to see and whose details are hidden from clients.
bool is_failure(ErrorCode code) {
  using enum ErrorCode;
  return code == internal || code == unavailable || code == timeout || code == tls ||
         code == protocol || code == invalid_data;
}

// Logs such failures, rate-limited for each field and code.
class FailureLog {
 public:
  void look(const graphql::Value& value, Call& call) {
    const auto* failure = value.get<graphql::Value::Failure>();
    if (!failure || !is_failure((*failure)->code)) return;
    const auto code = to_string((*failure)->code);
    const auto verdict =
        repeated_.check(std::string(call.field()) + " " + std::string(code), Clock::now());
    if (!verdict.pass) return;
    const auto& caller = call.context<Caller>();
    log_.warning("a field failed", {{"field", call.field()},
                                    {"code", code},
                                    {"error", (*failure)->message},
                                    {"request_id", caller.request_id},
                                    {"user", caller.user ? caller.user->id : std::string()},
                                    {"suppressed", verdict.suppressed}});
  }

 private:
  Log log_{"operations"};
  RepeatFilter repeated_{std::chrono::seconds(10)};
};

// Puts the row's function behind its guard. A function that never waits stays one.
graphql::RowOf<graphql::Root> guarded(const FieldRow& from, Audit& audit,
                                      const std::shared_ptr<FailureLog>& failures) {
  const Guard guard{.permission = from.permission, .missing = from.missing};
  if (from.changes) {
    return {from.field,
            [guard, row = from.row, subject = from.subject, &audit, failures](
                const graphql::Root& root, Call& call) -> Task<graphql::Value> {
              AuditScope scope(audit, subject, call);
              auto refused = guard.check(call.context<Caller>());
              graphql::Value value =
                  refused ? failure(std::move(*refused)) : co_await resolve(row, root, call);
              scope.end(value);
              failures->look(value, call);
              co_return value;
            }};
  }
  if (from.row.later) {
    return {from.field,
            [guard, row = from.row, failures](const graphql::Root& root,
                                              Call& call) -> Task<graphql::Value> {
              auto refused = guard.check(call.context<Caller>());
              graphql::Value value =
                  refused ? failure(std::move(*refused)) : co_await resolve(row, root, call);
              failures->look(value, call);
              co_return value;
            }};
  }
  return {from.field,
          [guard, run = from.row.now, failures](const graphql::Root& root,
                                                Call& call) -> graphql::Value {
            auto refused = guard.check(call.context<Caller>());
            graphql::Value value = refused ? failure(std::move(*refused)) : run(&root, call);
            failures->look(value, call);
            return value;
          }};
}

// Puts a stream behind its guard.
graphql::StreamRow guarded_stream(const FieldRow& from) {
  return {from.field,
          [guard = Guard{.permission = from.permission, .missing = from.missing},
           open = from.row.stream](Call& call) -> Task<Result<graphql::Stream>> {
            if (auto refused = guard.check(call.context<Caller>())) {
              co_return std::unexpected(std::move(*refused));
            }
            co_return co_await open(call);
          }};
}

// Adds the fields for logs of pods and their events.
void add_logs(std::vector<FieldRow>& rows, const ResolverDependencies& dependencies) {
  using enum Permission;
  rows.push_back(subscribe("applicationLogs", user, bound(application_logs, dependencies.logs)));
  rows.push_back(subscribe("workflowLogs", user, bound(workflow_logs, dependencies.logs)));
  rows.push_back(subscribe("componentLogs", admin, bound(component_logs, dependencies.logs)));
  rows.push_back(subscribe("podEvents", user, bound(pod_events, dependencies.logs)));
}

// Adds the fields for Applications, Workflows and Rollouts. Every user may use them; the actions
// check the account's rules for the object.
void add_actions(std::vector<FieldRow>& rows, const ResolverDependencies& dependencies) {
  using enum Permission;
  const auto& applications = dependencies.applications;
  const auto& workflows = dependencies.workflows;
  const auto& rollouts = dependencies.rollouts;
  const auto workflow_verb = [&workflows](WorkflowAction action) {
    return bound(
        [action](WorkflowActions& of, Call& call) { return change_workflow(of, action, call); },
        workflows);
  };
  const auto run_end = [&rollouts](RolloutActions::Run run) {
    return bound([run](RolloutActions& of, Call& call) { return terminate_run(of, run, call); },
                 rollouts);
  };
  const auto add = [&rows](FieldRow row) { rows.push_back(std::move(row)); };
  const auto add_under_both = [&rows](const FieldRow& row) {
    rows.push_back(under_query(row));
    rows.push_back(row);
  };
  const std::vector<std::string_view> resource = {"application", "appNamespace", "group", "kind",
                                                  "namespace",   "resourceName", "name"};
  const auto with = [](std::vector<std::string_view> names, std::string_view more) {
    names.push_back(more);
    return names;
  };
  const std::vector<std::string_view> workflow = {"namespace", "workflowName"};
  const std::vector<std::string_view> rollout = {"application", "appNamespace", "namespace",
                                                 "rolloutName"};

  add(read("applicationProxyQuery", user, bound(application_proxy_query, applications)));
  add_under_both(change(
      "sync", user,
      {"applicationName", "appNamespace", "options.revision", "options.prune", "options.dryRun"},
      bound(sync_application, applications)));
  add_under_both(change("refresh", user, {"applicationName", "appNamespace"},
                        bound(refresh_application, applications)));
  add_under_both(change("appRollback", user,
                        {"appName", "appNamespace", "historyId", "dryRun", "prune"},
                        bound(rollback_application, applications)));
  add_under_both(change("terminateApplicationOperation", user, {"applicationName", "appNamespace"},
                        bound(terminate_application_operation, applications)));
  add(change("deleteArgoApplication", admin, {"applicationName", "appNamespace", "cascade"},
             bound(delete_argo_application, applications)));
  add(read("resource", user, bound(application_resource, applications)));
  add(change("patchResource", admin, resource, bound(patch_application_resource, applications)));
  add(change("deleteResource", user, resource, bound(delete_application_resource, applications)));
  add(read("resourceActions", user, bound(resource_actions, applications)));
  add(change("runResourceAction", user, with(resource, "action"),
             bound(run_resource_action, applications)));

  add(change("terminateWorkflow", user, workflow, workflow_verb(WorkflowAction::terminate)));
  add(change("stopWorkflow", user, workflow, workflow_verb(WorkflowAction::stop)));
  add(change("suspendWorkflow", user, workflow, workflow_verb(WorkflowAction::suspend)));
  add(change("resumeWorkflow", user, workflow, workflow_verb(WorkflowAction::resume)));
  add(change("retryWorkflow", user, workflow, workflow_verb(WorkflowAction::retry)));
  add(change("setWorkflow", user, workflow, workflow_verb(WorkflowAction::set)));
  add(change("deleteWorkflow", user, workflow, workflow_verb(WorkflowAction::remove)));
  add(change("resubmitWorkflow", user, workflow, bound(resubmit_workflow, workflows)));
  add(change("createWorkflowFromWorkflowTemplate", user, {"namespace", "workflowTemplateName"},
             bound(submit_workflow, workflows)));

  add(change("rolloutAction", user, with(rollout, "action"), bound(rollout_action, rollouts)));
  add(change("rolloutRollback", user, with(rollout, "rolloutRevision"),
             bound(rollout_rollback, rollouts)));
  add(change("setRolloutImage", admin, with(with(rollout, "container"), "image"),
             bound(set_rollout_image, rollouts)));
  add(change("terminateAnalysisRun", user, {"application", "appNamespace", "namespace", "name"},
             run_end(RolloutActions::Run::analysis)));
  add(change("terminateExperiment", user, {"application", "appNamespace", "namespace", "name"},
             run_end(RolloutActions::Run::experiment)));
}

}  // namespace

std::vector<FieldRow> table(const ResolverDependencies& dependencies) {
  using enum Permission;
  const auto& git = dependencies.git_integrations;
  const auto& committer = dependencies.committer;
  const auto& reader = dependencies.reader;
  const auto files = std::cref(dependencies.files);
  std::vector<FieldRow> rows = {
      read("versionInfo", anyone, [&dependencies] { return &dependencies.version; }),

      read("gitIntegrations", user, bound(git_integrations, git)),
      read("gitIntegration", user, bound(git_integration, git)),
      change("addGitIntegration", admin, {"args.name", "args.provider", "args.apiUrl"},
             bound(add_git_integration, git)),
      change("editGitIntegration", admin, {"args.name", "args.apiUrl"},
             bound(edit_git_integration, git)),
      change("removeGitIntegration", admin, {"name"}, bound(remove_git_integration, git)),
      change("registerToGitIntegration", user, {"args.name"},
             bound(register_git_token, git, if_there(committer), files)),
      change("deregisterFromGitIntegration", user, {"name"},
             bound(deregister_from_git_integration, git)),
      read("validateGitProvider", user, bound(validate_git_provider, git)),

      read("gitOrganizations", user, bound(git_organizations, git)),
      read("gitRepositories", user, bound(git_repositories, git)),
      read("repositoryBranchesAndTags", user, bound(repository_branches_and_tags, git)),
      read("readFile", user, bound(read_file, git)),
      read("pullRequest", user, bound(pull_request, git)),
      change("createPullRequest", user, {"args.repo", "args.head", "args.base"},
             bound(create_pull_request, git)),

      change("commitFiles", user, {"args.repo", "args.branchName"},
             bound(commit_files, git, committer)),
      change("deleteFiles", user, {"args.repo", "args.branchName"},
             bound(delete_files, git, committer)),

      change(
          "createGitSource", user, {"args.appName", "args.appSpecifier"},
          bound(create_git_source, git, committer, reader, if_there(dependencies.clusters), files)),
      change("editGitSource", user, {"args.appName", "args.appSpecifier"},
             bound(edit_git_source, git, committer, reader, files)),
      change(
          "createRestrictedGitSource", admin,
          {"args.appName", "args.appSpecifier", "args.sourceNamespace"},
          bound(create_restricted_git_source, git, committer, reader, dependencies.cluster, files)),
      change("editRestrictedGitSource", admin,
             {"args.appName", "args.appSpecifier", "args.sourceNamespace"},
             bound(edit_restricted_git_source, git, committer, reader, files)),
      change("deleteApplication", admin, {"args.appName"},
             bound(delete_application, git, committer, if_there(dependencies.applications), files)),
      change("createArgoRollouts", admin, {"args.destServer", "args.destNamespace"},
             bound(create_argo_rollouts, git, committer, reader, if_there(dependencies.clusters),
                   files)),
      change("removeCluster", admin, {"server", "runtime"},
             bound(remove_cluster, dependencies.clusters, files)),
      // The audit stream contains neither the tool's settings nor the credentials.
      change("applyIntegration", admin,
             {"input.operation", "input.metadata.name", "input.metadata.type",
              "input.metadata.isAllRuntimes", "input.metadata.runtimes"},
             bound(apply_integration, git, committer, reader, dependencies.sealing_keys,
                   dependencies.identity, files)),
      change("removeRuntimeFromIscRepo", admin, {},
             bound(remove_runtime_from_isc_repo, git, committer, reader, files)),
  };
  add_actions(rows, dependencies);
  add_logs(rows, dependencies);
  return rows;
}

graphql::Resolvers guarded(const std::vector<FieldRow>& rows, Audit& audit) {
  graphql::Resolvers to;
  const auto failures = std::make_shared<FailureLog>();
  for (const FieldRow& row : rows) {
    if (row.root == RootType::subscription) {
      to.subscription({guarded_stream(row)});
    } else if (row.root == RootType::query) {
      to.query({guarded(row, audit, failures)});
    } else {
      to.mutation({guarded(row, audit, failures)});
    }
  }
  return to;
}

graphql::Resolvers resolvers(const std::vector<FieldRow>& rows, Audit& audit) {
  graphql::Resolvers to = guarded(rows, audit);
  add_version_types(to);
  add_git_integration_types(to);
  add_repository_types(to);
  add_commit_types(to);
  add_application_types(to);
  add_workflow_types(to);
  add_rollout_types(to);
  add_log_types(to);
  return to;
}

Permission permission_of(const std::vector<FieldRow>& rows, RootType root, std::string_view field) {
  if (field == "__typename") return Permission::anyone;
  const auto found = std::ranges::find_if(
      rows, [&](const FieldRow& row) { return row.root == root && row.field == field; });
  return found == rows.end() ? Permission::user : found->permission;
}

}  // namespace gitops::app_proxy
