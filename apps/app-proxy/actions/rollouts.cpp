#include "app-proxy/actions/rollouts.hpp"

#include <utility>

#include "common/core/json_text.hpp"
#include "k8s-client/cluster_secret.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::string_view kPeer = "The Kubernetes API server";
constexpr std::string_view kGroup = "argoproj.io";
const k8s::Resource kExperiments{"argoproj.io", "v1alpha1", "experiments", "Experiment"};

Error shown(Error error) {
  return public_action_error(std::move(error), kPeer);
}

Result<void> check(const RolloutActions::Target& target) {
  if (auto ns = check_object_name("namespace", target.ns); !ns) return ns;
  return check_object_name("name", target.name);
}

// Checks whether the Application's objects are in the cluster of this API server.
bool is_here(std::string_view application, const http::Url& own) {
  JsonParser parser;
  const auto root = parser.parse_object(application, "Application");
  if (!root) return false;
  const JsonView destination = (*root)["spec"]["destination"];
  return destination["name"].text() == "in-cluster" ||
         k8s::is_own_cluster(destination["server"].text(), own);
}

// Returns the Rollout that owns an AnalysisRun or an Experiment; empty when there is none.
std::string owner_of(std::string_view object) {
  JsonParser parser;
  const auto root = parser.parse_object(object, "object");
  if (!root) return {};
  for (const auto owner : (*root)["metadata"]["ownerReferences"].items()) {
    if (owner["kind"].text() == "Rollout") return std::string(owner["name"].text());
  }
  return {};
}

}  // namespace

Action right_for(RolloutAction action) {
  using enum RolloutAction;
  switch (action) {
    case pause:
      return Action::rollout_pause;
    case resume:
    case promote:
      return Action::rollout_resume;
    case promote_full:
      return Action::rollout_promote_full;
    case skip_current_step:
    case skip_all_steps:
      return Action::rollout_skip_current_step;
    case abort:
      return Action::rollout_abort;
    case retry:
      return Action::rollout_retry;
    case restart:
      return Action::restart;
  }
  return Action::rollout_abort;
}

RolloutActions::RolloutActions(k8s::Client& cluster, ApplicationActions* applications)
    : cluster_(cluster), applications_(applications) {}

Task<Result<RolloutActions::Where>> RolloutActions::allowed(const User& user, Action action,
                                                            std::string kind, Target target,
                                                            Deadline deadline) {
  if (auto checked = check(target); !checked) co_return std::unexpected(checked.error());
  if (target.app.name.empty()) {
    if (user.is_admin) co_return Where::here;
    co_return std::unexpected(
        forbidden_action("only an administrator may act on an object without its application"));
  }
  if (applications_ == nullptr) {
    co_return std::unexpected(Error{.code = ErrorCode::unavailable,
                                    .message = "the runtime has no Argo CD; see its log",
                                    .subcode = action_errors::kNotAvailable});
  }
  const auto app = co_await applications_->permitted(user, action, target.app, deadline);
  if (!app) co_return std::unexpected(app.error());
  argo::ResourceRef which{
      .group = std::string(kGroup), .kind = std::move(kind), .ns = target.ns, .name = target.name};
  if (!complete(which, *app)) {
    co_return std::unexpected(forbidden_action("the application has not deployed this object"));
  }
  co_return is_here(*app, cluster_.config().server) ? Where::here : Where::elsewhere;
}

Task<Result<std::string>> RolloutActions::read(const User& user, const k8s::Resource& resource,
                                               k8s::ObjectKey key, Deadline deadline) {
  auto object = co_await cluster_.get(resource, key, deadline);
  if (object) co_return std::move(*object);
  // An API server that does not serve the kind has no Status for it.
  if (object.error().http_status != 404) {
    co_return std::unexpected(shown(std::move(object.error())));
  }
  const auto served = co_await cluster_.exists(resource, deadline);
  if (served && !*served) {
    co_return std::unexpected(Error{.code = ErrorCode::unsupported,
                                    .message = resource.kind +
                                               " is not known in this cluster: Argo "
                                               "Rollouts is not installed",
                                    .subcode = action_errors::kNotInstalled});
  }
  if (object.error().code != ErrorCode::not_found) {
    co_return std::unexpected(shown(std::move(object.error())));
  }
  if (!user.is_admin) co_return std::unexpected(forbidden_action("no such object"));
  co_return std::unexpected(Error{.code = ErrorCode::not_found,
                                  .message = "there is no " + resource.kind + " " + key.to_string(),
                                  .http_status = 404,
                                  .subcode = action_errors::kNotFound});
}

