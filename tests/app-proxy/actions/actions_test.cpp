// The pure parts of the actions: what decides whether, and with which right.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/entities.hpp"
#include "app-proxy/actions/rollouts.hpp"
#include "app-proxy/actions/workflows.hpp"

namespace gitops::app_proxy {
namespace {

using Json = nlohmann::json;

TEST(ResourceTree, HasAnObjectOfTheSameGroupKindNamespaceAndName) {
  const std::string tree =
      R"({"nodes":[{"group":"apps","kind":"Deployment","namespace":"web","name":"ui"}]})";
  EXPECT_TRUE(has_object(tree, {.group = "apps", .kind = "Deployment", .ns = "web", .name = "ui"}));
  EXPECT_FALSE(has_object(tree, {.kind = "Deployment", .ns = "web", .name = "ui"}));
  EXPECT_FALSE(has_object(tree, {.group = "apps", .kind = "Pod", .ns = "web", .name = "ui"}));
  EXPECT_FALSE(has_object(tree, {.group = "apps", .kind = "Deployment", .ns = "x", .name = "ui"}));
  EXPECT_FALSE(has_object(tree, {.group = "apps", .kind = "Deployment", .ns = "web", .name = "u"}));
  EXPECT_FALSE(
      has_object("[]", {.group = "apps", .kind = "Deployment", .ns = "web", .name = "ui"}));
}

TEST(ActionEntities, ApplicationsAreSeenAsRulesNameThem) {
  const Json app{
      {"metadata",
       {{"name", "shop"},
        {"namespace", "argocd"},
        {"labels", {{"team", "a"}}},
        {"annotations",
         {{"codefresh.io/product", "store"},
          {"argocd.argoproj.io/tracking-id", "apps_gs:argoproj.io/Application:argocd/shop"}}}}},
      {"spec", {{"destination", {{"server", "https://1.2.3.4"}, {"name", "x"}}}}}};
  const Entity entity = application_entity(app.dump(), "prod");
  EXPECT_EQ(entity.type, EntityType::gitops_applications);
  EXPECT_EQ(entity.cluster, "https://1.2.3.4");
  EXPECT_EQ(entity.entity_namespace, "argocd");
  EXPECT_EQ(entity.runtime, "prod");
  EXPECT_EQ(entity.git_source, "gs");
  EXPECT_EQ(entity.product_name, "store");
  EXPECT_EQ(entity.labels.at("team"), "a");
  const Entity by_label = application_entity(
      R"({"metadata":{"labels":{"app.kubernetes.io/instance":"gs"}},"spec":{"destination":{"name":"c"}}})",
      "prod");
  EXPECT_EQ(by_label.git_source, "gs");
  EXPECT_EQ(by_label.cluster, "c");
  // Of what is no object nothing is known, so that no rule with an attribute fits.
  for (const char* text : {"", "[]", "{", "7"}) {
    EXPECT_TRUE(application_entity(text, "prod").runtime.empty()) << text;
  }
}

TEST(ActionEntities, TheProductIsAnAnnotationOrElseALabel) {
  const auto product = [](Json metadata) {
    return application_entity(Json{{"metadata", std::move(metadata)}}.dump(), "prod").product_name;
  };
  const Json store{{"codefresh.io/product", "store"}};
  const Json other{{"codefresh.io/product", "other"}};
  EXPECT_EQ(product({{"annotations", store}}), "store");
  EXPECT_EQ(product({{"labels", store}}), "store");
  EXPECT_EQ(product({{"annotations", store}, {"labels", other}}), "store");
  EXPECT_EQ(product({{"name", "shop"}}), "");
}

TEST(ActionEntities, WorkflowsAreOfTheRuntimesCluster) {
  const Entity entity = workflow_entity(R"({"metadata":{"namespace":"ci"}})", "prod");
  EXPECT_EQ(entity.type, EntityType::workflows);
  EXPECT_EQ(entity.entity_namespace, "ci");
  EXPECT_EQ(entity.cluster, control_plane::kInCluster);
  EXPECT_EQ(workflow_template_entity("{}", "prod").type, EntityType::workflow_templates);
}

TEST(ApplicationActions, KnowWhatAnApplicationIsDoing) {
  EXPECT_FALSE(application_state("{}").has_operation);
  EXPECT_TRUE(application_state(R"({"operation":{}})").has_operation);
  for (const char* phase : {"Running", "Terminating"}) {
    EXPECT_TRUE(application_state(Json{{"status", {{"operationState", {{"phase", phase}}}}}}.dump())
                    .has_operation);
  }
  EXPECT_FALSE(
      application_state(R"({"status":{"operationState":{"phase":"Succeeded"}}})").has_operation);
  const auto automated = [](Json value) {
    return application_state(
               Json{{"spec", {{"syncPolicy", {{"automated", std::move(value)}}}}}}.dump())
        .is_automated;
  };
  EXPECT_TRUE(automated(Json::object()));
  EXPECT_TRUE(automated({{"enabled", true}}));
  EXPECT_FALSE(automated({{"enabled", false}}));
  EXPECT_FALSE(automated(nullptr));
}

TEST(ApplicationActions, FindTheObjectThatIsMeant) {
  const std::string app = R"({"spec":{"destination":{"namespace":"web"}},"status":{"resources":[
      {"group":"apps","version":"v1","kind":"Deployment","namespace":"a","name":"x"},
      {"group":"apps","version":"v1","kind":"Deployment","namespace":"b","name":"x"},
      {"version":"v1","kind":"Namespace","name":"n"}]}})";
  argo::ResourceRef which{.group = "apps", .kind = "Deployment", .name = "x"};
  EXPECT_FALSE(complete(which, app)) << "two of them";
  which.ns = "b";
  EXPECT_TRUE(complete(which, app));
  EXPECT_EQ(which.version, "v1");
  argo::ResourceRef everywhere{.kind = "Namespace", .name = "n"};
  EXPECT_TRUE(complete(everywhere, app));
  EXPECT_EQ(everywhere.ns, "");
  argo::ResourceRef pod{.version = "v1", .kind = "Pod", .name = "p"};
  EXPECT_FALSE(complete(pod, app));
  EXPECT_EQ(pod.ns, "web");
}

