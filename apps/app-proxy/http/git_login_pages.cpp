#include "app-proxy/http/git_login_pages.hpp"

#include <algorithm>
#include <utility>

#include "common/core/encoding.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kStyle =
    "body{font:16px sans-serif;max-width:36em;margin:4em auto;padding:0 1em}"
    "input{font:inherit;width:100%;box-sizing:border-box;padding:.4em}"
    "button{font:inherit;padding:.4em 1.5em}.trouble{color:#a00}";

http::Response page(int status, std::string_view title, std::string_view head,
                    const std::string& body) {
  std::string text = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>";
  text.append(html_text(title)).append("</title>").append(head);
  text.append("<style>").append(kStyle).append("</style></head>\n<body><h1>");
  text.append(html_text(title)).append("</h1>\n").append(body).append("</body></html>\n");
  // The policy same-origin makes the form's request contain its origin, and hides the address from
  // other sites.
  return {.status = status,
          .headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Cache-Control", "no-store"},
                      {"Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                       "frame-ancestors 'none'; base-uri 'none'"},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "same-origin"}},
          .body = std::move(text)};
}

std::string hidden(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  return "<input type=\"hidden\" name=\"" + std::string(name) + "\" value=\"" + html_text(value) +
         "\">\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const char first = text.front();
    if (length == 0) {
      out += '?';
    } else if (first == '&') {
      out += "&amp;";
    } else if (first == '<') {
      out += "&lt;";
    } else if (first == '>') {
      out += "&gt;";
    } else if (first == '"') {
      out += "&quot;";
    } else if (first == '\'') {
      out += "&#39;";
    } else if (length == 1 && (first < ' ' || first == '\x7f')) {
      out += ' ';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

http::Response login_form_page(int status, const LoginForm& form) {
  const std::string host = html_text(form.host);
  std::string body;
  if (!form.error.empty()) body = "<p class=\"trouble\">" + html_text(form.error) + "</p>\n";
  body += "<p>To use your " + host +
          " account with this runtime, tell who you are: an API key of your Codefresh user "
          "(user settings, API keys). It is checked and not kept.</p>\n<form method=\"post\">\n";
  body += hidden("userId", form.user_id) + hidden("accountId", form.account_id) +
          hidden("integration", form.integration);
  body +=
      "<p><label>API key <input type=\"password\" name=\"apiKey\" autocomplete=\"off\" required "
      "autofocus></label></p>\n<p><button>Go on to " +
      host + "</button></p>\n</form>\n";
  return page(status, "Log in at " + std::string(form.host), {}, body);
}

http::Response login_page(int status, std::string_view title, std::string_view text) {
  return page(status, title, {}, "<p>" + html_text(text) + "</p>\n");
}

http::Response login_onward_page(std::string_view host, std::string_view url) {
  const std::string target = html_text(url);
  return page(200, "Log in at " + std::string(host),
              "<meta http-equiv=\"refresh\" content=\"0;url=" + target + "\">",
              "<p><a href=\"" + target + "\" rel=\"noreferrer\">Go on to " + html_text(host) +
                  "</a></p>\n");
}

}  // namespace gitops::app_proxy
