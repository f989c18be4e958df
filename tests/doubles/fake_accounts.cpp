#include "doubles/fake_accounts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "common/graphql/http_endpoint.hpp"

namespace gitops::test {
namespace {

// The part of the control plane's schema that clients in the runtime and the public SDK ask for.
constexpr const char* kSchema = R"(
enum AbacEntityValues { gitopsApplications workflows workflowTemplates products environments
                        promotionFlows clusters }
type Query {
  me: User
  runtime(name: String!): Runtime
  runtimes: RuntimeSlice!
  application(runtime: String!, namespace: String!, name: String!): Application
  promotionTemplate(runtime: String!, namespace: String!, name: String!): PromotionTemplate
  abacRules(accountId: String!, entityType: AbacEntityValues!): [EntityAbacRules!]!
  gitSources(pagination: SlicePaginationArgs, project: String, runtime: String): GitSourceSlice!
  getSealingKey(id: String!): String
}
input SlicePaginationArgs { after: String before: String first: Int last: Int }
input UpdateGitSourcePermissionsArgs { gitSource: String! namespace: String!
                                       permissions: [GitPermissionArgs!]! }
input GitPermissionArgs { userId: String! read: Boolean! write: Boolean! }
type GitSourceSlice { edges: [GitSourceEdge!]! pageInfo: PageInfo! }
type GitSourceEdge { node: GitSource! }
type GitSource { metadata: ObjectMeta! self: Application permissions: [GitPermission!]! }
type ObjectMeta { group: String! version: String! kind: String! name: String! namespace: String
                  runtime: String! cluster: String account: String! labels: [StringPair!]
                  annotations: [StringPair!] }
type StringPair { key: String! value: String! }
type GitPermission { userId: String! read: Boolean! write: Boolean! }
type PageInfo { startCursor: String endCursor: String hasNextPage: Boolean! hasPrevPage: Boolean! }
type Mutation {
  createRuntime(installationArgs: RuntimeInstallationArgs!): RuntimeCreationResponse!
  reportRuntimeErrors(reportErrorsArgs: ReportRuntimeErrorsArgs!): Int
  updateRuntimeStatus(args: UpdateRuntimeStatusArgs!): Int
  updateGitSourcePermissions(args: UpdateGitSourcePermissionsArgs!): Boolean
  updateRuntimeClusters(clusters: [ClusterUpsertArgs]): Boolean
  saveSealingKey(privateKey: String!): String
}
enum ClusterConnectionStatus { Failed Successful Unknown }
input ConnectionStateInput { status: ClusterConnectionStatus! message: String attemptedAt: String }
input CacheInfoInput { resourcesCount: Int apisCount: Int lastCacheSyncTime: String }
input ClusterInfoInput { connectionState: ConnectionStateInput! serverVersion: String
                         cacheInfo: CacheInfoInput applicationsCount: Int! apiVersions: [String] }
input ClusterUpsertArgs { name: String! runtime: String! server: String! info: ClusterInfoInput! }
enum SyncStatus { OUT_OF_SYNC SYNCED SYNCING UNKNOWN }
enum HealthStatus { DEGRADED HEALTHY MISSING PROGRESSING SUSPENDED TERMINATED UNKNOWN }
enum InstallationStatus { COMPLETED FAILED IN_PROGRESS }
enum InstallationType { HELM HELM_HOSTED }
enum GitProviders { BITBUCKET BITBUCKET_SERVER GERRIT GITHUB GITLAB }
enum AccessMode { INGRESS TUNNEL }
input RuntimeInstallationArgs { runtimeName: String! runtimeNamespace: String cluster: String!
                                installationType: InstallationType managed: Boolean
                                gitProvider: GitProviders runtimeVersion: String!
                                chartVersion: String componentNames: [String!] ingressHost: String
                                internalIngressHost: String ingressClass: String
                                ingressController: String gatewayName: String
                                gatewayNamespace: String repo: String recover: Boolean
                                accessMode: AccessMode isExternalArgoCd: Boolean }
type RuntimeCreationResponse { newAccessToken: String! name: String! }
enum ErrorLevels { ERROR WARNING }
input HealthErrorInput { level: ErrorLevels! message: String! }
input ReportRuntimeErrorsArgs { runtime: String! errors: [HealthErrorInput!]! }
enum AppProxyStatus { FAILED SUCCESSFUL UNKNOWN }
enum RuntimeSyncMode { GITOPS HELM UNKNOWN }
enum ArgoCdState { CONNECTED NOT_AUTHORIZED NOT_FOUND UNKNOWN }
input StatusItemArgs { status: AppProxyStatus! description: String }
input RuntimeStatusArgs { appProxyStarted: StatusItemArgs gitSourceConfigured: StatusItemArgs
                          defaultGitIntegration: StatusItemArgs encryptionKey: StatusItemArgs
                          encryptionIv: StatusItemArgs eventReporterArgoCDToken: StatusItemArgs
                          isc: StatusItemArgs runtimeGitToken: StatusItemArgs
                          syncMode: RuntimeSyncMode argoCdState: ArgoCdState }
input UpdateRuntimeStatusArgs { runtime: String! status: RuntimeStatusArgs! }
type User { id: String name: String email: String isAdmin: Boolean runtimeName: String
            accounts: [Account] activeAccount: Account }
type Account { id: String! name: String admins: [String!] gitProvider: GitProviders
               gitApiUrl: String sharedConfigRepo: String csdpValidated: Boolean features: Features }
type Features { gitopsPlanEnforcement: Boolean csdpFilterAppsByGitPermissions: Boolean }
type Application { metadata: ObjectMeta! specSource: SpecSource repoURL: String path: String
                   revision: String status: ApplicationStatus }
type ApplicationStatus { syncStatus: SyncStatus! healthStatus: HealthStatus }
type SpecSource { repoURL: String targetRevision: String path: String }
type PromotionTemplate { promotion: [PromotionRule!] versionSource: VersionSource }
type PromotionRule { glob: String! jsonPaths: [String!]! }
type VersionSource { file: String jsonPath: String }
type GenericEntity { syncStatus: SyncStatus! healthStatus: HealthStatus healthMessage: String }
type RuntimeSlice { edges: [RuntimeEdge!]! pageInfo: PageInfo! }
type RuntimeEdge { node: Runtime! }
type Runtime { metadata: ObjectMeta! self: GenericEntity syncStatus: SyncStatus!
               healthStatus: HealthStatus healthMessage: String cluster: String managed: Boolean!
               isRemoteClusterConnected: Boolean! ingressHost: String internalIngressHost: String
               ingressClass: String ingressController: String runtimeVersion: String
               installationStatus: InstallationStatus! installationType: InstallationType!
               repo: String managedClustersNum: Int! gitProvider: GitProviders
               accessMode: AccessMode! }
type EntityAbacRules { id: String accountId: String! entityType: AbacEntityValues! teams: [String!]!
                       tags: [String] actions: [String!]! attributes: [AbacAttribute]! }
type AbacAttribute { name: String! key: String value: String! }
)";

std::string session_of(std::string_view cookies) {
  constexpr std::string_view kName = "session=";
  const auto at = cookies.find(kName);
  if (at == std::string_view::npos) return {};
  const auto rest = cookies.substr(at + kName.size());
  return std::string(rest.substr(0, rest.find(';')));
}

http::Response unauthorized() {
  return {.status = 401,
          .headers = {{"Content-Type", "application/json"}},
          .body = R"({"error":"Unauthorized: Invalid token."})"};
}

}  // namespace

