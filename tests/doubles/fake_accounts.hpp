#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/graphql/engine.hpp"
#include "common/http/message.hpp"
#include "common/http/server.hpp"

namespace gitops::test {

// The accounts of a control plane: users, runtimes, teams and rules, and the GraphQL documents that
// tell of them, by a schema of their own, so that a document with a mistake is refused. What a
// credential is allowed to see is checked as far as clients depend on it.
class FakeAccounts {
 public:
  using Json = nlohmann::json;

  struct Account {
    std::string id;
    std::string name;
    std::vector<std::string> admins = {};  // user ids
    std::string git_provider = "GITHUB";
    std::string git_api_url = "https://api.github.com";
    std::string shared_config_repo = {};
    Json filters_by_git_permissions = true;
  };
  struct User {
    std::string id;
    std::string name;
    std::string email = {};
    std::string account_id;
    std::string page_of_runtime = {};  // the credential is a page token for this runtime
  };
  struct Runtime {
    std::string name;
    std::string account_id;
    std::string ingress_host = {};
    std::string runtime_namespace = "runtime";
  };

  struct GitSource {
    std::string name;
    std::string runtime;
    std::string repository_url;
    Json permissions = Json::array();  // {userId, read, write}
  };

  FakeAccounts();

  void add(Account account) { accounts_.insert_or_assign(account.id, account); }
  // A user may have several tokens. They are taken from Authorization, from x-access-token and from
  // the cookie "session".
  void add(const std::string& token, User user);
  void add(const std::string& token, Runtime runtime);
  // Changes the runtime, whose token stays.
  void set_ingress_host(const std::string& runtime, std::string host);
  void add(GitSource source) { git_sources_.push_back(std::move(source)); }
  [[nodiscard]] const std::vector<GitSource>& git_sources() const { return git_sources_; }
  void revoke(const std::string& token) { owners_.erase(token); }
  void set_admins(const std::string& account_id, std::vector<std::string> admins);
  // In the form of abacRules: {id, accountId, entityType, teams, actions, attributes}.
  void set_rules(Json rules) { rules_ = std::move(rules); }
  void set_team(const std::string& id, std::vector<std::string> user_ids) {
    teams_[id] = std::move(user_ids);
  }

  // An Application of the runtime "prod", in the namespace "argocd": where its manifests are.
  struct Source {
    std::string repository;
    std::string revision;
    std::string path;
    Json labels = Json::array();  // {key, value}
    Json annotations = Json::array();
  };
  void set_application(const std::string& name, Source source) {
    applications_[name] = std::move(source);
  }
  // [{glob, jsonPaths}], for every Application.
  void set_promotion_rules(Json rules) { promotion_rules_ = std::move(rules); }

  // What runtimes have sent, in order of arrival: the arguments of createRuntime, reportRuntimeErrors,
  // updateRuntimeStatus and updateRuntimeClusters. A runtime that is registered gets the token "canary-runtime-token-N", and those before
  // it are revoked.
  struct Life {
    std::vector<Json> registered;
    std::vector<Json> errors;
    std::vector<Json> statuses;
    std::vector<Json> clusters;  // the lists of updateRuntimeClusters
    // Called when a registration was recorded, before its answer.
    std::function<void()> on_registration = [] {};
  };
  Life& life() { return life_; }
  [[nodiscard]] std::size_t runtimes() const { return runtimes_.size(); }
  // The name of the runtime that a token belongs to; empty when there is none.
  [[nodiscard]] std::string runtime_of(const std::string& token) const {
    const auto found = owners_.find(token);
    return found == owners_.end() ? std::string() : found->second.runtime;
  }

  // The keys of saveSealingKey, in base64; their ids are "key-1" and so on.
  std::vector<std::string>& sealing_keys() { return sealing_keys_; }

  // Fault: answers GraphQL with these bytes and status 200; nothing ends it.
  void answer_with(std::optional<std::string> bytes) { garbage_ = std::move(bytes); }

  Task<> serve_graphql(http::Exchange& exchange);
  [[nodiscard]] http::Response teams(const http::Request& request) const;
  // Names of the documents' root fields, in order of arrival; "me by Authorization".
  [[nodiscard]] const std::vector<std::string>& asked() const { return asked_; }
  [[nodiscard]] std::size_t asked(std::string_view what) const;

 private:
  // Who asks.
  struct Owner {
    std::optional<User> user = {};
    std::string runtime = {};
    std::string account_id;
  };
  struct Asking {
    const Owner* owner = nullptr;
    std::string header;
  };
  [[nodiscard]] Asking asking(const http::Request& request) const;
  [[nodiscard]] graphql::Resolvers resolvers();
  [[nodiscard]] Json account_json(const std::string& id) const;
  [[nodiscard]] graphql::Json me(const Owner& owner) const;
  [[nodiscard]] Result<std::optional<graphql::Json>> runtime(const Owner& owner,
                                                             std::string_view name) const;
  [[nodiscard]] graphql::Json runtimes(const Owner& owner) const;
  [[nodiscard]] static Json runtime_json(const Runtime& runtime);
  [[nodiscard]] std::optional<graphql::Json> application(graphql::Call& call) const;
  [[nodiscard]] graphql::Json git_sources(const Owner& owner, std::string_view runtime,
                                          std::size_t after, std::size_t first) const;
  Result<bool> set_permissions(const Owner& owner, graphql::InputView args);
  Result<graphql::Json> enroll(const Owner& owner, const Json& args);
  [[nodiscard]] Result<graphql::Json> rules(const Owner& owner, std::string_view account,
                                            std::string_view type) const;

  std::map<std::string, Account> accounts_;
  std::map<std::string, Runtime> runtimes_;
  std::map<std::string, Owner> owners_;  // by token
  std::map<std::string, std::vector<std::string>> teams_;
  std::vector<GitSource> git_sources_;
  Json rules_ = Json::array();
  std::map<std::string, Source> applications_;
  Json promotion_rules_ = Json::array();
  Life life_;
  std::vector<std::string> sealing_keys_;
  std::optional<std::string> garbage_;
  std::vector<std::string> asked_;
  std::unique_ptr<graphql::Engine> engine_;
};

}  // namespace gitops::test
