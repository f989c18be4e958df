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

// Why the caller may not ask; nothing when it may.
std::optional<Error> refusal(Permission permission, const Caller& caller) {
  if (permission == Permission::anyone) return std::nullopt;
  if (!caller.user) {
    return Error{.code = ErrorCode::unauthenticated,
                 .message = "Unauthorized: Invalid token.",
                 .http_status = 401};
  }
  // Who may ask for a field is public (docs/app-proxy-api.md), so the reason may be shown.
  if (permission == Permission::admin && !caller.user->is_admin) {
    return Error{.code = ErrorCode::forbidden,
                 .message = "only an administrator of the account may do this",
                 .http_status = 403,
                 .subcode = graphql::kPublicRefusal};
  }
  return std::nullopt;
}

graphql::Value failure(Error error) {
  return graphql::Value(std::make_unique<Error>(std::move(error)));
}

// The value of an argument named by a path, as "args.name".
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

// Writes one change of state to the audit stream when it goes: also one that was cut off.
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

// A failure that an operator should know of, which the client is told less about.
bool is_failure(ErrorCode code) {
  using enum ErrorCode;
  return code == internal || code == unavailable || code == timeout || code == tls ||
         code == protocol || code == invalid_data;
}

// Tells the log of such failures, once in a while for each field and code.
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

// The row's function behind the check of its permission. It stays one that never waits, if it was.
graphql::RowOf<graphql::Root> guarded(const FieldRow& from, Audit& audit,
                                      const std::shared_ptr<FailureLog>& failures) {
  const auto permission = from.permission;
  if (from.changes) {
    return {from.field,
            [permission, row = from.row, subject = from.subject, &audit, failures](
                const graphql::Root& root, Call& call) -> Task<graphql::Value> {
              AuditScope scope(audit, subject, call);
              auto refused = refusal(permission, call.context<Caller>());
              graphql::Value value =
                  refused ? failure(std::move(*refused)) : co_await resolve(row, root, call);
              scope.end(value);
              failures->look(value, call);
              co_return value;
            }};
  }
  if (from.row.later) {
    return {from.field,
            [permission, row = from.row, failures](const graphql::Root& root,
                                                   Call& call) -> Task<graphql::Value> {
              auto refused = refusal(permission, call.context<Caller>());
              graphql::Value value =
                  refused ? failure(std::move(*refused)) : co_await resolve(row, root, call);
              failures->look(value, call);
              co_return value;
            }};
  }
  return {from.field,
          [permission, run = from.row.now, failures](const graphql::Root& root,
                                                     Call& call) -> graphql::Value {
            auto refused = refusal(permission, call.context<Caller>());
            graphql::Value value = refused ? failure(std::move(*refused)) : run(&root, call);
            failures->look(value, call);
            return value;
          }};
}

// A stream behind the check of its permission.
graphql::StreamRow guarded_stream(const FieldRow& from) {
  return {from.field,
          [permission = from.permission,
           open = from.row.stream](Call& call) -> Task<Result<graphql::Stream>> {
            if (auto refused = refusal(permission, call.context<Caller>())) {
              co_return std::unexpected(std::move(*refused));
            }
            co_return co_await open(call);
          }};
}

// The logs of pods and their events.
void add_logs(std::vector<FieldRow>& rows, const ResolverDependencies& dependencies) {
  using enum Permission;
  const auto of_logs = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) { return function(dependencies.logs, call); };
  };
  rows.push_back(subscribe("applicationLogs", user, of_logs(application_logs)));
  rows.push_back(subscribe("workflowLogs", user, of_logs(workflow_logs)));
  rows.push_back(subscribe("componentLogs", admin, of_logs(component_logs)));
  rows.push_back(subscribe("podEvents", user, of_logs(pod_events)));
}

// The fields about Applications, Workflows and Rollouts. Whoever is a user may ask for them; what the account's
// rules say of the object is checked by the actions.
void add_actions(std::vector<FieldRow>& rows, const ResolverDependencies& dependencies) {
  using enum Permission;
  const auto of_applications = [&dependencies](auto function) {
    return
        [&dependencies, function](Call& call) { return function(dependencies.applications, call); };
  };
  const auto of_workflows = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) { return function(dependencies.workflows, call); };
  };
  const auto workflow_verb = [&dependencies](WorkflowAction action) {
    return [&dependencies, action](Call& call) {
      return change_workflow(dependencies.workflows, action, call);
    };
  };
  const auto of_rollouts = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) { return function(dependencies.rollouts, call); };
  };
  const auto run_end = [&dependencies](RolloutActions::Run run) {
    return [&dependencies, run](Call& call) {
      return terminate_run(dependencies.rollouts, run, call);
    };
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

  add(read("applicationProxyQuery", user, of_applications(application_proxy_query)));
  add_under_both(change(
      "sync", user,
      {"applicationName", "appNamespace", "options.revision", "options.prune", "options.dryRun"},
      of_applications(sync_application)));
  add_under_both(change("refresh", user, {"applicationName", "appNamespace"},
                        of_applications(refresh_application)));
  add_under_both(change("appRollback", user,
                        {"appName", "appNamespace", "historyId", "dryRun", "prune"},
                        of_applications(rollback_application)));
  add_under_both(change("terminateApplicationOperation", user, {"applicationName", "appNamespace"},
                        of_applications(terminate_application_operation)));
  add(change("deleteArgoApplication", admin, {"applicationName", "appNamespace", "cascade"},
             of_applications(delete_argo_application)));
  add(read("resource", user, of_applications(application_resource)));
  add(change("patchResource", admin, resource, of_applications(patch_application_resource)));
  add(change("deleteResource", user, resource, of_applications(delete_application_resource)));
  add(read("resourceActions", user, of_applications(resource_actions)));
  add(change("runResourceAction", user, with(resource, "action"),
             of_applications(run_resource_action)));

  add(change("terminateWorkflow", user, workflow, workflow_verb(WorkflowAction::terminate)));
  add(change("stopWorkflow", user, workflow, workflow_verb(WorkflowAction::stop)));
  add(change("suspendWorkflow", user, workflow, workflow_verb(WorkflowAction::suspend)));
  add(change("resumeWorkflow", user, workflow, workflow_verb(WorkflowAction::resume)));
  add(change("retryWorkflow", user, workflow, workflow_verb(WorkflowAction::retry)));
  add(change("setWorkflow", user, workflow, workflow_verb(WorkflowAction::set)));
  add(change("deleteWorkflow", user, workflow, workflow_verb(WorkflowAction::remove)));
  add(change("resubmitWorkflow", user, workflow, of_workflows(resubmit_workflow)));
  add(change("createWorkflowFromWorkflowTemplate", user, {"namespace", "workflowTemplateName"},
             of_workflows(submit_workflow)));

  add(change("rolloutAction", user, with(rollout, "action"), of_rollouts(rollout_action)));
  add(change("rolloutRollback", user, with(rollout, "rolloutRevision"),
             of_rollouts(rollout_rollback)));
  add(change("setRolloutImage", admin, with(with(rollout, "container"), "image"),
             of_rollouts(set_rollout_image)));
  add(change("terminateAnalysisRun", user, {"application", "appNamespace", "namespace", "name"},
             run_end(RolloutActions::Run::analysis)));
  add(change("terminateExperiment", user, {"application", "appNamespace", "namespace", "name"},
             run_end(RolloutActions::Run::experiment)));
}

}  // namespace