FakeAccounts::FakeAccounts() {
  auto engine = graphql::Engine::make(kSchema, resolvers());
  if (!engine) throw std::logic_error(engine.error().message);
  engine_ = std::move(*engine);
}

void FakeAccounts::add(const std::string& token, User user) {
  Owner owner{.account_id = user.account_id};
  owner.user = std::move(user);
  owners_.insert_or_assign(token, std::move(owner));
}

void FakeAccounts::add(const std::string& token, Runtime runtime) {
  owners_.insert_or_assign(token, Owner{.runtime = runtime.name, .account_id = runtime.account_id});
  runtimes_.insert_or_assign(runtime.name, runtime);
}

void FakeAccounts::set_ingress_host(const std::string& runtime, std::string host) {
  runtimes_.at(runtime).ingress_host = std::move(host);
}

void FakeAccounts::set_admins(const std::string& account_id, std::vector<std::string> admins) {
  accounts_.at(account_id).admins = std::move(admins);
}

FakeAccounts::Asking FakeAccounts::asking(const http::Request& request) const {
  for (const char* header : {"Authorization", "x-access-token", "Cookie"}) {
    const auto value = request.headers.find(header);
    if (!value) continue;
    const bool is_cookie = std::string_view(header) == "Cookie";
    const auto found = owners_.find(is_cookie ? session_of(*value) : std::string(*value));
    return {.owner = found == owners_.end() ? nullptr : &found->second, .header = header};
  }
  return {};
}

