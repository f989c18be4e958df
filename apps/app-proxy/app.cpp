#include "app-proxy/app.hpp"

#include <memory>
#include <utility>

#include "app-proxy/config.hpp"
#include "app-proxy/resolvers/table.hpp"
#include "app-proxy/routes.hpp"
#include "common/core/process.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/http_endpoint.hpp"
#include "common/http/cors.hpp"

namespace gitops::app_proxy {
namespace {

// The control plane's API has this number in its paths.
constexpr const char* kPlatformVersion = "2.0";

http::ServerOptions server_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.listen_address;
  options.port = static_cast<std::uint16_t>(config.port);
  options.max_connections = static_cast<std::size_t>(config.max_connections);
  return options;
}

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// Owns and connects all parts. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : version_{.version = std::string(version()),
                 .platform_host = without_slashes(config.control_plane_url),
                 .platform_version = kPlatformVersion},
        parts_{.version = version_},
        rows_(table(parts_)),
        cors_(config.cors_origins),
        router_(routes({.graphql = [this](http::Exchange& exchange,
                                          const auto&) { return serve_graphql(exchange); },
                        .graphql_opened = [this](http::Exchange& exchange,
                                                 const auto&) { return serve_graphql(exchange); }}),
                rest_error),
        server_(context.executor, server_options(config),
                [this](http::Exchange& exchange) { return serve(exchange); }) {}

  Task<Result<void>> start() {
    auto engine = graphql::Engine::make(std::string(schema_text()), resolvers(rows_));
    if (!engine) co_return fail("schema", engine.error());
    engine_ = std::move(*engine);
    if (auto listening = server_.listen(); !listening) co_return listening;
    is_listening_ = true;
    log_.info("serving", {{"port", server_.port()}});
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_listening_ = false;
    co_await server_.stop(deadline);
  }

  [[nodiscard]] std::string not_ready_because() const {
    return is_listening_ ? std::string() : "not listening";
  }

 private:
  Task<> serve(http::Exchange& exchange) {
    const auto origin = exchange.request().headers.find("Origin");
    for (const auto& [name, value] : cors_.fields(origin)) exchange.add_to_answer(name, value);
    const std::string path = canonical_path(exchange.path());
    co_await router_.serve(exchange, path);
  }

  Task<> serve_graphql(http::Exchange& exchange) {
    Caller caller{.peer = exchange.peer_address()};
    co_await graphql::serve_http(exchange, *engine_, graphql::Context(caller));
  }

  Log log_{"app-proxy"};
  VersionInfo version_;
  Parts parts_;
  std::vector<FieldRow> rows_;
  http::Cors cors_;
  http::Router router_;
  http::Server server_;
  std::unique_ptr<graphql::Engine> engine_;
  bool is_listening_ = false;
};

}  // namespace

DaemonSpec app_proxy() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "app-proxy";
  spec.summary = "Serves the runtime's GraphQL and REST API, commits to Git and changes state.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    const auto app = std::make_shared<App>(context, *config);
    DaemonApp frame;
    frame.start = [app, config] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = {{"port", [app] { return app->not_ready_because(); }}};
    return frame;
  };
  return spec;
}

}  // namespace gitops::app_proxy
