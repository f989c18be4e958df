#include "contract/argocd_contract.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/time.hpp"
#include "common/http/client.hpp"
#include "support/run_coro.hpp"

namespace gitops::test {

const char* const kArgoCdContractMessage = "first commit\n\nwith a body\nof two lines";
const CommitAuthor kArgoCdContractAuthor{"Dana Example", "dana@example.test"};

FileChanges argocd_contract_files() {
  return {{"deployment.yaml",
           "apiVersion: apps/v1\n"
           "kind: Deployment\n"
           "metadata:\n  name: guestbook-ui\n"
           "spec:\n"
           "  replicas: 2\n"
           "  selector: {matchLabels: {app: guestbook}}\n"
           "  template:\n"
           "    metadata: {labels: {app: guestbook}}\n"
           "    spec: {containers: [{name: ui, image: \"example/guestbook:1\"}]}\n"},
          {"settings.yaml",
           "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
           "data:\n  color: blue\n"},
          {"credentials.yaml",
           "apiVersion: v1\nkind: Secret\nmetadata:\n  name: credentials\n"
           "stringData:\n  password: hunter2\n"}};
}

namespace {

using Json = nlohmann::json;

// The calls of one case to the peer.
class Session {
 public:
  Session(http::Client& client, const ArgoCdPeer& argocd) : peer(argocd), client_(client) {}

  const ArgoCdPeer& peer;

  struct Answer {
    int status = 0;
    std::string body;
    Json json;  // discarded when the body is none
  };
  Task<Answer> send(std::string method, std::string target, http::Headers headers,
                    std::string body = {}) {
    http::Request request{std::move(method), std::move(target), std::move(headers),
                          std::move(body)};
    auto response = co_await client_.send(peer.url, std::move(request),
                                          deadline_after(std::chrono::seconds(20)));
    Answer answer;
    if (!response) {
      ADD_FAILURE() << response.error().message;
    } else {
      answer = {response->status, response->body, Json::parse(response->body, nullptr, false)};
    }
    co_return answer;
  }
  Task<Answer> get(std::string target) {
    return send("GET", std::move(target), {{"Authorization", "Bearer " + peer.token}});
  }
  // "/api/v1/applications/NAME/…" as the reporter asks: with namespace and project.
  [[nodiscard]] std::string path(const std::string& rest, const std::string& query = {}) const {
    return "/api/v1/applications/" + peer.app + "/" + rest + "?appNamespace=" + peer.ns +
           "&project=default" + query;
  }