std::size_t FakeAccounts::asked(std::string_view what) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(asked_, [&](const auto& one) { return one.starts_with(what); }));
}

Task<> FakeAccounts::serve_graphql(http::Exchange& exchange) {
  if (garbage_) {
    (void)co_await exchange.read_body();
    (void)co_await exchange.reply(
        {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = *garbage_});
    co_return;
  }
  const Asking who = asking(exchange.request());
  Owner owner = who.owner ? *who.owner : Owner{};
  graphql::HttpOptions options;
  options.admission =
      [&](const graphql::Prepared* operation) -> Task<std::optional<http::Response>> {
    if (operation) {
      for (const auto field : operation->root_fields()) {
        asked_.push_back(std::string(field) + " by " + who.header);
      }
    }
    if (!who.owner) co_return unauthorized();
    co_return std::nullopt;
  };
  co_await graphql::serve_http(exchange, *engine_, graphql::Context(owner), options);
}

http::Response FakeAccounts::teams(const http::Request& request) const {
  if (!asking(request).owner) return unauthorized();
  Json list = Json::array();
  for (const auto& [id, user_ids] : teams_) {
    Json users = Json::array();
    for (const auto& user : user_ids) users.push_back({{"_id", user}});
    list.push_back({{"_id", id}, {"name", id}, {"users", std::move(users)}});
  }
  return {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = list.dump()};
}

graphql::Resolvers FakeAccounts::resolvers() {
  graphql::Resolvers to;
  to.query({
      {"me", [this](graphql::Call& call) { return me(call.context<Owner>()); }},
      {"runtime",
       [this](graphql::Call& call) { return runtime(call.context<Owner>(), call["name"].text()); }},
      {"runtimes", [this](graphql::Call& call) { return runtimes(call.context<Owner>()); }},
      {"application", [this](graphql::Call& call) { return application(call); }},
      {"promotionTemplate",
       [this](graphql::Call&) {
         return graphql::Json::trusted(Json{{"promotion", promotion_rules_},
                                            {"versionSource", {{"file", ""}, {"jsonPath", ""}}}}
                                           .dump());
       }},
      {"abacRules",
       [this](graphql::Call& call) {
         return rules(call.context<Owner>(), call["accountId"].text(), call["entityType"].text());
       }},
  });
  to.query({{"gitSources", [this](graphql::Call& call) {
               const auto page = call["pagination"];
               const auto after = page["after"].text();
               // Without a page: all of them. The public SDK asks once.
               constexpr std::size_t kAll = 1'000;
               return git_sources(call.context<Owner>(), call["runtime"].text(),
                                  after.empty() ? 0 : std::stoul(std::string(after)),
                                  page["first"].exists() ? std::stoul(page["first"].json()) : kAll);
             }}});
  to.query({{"getSealingKey", [this](graphql::Call& call) -> Result<std::string> {
               for (std::size_t i = 0; i < sealing_keys_.size(); ++i) {
                 if (call["id"].text() == "key-" + std::to_string(i + 1)) return sealing_keys_[i];
               }
               return fail(ErrorCode::not_found, "no such key");
             }}});
  to.mutation({{"saveSealingKey", [this](graphql::Call& call) -> Result<std::string> {
                  if (call.context<Owner>().runtime.empty()) {
                    return fail(ErrorCode::forbidden, "no runtime");
                  }
                  sealing_keys_.emplace_back(call["privateKey"].text());
                  return "key-" + std::to_string(sealing_keys_.size());
                }}});
  const auto take = [](std::vector<Json>& into) {
    return [&into](graphql::Call& call) -> Result<std::int64_t> {
      if (call.context<Owner>().runtime.empty()) return fail(ErrorCode::forbidden, "no runtime");
      into.push_back(Json::parse(call.arguments().json()).begin().value());
      return 1;
    };
  };
  to.mutation({
      {"createRuntime",
       [this](graphql::Call& call) {
         return enroll(call.context<Owner>(), Json::parse(call["installationArgs"].json()));
       }},
      {"reportRuntimeErrors", take(life_.errors)},
      {"updateRuntimeStatus", take(life_.statuses)},
      {"updateGitSourcePermissions",
       [this](graphql::Call& call) {
         return set_permissions(call.context<Owner>(), call["args"]);
       }},
      {"updateRuntimeClusters",
       [this](graphql::Call& call) -> Result<bool> {
         auto clusters = Json::parse(call["clusters"].json());
         for (const Json& cluster : clusters) {
           if (cluster["runtime"] != call.context<Owner>().runtime) {
             return fail(ErrorCode::forbidden, "another runtime's cluster");
           }
         }
         life_.clusters.push_back(std::move(clusters));
         return true;
       }},
  });
  static constexpr std::array kPlainTypes{"RuntimeCreationResponse",
                                          "User",
                                          "Account",
                                          "Features",
                                          "ObjectMeta",
                                          "StringPair",
                                          "GenericEntity",
                                          "Runtime",
                                          "RuntimeSlice",
                                          "RuntimeEdge",
                                          "EntityAbacRules",
                                          "AbacAttribute",
                                          "Application",
                                          "ApplicationStatus",
                                          "SpecSource",
                                          "PromotionTemplate",
                                          "PromotionRule",
                                          "VersionSource",
                                          "GitSourceSlice",
                                          "GitSourceEdge",
                                          "GitSource",
                                          "GitPermission",
                                          "PageInfo"};
  for (const char* type : kPlainTypes) {
    to.json(type);
  }
  return to;
}

