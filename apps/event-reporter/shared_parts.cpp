#include "event-reporter/shared_parts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/process.hpp"

namespace gitops::reporter {
namespace {

constexpr const char* kModeNote = "mode";
constexpr const char* kIdNote = "id";
constexpr const char* kPositionNote = "intake position";
constexpr std::size_t kIdBytes = 6;

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

http::ClientOptions platform_options(const Environment& environment) {
  const auto& config = environment.config;
  auto options = client_options(environment, config.platform_ca_file, config.platform_insecure);
  options.max_idle_per_host = delivery_options(config).breaker.max_permits;
  return options;
}

}  // namespace

Result<Environment> read_environment(const Config& config,
                                     const std::map<std::string, std::string>& environment) {
  auto cluster = k8s::load_cluster_config(
      config.kubeconfig, config.context, environment,
      config.kubeconfig_exec ? k8s::ExecPolicy::allow : k8s::ExecPolicy::refuse);
  if (!cluster) return std::unexpected(cluster.error());
  const auto shard = own_shard(config.replicas, config.shard, host_name());
  if (!shard) return std::unexpected(shard.error());
  auto own_namespace =
      config.own_namespace.empty() ? cluster->default_namespace : config.own_namespace;
  return Environment{.config = config,
                     .cluster = std::move(*cluster),
                     .proxy = http::proxy_settings(environment),
                     .own_namespace = std::move(own_namespace),
                     .shard = *shard};
}

std::string user_agent(const Config& config) {
  return "gitops-event-reporter" + (config.version.empty() ? "" : "/" + config.version);
}

http::ClientOptions client_options(const Environment& environment, const std::string& ca_file,
                                   bool insecure) {
  http::ClientOptions options;
  options.tls.ca_file = ca_file;
  options.tls.insecure_skip_verify = insecure;
  options.proxy = environment.proxy;
  options.user_agent = user_agent(environment.config);
  return options;
}

Credential file_or_value(const std::string& file, const Secret& value) {
  return file.empty() ? Credential::fixed(value) : Credential::file(file);
}

SharedParts::SharedParts(const DaemonContext& context, Environment settings)
    : environment(std::move(settings)),
      resolver(context.metrics),
      kubernetes(context.executor, resolver, environment.cluster, environment.proxy,
                 user_agent(environment.config)),
      platform_http(context.executor, resolver, platform_options(environment)),
      platform_token(
          file_or_value(environment.config.platform_token_file, environment.config.platform_token)),
      platform(platform_http, http::parse_url(environment.config.platform_url).value(),
               [this] { return platform_token.current(); }),
      ledger(context.executor, {.path = environment.config.ledger_file}, context.metrics,
             [replicas = environment.shard.replicas](std::string_view key) {
               return group_of_key(key, replicas);
             }),
      delivery(context.executor, platform, platform_token, delivery_options(environment.config),
               context.metrics),
      tasks(context.executor,
            [fail = context.fail](const std::string& task, const std::string& what) {
              fail(task + ": " + what);
            }) {}

Task<Result<void>> SharedParts::open_ledger() {
  if (auto opened = co_await ledger.open(); !opened) co_return std::unexpected(opened.error());
  const auto ours = mode_name(environment.config.mode);
  // Ledgers of versions with mode `app` alone have no such note.
  const auto mode = ledger.note(kModeNote).value_or(ledger.known().empty() ? ours : "app");
  if (mode != ours) {
    co_return fail(ErrorCode::invalid_argument, environment.config.ledger_file +
                                                    " is the ledger of mode " + mode +
                                                    "; give mode " + ours + " a file of its own");
  }
  co_return Result<void>();
}

void SharedParts::start_ledger() {
  ledger.start(tasks);
  const auto mode = mode_name(environment.config.mode);
  ledger.set_note(kModeNote, mode);
  // Another ledger knows other deletions, so it is another reporter to the control plane.
  auto id = ledger.note(kIdNote).value_or("");
  if (id.empty()) {
    id = hex_encode(random_bytes(kIdBytes));
    ledger.set_note(kIdNote, id);
  }
  delivery.history().begin(
      mode + '/' + std::to_string(environment.shard.ordinal) + '/' + id,
      ledger.note(kPositionNote).value_or(""),
      [this](const std::string& position) { ledger.set_note(kPositionNote, position); });
}

Task<> SharedParts::finish(Deadline deadline) {
  co_await delivery.idle(deadline);
  std::ignore = co_await ledger.flush(deadline);
  tasks.cancel();
  co_await tasks.join();
}

StatusReport SharedParts::ledger_status(std::string_view entries) const {
  auto known = status_entry("ledger", ledger.last_error());
  known.add_count("entries", ledger.known().size(), std::string(entries));
  if (environment.config.ledger_file.empty()) known.add_text("place", "in memory only", "");
  StatusReport report{std::move(known)};
  if (!ledger.inventory().empty()) {
    StatusEntry inventory{.name = "inventory"};
    inventory.add_count("entries", ledger.inventory().size(),
                        std::string(entries) + " that other replicas report");
    report.push_back(std::move(inventory));
  }
  return report;
}

}  // namespace gitops::reporter