 private:
  http::Client& client_;
};

// The member of `list` with this kind and name; null when there is none.
Json member(const Json& list, const std::string& kind, const std::string& name) {
  for (const auto& item : list) {
    if (item.value("kind", "") == kind && item.value("name", "") == name) return item;
  }
  return nullptr;
}

void expect_error(const Session::Answer& answer, int status, int code) {
  EXPECT_EQ(answer.status, status) << answer.body;
  if (!answer.json.is_object()) {
    ADD_FAILURE() << "no JSON object: " << answer.body;
    return;
  }
  EXPECT_EQ(answer.json.value("code", -1), code) << answer.body;
  EXPECT_FALSE(answer.json.value("message", "").empty());
  EXPECT_EQ(answer.json.value("error", ""), answer.json.value("message", "-"));
}

Task<> tree_holds_resources_and_their_descendants(Session& session) {
  const auto answer = co_await session.get(session.path("resource-tree"));
  CO_ASSERT_EQ(answer.status, 200);
  const auto nodes = answer.json.value("nodes", Json::array());
  const auto deployment = member(nodes, "Deployment", "guestbook-ui");
  CO_ASSERT_TRUE(deployment.is_object());
  EXPECT_EQ(deployment.value("group", ""), "apps");
  EXPECT_EQ(deployment.value("version", ""), "v1");
  EXPECT_EQ(deployment.value("namespace", ""), session.peer.destination);
  EXPECT_FALSE(deployment.value("uid", "").empty());
  EXPECT_FALSE(deployment.value("resourceVersion", "").empty());
  EXPECT_TRUE(parse_rfc3339(deployment.value("createdAt", "")).has_value());
  EXPECT_EQ(deployment.value("/health/status"_json_pointer, ""), "Healthy");
  EXPECT_FALSE(deployment.contains("parentRefs"));

  const auto settings = member(nodes, "ConfigMap", "settings");
  CO_ASSERT_TRUE(settings.is_object());
  EXPECT_FALSE(settings.contains("group"));
  EXPECT_FALSE(settings.contains("health"));

  Json set;
  for (const auto& node : nodes) {
    if (node.value("kind", "") == "ReplicaSet") set = node;
  }
  CO_ASSERT_TRUE(set.is_object());
  EXPECT_EQ(set.value("/parentRefs/0/uid"_json_pointer, ""), deployment.value("uid", "-"));
  EXPECT_EQ(set.value("/parentRefs/0/kind"_json_pointer, ""), "Deployment");
  EXPECT_EQ(set.value("/parentRefs/0/group"_json_pointer, ""), "apps");
  EXPECT_EQ(set.value("/parentRefs/0/version"_json_pointer, ""), "v1");
  std::size_t pods = 0;
  for (const auto& node : nodes) {
    if (node.value("kind", "") != "Pod") continue;
    ++pods;
    EXPECT_EQ(node.value("/parentRefs/0/uid"_json_pointer, ""), set.value("uid", "-"));
    EXPECT_EQ(node.value("/images/0"_json_pointer, ""), "example/guestbook:1");
    EXPECT_EQ(node.value("/health/status"_json_pointer, ""), "Healthy");
  }
  EXPECT_EQ(pods, 2U);
}

Task<> managed_resources_hold_target_and_live_states_as_text(Session& session) {
  const auto answer = co_await session.get(session.path("managed-resources"));
  CO_ASSERT_EQ(answer.status, 200);
  const auto items = answer.json.value("items", Json::array());
  EXPECT_EQ(items.size(), 3U);
  const auto item = member(items, "Deployment", "guestbook-ui");
  CO_ASSERT_TRUE(item.is_object());
  EXPECT_EQ(item.value("group", ""), "apps");
  EXPECT_EQ(item.value("namespace", ""), session.peer.destination);
  EXPECT_FALSE(item.contains("version"));
  EXPECT_FALSE(item.contains("modified"));
  const auto target = Json::parse(item.value("targetState", ""), nullptr, false);
  const auto live = Json::parse(item.value("liveState", ""), nullptr, false);
  CO_ASSERT_TRUE(target.is_object() && live.is_object());
  EXPECT_EQ(target.value("apiVersion", ""), "apps/v1");
  EXPECT_EQ(target.value("/metadata/namespace"_json_pointer, ""), session.peer.destination);
  EXPECT_EQ(target.value("/spec/replicas"_json_pointer, 0), 2);
  const auto annotations = target.value("/metadata/annotations"_json_pointer, Json::object());
  EXPECT_EQ(annotations.value("argocd.argoproj.io/tracking-id", ""),
            session.peer.app + ":apps/Deployment:" + session.peer.destination + "/guestbook-ui");
  EXPECT_FALSE(target["metadata"].contains("uid"));
  EXPECT_FALSE(live.value("/metadata/uid"_json_pointer, "").empty());
  EXPECT_EQ(live.value("/status/readyReplicas"_json_pointer, 0), 2);
  EXPECT_EQ(live.value("/metadata/resourceVersion"_json_pointer, "-"),
            item.value("resourceVersion", ""));
  const auto normalized = Json::parse(item.value("normalizedLiveState", ""), nullptr, false);
  CO_ASSERT_TRUE(normalized.is_object());
  EXPECT_FALSE(normalized.contains("status"));

  const auto settings = member(items, "ConfigMap", "settings");
  CO_ASSERT_TRUE(settings.is_object());
  EXPECT_FALSE(settings.contains("group"));
}

Task<> managed_resources_mask_secrets(Session& session) {
  const auto answer = co_await session.get(session.path("managed-resources"));
  CO_ASSERT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, testing::Not(testing::HasSubstr("hunter2")));
  EXPECT_THAT(answer.body, testing::Not(testing::HasSubstr("aHVudGVyMg")));
  const auto item = member(answer.json.value("items", Json::array()), "Secret", "credentials");
  CO_ASSERT_TRUE(item.is_object());
  for (const auto* state : {"targetState", "liveState"}) {
    const auto object = Json::parse(item.value(state, ""), nullptr, false);
    CO_ASSERT_TRUE(object.is_object());
    EXPECT_EQ(object.value("/data/password"_json_pointer, "").find_first_not_of('+'),
              std::string::npos);
  }
}

Task<> revision_metadata_names_author_date_and_message(Session& session) {
  const auto answer = co_await session.get(
      session.path("revisions/" + session.peer.revision + "/metadata", "&sourceIndex=0"));
  CO_ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json.value("author", ""), "Dana Example <dana@example.test>");
  EXPECT_EQ(answer.json.value("message", ""), kArgoCdContractMessage);
  const auto date = parse_rfc3339(answer.json.value("date", ""));
  CO_ASSERT_OK(date);
  EXPECT_LT(wall_now() - *date, std::chrono::minutes(10));
}

