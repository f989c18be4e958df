#include "common/control_plane/graphql.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_text.hpp"
#include "common/core/json_value.hpp"
#include "common/http/json_answer.hpp"
#include "common/http/message.hpp"
#include "common/http/url.hpp"

namespace gitops::control_plane {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPath = "/2.0/api/graphql";
constexpr std::size_t kMaxBody = 1024 * 1024;
constexpr std::size_t kMaxMessage = 500;

// Returns the value at `path` in nested objects; null when it is absent.
Json value_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return *at;
}

// Returns the message of the first entry of `errors`; empty when there is none.
std::optional<std::string> error_of(const Json& answer) {
  const Json errors = value_at(answer, {"errors"});
  if (!errors.is_array() || errors.empty()) return std::nullopt;
  const Json message = value_at(errors[0], {"message"});
  return message.is_string() ? message.get<std::string>().substr(0, kMaxMessage) : "";
}

std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json value = value_at(json, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const Json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

// Returns a member of RuntimeStatus: {status description}, except for two that are enumerations of
// their own.
Json status_json(const RuntimeStatusItem& item) {
  using enum RuntimeStatusItem::State;
  const bool is_good = item.state == successful;
  if (item.name == "syncMode") return is_good ? item.description : "UNKNOWN";
  if (item.name == "argoCdState") return is_good ? "CONNECTED" : "UNKNOWN";
  const char* const status = is_good ? "SUCCESSFUL" : item.state == failed ? "FAILED" : "UNKNOWN";
  return {{"status", status}, {"description", item.description}};
}

// Returns true when the errors of a response report an unknown credential.
bool says_unauthenticated(const Json& answer) {
  const Json errors = value_at(answer, {"errors"});
  if (!errors.is_array() || errors.empty()) return false;
  const Json code = value_at(errors[0], {"extensions", "code"});
  const Json status = value_at(errors[0], {"extensions", "statusCode"});
  const std::string message = text_at(errors[0], {"message"});
  return code == "UNAUTHENTICATED" || status == 401 || message.starts_with("Unauthorized");
}

Result<Identity> identity_of(const Json& me) {
  Identity identity{.user_id = text_at(me, {"id"}),
                    .runtime_name = text_at(me, {"runtimeName"}),
                    .name = text_at(me, {"name"}),
                    .email = text_at(me, {"email"}),
                    .account_id = text_at(me, {"activeAccount", "id"}),
                    .account_name = text_at(me, {"activeAccount", "name"}),
                    .git_provider = text_at(me, {"activeAccount", "gitProvider"}),
                    .git_api_url = text_at(me, {"activeAccount", "gitApiUrl"}),
                    .shared_config_repo = text_at(me, {"activeAccount", "sharedConfigRepo"})};
  if (identity.account_id.empty() || (identity.user_id.empty() && identity.runtime_name.empty())) {
    return fail(ErrorCode::protocol, "control plane: the answer does not say who asks");
  }
  const auto admins = texts_of(value_at(me, {"activeAccount", "admins"}));
  identity.is_account_admin =
      !identity.user_id.empty() && std::ranges::find(admins, identity.user_id) != admins.end();
  return identity;
}

// Returns an Application as rules see it.
Entity promoted_entity(const Json& metadata, const ApplicationId& id) {
  Json object = Json::object();
  for (const char* member : {"labels", "annotations"}) {
    Json texts = Json::object();
    const Json pairs = value_at(metadata, {member});
    if (pairs.is_array()) {
      for (const Json& pair : pairs) texts[text_at(pair, {"key"})] = text_at(pair, {"value"});
    }
    object[member] = std::move(texts);
  }
  Json application = Json::object();
  application["metadata"] = std::move(object);
  JsonParser parser;
  const auto view = parser.parse_object(to_text(application), "application");
  Entity entity = view ? application_entity(*view, id.runtime) : Entity{.runtime = id.runtime};
  entity.cluster = text_at(metadata, {"cluster"});
  entity.entity_namespace = id.application_namespace;
  return entity;
}

Result<PromotionData::Application> application_of(const Json& json, const ApplicationId& id) {
  if (!json.is_object()) {
    return fail(ErrorCode::not_found, "the control plane knows no application " +
                                          id.application_namespace + "/" + id.name +
                                          " of runtime " + id.runtime);
  }
  return PromotionData::Application{
      .name = text_at(json, {"metadata", "name"}),
      .application_namespace = text_at(json, {"metadata", "namespace"}),
      .entity = promoted_entity(value_at(json, {"metadata"}), id),
      .repository = text_at(json, {"specSource", "repoURL"}),
      .revision = text_at(json, {"specSource", "targetRevision"}),
      .path = text_at(json, {"specSource", "path"})};
}

std::optional<AbacRule> rule_of(const Json& json, std::string_view entity_type) {
  // An unreadable list might have narrowed the rule.
  for (const char* list : {"teams", "actions", "attributes"}) {
    if (!value_at(json, {list}).is_array()) return std::nullopt;
  }
  AbacRule rule{.id = text_at(json, {"id"}),
                .entity_type = std::string(entity_type),
                .teams = texts_of(value_at(json, {"teams"})),
                .tags = {},
                .actions = texts_of(value_at(json, {"actions"})),
                .attributes = {}};
  for (const Json& attribute : value_at(json, {"attributes"})) {
    AbacRule::Attribute read{.name = text_at(attribute, {"name"}),
                             .key = text_at(attribute, {"key"}),
                             .value = text_at(attribute, {"value"})};
    // So might an unreadable value: a label's key without a value fits any value.
    const Json key = value_at(attribute, {"key"});
    const bool is_readable =
        value_at(attribute, {"value"}).is_string() && (key.is_null() || key.is_string());
    if (read.name.empty() || !is_readable) return std::nullopt;
    rule.attributes.push_back(std::move(read));
  }
  return rule;
}

}  // namespace