FakeAccounts::Json FakeAccounts::account_json(const std::string& id) const {
  const auto found = accounts_.find(id);
  if (found == accounts_.end()) return nullptr;
  const Account& account = found->second;
  return {{"id", account.id},
          {"name", account.name},
          {"admins", account.admins},
          {"gitProvider", account.git_provider.empty() ? Json() : Json(account.git_provider)},
          {"gitApiUrl", account.git_api_url},
          {"sharedConfigRepo", account.shared_config_repo},
          {"csdpValidated", true},
          {"features",
           {{"gitopsPlanEnforcement", false},
            {"csdpFilterAppsByGitPermissions", account.filters_by_git_permissions}}}};
}

graphql::Json FakeAccounts::me(const Owner& owner) const {
  Json account = account_json(owner.account_id);
  Json me = {{"activeAccount", account}, {"accounts", Json::array({account})}};
  if (owner.user) {
    me["id"] = owner.user->id;
    me["name"] = owner.user->name;
    if (!owner.user->email.empty()) me["email"] = owner.user->email;
    me["isAdmin"] = false;
    if (!owner.user->page_of_runtime.empty()) me["runtimeName"] = owner.user->page_of_runtime;
  } else {
    me["runtimeName"] = owner.runtime;
  }
  return graphql::Json::trusted(me.dump());
}

FakeAccounts::Json FakeAccounts::runtime_json(const Runtime& runtime) {
  return {{"metadata",
           {{"group", "codefresh.io"},
            {"version", "v1"},
            {"kind", "Runtime"},
            {"name", runtime.name},
            {"namespace", runtime.runtime_namespace},
            {"runtime", runtime.name},
            {"account", runtime.account_id}}},
          {"self", {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}}},
          {"syncStatus", "SYNCED"},
          {"healthStatus", "HEALTHY"},
          {"gitProvider", "GITHUB"},
          {"accessMode", "INGRESS"},
          {"managed", false},
          {"isRemoteClusterConnected", true},
          {"ingressHost", runtime.ingress_host},
          {"installationStatus", "COMPLETED"},
          {"installationType", "HELM"},
          {"runtimeVersion", "0.1.72"},
          {"managedClustersNum", 1}};
}

Result<std::optional<graphql::Json>> FakeAccounts::runtime(const Owner& owner,
                                                           std::string_view name) const {
  const auto found = runtimes_.find(std::string(name));
  if (found == runtimes_.end() || found->second.account_id != owner.account_id) {
    return std::optional<graphql::Json>();
  }
  return std::optional(graphql::Json::trusted(runtime_json(found->second).dump()));
}