Task<> unknown_revision_is_a_server_error(Session& session) {
  const auto answer = co_await session.get(
      session.path("revisions/" + std::string(40, '1') + "/metadata", "&sourceIndex=0"));
  expect_error(answer, 500, 2);
  EXPECT_THAT(answer.body, testing::HasSubstr("Failed to checkout revision 1111"));
}

Task<> missing_application_is_not_found_only_for_those_who_name_its_project(Session& session) {
  for (const std::string read : {"resource-tree", "managed-resources"}) {
    const auto base = "/api/v1/applications/missing/" + read + "?appNamespace=" + session.peer.ns;
    const auto named = co_await session.get(base + "&project=default");
    expect_error(named, 404, 5);
    EXPECT_EQ(named.json.value("message", ""), "applications.argoproj.io \"missing\" not found");
    expect_error(co_await session.get(base), 403, 7);
  }
  // Another project, or a namespace that is not served, does not reveal that it exists either.
  const auto tree = "/api/v1/applications/" + session.peer.app + "/resource-tree?appNamespace=";
  expect_error(co_await session.get(tree + session.peer.ns + "&project=other"), 404, 5);
  expect_error(co_await session.get(tree + "elsewhere&project=default"), 403, 7);
}

Task<> wrong_tokens_are_unauthenticated(Session& session) {
  const auto path = session.path("resource-tree");
  expect_error(co_await session.send("GET", path, {}), 401, 16);
  expect_error(co_await session.send("GET", path, {{"Authorization", "Bearer nonsense"}}), 401, 16);
  expect_error(
      co_await session.send("GET", path, {{"Authorization", "Bearer " + session.peer.token + "x"}}),
      401, 16);
}

Task<> account_knows_what_it_may_do(Session& session) {
  const std::string path = "/api/v1/account/can-i/applications/get/*/*";
  const auto answer = co_await session.get(path);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json.value("value", ""), "yes") << answer.body;
  expect_error(co_await session.send("GET", path, {{"Authorization", "Bearer nonsense"}}), 401, 16);
  expect_error(
      co_await session.send("GET", path, {{"Authorization", "Bearer " + session.peer.token + "x"}}),
      401, 16);
}

Task<> version_needs_no_token(Session& session) {
  const auto answer = co_await session.send("GET", "/api/version", {});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.json.value("Version", ""), testing::StartsWith("v3.2"));
}

Task<> login_gives_a_token_that_is_accepted(Session& session) {
  const auto login = [&](const std::string& password, const char* type) -> Task<Session::Answer> {
    co_return co_await session.send(
        "POST", "/api/v1/session", {{"Content-Type", type}},
        Json{{"username", session.peer.username}, {"password", password}}.dump());
  };
  EXPECT_EQ((co_await login(session.peer.password, "text/plain")).status, 415);
  expect_error(co_await login("wrong", "application/json"), 401, 16);
  const auto answer = co_await login(session.peer.password, "application/json");
  CO_ASSERT_EQ(answer.status, 200);
  const auto tree =
      co_await session.send("GET", session.path("resource-tree"),
                            {{"Authorization", "Bearer " + answer.json.value("token", "")}});
  EXPECT_EQ(tree.status, 200);
}

Task<> unknown_path_is_not_found(Session& session) {
  EXPECT_EQ((co_await session.get(session.path("nonsense"))).status, 404);
}

Task<> application_is_read_by_its_name(Session& session) {
  const auto answer = co_await session.get("/api/v1/applications/" + session.peer.app +
                                           "?appNamespace=" + session.peer.ns);
  CO_ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json.value("/metadata/name"_json_pointer, ""), session.peer.app);
  EXPECT_EQ(answer.json.value("/metadata/namespace"_json_pointer, ""), session.peer.ns);
  EXPECT_EQ(answer.json.value("/status/sync/status"_json_pointer, ""), "Synced");
  EXPECT_EQ((co_await session.get("/api/v1/applications/missing")).status, 403);
}

