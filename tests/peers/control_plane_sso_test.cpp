// Logins of a browser at a real OpenID provider and our own control plane, on both engines.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "common/store/databases.hpp"
#include "daemons/control_plane_process.hpp"
#include "peers/peer_oidc.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::StartsWith;

constexpr const char* kPublicUrl = "http://console.test";

// A browser: the curl program with a cookie jar.
class Browser {
 public:
  struct Page {
    int status = 0;
    std::string redirect;  // absolute; empty: none
    std::string body;
  };
  Page open(const std::string& url, std::vector<std::string> options = {}) {
    std::vector<std::string> argv{"curl",     "--silent",    "--noproxy",
                                  "*",        "--max-time",  "20",
                                  "--cookie", jar(),         "--cookie-jar",
                                  jar(),      "--write-out", "\n%{http_code} %{redirect_url}"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(url);
    const auto out = run_command(argv).out;
    const auto line = out.rfind('\n');
    Page page;
    page.body = out.substr(0, line);
    page.status = std::stoi(out.substr(line + 1));
    page.redirect = out.substr(out.find(' ', line + 1) + 1);
    return page;
  }

 private:
  [[nodiscard]] std::string jar() const { return (folder_ / "cookies").string(); }

  TempDir folder_;
};

class SsoAtRealProvider : public testing::TestWithParam<store::Engine> {
 protected:
  void SetUp() override {
    GITOPS_REQUIRE_PEER(PeerOidc);
    provider_.emplace(std::string(kPublicUrl) + "/api/auth/corp/callback",
                      std::string(kPublicUrl) + "/sign-in");
    write_file(folder_ / "secret", "the secret\n");
    write_file(folder_ / "password", "the administrator's password\n");
    write_file(
        folder_ / "corp.yaml",
        "name: corp\ntitle: Corp login\nissuer: " + provider_->issuer() +
            "\nclient-id: control-plane\nclient-secret-file: " + (folder_ / "secret").string() +
            "\ncreate-users: true\nteams: [dev=developers, ops=operators]\n");
    const bool is_postgres = GetParam() == store::Engine::postgres;
    if (is_postgres) database_.emplace(GetParam());
    program_.emplace(
        is_postgres ? database_->location().dsn : std::string(),
        std::vector<std::string>{"--public-url=" + std::string(kPublicUrl),
                                 "--first-start.password-file=" + (folder_ / "password").string(),
                                 "--sso.providers=" + (folder_ / "corp.yaml").string()});
    program_->start();
  }

  // The address at the program of a page that has the public address.
  [[nodiscard]] std::string at_program(const std::string& url) const {
    EXPECT_THAT(url, StartsWith(kPublicUrl));
    return program_->url() + url.substr(std::min(url.size(), std::string(kPublicUrl).size()));
  }
  // Logs in at the provider's page, and returns the callback.
  std::string callback(Browser& browser, const std::string& user) {
    auto page = browser.open(program_->url() + "/console/api/v1/sso/corp?to=/applications");
    EXPECT_THAT(page.redirect, StartsWith(provider_->issuer()));
    page = browser.open(page.redirect);
    const auto form = page.redirect;  // /login/username?authRequestID=…
    page = browser.open(
        form.substr(0, form.find('?')),
        {"--data-urlencode", "username=" + user, "--data-urlencode", "password=verysecure",
         "--data-urlencode", "id=" + form.substr(form.find('=') + 1)});
    page = browser.open(page.redirect);
    return at_program(page.redirect);
  }
  Browser::Page log_in(Browser& browser, const std::string& user) {
    return browser.open(callback(browser, user));
  }
  Json get(Browser& browser, const std::string& path) {
    return Json::parse(browser.open(program_->url() + path).body, nullptr, false);
  }
  // The teams of a user besides that of all users.
  std::set<std::string> teams(Browser& browser, const std::string& user) {
    std::set<std::string> names;
    for (const auto& team : get(browser, "/api/team")) {
      for (const auto& one : team.at("users")) {
        if (one.at("userName") == user && team.at("name") != "users") names.insert(team.at("name"));
      }
    }
    return names;
  }

