// Any text as the routes file. An accepted file must give routes that decide on requests; a refused
// one must give an error and leave no trace.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <boost/asio/io_context.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "common/net/address_list.hpp"
#include "request-router/routes_file.hpp"
#include "request-router/routing.hpp"
#include "request-router/webhooks.hpp"

namespace {

using namespace gitops;

void require(bool holds) {
  if (!holds) std::abort();
}

proxy::Decision decide(router::Routing& routing, const std::string& target) {
  const std::string text = "POST " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
  http::RequestHeadParser parser({});
  require(parser.next(text).value_or(0) == text.size());
  return routing.decide(
      parser.head(), {.address = boost::asio::ip::make_address("192.0.2.1"), .text = "192.0.2.1"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("routes", MFD_CLOEXEC);
  const auto written = ::write(file, data, size);
  if (written != static_cast<ssize_t>(size)) return 0;
  router::RouteSettings base;
  base.own_namespace = "argo";
  const router::RoutesFile routes("/proc/self/fd/" + std::to_string(file), base);
  const auto settings = routes.read();
  const auto again = routes.read();
  ::close(file);
  require(settings.has_value() == again.has_value());
  if (!settings) {
    require(!settings.error().message.empty() && settings.error().message == again.error().message);
    return 0;
  }
  require(settings->webhook_port >= 1 && settings->webhook_port <= 65535);
  require(settings->webhook_rate >= 0 && settings->webhook_concurrency >= 0);
  require(settings->app_proxy_max_body >= 0 && settings->webhook_max_body >= 0);
  require(settings->connect_timeout.count() > 0 && settings->answer_timeout.count() > 0 &&
          settings->body_timeout.count() > 0 && settings->stream_timeout.count() > 0);

  Loop loop{1};
  static Metrics metrics;
  static net::Resolver names(metrics);
  router::Webhooks webhooks(loop.get_executor(), metrics, {});
  router::Routing routing(names, names, *settings,
                          std::make_shared<router::Gates>(router::GateLimits{}), webhooks,
                          std::make_shared<proxy::Totals>(), [] { return std::string{}; });
  const auto app = decide(routing, "/app-proxy/x");
  require(std::holds_alternative<proxy::Forward>(app));
  const auto& app_route = *std::get<proxy::Forward>(app).route;
  require(app_route.upstream != nullptr);
  require(app_route.host.find_first_of("\r\n /") == std::string::npos);
  require(std::holds_alternative<proxy::Forward>(decide(routing, "/workflows/x")) ==
          settings->workflows.has_value());
  for (const auto* ns : {"argo", "kube-system"}) {
    const auto webhook = decide(routing, std::string("/webhooks/") + ns + "/github");
    const auto* forward = std::get_if<proxy::Forward>(&webhook);
    if (forward == nullptr) continue;
    const auto& allowed = settings->webhook_namespaces;
    require(std::ranges::any_of(allowed,
                                [ns](const auto& name) { return name == ns || name == "*"; }) ||
            (allowed.empty() && settings->own_namespace == ns));
    require(
        forward->route->host.starts_with(std::string("github-eventsource-svc.") + ns + ".svc."));
  }
  return 0;
}