Task<> application_is_written_without_health_of_its_resources(Session& session) {
  const auto app = session.peer.read_app();
  const auto status = app.value("status", Json::object());
  EXPECT_EQ(status.value("resourceHealthSource", ""), "appTree");
  EXPECT_EQ(status.value("controllerNamespace", ""), session.peer.ns);
  EXPECT_EQ(status.value("/sync/status"_json_pointer, ""), "Synced");
  EXPECT_EQ(status.value("/sync/revision"_json_pointer, ""), session.peer.revision);
  EXPECT_EQ(status.value("/sync/comparedTo/source/path"_json_pointer, ""), ".");
  EXPECT_EQ(status.value("/health/status"_json_pointer, ""), "Healthy");
  EXPECT_TRUE(parse_rfc3339(status.value("reconciledAt", "")).has_value());
  const auto resources = status.value("resources", Json::array());
  EXPECT_EQ(resources.size(), 3U);
  for (const auto& resource : resources) {
    EXPECT_FALSE(resource.contains("health"));
    EXPECT_FALSE(resource.contains("requiresPruning"));
    EXPECT_EQ(resource.value("status", ""), "Synced");
    EXPECT_EQ(resource.value("version", ""), "v1");
    EXPECT_EQ(resource.value("namespace", ""), session.peer.destination);
  }
  const auto deployment = member(resources, "Deployment", "guestbook-ui");
  EXPECT_EQ(deployment.value("group", ""), "apps");
  EXPECT_FALSE(member(resources, "ConfigMap", "settings").contains("group"));
  const auto history = status.value("history", Json::array());
  CO_ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].value("id", -1), 0);
  EXPECT_EQ(history[0].value("revision", ""), session.peer.revision);
  EXPECT_TRUE(parse_rfc3339(history[0].value("deployedAt", "")).has_value());
  const auto operation = status.value("operationState", Json::object());
  EXPECT_EQ(operation.value("phase", ""), "Succeeded");
  EXPECT_EQ(operation.value("message", ""), "successfully synced (all tasks run)");
  EXPECT_EQ(operation.value("/operation/sync/revision"_json_pointer, ""), session.peer.revision);
  EXPECT_EQ(operation.value("/syncResult/revision"_json_pointer, ""), session.peer.revision);
  EXPECT_EQ(operation.value("/syncResult/resources"_json_pointer, Json::array()).size(), 3U);
  EXPECT_TRUE(parse_rfc3339(operation.value("startedAt", "")).has_value());
  EXPECT_TRUE(parse_rfc3339(operation.value("finishedAt", "")).has_value());
  EXPECT_FALSE(app.contains("operation"));
  EXPECT_EQ(status.value("/summary/images/0"_json_pointer, ""), "example/guestbook:1");
}

Task<> resource_that_left_git_requires_pruning(Session& session) {
  auto scaled = argocd_contract_files().at("deployment.yaml").value();
  scaled.replace(scaled.find("replicas: 2"), 11, "replicas: 3");
  co_await session.peer.change({{"settings.yaml", std::nullopt}, {"deployment.yaml", scaled}},
                               "scale to 3");
  const auto app = session.peer.read_app();
  const auto status = app.value("status", Json::object());
  EXPECT_EQ(status.value("/sync/status"_json_pointer, ""), "OutOfSync");
  EXPECT_NE(status.value("/sync/revision"_json_pointer, ""), session.peer.revision);
  EXPECT_EQ(status.value("/history/0/revision"_json_pointer, ""), session.peer.revision);
  const auto resources = status.value("resources", Json::array());
  const auto settings = member(resources, "ConfigMap", "settings");
  CO_ASSERT_TRUE(settings.is_object());
  EXPECT_EQ(settings.value("status", ""), "OutOfSync");
  EXPECT_TRUE(settings.value("requiresPruning", false));
  EXPECT_EQ(member(resources, "Deployment", "guestbook-ui").value("status", ""), "OutOfSync");
  EXPECT_EQ(member(resources, "Secret", "credentials").value("status", ""), "Synced");

  const auto answer = co_await session.get(session.path("managed-resources"));
  CO_ASSERT_EQ(answer.status, 200);
  const auto items = answer.json.value("items", Json::array());
  const auto gone = member(items, "ConfigMap", "settings");
  CO_ASSERT_TRUE(gone.is_object());
  EXPECT_EQ(gone.value("targetState", ""), "null");
  EXPECT_NE(gone.value("liveState", "null"), "null");
  const auto changed = member(items, "Deployment", "guestbook-ui");
  CO_ASSERT_TRUE(changed.is_object());
  EXPECT_TRUE(changed.value("modified", false));
  const auto target = Json::parse(changed.value("targetState", ""), nullptr, false);
  const auto live = Json::parse(changed.value("liveState", ""), nullptr, false);
  const auto predicted = Json::parse(changed.value("predictedLiveState", ""), nullptr, false);
  CO_ASSERT_TRUE(target.is_object() && live.is_object() && predicted.is_object());
  EXPECT_EQ(target.value("/spec/replicas"_json_pointer, 0), 3);
  EXPECT_EQ(live.value("/spec/replicas"_json_pointer, 0), 2);
  EXPECT_EQ(predicted.value("/spec/replicas"_json_pointer, 0), 3);
}

