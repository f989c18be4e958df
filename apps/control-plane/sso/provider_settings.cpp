#include "control-plane/sso/provider_settings.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/teams.hpp"
#include "control-plane/sso/discovery.hpp"

namespace gitops::control_plane_server::sso {
namespace {

constexpr std::size_t kMaxName = 40;

std::string provider_name_mistake(std::string_view name) {
  const bool is_valid =
      !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  if (!is_valid) return "a provider's name has 1 to 40 lower-case letters, digits and hyphens";
  // /api/auth/key belongs to API keys.
  return name == "key" || name == "keys" ? "key and keys are no names for a provider" : "";
}

// Reads "GROUP=TEAM". A group may contain '='.
Result<std::map<std::string, std::string>> read_teams(const std::vector<std::string>& items) {
  std::map<std::string, std::string> teams;
  for (const auto& item : items) {
    const auto equals = item.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(ErrorCode::invalid_argument, "an item is not of the form GROUP=TEAM");
    }
    auto group = item.substr(0, equals);
    auto team = item.substr(equals + 1);
    if (auto mistake = team_name_mistake(team); !mistake.empty()) {
      return fail(ErrorCode::invalid_argument, std::move(mistake));
    }
    if (team == kUsersTeam || team == kAdminsTeam) {
      return fail(ErrorCode::invalid_argument,
                  "the team " + team + " is built in: it follows the account's members");
    }
    if (!teams.emplace(std::move(group), std::move(team)).second) {
      return fail(ErrorCode::invalid_argument, "a group has two teams");
    }
  }
  return teams;
}

}  // namespace

void bind_provider(ConfigReader& reader, ProviderSettings& settings) {
  reader.add({"name", {}, "Name in addresses: lower-case letters, digits and hyphens"},
             settings.name);
  reader.add({"title", {}, "Text of the button on the sign-in page; empty: the name"},
             settings.title);
  reader.add({"issuer",
              {},
              "Issuer, exactly as the provider writes it in its discovery document and tokens"},
             settings.issuer);
  reader.add({"client-id", {}, "Id of this server as the provider's client"}, settings.client_id);
  reader.add_secret({"client-secret", {}, "Secret of that client"}, settings.client_secret,
                    &settings.client_secret_file);
  reader.add({"scopes", {}, "Scopes to ask for; openid is always one of them"}, settings.scopes);
  reader.add({"groups-claim", {}, "Claim of the ID token with the user's groups"},
             settings.groups_claim);
  reader.add_parsed_list(
      {"teams",
       {},
       "Teams of groups, each GROUP=TEAM: at each login the user joins and leaves these teams as "
       "its groups say, and stays in all others; a team that does not exist is created"},
      settings.teams, "", read_teams);
  reader.add(
      {"account", {}, "Account of new users and of the teams; the default is first-start.account"},
      settings.account);
  reader.add({"create-users", {}, "Create users at their first login"}, settings.creates_users);
  reader.add({"join-by-email",
              {},
              "Join the first login to the existing user with the same mail address, if the "
              "provider has verified it; whoever controls such an address there becomes that user"},
             settings.joins_by_email);
  reader.add({"ca-file",
              {},
              "PEM file of the certificate authorities for the provider; replaces the system's"},
             settings.ca_file);
  reader.check({"name"}, [&settings] { return provider_name_mistake(settings.name); });
  reader.check({"issuer"}, [&settings] { return issuer_mistake(settings.issuer); });
  reader.check({"client-id", "client-secret"}, [&settings] {
    return settings.client_id.empty() || settings.client_secret_file.empty()
               ? "client-id and client-secret-file are required"
               : "";
  });
}

Result<std::vector<ProviderSettings>> read_providers(const std::vector<std::string>& paths) {
  std::vector<ProviderSettings> all;
  std::set<std::string> names;
  std::string mistakes;
  const auto add = [&mistakes](const std::string& mistake) {
    mistakes.append(mistakes.empty() ? "" : "; ").append(mistake);
  };
  for (const auto& path : paths) {
    ProviderSettings settings;
    ConfigReader reader("provider", "");
    bind_provider(reader, settings);
    const auto outcome = reader.load({"--config", path}, {});
    for (const auto& mistake : outcome.mistakes) add(mistake);
    if (!outcome.mistakes.empty()) continue;
    if (!names.insert(settings.name).second) add(path + ": another provider has this name");
    if (std::ranges::find(settings.scopes, "openid") == settings.scopes.end()) {
      settings.scopes.insert(settings.scopes.begin(), "openid");
    }
    if (settings.title.empty()) settings.title = settings.name;
    all.push_back(std::move(settings));
  }
  if (!mistakes.empty()) return fail(ErrorCode::invalid_argument, mistakes);
  return all;
}

}  // namespace gitops::control_plane_server::sso
