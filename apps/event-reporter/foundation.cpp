#include "event-reporter/foundation.hpp"

#include <algorithm>
#include <utility>

namespace gitops::reporter {
namespace {

constexpr const char* kModeNote = "mode";

std::string mode_name(Config::Mode mode) {
  return mode == Config::Mode::app ? "app" : "resource";
}

Delivery::Options delivery_options(const Config& config) {
  Delivery::Options options;
  options.max_attempts = static_cast<unsigned>(config.max_retries);
  options.breaker.max_permits = static_cast<std::size_t>(
      std::min<std::int64_t>(64, config.workers * config.resource_workers));
  return options;
}

http::ClientOptions platform_options(const Environment& with) {
  auto options = client_options(with, with.config.platform_ca_file, with.config.platform_insecure);
  options.max_idle_per_host = delivery_options(with.config).breaker.max_permits;
  return options;
}

Credential platform_credential(const Environment& with) {
  const auto& config = with.config;
  if (!config.platform_token_file.empty()) return Credential::file(config.platform_token_file);
  return Credential::fixed(config.platform_token);
}

}  // namespace

Result<Environment> read_environment(const Config& config,
                                     const std::map<std::string, std::string>& environment) {
  auto cluster = k8s::load_cluster_config(
      config.kubeconfig, config.context, environment,
      config.kubeconfig_exec ? k8s::ExecPolicy::allow : k8s::ExecPolicy::refuse);
  if (!cluster) return std::unexpected(cluster.error());
  auto proxy = http::proxy_settings(environment);
  if (!proxy) return std::unexpected(proxy.error());
  const auto shard = own_shard(config.replicas, config.shard, host_name());
  if (!shard) return std::unexpected(shard.error());
  auto own_namespace =
      config.own_namespace.empty() ? cluster->default_namespace : config.own_namespace;
  return Environment{.config = config,
                     .cluster = std::move(*cluster),
                     .proxy = std::move(*proxy),
                     .own_namespace = std::move(own_namespace),
                     .shard = *shard};
}

http::ClientOptions client_options(const Environment& with, const std::string& ca_file,
                                   bool insecure) {
  http::ClientOptions options;
  options.tls.ca_file = ca_file;
  options.tls.insecure_skip_verify = insecure;
  options.proxy = with.proxy;
  options.user_agent = "gitops-event-reporter";
  if (!with.config.version.empty()) options.user_agent += "/" + with.config.version;
  return options;
}

ShardLeases::Options lease_options(const Environment& with, std::string name) {
  ShardLeases::Options options;
  options.ns = with.own_namespace;
  options.name = std::move(name);
  options.identity = host_name();
  options.own = with.shard;
  return options;
}

Foundation::Foundation(const DaemonContext& context, Environment environment)
    : with(std::move(environment)),
      resolver(context.metrics),
      kubernetes(context.executor, resolver, with.cluster, with.proxy,
                 client_options(with, {}, false).user_agent),
      platform_http(context.executor, resolver, platform_options(with)),
      platform_token(platform_credential(with)),
      platform(platform_http, http::parse_url(with.config.platform_url).value(),
               [this] { return platform_token.current(); }),
      ledger(context.executor, {.path = with.config.ledger_file}, context.metrics),
      delivery(context.executor, platform, platform_token, delivery_options(with.config),
               context.metrics),
      tasks(context.executor,
            [fail = context.fail](const std::string& task, const std::string& what) {
              fail(task + ": " + what);
            }) {}

Task<Result<void>> Foundation::open_ledger() {
  if (auto opened = co_await ledger.open(); !opened) co_return std::unexpected(opened.error());
  const auto ours = mode_name(with.config.mode);
  // Ledgers from before there was another mode do not say.
  const auto mode = ledger.note(kModeNote).value_or(ledger.known().empty() ? ours : "app");
  if (mode != ours) {
    co_return fail(ErrorCode::invalid_argument, with.config.ledger_file +
                                                    " is the ledger of mode " + mode +
                                                    "; give mode " + ours + " a file of its own");
  }
  co_return Result<void>();
}

void Foundation::start_ledger() {
  ledger.start(tasks);
  ledger.set_note(kModeNote, mode_name(with.config.mode));
}

Task<> Foundation::finish(Deadline deadline) {
  while (delivery.breaker().in_flight() > 0 && Clock::now() < deadline) {
    co_await sleep_for(std::chrono::milliseconds(20));
  }
  std::ignore = co_await ledger.flush(deadline);
  tasks.cancel();
  co_await tasks.join();
}

std::string Foundation::ledger_status(std::string_view what) const {
  auto out = "ledger: " + std::to_string(ledger.known().size()) + " " + std::string(what) +
             (with.config.ledger_file.empty() ? ", in memory only" : "") + "\n";
  if (!ledger.witnessed().empty()) {
    out += "witness of: " + std::to_string(ledger.witnessed().size()) + " that others report\n";
  }
  if (!ledger.trouble().empty()) out += "ledger trouble: " + ledger.trouble() + "\n";
  return out;
}

}  // namespace gitops::reporter