graphql::Json FakeAccounts::runtimes(const Owner& owner) const {
  Json edges = Json::array();
  for (const auto& [name, runtime] : runtimes_) {
    if (runtime.account_id == owner.account_id) edges.push_back({{"node", runtime_json(runtime)}});
  }
  const Json page{{"hasNextPage", false}, {"hasPrevPage", false}};
  return graphql::Json::trusted(Json{{"edges", edges}, {"pageInfo", page}}.dump());
}

std::optional<graphql::Json> FakeAccounts::application(graphql::Call& call) const {
  const std::string name(call["name"].text());
  const auto found = applications_.find(name);
  if (found == applications_.end() || call["runtime"].text() != "prod" ||
      call["namespace"].text() != "argocd") {
    return std::nullopt;
  }
  return graphql::Json::trusted(Json{{"metadata",
                                      {{"group", "argoproj.io"},
                                       {"version", "v1alpha1"},
                                       {"kind", "Application"},
                                       {"name", name},
                                       {"namespace", "argocd"},
                                       {"runtime", "prod"},
                                       {"account", "acc-1"},
                                       {"cluster", "https://kubernetes.default.svc"},
                                       {"labels", found->second.labels},
                                       {"annotations", found->second.annotations}}},
                                     {"specSource",
                                      {{"repoURL", found->second.repository},
                                       {"targetRevision", found->second.revision},
                                       {"path", found->second.path}}}}
                                    .dump());
}

graphql::Json FakeAccounts::git_sources(const Owner& owner, std::string_view runtime,
                                        std::size_t after, std::size_t first) const {
  Json edges = Json::array();
  std::size_t at = after;
  for (; at < git_sources_.size() && edges.size() < first; ++at) {
    const GitSource& source = git_sources_[at];
    if (source.runtime != runtime) continue;
    edges.push_back({{"node",
                      {{"metadata",
                        {{"group", "argoproj.io"},
                         {"version", "v1alpha1"},
                         {"kind", "Application"},
                         {"account", owner.account_id},
                         {"runtime", source.runtime},
                         {"name", source.name},
                         {"namespace", "runtime"}}},
                       {"self",
                        {{"repoURL", source.repository_url},
                         {"path", "."},
                         {"status", {{"syncStatus", "SYNCED"}, {"healthStatus", "HEALTHY"}}}}},
                       {"permissions", source.permissions}}}});
  }
  const Json page{{"endCursor", std::to_string(at)},
                  {"hasNextPage", at < git_sources_.size()},
                  {"hasPrevPage", after > 0}};
  return graphql::Json::trusted(Json{{"edges", edges}, {"pageInfo", page}}.dump());
}

Result<bool> FakeAccounts::set_permissions(const Owner& owner, graphql::InputView args) {
  const auto found = std::ranges::find_if(git_sources_, [&](const GitSource& source) {
    return source.name == args["gitSource"].text() && source.runtime == owner.runtime &&
           args["namespace"].text() == "runtime";
  });
  if (found == git_sources_.end()) return fail(ErrorCode::not_found, "no such Git source");
  found->permissions = Json::parse(args["permissions"].json());
  return true;
}

Result<graphql::Json> FakeAccounts::enroll(const Owner& owner, const Json& args) {
  if (!owner.user) return fail(ErrorCode::forbidden, "only a user may register a runtime");
  life_.registered.push_back(args);
  const std::string name = args.at("runtimeName");
  std::erase_if(owners_, [&](const auto& entry) { return entry.second.runtime == name; });
  const auto token = "canary-runtime-token-" + std::to_string(life_.registered.size());
  add(token, Runtime{.name = name,
                     .account_id = owner.account_id,
                     .ingress_host = args.value("ingressHost", ""),
                     .runtime_namespace = args.at("runtimeNamespace")});
  life_.on_registration();
  return graphql::Json::trusted(Json{{"newAccessToken", token}, {"name", name}}.dump());
}

Result<graphql::Json> FakeAccounts::rules(const Owner& owner, std::string_view account,
                                          std::string_view type) const {
  if (account != owner.account_id) return fail(ErrorCode::forbidden, "another account");
  Json list = Json::array();
  for (const Json& rule : rules_) {
    if (rule.at("entityType") == type && rule.at("accountId") == account) list.push_back(rule);
  }
  return graphql::Json::trusted(list.dump());
}

}  // namespace gitops::test