GraphqlClient::GraphqlClient(http::Client& http, http::Url url, std::function<Secret()> token)
    : http_(http), url_(std::move(url)), token_(std::move(token)) {}

SentCredential GraphqlClient::own() const {
  // The control plane expects the raw token, without "Bearer".
  return {.header = "Authorization", .value = token_()};
}

Task<Result<Json>> GraphqlClient::send(http::Request request, const SentCredential& credential,
                                       Deadline deadline) {
  const std::string what = "control plane at " + url_.host_header();
  if (!credential.value.empty()) {
    request.headers.set(credential.header, std::string(credential.value.reveal()));
  }
  const auto response = co_await http_.send(url_, std::move(request), deadline, kMaxBody);
  if (!response) co_return fail("control plane", response.error());
  if (response->status != 200) {
    Error error{.code = error_code_of_status(response->status),
                .message = what + ": " + std::to_string(response->status) + " " +
                           std::string(http::reason_phrase(response->status)),
                .http_status = response->status};
    if (const auto after = response->headers.find("Retry-After")) {
      error.retry_after = parse_retry_after(*after, wall_now());
    }
    // Whoever answers with a page, as a proxy or a login, does not judge the credential. A word of
    // that media type, as "Unauthorized", is how a server of Express sends one.
    const auto first = response->body.find_first_not_of(" \t\r\n");
    const bool is_markup = first != std::string::npos && response->body[first] == '<';
    if (http::is_page(response->headers) && is_markup && response->status != 429) {
      error.code = ErrorCode::unavailable;
      error.http_status = 0;
      error.message = what + ": " + http::not_json(*response);
    }
    co_return std::unexpected(std::move(error));
  }
  Json answer = Json::parse(response->body, nullptr, false);
  if (answer.is_discarded()) {
    co_return fail(ErrorCode::protocol, what + ": the answer is not JSON");
  }
  co_return answer;
}

