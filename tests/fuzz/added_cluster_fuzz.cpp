#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app-proxy/clusters/added_cluster.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "k8s-client/cluster_secret.hpp"

namespace {

using gitops::app_proxy::AddedCluster;
using Json = nlohmann::json;

// What is accepted is a Secret that Argo CD, and our own reader, can use: no program, no file, no plain HTTP.
void check(const AddedCluster& added) {
  const auto object = gitops::app_proxy::cluster_secret_object("runtime", added);
  const auto secret = gitops::k8s::parse_cluster_secret(object.reveal());
  if (!secret.config || secret.config->exec || !secret.config->server.is_tls()) std::abort();
  if (secret.server != added.server || secret.name != added.name) std::abort();
  if (!secret.config->tls.ca_file.empty() || !secret.config->token_file.empty()) std::abort();
  const auto json = gitops::parse_json_object(object.reveal());
  if (json["metadata"]["labels"]["argocd.argoproj.io/secret-type"] != "cluster") std::abort();
}

}  // namespace

// The body of POST /api/clusters; and, so that base64 is no hurdle, the same bytes as the kubeconfig of a right body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto added = gitops::app_proxy::parse_added_cluster(text, {})) check(*added);
  const Json body{{"name", "edge"},
                  {"kubeConfig", gitops::base64_encode(text)},
                  {"labels", gitops::base64_encode(text.substr(0, 200))},
                  {"annotations", ""}};
  Json without_labels = body;
  without_labels["labels"] = "";
  for (const Json& each : {body, without_labels}) {
    const auto added = gitops::app_proxy::parse_added_cluster(each.dump(), {});
    if (added) {
      check(*added);
    } else if (added.error().message.empty()) {
      std::abort();
    }
  }
  return 0;
}
