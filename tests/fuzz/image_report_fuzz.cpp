#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app-proxy/images/image_report.hpp"
#include "app-proxy/images/report_credentials.hpp"
#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/http/gzip.hpp"

namespace {

void check(std::string_view query) {
  const auto report = gitops::app_proxy::parse_image_report(query);
  if (!report) {
    if (report.error().message.empty()) std::abort();
    return;
  }
  if (report->image.empty() || report->environment.size() > 200) std::abort();
  std::size_t bytes = 0;
  for (const auto& [name, value] : report->environment) {
    if (name.empty() || name.starts_with("CF_")) std::abort();
    bytes += value.reveal().size();
  }
  // Twice the largest query: base64 of the Dockerfile is larger than what came.
  if (bytes > std::size_t{512} * 1024) std::abort();
  const gitops::app_proxy::ImageReportOptions options{.own_namespace = "runtime"};
  const auto workflow =
      gitops::parse_json_object(gitops::app_proxy::image_report_workflow(options, *report, "w"));
  if (!workflow.is_object() || workflow["spec"]["entrypoint"] != "main") std::abort();
}

// The objects of an integration, as anybody with access to the repository may write them.
void use_integration(std::string_view object) {
  using namespace gitops::app_proxy;
  const auto stored = stored_integration("x", object, object);
  for (const auto use : {use_registry, use_issue_tracker}) {
    ImageReport report;
    if (const auto used = use(report, stored); !used && used.error().message.empty()) std::abort();
    if (report.environment.size() > 4) std::abort();
  }
  ImageReport report;
  (void)use_git_host(report, {.provider = "GITHUB", .api_url = std::string(object)});
}

}  // namespace

// The query of GET /api/image-report; and, so that base64 and compression are no hurdles, the same bytes as its compressed
// form, and compressed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text);
  check("data=" + gitops::percent_encode(gitops::base64_encode(text)));
  check("data=" + gitops::percent_encode(gitops::base64_encode(gitops::http::gzip_compress(text))));
  (void)gitops::app_proxy::image_report_state(text);
  use_integration(text);
  return 0;
}