Task<Result<Json>> GraphqlClient::ask(std::string_view document, Json variables,
                                      const SentCredential& credential, Deadline deadline) {
  http::Request request{.method = "POST", .target = http::join_target(url_, kPath)};
  request.headers.set("Content-Type", "application/json");
  Json body{{"query", document}};
  if (!variables.empty()) body["variables"] = std::move(variables);
  request.body = to_text(body);
  auto answer = co_await send(std::move(request), credential, deadline);
  if (!answer) co_return answer;
  if (says_unauthenticated(*answer)) {
    co_return std::unexpected(Error{.code = ErrorCode::unauthenticated,
                                    .message = "control plane: the credential is refused",
                                    .http_status = 401});
  }
  if (const auto error = error_of(*answer)) {
    co_return fail(ErrorCode::invalid_data,
                   "control plane at " + url_.host_header() + ": " + *error);
  }
  Json data = value_at(*answer, {"data"});
  // A mutation has nothing else that shows that it ran.
  if (!data.is_object()) {
    co_return fail(ErrorCode::protocol,
                   "control plane at " + url_.host_header() + ": the answer has no data");
  }
  co_return data;
}

Task<Result<std::string>> GraphqlClient::account(Deadline deadline) {
  const auto data =
      co_await ask("query me{me{activeAccount{name}}}", Json::object(), own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  if (!value_at(*data, {"me"}).is_object()) {
    co_return fail(ErrorCode::protocol,
                   "control plane at " + url_.host_header() + ": the answer does not say who asks");
  }
  co_return text_at(*data, {"me", "activeAccount", "name"});
}

Task<Result<Identity>> GraphqlClient::me(const SentCredential& credential, Deadline deadline) {
  const auto data = co_await ask(
      "query Me{me{id name email runtimeName activeAccount{id name admins gitProvider gitApiUrl "
      "sharedConfigRepo}}}",
      Json::object(), credential, deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return identity_of(value_at(*data, {"me"}));
}

Task<Result<Identity>> GraphqlClient::own_identity(Deadline deadline) {
  const auto data = co_await ask(
      "query me{me{runtimeName activeAccount{id name gitProvider gitApiUrl sharedConfigRepo "
      "csdpValidated}}}",
      Json::object(), own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return identity_of(value_at(*data, {"me"}));
}

Task<Result<RuntimeState>> GraphqlClient::runtime(const std::string& name, Deadline deadline) {
  const auto data = co_await ask(
      "query Runtime($name: String!){runtime(name:$name){metadata{account namespace} "
      "installationStatus installationType ingressHost runtimeVersion}}",
      Json{{"name", name}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  const Json runtime = value_at(*data, {"runtime"});
  if (!runtime.is_object()) {
    co_return fail(ErrorCode::not_found, "control plane: there is no runtime " + name);
  }
  co_return RuntimeState{.account = text_at(runtime, {"metadata", "account"}),
                         .runtime_namespace = text_at(runtime, {"metadata", "namespace"}),
                         .installation_status = text_at(runtime, {"installationStatus"}),
                         .installation_type = text_at(runtime, {"installationType"}),
                         .ingress_host = text_at(runtime, {"ingressHost"}),
                         .version = text_at(runtime, {"runtimeVersion"})};
}

Task<Result<Secret>> GraphqlClient::create_runtime(const RuntimeInstallation& installation,
                                                   const Secret& user_token, Deadline deadline) {
  const Json args{
      {"runtimeName", installation.name},
      {"runtimeNamespace", installation.runtime_namespace},
      {"componentNames", Json::array()},
      {"isExternalArgoCd", installation.has_external_argocd},
      {"chartVersion", installation.chart_version},
      {"cluster", installation.cluster},
      {"ingressClass", installation.ingress_class},
      {"ingressController", installation.ingress_controller},
      {"ingressHost", installation.ingress_host},
      {"installationType",
       installation.installation_type == InstallationType::helm ? "HELM" : "HELM_HOSTED"},
      {"managed", installation.is_managed},
      {"runtimeVersion", installation.runtime_version}};
  const auto data = co_await ask(
      "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!){createRuntime("
      "installationArgs: $installationArgs){newAccessToken}}",
      Json{{"installationArgs", args}}, {.header = "Authorization", .value = user_token}, deadline);
  if (!data) co_return std::unexpected(data.error());
  Secret token(text_at(*data, {"createRuntime", "newAccessToken"}));
  if (token.empty()) {
    co_return fail(ErrorCode::protocol, "control plane: no token came for the new runtime");
  }
  co_return token;
}

Task<Result<void>> GraphqlClient::report_errors(const std::string& runtime,
                                                const std::vector<RuntimeError>& failures,
                                                Deadline deadline) {
  Json errors = Json::array();
  for (const auto& failure : failures) {
    const bool is_error = failure.level == RuntimeError::Level::error;
    errors.push_back({{"level", is_error ? "ERROR" : "WARNING"}, {"message", failure.message}});
  }
  const auto data = co_await ask(
      "mutation ReportRuntimeErrors($reportErrorsArgs: ReportRuntimeErrorsArgs!){"
      "reportRuntimeErrors(reportErrorsArgs: $reportErrorsArgs)}",
      Json{{"reportErrorsArgs", {{"runtime", runtime}, {"errors", std::move(errors)}}}}, own(),
      deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return Result<void>();
}

Task<Result<std::string>> GraphqlClient::save_sealing_key(const Secret& private_key,
                                                          Deadline deadline) {
  // The key is in base64, as in Secrets and in the response of getSealingKey.
  const auto data = co_await ask(
      "mutation saveSealingKey($privateKey: String!){saveSealingKey(privateKey: $privateKey)}",
      Json{{"privateKey", base64_encode(private_key.reveal())}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  auto id = text_at(*data, {"saveSealingKey"});
  if (id.empty()) co_return fail(ErrorCode::protocol, "control plane: no id of the key came");
  co_return id;
}

Task<Result<Secret>> GraphqlClient::sealing_key(const std::string& id, Deadline deadline) {
  const auto data = co_await ask("query getSealingKey($id: String!) { getSealingKey(id: $id) }",
                                 Json{{"id", id}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  auto key = base64_decode(text_at(*data, {"getSealingKey"}));
  if (!key || key->empty()) {
    co_return fail(ErrorCode::protocol, "control plane: the answer has no key in base64");
  }
  co_return Secret(std::move(*key));
}

Task<Result<void>> GraphqlClient::report_status(const std::string& runtime,
                                                const std::vector<RuntimeStatusItem>& items,
                                                Deadline deadline) {
  Json status = Json::object();
  for (const auto& item : items) status[item.name] = status_json(item);
  const auto data = co_await ask(
      "mutation UpdateRuntimeStatus($args: UpdateRuntimeStatusArgs!){updateRuntimeStatus(args: "
      "$args)}",
      Json{{"args", {{"runtime", runtime}, {"status", std::move(status)}}}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return Result<void>();
}

Task<Result<void>> GraphqlClient::report_clusters(const std::string& runtime,
                                                  const std::vector<ClusterState>& clusters,
                                                  Deadline deadline) {
  const auto given = [](Json& object, const char* key, const std::string& text) {
    if (!text.empty()) object[key] = text;
  };
  Json list = Json::array();
  for (const auto& cluster : clusters) {
    Json connection{{"status", cluster.status}};
    given(connection, "message", cluster.message);
    given(connection, "attemptedAt", cluster.attempted_at);
    Json cache{{"resourcesCount", cluster.resources}, {"apisCount", cluster.apis}};
    given(cache, "lastCacheSyncTime", cluster.last_cache_sync);
    Json info{{"connectionState", std::move(connection)},
              {"cacheInfo", std::move(cache)},
              {"applicationsCount", cluster.applications},
              {"apiVersions", cluster.api_versions}};
    given(info, "serverVersion", cluster.server_version);
    list.push_back({{"name", cluster.name},
                    {"runtime", runtime},
                    {"server", cluster.server},
                    {"info", std::move(info)}});
  }
  const auto data = co_await ask(
      "mutation UpdateRuntimeClusters($clusters: [ClusterUpsertArgs]){updateRuntimeClusters("
      "clusters: $clusters)}",
      Json{{"clusters", std::move(list)}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return Result<void>();
}

Task<Result<std::vector<AbacRule>>> GraphqlClient::abac_rules(const std::string& account_id,
                                                              std::string_view entity_type,
                                                              Deadline deadline) {
  const auto data = co_await ask(
      "query AbacRules($accountId: String!, $entityType: AbacEntityValues!){abacRules(accountId: "
      "$accountId, entityType: $entityType){id accountId entityType teams tags actions "
      "attributes{name key value}}}",
      Json{{"accountId", account_id}, {"entityType", entity_type}}, own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  const Json list = value_at(*data, {"abacRules"});
  if (!list.is_array()) co_return fail(ErrorCode::protocol, "control plane: no list of rules");
  std::vector<AbacRule> rules;
  for (const Json& item : list) {
    auto rule = rule_of(item, entity_type);
    if (!rule) co_return fail(ErrorCode::invalid_data, "control plane: a rule is malformed");
    rules.push_back(std::move(*rule));
  }
  co_return rules;
}

Task<Result<PromotionData>> GraphqlClient::promotion_data(const ApplicationId& source,
                                                          const ApplicationId& destination,
                                                          Deadline deadline) {
  const auto data = co_await ask(
      "query PromotionData($srcRuntime: String!, $srcNamespace: String!, $srcName: String!, "
      "$destRuntime: String!, $destNamespace: String!, $destName: String!){srcApp: "
      "application(runtime: $srcRuntime, namespace: $srcNamespace, name: $srcName){metadata{name "
      "cluster namespace labels{key value} annotations{key value}} specSource{repoURL "
      "targetRevision path}} destApp: application(runtime: $destRuntime, namespace: "
      "$destNamespace, name: $destName){metadata{name cluster namespace labels{key value} "
      "annotations{key value}} specSource{repoURL targetRevision path}} "
      "promotionTemplate(runtime: $destRuntime, namespace: $destNamespace, name: "
      "$destName){promotion{glob jsonPaths} versionSource{file jsonPath}}}",
      Json{{"srcRuntime", source.runtime},
           {"srcNamespace", source.application_namespace},
           {"srcName", source.name},
           {"destRuntime", destination.runtime},
           {"destNamespace", destination.application_namespace},
           {"destName", destination.name}},
      own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  auto from = application_of(value_at(*data, {"srcApp"}), source);
  if (!from) co_return std::unexpected(std::move(from.error()));
  auto to = application_of(value_at(*data, {"destApp"}), destination);
  if (!to) co_return std::unexpected(std::move(to.error()));
  PromotionData promotion{.source = std::move(*from), .destination = std::move(*to), .rules = {}};
  const Json rules = value_at(*data, {"promotionTemplate", "promotion"});
  if (rules.is_null()) co_return promotion;
  if (!rules.is_array()) co_return fail(ErrorCode::invalid_data, "control plane: no list of rules");
  for (const Json& rule : rules) {
    // An unreadable path might have narrowed the promotion.
    const Json paths = value_at(rule, {"jsonPaths"});
    PromotionData::Rule read{.glob = text_at(rule, {"glob"}), .json_paths = texts_of(paths)};
    const bool is_complete =
        paths.is_null() || (paths.is_array() && paths.size() == read.json_paths.size());
    if (read.glob.empty() || !is_complete) {
      co_return fail(ErrorCode::invalid_data, "control plane: a promotion rule is malformed");
    }
    promotion.rules.push_back(std::move(read));
  }
  co_return promotion;
}

Task<Result<std::vector<GitSource>>> GraphqlClient::git_sources(const std::string& runtime,
                                                                Deadline deadline) {
  constexpr int kPage = 50;
  constexpr int kMaxPages = 200;
  std::vector<GitSource> sources;
  Json pagination{{"first", kPage}};
  for (int page = 0;; ++page) {
    if (page == kMaxPages) {
      co_return fail(ErrorCode::too_large, "control plane: more than " +
                                               std::to_string(kMaxPages * kPage) +
                                               " Git sources of runtime " + runtime);
    }
    const auto data = co_await ask(
        "query GitSources($pagination: SlicePaginationArgs, $runtime: String){response: "
        "gitSources(pagination: $pagination, runtime: $runtime){edges{node{metadata{account "
        "runtime group version kind name namespace} self{repoURL path revision} permissions{userId "
        "read write}}} pageInfo{startCursor endCursor hasNextPage hasPrevPage}}}",
        Json{{"pagination", pagination}, {"runtime", runtime}}, own(), deadline);
    if (!data) co_return std::unexpected(data.error());
    const Json edges = value_at(*data, {"response", "edges"});
    if (!edges.is_array()) co_return fail(ErrorCode::protocol, "control plane: no Git sources");
    for (const Json& edge : edges) {
      const Json node = value_at(edge, {"node"});
      GitSource source{.account_id = text_at(node, {"metadata", "account"}),
                       .name = text_at(node, {"metadata", "name"}),
                       .source_namespace = text_at(node, {"metadata", "namespace"}),
                       .repository_url = text_at(node, {"self", "repoURL"}),
                       .permissions = {}};
      for (const Json& entry : value_at(node, {"permissions"})) {
        auto user_id = text_at(entry, {"userId"});
        if (user_id.empty()) continue;
        source.permissions.push_back({.user_id = std::move(user_id),
                                      .read = value_at(entry, {"read"}) == true,
                                      .write = value_at(entry, {"write"}) == true});
      }
      if (!source.name.empty()) sources.push_back(std::move(source));
    }
    const auto cursor = text_at(*data, {"response", "pageInfo", "endCursor"});
    if (value_at(*data, {"response", "pageInfo", "hasNextPage"}) != true || cursor.empty()) break;
    pagination["after"] = cursor;
  }
  co_return sources;
}

Task<Result<bool>> GraphqlClient::filters_by_git_permissions(Deadline deadline) {
  const auto data = co_await ask(
      "query AccountFeatures{me{activeAccount{features{csdpFilterAppsByGitPermissions}}}}",
      Json::object(), own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return value_at(
      *data, {"me", "activeAccount", "features", "csdpFilterAppsByGitPermissions"}) != false;
}

Task<Result<void>> GraphqlClient::set_permissions(const GitSource& source, Deadline deadline) {
  Json permissions = Json::array();
  for (const auto& entry : source.permissions) {
    permissions.push_back(
        {{"userId", entry.user_id}, {"read", entry.read}, {"write", entry.write}});
  }
  const auto data = co_await ask(
      "mutation UpdateGitSourcePermissions($args: UpdateGitSourcePermissionsArgs!){"
      "updateGitSourcePermissions(args: $args)}",
      Json{{"args",
            {{"gitSource", source.name},
             {"namespace", source.source_namespace},
             {"permissions", std::move(permissions)}}}},
      own(), deadline);
  if (!data) co_return std::unexpected(data.error());
  co_return Result<void>();
}

Task<Result<std::map<std::string, std::vector<std::string>>>> GraphqlClient::teams(
    Deadline deadline) {
  const auto answer = co_await send(
      {.method = "GET", .target = http::join_target(url_, "/api/team")}, own(), deadline);
  if (!answer) co_return std::unexpected(answer.error());
  if (!answer->is_array()) co_return fail(ErrorCode::protocol, "control plane: no list of teams");
  std::map<std::string, std::vector<std::string>> teams;
  for (const Json& team : *answer) {
    const auto id = text_at(team, {"_id"});
    const Json users = value_at(team, {"users"});
    if (id.empty() || !users.is_array()) continue;
    for (const Json& user : users) {
      if (const auto user_id = text_at(user, {"_id"}); !user_id.empty()) {
        teams[user_id].push_back(id);
      }
    }
  }
  co_return teams;
}

}  // namespace gitops::control_plane
