#pragma once

#include <string>
#include <string_view>

#include "common/http/message.hpp"

// What users see in their browser during the login at a Git host: pages without scripts, which no
// other page can frame and nothing keeps. Pure.
namespace gitops::app_proxy {

// `text` as HTML text or as the value of an attribute in double quotes. Control characters become
// spaces, and bytes that are not UTF-8 question marks.
std::string html_text(std::string_view text);

// Asks for the user's API key. The form is sent to the address of the page, with these values as
// hidden fields.
struct LoginForm {
  std::string_view host;  // the Git host's name, for people: "GitHub"
  std::string_view user_id = {};
  std::string_view account_id = {};
  std::string_view integration = {};
  std::string_view error = {};  // why it is asked again
};
http::Response login_form_page(int status, const LoginForm& form);

// A text for people, as the end of a login.
http::Response login_page(int status, std::string_view title, std::string_view text);

// Leads the browser on to a Git host. A page and no redirect, because a browser refuses a redirect
// to where the form's page does not allow a form to be sent.
http::Response login_onward_page(std::string_view host, std::string_view url);

}  // namespace gitops::app_proxy