Task<Result<void>> RolloutActions::send(std::vector<RolloutPatch> patches, k8s::ObjectKey key,
                                        Deadline deadline) {
  for (RolloutPatch& patch : patches) {
    auto done =
        co_await cluster_.patch(k8s::resources::kRollouts, key, k8s::PatchType::merge, patch.body,
                                deadline, {.subresource = patch.of_status ? "status" : ""});
    if (!done && patch.of_status && done.error().code == ErrorCode::not_found) {
      // Releases before 0.10 have no such subresource.
      done = co_await cluster_.patch(k8s::resources::kRollouts, key, k8s::PatchType::merge,
                                     patch.body, deadline);
    }
    if (!done) co_return std::unexpected(shown(std::move(done.error())));
  }
  co_return Result<void>();
}

Task<Result<Outcome>> RolloutActions::act(const User& user, RolloutAction action, Target target,
                                          Deadline deadline) {
  const auto where = co_await allowed(user, right_for(action), "Rollout", target, deadline);
  if (!where) co_return std::unexpected(where.error());
  if (*where == Where::elsewhere) {
    if (action == RolloutAction::promote || action == RolloutAction::skip_all_steps) {
      co_return std::unexpected(Error{.code = ErrorCode::unsupported,
                                      .message = "Argo CD has no action " +
                                                 std::string(to_string(action)) +
                                                 " for a rollout of another cluster"});
    }
    auto run = co_await applications_->run_action(user, target.app,
                                                  {.group = std::string(kGroup),
                                                   .version = "v1alpha1",
                                                   .kind = "Rollout",
                                                   .ns = target.ns,
                                                   .name = target.name},
                                                  std::string(to_string(action)), {}, deadline);
    if (!run) co_return std::unexpected(run.error());
    co_return Outcome();
  }
  const k8s::ObjectKey key{target.ns, target.name};
  const auto rollout = co_await read(user, k8s::resources::kRollouts, key, deadline);
  if (!rollout) co_return std::unexpected(rollout.error());
  auto plan = plan_rollout(action, *rollout, wall_now());
  if (!plan) co_return std::unexpected(plan.error());
  if (plan->patches.empty()) co_return Outcome{.changed = false, .note = std::move(plan->note)};
  if (auto sent = co_await send(std::move(plan->patches), key, deadline); !sent) {
    co_return std::unexpected(sent.error());
  }
  co_return Outcome();
}

Task<Result<RolloutActions::Undone>> RolloutActions::undo(const User& user, Target target,
                                                          std::int64_t revision,
                                                          Deadline deadline) {
  if (revision < 0) co_return fail(ErrorCode::invalid_argument, "revision: less than 0");
  const auto where = co_await allowed(user, Action::app_rollback, "Rollout", target, deadline);
  if (!where) co_return std::unexpected(where.error());
  if (*where == Where::elsewhere) {
    co_return fail(ErrorCode::unsupported,
                   "a rollout of another cluster cannot be rolled back to a revision here");
  }
  const k8s::ObjectKey key{target.ns, target.name};
  const auto rollout = co_await read(user, k8s::resources::kRollouts, key, deadline);
  if (!rollout) co_return std::unexpected(rollout.error());
  const auto owner = template_owner(*rollout);
  if (!owner) co_return std::unexpected(owner.error());
  const std::string selector = pod_selector(*rollout);
  if (selector.empty()) {
    co_return fail(ErrorCode::unsupported, "the rollout has no selector");
  }
  auto sets = co_await cluster_.list(k8s::resources::kReplicaSets, target.ns,
                                     {.label_selector = selector}, deadline);
  if (!sets) co_return std::unexpected(shown(std::move(sets.error())));
  auto plan = plan_undo(*rollout, *sets, revision, owner->path);
  if (!plan) co_return std::unexpected(plan.error());
  if (!plan->changes) co_return Undone{.changed = false, .new_revision = plan->new_revision};
  auto done = co_await cluster_.patch(owner->resource, {target.ns, owner->name},
                                      k8s::PatchType::json, std::move(plan->patch), deadline);
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Undone{.new_revision = plan->new_revision};
}

