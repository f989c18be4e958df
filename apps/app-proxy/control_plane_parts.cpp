#include "app-proxy/control_plane_parts.hpp"

#include <algorithm>
#include <utility>

namespace gitops::app_proxy {
namespace {

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Credential credential_of(const Secret& value, const std::string& file) {
  return file.empty() ? Credential::fixed(value) : Credential::file(file);
}

UserDirectory::Options user_options(const Config& config) {
  UserDirectory::Options options;
  options.ttl = config.user_cache_ttl;
  options.outage = std::max(config.user_outage, config.user_cache_ttl);
  return options;
}

}  // namespace

ControlPlaneParts::ControlPlaneParts(const DaemonContext& context, const Config& config,
                                     net::Resolver& names, const http::ProxySettings& proxy)
    : url(without_slashes(config.control_plane.text)),
      identity(context.executor, credential_of(config.runtime_token, config.runtime_token_file),
               credential_of(config.runtime_store_iv, config.runtime_store_iv_file)),
      user_token(credential_of(config.user_token, config.user_token_file)),
      http(context.executor, names, client_options(config, proxy, config.control_plane_insecure)),
      client(http, config.control_plane.url, [this] { return identity.token(); }),
      users(context.executor, client, identity, context.metrics, user_options(config)),
      rules(
          context.executor, client, [this] { return users.own().account_id; }, context.metrics,
          Rules::Options{.refresh = config.rules_refresh, .max_age = kMaxRulesAge}) {
  users.start();
  rules.start();
}

Task<> ControlPlaneParts::stop() {
  co_await rules.stop();
  co_await users.stop();
}

std::string ControlPlaneParts::rules_error() const {
  for (const EntityType type : control_plane::entity_types()) {
    if (auto error = rules.last_error(type); !error.empty()) return error;
  }
  return {};
}

StatusReport ControlPlaneParts::status() const {
  const auto& account = users.own().account_id;
  StatusReport report{{.name = "account",
                       .state = account.empty() ? StatusState::pending : StatusState::ok,
                       .message = account.empty() ? "not known yet" : account},
                      status_count("users known", users.known())};
  for (const EntityType type : control_plane::entity_types()) report.push_back(rules.status(type));
  return report;
}

}  // namespace gitops::app_proxy
