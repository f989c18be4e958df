#include "gitopsctl/version.hpp"

#include <memory>

#include <nlohmann/json.hpp>

#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/process.hpp"
#include "common/http/proxy_settings.hpp"
#include "gitopsctl/config.hpp"
#include "gitopsctl/safe_json.hpp"
#include "k8s-client/client.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::ordered_json;

struct Settings {
  KubernetesSettings kubernetes;
  cli::OutputFormat output = cli::OutputFormat::text;
  cli::LoopOptions loop{.timeout = std::chrono::seconds(5)};
};

struct Server {
  std::string address;
  Result<std::string> version = {};
};

Task<Server> ask(const Settings& settings, const cli::Environment& environment,
                 const cli::LoopContext& context) {
  Server server;
  auto cluster = find_cluster(settings.kubernetes, environment);
  if (!cluster) {
    server.version = std::unexpected(cluster.error());
    co_return server;
  }
  server.address = cluster->server.to_string();
  net::Resolver resolver(context.metrics);
  k8s::Client client(context.executor, resolver, std::move(*cluster),
                     http::proxy_settings(environment), "gitopsctl/" + std::string(version()));
  const auto answer = co_await client.server_version(context.deadline);
  if (answer) {
    server.version = answer->git_version;
  } else {
    server.version = std::unexpected(answer.error());
  }
  co_return server;
}

std::string to_text(const Server& server) {
  cli::Table table;
  table.add({{"gitopsctl"}, {std::string(version())}});
  table.add({{"Kubernetes"},
             {server.version ? cli::printable(*server.version) : "not known"},
             {cli::printable(server.version ? server.address : server.version.error().message)}});
  return table.text(0, false);
}

std::string to_json(const Server& server) {
  Json kubernetes = Json::object();
  if (!server.address.empty()) kubernetes["server"] = server.address;
  if (server.version) {
    kubernetes["version"] = *server.version;
  } else {
    kubernetes["reason"] = to_string(server.version.error().code);
    kubernetes["message"] = server.version.error().message;
  }
  const Json json{{"schema", "gitopsctl/version/v1"},
                  {"gitopsctl", version()},
                  {"kubernetes", std::move(kubernetes)}};
  return safe_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) + '\n';
}

}  // namespace

cli::Command version_command() {
  const auto settings = std::make_shared<Settings>();
  return {.name = "version",
          .summary = "Print the versions of gitopsctl and of the cluster",
          .description = "The exit code is 0 even when the cluster is not reachable.\n",
          .bind =
              [settings](ConfigReader& reader) {
                settings->kubernetes.add_to(reader);
                settings->loop.add_to(reader);
                cli::add_output_row(reader, settings->output);
              },
          .run =
              [settings](const cli::Environment& environment, cli::Console& console) {
                return cli::run_on_loop(
                    settings->loop, console, [&](const cli::LoopContext& context) -> Task<int> {
                      const Server server = co_await ask(*settings, environment, context);
                      const bool json = settings->output == cli::OutputFormat::json;
                      console.out << (json ? to_json(server) : to_text(server));
                      co_return cli::kDone;
                    });
              }};
}

}  // namespace gitops::ctl