// --- State changes -----------------------------------------------------------------------------------

std::string scaled_to(int replicas) {
  auto text = argocd_contract_files().at("deployment.yaml").value();
  text.replace(text.find("replicas: 2"), 11, "replicas: " + std::to_string(replicas));
  return text;
}

Task<Session::Answer> post(Session& session, std::string call, Json options) {
  options["appNamespace"] = session.peer.ns;
  options["project"] = "default";
  co_return co_await session.send(
      "POST", "/api/v1/applications/" + session.peer.app + "/" + call,
      {{"Authorization", "Bearer " + session.peer.token}, {"Content-Type", "application/json"}},
      options.dump());
}
Task<Session::Answer> terminate(Session& session) {
  return session.send(
      "DELETE", session.path("operation"),
      {{"Authorization", "Bearer " + session.peer.token}, {"Content-Type", "application/json"}});
}

// The status once this many deployments are in its history and the last operation is in `phase`.
Task<Json> status_when(Session& session, std::size_t deployments, std::string phase) {
  const auto deadline = deadline_after(std::chrono::seconds(30));
  while (true) {
    const auto app = session.peer.read_app();
    const auto status = app.value("status", Json::object());
    if (status.value("history", Json::array()).size() == deployments &&
        status.value("/operationState/phase"_json_pointer, "") == phase &&
        app.contains("operation") == (phase == "Running")) {
      co_return status;
    }
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "the operation does not come to " << phase << ": " << app.dump();
      co_return status;
    }
    co_await sleep_for(std::chrono::milliseconds(20));
  }
}

// Waits until argocd-server shows the Deployment with this many replicas, which it does after the controller's
// next comparison.
Task<> expect_replicas(Session& session, int replicas) {
  const auto deadline = deadline_after(std::chrono::seconds(30));
  while (true) {
    const auto answer = co_await session.get(session.path("managed-resources", "&kind=Deployment"));
    const auto items = answer.json.value("items", Json::array());
    const auto deployment = member(items, "Deployment", "guestbook-ui");
    const auto text = deployment.is_object() ? deployment.value("liveState", "") : std::string();
    const auto live = Json::parse(text, nullptr, false);
    if (live.is_object() && live.value("/spec/replicas"_json_pointer, -1) == replicas) co_return;
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "the Deployment does not come to " << replicas << " replicas: " << text;
      co_return;
    }
    co_await sleep_for(std::chrono::milliseconds(20));
  }
}

// With and without pruning, and back to an earlier deployment.
Task<> syncs_and_rolls_back(Session& session) {
  co_await session.peer.change({{"settings.yaml", std::nullopt}, {"deployment.yaml", scaled_to(3)}},
                               "scale to 3");
  auto answer = co_await post(session, "sync", Json::object());
  CO_ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json.value("/metadata/name"_json_pointer, ""), session.peer.app);
  auto status = co_await status_when(session, 2, "Succeeded");
  co_await expect_replicas(session, 3);
  auto result = status.value("/operationState/syncResult/resources"_json_pointer, Json::array());
  EXPECT_EQ(member(result, "ConfigMap", "settings").value("status", ""), "PruneSkipped");
  EXPECT_EQ(status.value("/sync/status"_json_pointer, ""), "OutOfSync");

  answer = co_await post(session, "sync", {{"prune", true}});
  CO_ASSERT_EQ(answer.status, 200) << answer.body;
  status = co_await status_when(session, 3, "Succeeded");
  result = status.value("/operationState/syncResult/resources"_json_pointer, Json::array());
  EXPECT_EQ(member(result, "ConfigMap", "settings").value("status", ""), "Pruned");

  answer = co_await post(session, "rollback", {{"id", 0}});
  CO_ASSERT_EQ(answer.status, 200) << answer.body;
  status = co_await status_when(session, 4, "Succeeded");
  co_await expect_replicas(session, 2);
  EXPECT_EQ(status.value("/history/3/revision"_json_pointer, ""), session.peer.revision);
  EXPECT_EQ(status.value("/history/3/id"_json_pointer, -1), 3);
  // It is compared with the branch, not with what was deployed.
  status = session.peer.read_app().value("status", Json::object());
  EXPECT_EQ(status.value("/sync/status"_json_pointer, ""), "OutOfSync");
  EXPECT_NE(status.value("/sync/revision"_json_pointer, ""), session.peer.revision);

  answer = co_await post(session, "rollback", {{"id", 77}});
  expect_error(answer, 400, 3);
}

