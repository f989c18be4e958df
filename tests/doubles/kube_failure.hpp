#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "common/http/message.hpp"
#include "doubles/kube_types.hpp"

// The errors of the Kubernetes API, with the words of the real server where clients look at them.
namespace gitops::test {

// What is answered with a Status object.
struct KubeFailure {
  int code = 500;
  std::string reason;
  std::string message;
  nlohmann::json details = nullptr;
};

KubeFailure bad_request(std::string message);
KubeFailure not_found(const KubeType& type, const std::string& name);
KubeFailure already_exists(const KubeType& type, const std::string& name);
KubeFailure conflict(const KubeType& type, const std::string& name, const std::string& why);
// `what` is wrong with a field of an object; `cause` as "FieldValueInvalid".
KubeFailure invalid(const KubeType& type, const std::string& name, const std::string& field,
                    const std::string& what, const std::string& cause);
KubeFailure invalid_list_options(const std::string& field, const std::string& why);
// A watch or a list wants to go on from a version that is forgotten, or that is not there yet.
KubeFailure too_old(std::uint64_t version, std::uint64_t oldest);
KubeFailure too_new(const std::string& version, std::uint64_t current);
KubeFailure unsupported_media_type();

std::string status_text(const KubeFailure& failure,
                        nlohmann::json metadata = nlohmann::json::object());
http::Response refusal(const KubeFailure& failure,
                       nlohmann::json metadata = nlohmann::json::object());
// Paths that the server does not know are answered in plain text.
http::Response page_not_found();

}  // namespace gitops::test
