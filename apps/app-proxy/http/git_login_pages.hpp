#pragma once

#include <string>
#include <string_view>

#include "common/http/message.hpp"

// Pages for the browser during the login at a Git host. They have no scripts, cannot be framed and
// are not cached. Pure.
namespace gitops::app_proxy {

// Escapes `text` for HTML text or for an attribute in double quotes. Control characters become
// spaces, and bytes that are not UTF-8 become question marks.
std::string html_text(std::string_view text);

// Form that asks for the user's API key. It posts to the address of the page, with these values as
// hidden fields.
struct LoginForm {
  std::string_view host;  // the Git host's name, for people: "GitHub"
  std::string_view user_id = {};
  std::string_view account_id = {};
  std::string_view integration = {};
  std::string_view error = {};  // reason for asking again
};
http::Response login_form_page(int status, const LoginForm& form);

// Page with a text for people, shown at the end of a login.
http::Response login_page(int status, std::string_view title, std::string_view text);

// Page that leads the browser on to a Git host. It is not a redirect: browsers refuse a redirect to
// an origin that the Content-Security-Policy of the form's page does not allow.
http::Response login_onward_page(std::string_view host, std::string_view url);

}  // namespace gitops::app_proxy