Task<> operation_that_never_ends_is_terminated(Session& session) {
  expect_error(co_await terminate(session), 400, 3);
  co_await session.peer.change(
      {{"wait.yaml",
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: wait\n  annotations: "
        "{argocd.argoproj.io/hook: PreSync}\nspec:\n  template:\n    spec:\n"
        "      restartPolicy: Never\n      nodeSelector: {no: where}\n"
        "      containers: [{name: main, image: \"example.test/x:1\"}]\n"}},
      "wait for ever");
  auto answer = co_await post(session, "sync", Json::object());
  CO_ASSERT_EQ(answer.status, 200) << answer.body;
  auto status = co_await status_when(session, 1, "Running");
  expect_error(co_await post(session, "sync", Json::object()), 400, 9);
  EXPECT_EQ((co_await terminate(session)).status, 200);
  status = co_await status_when(session, 1, "Failed");
  EXPECT_THAT(status.value("/operationState/message"_json_pointer, ""),
              testing::HasSubstr("terminated"));
}

Task<> state_changes_are_json(Session& session) {
  const auto answer = co_await session.send(
      "POST", "/api/v1/applications/" + session.peer.app + "/sync",
      {{"Authorization", "Bearer " + session.peer.token}, {"Content-Type", "text/plain"}}, "{}");
  EXPECT_EQ(answer.status, 415) << answer.body;
}

std::function<Task<>(const ArgoCdPeer&)> on(Task<> (*run)(Session&)) {
  return [run](const ArgoCdPeer& peer) -> Task<> {
    const auto executor = co_await asio::this_coro::executor;
    Metrics metrics;
    net::Resolver resolver(metrics);
    http::Client client(executor, resolver, {});
    Session session(client, peer);
    co_await run(session);
    client.close_idle();
  };
}

}  // namespace

std::vector<ArgoCdCase> argocd_cases() {
  return {
      {"TreeHoldsResourcesAndTheirDescendants", false,
       on(tree_holds_resources_and_their_descendants)},
      {"ManagedResourcesHoldTargetAndLiveStatesAsText", false,
       on(managed_resources_hold_target_and_live_states_as_text)},
      {"ManagedResourcesMaskSecrets", false, on(managed_resources_mask_secrets)},
      {"RevisionMetadataNamesAuthorDateAndMessage", false,
       on(revision_metadata_names_author_date_and_message)},
      {"UnknownRevisionIsAServerError", false, on(unknown_revision_is_a_server_error)},
      {"MissingApplicationIsNotFoundOnlyForThoseWhoNameItsProject", false,
       on(missing_application_is_not_found_only_for_those_who_name_its_project)},
      {"WrongTokensAreUnauthenticated", false, on(wrong_tokens_are_unauthenticated)},
      {"AccountKnowsWhatItMayDo", false, on(account_knows_what_it_may_do)},
      {"VersionNeedsNoToken", false, on(version_needs_no_token)},
      {"LoginGivesATokenThatIsAccepted", false, on(login_gives_a_token_that_is_accepted)},
      {"UnknownPathIsNotFound", false, on(unknown_path_is_not_found)},
      {"ApplicationIsReadByItsName", false, on(application_is_read_by_its_name)},
      {"ApplicationIsWrittenWithoutHealthOfItsResources", false,
       on(application_is_written_without_health_of_its_resources)},
      {"ResourceThatLeftGitRequiresPruning", true, on(resource_that_left_git_requires_pruning)},
      {"SyncsAndRollsBack", true, on(syncs_and_rolls_back)},
      {"OperationThatNeverEndsIsTerminated", true, on(operation_that_never_ends_is_terminated)},
      {"StateChangesAreJson", false, on(state_changes_are_json)},
  };
}

}  // namespace gitops::test
