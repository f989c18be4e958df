#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app-proxy/git/manifest_edit.hpp"
#include "app-proxy/sealing/sealing_keys.hpp"
#include "app-proxy/sealing/tool_integration.hpp"
#include "common/core/crypto.hpp"

namespace {

using namespace gitops::app_proxy;
using Operation = IntegrationChange::Operation;

void check(bool is_right) {
  if (!is_right) std::abort();
}

const ConfigRepository& repository() {
  static const ConfigRepository kRepository{
      .at = parse_specifier("https://git.example.test/acme/config.git").value(),
      .runtime = "prod",
      .runtime_namespace = "gitops"};
  return kRepository;
}

// What is accepted becomes files with paths that may be, and a manifest that is read again.
void apply(const SentIntegration& sent) {
  auto integration = read_tool_integration(sent);
  if (!integration) {
    check(!integration.error().message.empty());
    return;
  }
  integration->credentials.reset();  // there is no certificate here
  IntegrationChange change{.operation = Operation::create,
                           .integration = std::move(*integration),
                           .places = {},
                           .present = {},
                           .digest_key = gitops::Secret("k")};
  for (const auto& runtime : change.integration.runtimes)
    change.places.push_back({runtime, "x", ""});
  if (change.places.empty()) change.places.emplace_back();
  const auto changes = changes_to_apply(repository(), change);
  check(changes && check_changes(*changes));
  const std::string object = "codefresh-integration-" + sent.name;
  for (const auto& each : *changes) {
    if (!each.path.ends_with("/config.yaml")) continue;
    const auto made = each.edit({});
    check(made && read_manifest(*made, {"metadata", "name"}).value() == object);
    check(each.edit(*made).value() == *made);
    for (const auto& [key, value] : change.integration.info) {
      check(read_manifest(*made, {"data", key}).value() == value);
    }
  }
}

}  // namespace

// The same bytes as each text of an integration, as the sealing key's file, as a list of Secrets, and as a certificate.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SentIntegration right{
      .name = "jira", .type = "issue.jira", .provider_info = "{}", .runtimes = {"prod"}};
  auto sent = right;
  sent.provider_info = text;
  sent.secure_data = gitops::Secret(text);
  apply(sent);
  sent = right;
  sent.name = text;
  apply(sent);
  sent = right;
  sent.type = text;
  apply(sent);
  sent = right;
  sent.runtimes = {text, "prod"};
  apply(sent);
  (void)integration_file_of(text, "jira");
  if (const auto key = read_sealing_key(text)) {
    check(read_sealing_key(sealing_key_manifest(*key)).value() == *key);
  }
  (void)sealing_keys_in(text);
  (void)gitops::rsa_oaep_encrypt(text, "key", "label");
  (void)gitops::is_key_of(gitops::Secret(text), text);
  return 0;
}
