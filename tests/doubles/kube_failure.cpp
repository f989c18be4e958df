#include "doubles/kube_failure.hpp"

#include <utility>

#include "doubles/double_server.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

Json details_of(const KubeType& type, const std::string& name) {
  Json details{{"name", name}, {"kind", type.resource.plural}};
  if (!type.resource.group.empty()) details["group"] = type.resource.group;
  return details;
}

std::string qualified_kind(const KubeType& type) {
  return type.resource.group.empty() ? type.resource.kind
                                     : type.resource.kind + "." + type.resource.group;
}

}  // namespace

KubeFailure bad_request(std::string message) {
  return {.code = 400, .reason = "BadRequest", .message = std::move(message)};
}

KubeFailure not_found(const KubeType& type, const std::string& name) {
  return {.code = 404,
          .reason = "NotFound",
          .message = type.id() + " \"" + name + "\" not found",
          .details = details_of(type, name)};
}

KubeFailure already_exists(const KubeType& type, const std::string& name) {
  return {.code = 409,
          .reason = "AlreadyExists",
          .message = type.id() + " \"" + name + "\" already exists",
          .details = details_of(type, name)};
}

KubeFailure conflict(const KubeType& type, const std::string& name, const std::string& why) {
  return {.code = 409,
          .reason = "Conflict",
          .message = "Operation cannot be fulfilled on " + type.id() + " \"" + name + "\": " + why,
          .details = details_of(type, name)};
}

KubeFailure invalid(const KubeType& type, const std::string& name, const std::string& field,
                    const std::string& what, const std::string& cause) {
  Json details{{"name", name},
               {"kind", type.resource.kind},
               {"causes", Json::array({{{"reason", cause}, {"message", what}, {"field", field}}})}};
  if (!type.resource.group.empty()) details["group"] = type.resource.group;
  return {.code = 422,
          .reason = "Invalid",
          .message = qualified_kind(type) + " \"" + name + "\" is invalid: " + field + ": " + what,
          .details = std::move(details)};
}

KubeFailure invalid_list_options(const std::string& field, const std::string& why) {
  return {.code = 422,
          .reason = "Invalid",
          .message = "ListOptions.meta.k8s.io \"\" is invalid: " + field + ": Forbidden: " + why,
          .details = {{"group", "meta.k8s.io"},
                      {"kind", "ListOptions"},
                      {"causes", Json::array({{{"reason", "FieldValueForbidden"},
                                               {"message", "Forbidden: " + why},
                                               {"field", field}}})}}};
}

KubeFailure too_old(std::uint64_t version, std::uint64_t oldest) {
  return {.code = 410,
          .reason = "Expired",
          .message = "too old resource version: " + std::to_string(version) + " (" +
                     std::to_string(oldest) + ")"};
}

KubeFailure too_new(const std::string& version, std::uint64_t current) {
  return {.code = 504,
          .reason = "Timeout",
          .message = "Timeout: Too large resource version: " + version +
                     ", current: " + std::to_string(current),
          .details = {{"causes", Json::array({{{"reason", "ResourceVersionTooLarge"},
                                               {"message", "Too large resource version"}}})},
                      {"retryAfterSeconds", 1}}};
}

KubeFailure unsupported_media_type() {
  return {.code = 415,
          .reason = "UnsupportedMediaType",
          .message =
              "the body of the request was in an unknown format - accepted media types "
              "include: application/json, application/json-patch+json, "
              "application/merge-patch+json, application/apply-patch+yaml"};
}

std::string status_text(const KubeFailure& failure, Json metadata) {
  Json status{
      {"kind", "Status"},    {"apiVersion", "v1"},         {"metadata", std::move(metadata)},
      {"status", "Failure"}, {"message", failure.message}, {"reason", failure.reason},
      {"code", failure.code}};
  if (!failure.details.is_null()) status["details"] = failure.details;
  return status.dump();
}

http::Response refusal(const KubeFailure& failure, Json metadata) {
  return json_response(failure.code, status_text(failure, std::move(metadata)));
}

http::Response page_not_found() {
  http::Response response;
  response.status = 404;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = "404 page not found\n";
  return response;
}

}  // namespace gitops::test
