#pragma once

#include <string>
#include <utility>

#include "common/http/message.hpp"

// Responses that doubles and scripted servers send.
namespace gitops::test {

inline http::Response make_response(int status, std::string body, http::Headers headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = std::move(body)};
}

inline http::Response ok(std::string body, http::Headers headers = {}) {
  return make_response(200, std::move(body), std::move(headers));
}

inline http::Response json_response(int status, std::string body) {
  return make_response(status, std::move(body), {{"Content-Type", "application/json"}});
}

inline http::Response json_ok(std::string body) {
  return json_response(200, std::move(body));
}

}  // namespace gitops::test