  TempDir folder_;
  std::optional<TestDatabase> database_;
  std::optional<PeerOidc> provider_;
  std::optional<ControlPlaneProcess> program_;
};

TEST_P(SsoAtRealProvider, GroupsBecomeTeamsAtEachLogin) {
  provider_->set_groups("kim", "dev,ops,other");
  Browser browser;
  const auto page = log_in(browser, "kim");
  EXPECT_EQ(page.status, 302);
  EXPECT_EQ(page.redirect, program_->url() + "/applications") << program_->log();
  const auto user = get(browser, "/api/user");
  EXPECT_EQ(user.value("userName", ""), "kim");
  EXPECT_EQ(user.value("email", ""), "kim@example.test");
  EXPECT_THAT(teams(browser, "kim"), ElementsAre("developers", "operators"));
  provider_->set_groups("kim", "ops");
  Browser other;
  EXPECT_EQ(log_in(other, "kim").redirect, program_->url() + "/applications");
  EXPECT_EQ(get(other, "/api/user").value("_id", "a"), user.value("_id", "b"));
  EXPECT_THAT(teams(browser, "kim"), ElementsAre("operators"));
  EXPECT_EQ(log_in(other, "lee").status, 302);
  EXPECT_EQ(get(other, "/api/user").value("userName", ""), "lee");
}

TEST_P(SsoAtRealProvider, ACallbackCountsOnceAndInItsBrowser) {
  Browser browser;
  Browser stranger;
  const auto address = callback(browser, "kim");
  const auto expired = program_->url() + "/sign-in?error=sso-expired";
  EXPECT_EQ(stranger.open(address).redirect, expired);
  EXPECT_EQ(browser.open(address).redirect, program_->url() + "/applications");
  EXPECT_EQ(browser.open(address).redirect, expired);
}

TEST_P(SsoAtRealProvider, FollowsARotationOfKeys) {
  Browser browser;
  EXPECT_EQ(log_in(browser, "kim").redirect, program_->url() + "/applications");
  provider_->rotate_keys();
  Browser other;
  EXPECT_EQ(log_in(other, "kim").redirect, program_->url() + "/applications") << program_->log();
}

TEST_P(SsoAtRealProvider, LogoutEndsBothSessions) {
  Browser browser;
  (void)log_in(browser, "kim");
  const auto out =
      Json::parse(browser.open(program_->url() + "/console/api/v1/logout", {"--data", "{}"}).body);
  EXPECT_EQ(browser.open(program_->url() + "/api/user").status, 401);
  // The provider knows the address to which it returns.
  const auto page = browser.open(out.at("endSession"));
  EXPECT_EQ(page.redirect, std::string(kPublicUrl) + "/sign-in");
}

TEST_P(SsoAtRealProvider, PasswordsWorkWhileTheProviderIsDown) {
  provider_->kill();
  Browser browser;
  EXPECT_EQ(browser.open(program_->url() + "/console/api/v1/sso/corp").redirect,
            program_->url() + "/sign-in?error=sso-unavailable");
  EXPECT_EQ(get(browser, "/console/api/v1/sign-in").at("providers").at(0).at("title"),
            "Corp login");
  const auto page =
      browser.open(program_->url() + "/console/api/v1/login",
                   {"--json", R"({"name":"admin","password":"the administrator's password"})"});
  EXPECT_EQ(page.status, 200) << page.body;
  EXPECT_EQ(get(browser, "/api/user").value("userName", ""), "admin");
}

INSTANTIATE_TEST_SUITE_P(Engines, SsoAtRealProvider,
                         testing::Values(store::Engine::sqlite, store::Engine::postgres),
                         [](const auto& info) { return engine_name(info.param); });

}  // namespace
}  // namespace gitops::test
