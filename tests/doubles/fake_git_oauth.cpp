#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "doubles/fake_git_hosts.hpp"

// The logins of GitHub, GitLab, Gitea and Bitbucket Data Center: RFC 6749 and RFC 7636.
namespace gitops::test {

using Json = nlohmann::json;
using app_proxy::ProviderKind;

namespace {

std::string_view token_path_of(ProviderKind kind) {
  switch (kind) {
    case ProviderKind::gitlab:
      return "/oauth/token";
    case ProviderKind::bitbucket_server:
      return "/rest/oauth2/latest/token";
    default:
      return "/login/oauth/access_token";
  }
}

// RFC 7636, appendix A.
std::string challenge_of(const std::string& verifier) {
  const auto sum = sha256(verifier);
  std::string text = base64_encode(bytes_of(sum));
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

}  // namespace

bool FakeGitHost::is_oauth(std::string_view method, std::string_view path) const {
  return oauth_ && method == "POST" && path == token_path_of(kind_);
}

std::string FakeGitHost::authorize(std::string_view address, const std::string& error) {
  const auto question = std::min(address.find('?'), address.size());
  const Query query(address.substr(std::min(question + 1, address.size())));
  const auto back = query.get("redirect_uri") + "?state=" + percent_encode(query.get("state"));
  if (!oauth_ || query.get("client_id") != oauth_->client_id ||
      query.get("response_type") != "code" || query.get("code_challenge_method") != "S256") {
    return back + "&error=invalid_request";
  }
  if (!error.empty()) return back + "&error=" + error + "&error_description=The+user+said+%3Cno%3E";
  const std::string code = "canary-code-" + std::to_string(++last_id_);
  codes_[code] = {query.get("redirect_uri"), query.get("code_challenge")};
  return back + "&code=" + code;
}

http::Response FakeGitHost::answer_oauth(std::string_view form) {
  const Query query(form);
  // GitHub answers everything with 200; Gitea has another word for what it does not grant.
  const auto refusal = [&](std::string word, const char* of_github) {
    if (kind_ == ProviderKind::gitea && word == "invalid_grant") word = "unauthorized_client";
    return kind_ == ProviderKind::github ? json(200, {{"error", of_github}})
                                         : json(400, {{"error", word}});
  };
  if (query.get("client_id") != oauth_->client_id ||
      query.get("client_secret") != oauth_->client_secret) {
    return refusal("invalid_client", "incorrect_client_credentials");
  }
  if (query.get("grant_type") == "refresh_token") {
    const auto found = refreshes_.find(query.get("refresh_token"));
    if (found == refreshes_.end()) return refusal("invalid_grant", "bad_refresh_token");
    // Both are over with the next ones.
    users_.erase(found->second);
    refreshes_.erase(found);
  } else {
    const auto found = codes_.find(query.get("code"));
    if (found == codes_.end()) return refusal("invalid_grant", "bad_verification_code");
    const auto [redirect_uri, challenge] = found->second;
    codes_.erase(found);
    if (redirect_uri != query.get("redirect_uri") ||
        challenge != challenge_of(query.get("code_verifier"))) {
      return refusal("invalid_grant", "bad_verification_code");
    }
  }
  const std::string number = std::to_string(++last_id_);
  const std::string token = "canary-oauth-" + number;
  users_[token] = {7, kLogin, "Dana Example"};
  Json answer{{"access_token", token}, {"token_type", "bearer"}, {"scope", "repo"}};
  if (oauth_->lifetime.count() > 0) {
    answer["expires_in"] = oauth_->lifetime.count();
    answer["refresh_token"] = "canary-refresh-" + number;
    refreshes_["canary-refresh-" + number] = token;
  }
  return json(200, answer);
}

}  // namespace gitops::test