TEST(ApplicationActions, NeedTheRightOfTheirAction) {
  const argo::ResourceRef rollout{.group = "argoproj.io", .kind = "Rollout"};
  const argo::ResourceRef deployment{.group = "apps", .kind = "Deployment"};
  EXPECT_EQ(right_for(rollout, "pause"), Action::rollout_pause);
  EXPECT_EQ(right_for(rollout, "promote-full"), Action::rollout_promote_full);
  EXPECT_EQ(right_for(rollout, "restart"), Action::restart);
  EXPECT_EQ(right_for(deployment, "restart"), Action::restart);
  // No rule is about these.
  EXPECT_EQ(right_for(deployment, "pause"), std::nullopt);
  EXPECT_EQ(right_for(rollout, "anything"), std::nullopt);
  EXPECT_EQ(right_for({.group = "evil.io", .kind = "Rollout"}, "abort"), std::nullopt);
}

TEST(ApplicationActions, NamesCannotLeaveTheirPlaceInAPath) {
  for (const char* name : {"", ".", "..", "a/b", "a%2fb", "A", "a?b", "-a", "a-", "a..b", "a b"}) {
    EXPECT_FALSE(check_object_name("name", name)) << name;
  }
  EXPECT_FALSE(check_object_name("name", std::string(254, 'a')));
  EXPECT_TRUE(check_object_name("name", "a-1.b"));
}

TEST(ApplicationActions, ErrorsOfTheServerAreNotTheCallers) {
  EXPECT_EQ(
      public_action_error({.code = ErrorCode::unauthenticated, .message = "x"}, "Argo CD").code,
      ErrorCode::unavailable);
  EXPECT_EQ(public_action_error({.code = ErrorCode::forbidden, .message = "x"}, "Argo CD").code,
            ErrorCode::unavailable);
  EXPECT_EQ(public_action_error({.code = ErrorCode::timeout, .message = "x"}, "Argo CD").code,
            ErrorCode::timeout);
  const auto conflict =
      public_action_error({.code = ErrorCode::conflict, .message = "x", .reason = "y"}, "Argo CD");
  EXPECT_EQ(conflict.message, "x");
  EXPECT_EQ(conflict.subcode, "") << "the server's word is no code of ours";
}

