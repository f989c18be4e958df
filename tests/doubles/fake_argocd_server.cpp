#include "doubles/fake_argocd_server.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kSession = "canary-session";

}  // namespace

Task<> FakeArgoCdServer::handle(http::Exchange& exchange) {
  const std::string path(exchange.path());
  const std::string authorization(exchange.request().headers.find("Authorization").value_or(""));
  const auto body = co_await exchange.read_body(64 * 1024);
  const bool is_login = path == "/api/v1/session" && body;
  const Json login = is_login ? Json::parse(*body, nullptr, false) : Json();
  if (login.is_object() && login.value("password", "").empty()) {
    (void)co_await exchange.reply(json_response(401, R"({"message":"no credentials supplied"})"));
    co_return;
  }
  (void)co_await exchange.reply(respond(path, authorization));
}

http::Response FakeArgoCdServer::failure(int status) const {
  return json_response(status, R"({"error":"failed","code":2,"message":"failed"})");
}

http::Response FakeArgoCdServer::respond(const std::string& path,
                                         const std::string& authorization) {
  const bool is_admin = authorization == std::string("Bearer ") + kSession;
  if (path == "/api/v1/clusters" && lists_clusters && (is_admin || !has_accounts)) {
    return json_ok(cluster_list());
  }
  if (!has_accounts) return json_response(404, "{}");
  if (path == "/api/v1/session" && !refuses_logins) {
    return json_ok(Json{{"token", kSession}}.dump());
  }
  if (path == "/api/v1/session/userinfo") {
    return tokens.contains(authorization) ? json_ok(R"({"loggedIn":true})")
                                          : json_response(401, R"({"message":"invalid session"})");
  }
  if (path.ends_with("/token") && is_admin && !refuses_tokens) {
    const auto token = "canary-argocd-" + std::to_string(++tokens_made);
    tokens.insert("Bearer " + token);
    on_token();
    return json_ok(Json{{"token", token}}.dump());
  }
  return json_response(403, R"({"message":"permission denied"})");
}

std::string FakeArgoCdServer::cluster_list() const {
  std::vector<Cluster> all;
  for (const auto& name : clusters) all.push_back({name, "https://" + name + ".example.test"});
  if (more) {
    for (auto& cluster : more()) all.push_back(std::move(cluster));
  }
  Json items = Json::array();
  for (const auto& cluster : all) {
    const char* status = cluster.name == failed ? "Failed" : "Successful";
    items.push_back(
        {{"name", cluster.name},
         {"server", cluster.server},
         {"info", {{"connectionState", {{"status", status}}}, {"applicationsCount", "0"}}}});
  }
  return Json{{"items", items}}.dump();
}

}  // namespace gitops::test
