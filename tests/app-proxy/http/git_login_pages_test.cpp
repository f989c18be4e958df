#include "app-proxy/http/git_login_pages.hpp"

#include <gmock/gmock.h>

namespace gitops::app_proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(GitLoginPages, TextStaysText) {
  EXPECT_EQ(html_text("<b a=\"x\" c='y'>&amp;"),
            "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(html_text("Jörg\n\x01 \x7f\xff…"), "Jörg    ?…");
  const auto page = login_form_page(200, {.host = "GitHub",
                                          .user_id = "\"><script>canary()</script>",
                                          .account_id = "' onload=canary",
                                          .integration = "</form>",
                                          .error = "<canary>"});
  for (const char* markup : {"<script", "\"><script", "</form>\"", "<canary>", "' onload"}) {
    EXPECT_THAT(page.body, Not(HasSubstr(markup))) << markup;
  }
  EXPECT_THAT(page.body, HasSubstr("name=\"userId\" value=\"&quot;&gt;&lt;script&gt;canary()"));
  const auto onward = login_onward_page("GitHub", "https://x.test/?a=1&b=\"><script>");
  EXPECT_THAT(onward.body, Not(HasSubstr("<script")));
  EXPECT_THAT(onward.body, HasSubstr("content=\"0;url=https://x.test/?a=1&amp;b=&quot;&gt;"));
}

TEST(GitLoginPages, NothingRunsFramesOrKeepsThem) {
  for (const auto& page :
       {login_form_page(401, {.host = "Gitea"}), login_page(404, "No", "such <thing>"),
        login_onward_page("GitLab", "https://gitlab.com/oauth/authorize?a=b")}) {
    const auto policy = page.headers.find("Content-Security-Policy").value_or("");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("form-action 'self'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("script-src")));
    EXPECT_EQ(page.headers.find("X-Frame-Options"), "DENY");
    EXPECT_EQ(page.headers.find("Cache-Control"), "no-store");
    EXPECT_EQ(page.headers.find("Referrer-Policy"), "same-origin");
    EXPECT_EQ(page.headers.find("Content-Type"), "text/html; charset=utf-8");
    EXPECT_THAT(page.body, Not(HasSubstr("<script")));
  }
}

TEST(GitLoginPages, TheFormHoldsWhatTheAddressNamed) {
  const auto page =
      login_form_page(200, {.host = "GitHub", .user_id = "u-1", .integration = "main"});
  EXPECT_THAT(page.body, HasSubstr("<form method=\"post\">"));
  EXPECT_THAT(page.body, HasSubstr("<input type=\"password\" name=\"apiKey\""));
  EXPECT_THAT(page.body, HasSubstr("name=\"userId\" value=\"u-1\""));
  EXPECT_THAT(page.body, HasSubstr("name=\"integration\" value=\"main\""));
  EXPECT_THAT(page.body, Not(HasSubstr("accountId")));
}

}  // namespace
}  // namespace gitops::app_proxy