std::vector<FieldRow> table(const ResolverDependencies& dependencies) {
  using enum Permission;
  // A function of git_integrations.hpp or repositories.hpp.
  const auto of_git = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) {
      return function(dependencies.git_integrations, call);
    };
  };
  // A function of commits.hpp.
  const auto of_commits = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) {
      return function(dependencies.git_integrations, dependencies.committer, call);
    };
  };
  // A function of git_sources.hpp.
  const auto of_files = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) {
      return function(dependencies.git_integrations, dependencies.committer, dependencies.files,
                      call);
    };
  };
  // One that reads files, too.
  const auto of_sources = [&dependencies](auto function) {
    return [&dependencies, function](Call& call) {
      return function(dependencies.git_integrations, dependencies.committer, dependencies.reader,
                      dependencies.files, call);
    };
  };
  std::vector<FieldRow> rows = {
      read("versionInfo", anyone, [&dependencies] { return &dependencies.version; }),

      read("gitIntegrations", user, of_git(git_integrations)),
      read("gitIntegration", user, of_git(git_integration)),
      change("addGitIntegration", admin, {"args.name", "args.provider", "args.apiUrl"},
             of_git(add_git_integration)),
      change("editGitIntegration", admin, {"args.name", "args.apiUrl"},
             of_git(edit_git_integration)),
      change("removeGitIntegration", admin, {"name"}, of_git(remove_git_integration)),
      change("registerToGitIntegration", user, {"args.name"}, of_files(register_git_token)),
      change("deregisterFromGitIntegration", user, {"name"},
             of_git(deregister_from_git_integration)),
      read("validateGitProvider", user, of_git(validate_git_provider)),

      read("gitOrganizations", user, of_git(git_organizations)),
      read("gitRepositories", user, of_git(git_repositories)),
      read("repositoryBranchesAndTags", user, of_git(repository_branches_and_tags)),
      read("readFile", user, of_git(read_file)),
      read("pullRequest", user, of_git(pull_request)),
      change("createPullRequest", user, {"args.repo", "args.head", "args.base"},
             of_git(create_pull_request)),

      change("commitFiles", user, {"args.repo", "args.branchName"}, of_commits(commit_files)),
      change("deleteFiles", user, {"args.repo", "args.branchName"}, of_commits(delete_files)),

      change("createGitSource", user, {"args.appName", "args.appSpecifier"},
             of_sources(create_git_source)),
      change("editGitSource", user, {"args.appName", "args.appSpecifier"},
             of_sources(edit_git_source)),
      change("createRestrictedGitSource", admin,
             {"args.appName", "args.appSpecifier", "args.sourceNamespace"},
             [&dependencies](Call& call) {
               return create_restricted_git_source(dependencies.git_integrations,
                                                   dependencies.committer, dependencies.reader,
                                                   dependencies.cluster, dependencies.files, call);
             }),
      change("editRestrictedGitSource", admin,
             {"args.appName", "args.appSpecifier", "args.sourceNamespace"},
             of_sources(edit_restricted_git_source)),
      change("deleteApplication", admin, {"args.appName"},
             [&dependencies](Call& call) {
               return delete_application(dependencies.git_integrations, dependencies.committer,
                                         dependencies.applications, dependencies.files, call);
             }),
      change("createArgoRollouts", admin, {"args.destServer", "args.destNamespace"},
             of_sources(create_argo_rollouts)),
      change("removeCluster", admin, {"server", "runtime"},
             [&dependencies](Call& call) {
               return remove_cluster(dependencies.clusters, dependencies.files, call);
             }),
      // Neither what it tells of the tool nor the credentials stand in the audit stream.
      change("applyIntegration", admin,
             {"input.operation", "input.metadata.name", "input.metadata.type",
              "input.metadata.isAllRuntimes", "input.metadata.runtimes"},
             [&dependencies](Call& call) {
               return apply_integration(dependencies.tools, dependencies.files, call);
             }),
      change("removeRuntimeFromIscRepo", admin, {}, of_sources(remove_runtime_from_isc_repo)),
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