Result<Outcome> workflow(WorkflowAction action, const Json& spec, const char* phase) {
  return workflow_outcome(action, Json{{"spec", spec}, {"status", {{"phase", phase}}}}.dump());
}

TEST(WorkflowActions, DoNothingWhereNothingIsLeftToDo) {
  using enum WorkflowAction;
  for (const char* phase : {"Succeeded", "Failed", "Error"}) {
    EXPECT_FALSE(workflow(terminate, {}, phase)->changed);
    EXPECT_FALSE(workflow(stop, {}, phase)->changed);
    EXPECT_EQ(workflow(suspend, {}, phase).error().subcode, "NOT_POSSIBLE_NOW");
    EXPECT_EQ(workflow(resume, {}, phase).error().subcode, "NOT_POSSIBLE_NOW");
    EXPECT_TRUE(workflow(retry, {}, phase)->changed);
    EXPECT_TRUE(workflow(resubmit, {}, phase)->changed);
    EXPECT_TRUE(workflow(remove, {}, phase)->changed);
  }
  for (const char* phase : {"Running", "Pending", ""}) {
    EXPECT_TRUE(workflow(terminate, {{"x", 1}}, phase)->changed);
    EXPECT_TRUE(workflow(suspend, {{"x", 1}}, phase)->changed);
    EXPECT_EQ(workflow(retry, {{"x", 1}}, phase).error().subcode, "NOT_POSSIBLE_NOW");
  }
  EXPECT_FALSE(workflow(suspend, {{"suspend", true}}, "Running")->changed);
  EXPECT_FALSE(workflow(terminate, {{"shutdown", "Terminate"}}, "Running")->changed);
  EXPECT_TRUE(workflow(terminate, {{"shutdown", "Stop"}}, "Running")->changed);
  EXPECT_FALSE(workflow(stop, {{"shutdown", "Terminate"}}, "Running")->changed);
}

TEST(WorkflowActions, NeedTheNearestRight) {
  EXPECT_EQ(right_for(WorkflowAction::terminate), Action::terminate);
  EXPECT_EQ(right_for(WorkflowAction::remove), Action::terminate);
  EXPECT_EQ(right_for(WorkflowAction::suspend), Action::stop);
  EXPECT_EQ(right_for(WorkflowAction::retry), Action::restart);
  EXPECT_EQ(right_for(WorkflowAction::resubmit), Action::resubmit);
  EXPECT_EQ(right_for(RolloutAction::promote), Action::rollout_resume);
}

TEST(WorkflowActions, NameTheUserInTheLabelsOfArgoWorkflows) {
  EXPECT_EQ(label_value("u-ann"), "u-ann");
  EXPECT_EQ(label_value("Ann Müller (ops)"), "Ann-M-ller--ops");
  EXPECT_EQ(label_value("--.x_1.--"), "x_1");
  EXPECT_EQ(label_value("über"), "ber");
  EXPECT_EQ(label_value(""), "");
  EXPECT_EQ(label_value("@@"), "");
  EXPECT_EQ(label_value(std::string(70, 'a') + "b"), std::string(62, 'a') + "b");
  EXPECT_EQ(label_value("." + std::string(63, '-') + "b"), "b");

  const User ann{.id = "u-ann", .name = "Ann Ex", .email = "ann@example.test"};
  EXPECT_EQ(Json::parse(who_labels(ann, "actor")), Json::parse(R"({"metadata":{"labels":{
              "workflows.argoproj.io/actor":"u-ann",
              "workflows.argoproj.io/actor-email":"ann.at.example.test",
              "workflows.argoproj.io/actor-preferred-username":"Ann-Ex"}}})"));
  // The runtime itself has a name only; what another user has left goes.
  EXPECT_EQ(Json::parse(who_labels({.name = "prod", .is_runtime = true}, "creator")),
            Json::parse(R"({"metadata":{"labels":{
              "workflows.argoproj.io/creator":"prod",
              "workflows.argoproj.io/creator-email":null,
              "workflows.argoproj.io/creator-preferred-username":"prod"}}})"));
}

}  // namespace
}  // namespace gitops::app_proxy
