#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "common/core/json_value.hpp"
#include "control-plane/runtimes/tunnel_plugin.hpp"

// A request of a tunnel server, of ours or of frp. A host is granted to the token's runtime only, whatever the request
// says.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gitops;
  using namespace gitops::control_plane_server;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto question = read_tunnel_question(text);
  if (!question) return 0;
  if (question->operation.empty()) std::abort();
  Account account;
  account.id = "0123456789abcdef01234567";
  Caller caller;
  caller.account = std::make_shared<const Account>(account);
  caller.runtime = "prod";
  const auto refusal = tunnel_refusal(*question, &caller);
  if (!is_about_host(*question)) return 0;
  if (tunnel_refusal(*question, nullptr).empty()) std::abort();
  if (refusal.empty() && (question->proxy_type != "http" || !question->custom_domains.empty() ||
                          question->subdomain.size() != account.id.size() + 5)) {
    std::abort();
  }
  if (!parse_json_object(tunnel_verdict(refusal)).is_object()) std::abort();
  return 0;
}