Task<Result<Outcome>> RolloutActions::set_image(const User& user, Target target,
                                                std::string container, std::string image,
                                                Deadline deadline) {
  if (!user.is_admin) {
    co_return std::unexpected(
        forbidden_action("only an administrator of the account may set an image"));
  }
  const auto where = co_await allowed(user, Action::sync, "Rollout", target, deadline);
  if (!where) co_return std::unexpected(where.error());
  if (*where == Where::elsewhere) {
    co_return fail(ErrorCode::unsupported, "the rollout is in another cluster");
  }
  const auto rollout =
      co_await read(user, k8s::resources::kRollouts, {target.ns, target.name}, deadline);
  if (!rollout) co_return std::unexpected(rollout.error());
  const auto owner = template_owner(*rollout);
  if (!owner) co_return std::unexpected(owner.error());
  const k8s::ObjectKey owner_key{target.ns, owner->name};
  Result<std::string> object = *rollout;
  if (owner->resource.kind != "Rollout") {
    object = co_await read(user, owner->resource, owner_key, deadline);
    if (!object) co_return std::unexpected(object.error());
  }
  auto patch = plan_image(*object, owner->path, container, image);
  if (!patch) co_return std::unexpected(patch.error());
  if (patch->empty()) co_return Outcome{.changed = false, .note = "the image is set already"};
  auto done = co_await cluster_.patch(owner->resource, owner_key, k8s::PatchType::json,
                                      std::move(*patch), deadline);
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Outcome();
}

Task<Result<Outcome>> RolloutActions::terminate(const User& user, Run run, Target target,
                                                Deadline deadline) {
  if (auto checked = check(target); !checked) co_return std::unexpected(checked.error());
  if (target.app.name.empty() && !user.is_admin) {
    co_return std::unexpected(
        forbidden_action("only an administrator may act on an object without its application"));
  }
  const k8s::Resource& resource =
      run == Run::analysis ? k8s::resources::kAnalysisRuns : kExperiments;
  const k8s::ObjectKey key{target.ns, target.name};
  const auto object = co_await read(user, resource, key, deadline);
  if (!object) co_return std::unexpected(object.error());
  if (!target.app.name.empty()) {
    Target owner = target;
    owner.name = owner_of(*object);
    if (owner.name.empty()) {
      co_return std::unexpected(forbidden_action("no rollout of the application owns this"));
    }
    const auto where =
        co_await allowed(user, Action::rollout_abort, "Rollout", std::move(owner), deadline);
    if (!where) co_return std::unexpected(where.error());
    if (*where == Where::elsewhere) {
      co_return fail(ErrorCode::unsupported, "the application is in another cluster");
    }
  }
  JsonParser parser;
  const auto root = parser.parse_object(*object, resource.kind);
  if (!root) co_return std::unexpected(shown(root.error()));
  const std::string_view phase = (*root)["status"]["phase"].text();
  if (phase == "Successful" || phase == "Failed" || phase == "Error" || phase == "Inconclusive") {
    co_return Outcome{.changed = false, .note = "it has ended already"};
  }
  auto done = co_await cluster_.patch(resource, key, k8s::PatchType::merge,
                                      R"({"spec":{"terminate":true}})", deadline);
  if (!done) co_return std::unexpected(shown(std::move(done.error())));
  co_return Outcome();
}

}  // namespace gitops::app_proxy
