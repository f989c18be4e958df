#include "control-plane/app.hpp"

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/core/backoff.hpp"
#include "common/core/crypto.hpp"
#include "common/core/encoding.hpp"
#include "common/core/process.hpp"
#include "common/core/worker_pool.hpp"
#include "common/http/server.hpp"
#include "common/http/wire_text.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/first_start.hpp"
#include "control-plane/accounts/login.hpp"
#include "control-plane/accounts/revocations.hpp"
#include "control-plane/accounts/user_routes.hpp"
#include "control-plane/audit/audit_log.hpp"
#include "control-plane/config.hpp"
#include "control-plane/http/routes.hpp"
#include "control-plane/intake/event_routes.hpp"
#include "control-plane/intake/storage_watch.hpp"
#include "control-plane/live/live_updates.hpp"
#include "control-plane/live/stream_routes.hpp"
#include "control-plane/resolvers/table.hpp"
#include "control-plane/runtimes/page_access.hpp"
#include "control-plane/runtimes/secrets.hpp"
#include "control-plane/runtimes/tunnel_bans.hpp"
#include "control-plane/runtimes/tunnel_plugin.hpp"
#include "control-plane/sso/sso_routes.hpp"
#include "control-plane/storage/retention.hpp"
#include "control-plane/storage/schema.hpp"
#include "control-plane/storage/stale_objects.hpp"

namespace gitops::control_plane_server {
namespace {

constexpr auto kHousekeeping = std::chrono::minutes(1);
constexpr auto kHousekeepingLimit = std::chrono::seconds(10);
constexpr int kHousekeepingParts = 50;  // transactions at a time
constexpr auto kMigrationLimit = std::chrono::hours(24);
constexpr auto kFirstStartLimit = std::chrono::minutes(1);
constexpr auto kDatabaseGrace = std::chrono::seconds(2);
constexpr std::size_t kInstanceBytes = 6;  // of the name of this process in the outbox

// The progress of opening the database, set by the thread that opens it.
class OpeningProgress {
 public:
  void set(std::string_view text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_ = "opening";
};

std::vector<http::Url> urls_of(const std::vector<std::string>& items) {
  std::vector<http::Url> urls;
  for (const auto& item : items) {
    if (auto url = http::parse_url(item)) urls.push_back(std::move(*url));
  }
  return urls;
}

// "https://console.example": what a browser sends as the origin of our own pages.
std::vector<std::string> own_origins(const Config& config) {
  const auto url = http::parse_url(config.public_url);
  if (!url) return {};
  return {url->scheme + "://" + url->host_header()};
}

// Returns the folder of SQLite's file when it does not exist; else an empty text.
std::string missing_folder(const store::Location& location) {
  if (location.engine != store::Engine::sqlite) return {};
  const auto folder = std::filesystem::absolute(location.path).parent_path();
  std::error_code error;
  const auto type = std::filesystem::status(folder, error).type();
  return type == std::filesystem::file_type::not_found ? folder.string() : std::string();
}

CookieForm cookie_form(const Config& config) {
  const bool has_tls = !config.certificate_file.empty() || config.public_url.starts_with("https:");
  return has_tls ? CookieForm::secure : CookieForm::plain;
}

Credential credential_of(const Secret& token, const std::string& file) {
  return file.empty() ? Credential::fixed(token) : Credential::file(file);
}

sso::SsoRoutes::Options sso_options(const Config& config) {
  auto providers = config.providers;
  for (auto& provider : providers) {
    if (provider.account.empty()) provider.account = config.account;
  }
  return {.providers = std::move(providers),
          .public_url = config.public_url,
          .proxy = http::proxy_settings(process_environment())};
}

std::unique_ptr<SecretStore> secrets_of(const Config& config) {
  if (config.master_key.empty()) return nullptr;
  auto made = SecretStore::make(config.master_key);
  if (!made) throw std::runtime_error("master-key: " + made.error().message);
  return std::make_unique<SecretStore>(std::move(*made));
}

std::unique_ptr<graphql::Engine> engine_of(const std::vector<FieldRow>& rows, AuditLog& audit) {
  auto engine = graphql::Engine::make(std::string(schema_text()), resolvers(rows, &audit),
                                      {.hides_values = true});
  if (!engine) throw std::logic_error(engine.error().message);
  return std::move(*engine);
}

// Marks stale objects and returns their number. Pages that are open read everything again.
Result<std::int64_t> mark_stale(store::Connection& db, Micros now) {
  const auto marks = mark_stale_objects(db, now, kTrickle);
  if (!marks) return std::unexpected(marks.error());
  for (const auto account : marks->accounts) {
    if (auto added = add_account_change(db, account, now); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return marks->objects;
}

http::ServerOptions server_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.listen_address;
  options.port = static_cast<std::uint16_t>(config.port);
  options.max_connections = static_cast<std::size_t>(config.max_connections);
  if (!config.certificate_file.empty()) {
    options.tls =
        net::TlsOptions{.certificate_file = config.certificate_file, .key_file = config.key_file};
  }
  return options;
}

// Owns and connects all parts. Members are in order of dependence: later ones use earlier ones.
class App {
 public:
  App(const DaemonContext& context, const Config& config)
      : config_(config),
        fail_(context.fail),
        names_(context.metrics),
        database_({.location = config.database,
                   .name = "control-plane",
                   .readers = static_cast<std::size_t>(config.database_readers)},
                  context.metrics),
        opener_({.name = "database-open", .threads = 1}, context.metrics),
        authenticator_(database_, context.metrics,
                       {.cookie = cookie_form(config), .own_origins = own_origins(config)}),
        passwords_(context.metrics),
        login_(database_, passwords_, context.metrics, {}),
        outbox_(hex_encode(random_bytes(kInstanceBytes))),
        writer_(context.executor, database_, context.metrics, {.instance = outbox_},
                [this](std::int64_t no) { live_.committed(no); }),
        storage_(
            database_, context.metrics,
            {.limit = config.storage_limit,
             .file = config.database.engine == store::Engine::sqlite ? config.database.path : ""}),
        audit_(context.executor, database_, context.metrics),
        events_(
            authenticator_, writer_, database_, storage_, context.metrics,
            {.client_of = [this](http::Exchange& exchange) { return client_of(exchange); },
             .audit = &audit_,
             .tracer = &context.tracer,
             .committed =
                 [this](std::int64_t account, const ObjectState& state, const SpanContext& trace) {
                   OutboxChange change;
                   change.account = account;
                   change.kind = state.key.kind;
                   change.uid = state.uid;
                   live_.follow(change, trace);
                 }}),
        sso_(context.executor, names_, context.metrics,
             {.database = database_,
              .authenticator = authenticator_,
              .audit = &audit_,
              .client_of = [this](http::Exchange& exchange) { return client_of(exchange); }},
             sso_options(config)),
        secrets_(secrets_of(config)),
        bans_(config.tunnel_api_urls.empty()
                  ? nullptr
                  : std::make_unique<TunnelBans>(
                        context.executor, names_, database_, context.metrics,
                        TunnelBans::Options{.servers = urls_of(config.tunnel_api_urls),
                                            .token = credential_of(config.tunnel_api_token,
                                                                   config.tunnel_api_token_file),
                                            .domain = config.tunnel_domain,
                                            .tls = {.ca_file = config.tunnel_api_ca_file}})),
        plugin_(authenticator_,
                credential_of(config.tunnel_plugin_token, config.tunnel_plugin_token_file),
                context.metrics),
        live_(context.executor, database_, context.metrics,
              {.feed = {.location = config.database, .instance = outbox_}},
              [this](const std::string& subject) { forget_revoked(subject); }),
        streams_(authenticator_, live_,
                 {.client_of = [this](http::Exchange& exchange) { return client_of(exchange); }}),
        dependencies_{.database = database_,
                      .authenticator = &authenticator_,
                      .secrets = secrets_.get(),
                      .tunnels = bans_.get(),
                      .live = &live_,
                      .tunnel_domain = config.tunnel_domain,
                      .account_changed = [this] { live_.announce(); }},
        rows_(table(dependencies_)),
        engine_(engine_of(rows_, audit_)),
        gate_(*engine_, rows_, authenticator_, context.metrics,
              {.max_operations_per_caller =
                   static_cast<std::size_t>(config.max_operations_per_caller),
               .client_of = [this](http::Exchange& exchange) { return client_of(exchange); },
               .audit = &audit_,
               .tracer = &context.tracer}),
        router_(routes(),
                [](int status, std::string_view message) { return api_error(status, message); }),
        server_(context.executor, server_options(config),
                [this](http::Exchange& exchange) { return router_.serve(exchange); }),
        tasks_(context.executor,
               [fail = context.fail](const std::string& task, const std::string& what) {
                 fail(task + ": " + what);
               }) {
    authenticator_.on_forget([this](const std::string& id) {
      live_.check(id);
      if (!is_told_) live_.announce();
    });
  }

  // The database is opened by a task, so that the admin port tells how far a migration is.
  Task<Result<void>> start() {
    tasks_.spawn("start", [this] { return open(); });
    co_return Result<void>{};
  }

  Task<> stop(Deadline deadline) {
    is_serving_ = false;
    // Requests end before the parts that they use. The writer stores what they have queued.
    co_await server_.stop(std::max(Clock::now(), deadline - kDatabaseGrace));
    tasks_.cancel();
    co_await tasks_.join();
    if (is_open_) {
      co_await live_.stop();
      co_await writer_.stop(deadline);
      co_await audit_.stop(deadline);
    }
    if (bans_) co_await bans_->stop();
    sso_.close();
    opener_.stop(kDatabaseGrace);
    database_.close(kDatabaseGrace);
  }

  [[nodiscard]] std::string database_not_ready() const {
    if (!is_open_) return progress_->text();
    return writer_.last_error();
  }
  [[nodiscard]] std::string port_not_ready() const {
    return is_serving_ ? std::string() : "not listening";
  }

  [[nodiscard]] StatusReport status() {
    const bool is_sqlite = config_.database.engine == store::Engine::sqlite;
    StatusEntry database{.name = "database",
                         .state = is_open_ ? StatusState::ok : StatusState::pending,
                         .message = is_sqlite ? "SQLite" : "PostgreSQL"};
    if (is_sqlite) database.add_text("file", config_.database.path, "");
    if (!is_open_) {
      database.add_text("progress", progress_->text(), "");
      return {std::move(database)};
    }
    StatusEntry events = status_entry("events", writer_.last_error());
    events.add_count("queued", writer_.queue().size());
    events.add_count("queued_bytes", writer_.queue().bytes(), "bytes");
    StatusEntry keys{.name = "sealing keys",
                     .state = secrets_ ? StatusState::ok : StatusState::unavailable,
                     .message = secrets_ ? "kept" : "refused: there is no master key"};
    StatusEntry plugin{.name = "tunnel plugin",
                       .state = plugin_.has_token() ? StatusState::ok : StatusState::unavailable,
                       .message = plugin_.has_token()
                                      ? ""
                                      : "refuses all requests: there is no tunnel.plugin-token"};
    StatusReport report{std::move(database),
                        {.name = "installation", .message = instance_},
                        std::move(events),
                        std::move(keys),
                        std::move(plugin)};
    if (bans_) {
      report.push_back(bans_->status());
    } else {
      report.push_back({.name = "tunnel bans",
                        .state = StatusState::unavailable,
                        .message = "a revoked runtime keeps its tunnel until it reconnects: there "
                                   "are no tunnel.api-urls"});
    }
    for (auto& entry : sso_.status()) report.push_back(std::move(entry));
    report.push_back(live_.status());
    report.push_back(status_count("connections", server_.connections()));
    report.push_back(storage_.status());
    return report;
  }

 private:
  std::string client_of(http::Exchange& exchange) const {
    return net::client_address(exchange.peer_address(),
                               http::joined_values(exchange.request().headers, "X-Forwarded-For"),
                               config_.trusted_proxies);
  }

  std::vector<http::Route> routes() {
    const UserRouteContext context{
        .database = database_,
        .authenticator = authenticator_,
        .login = login_,
        .public_url = config_.public_url,
        .own_origins = own_origins(config_),
        .client_of = [this](http::Exchange& exchange) { return client_of(exchange); },
        .audit = &audit_,
        .runtime_revoked =
            [this] {
              if (bans_) bans_->wake();
            },
        .end_session_url =
            [this](const std::string& provider) { return sso_.end_session_address(provider); }};
    std::vector<std::vector<http::Route>> parts;
    parts.push_back(user_routes(context));
    parts.push_back(page_access_routes(context));
    parts.push_back(sso_.routes());
    parts.push_back(events_.routes());
    parts.push_back(plugin_.routes());
    parts.push_back(streams_.routes());
    return all_routes(gate_, std::move(parts), page_origins(context));
  }

  Task<> open() {
    if (!co_await open_database()) co_return;
    const auto started = co_await run_first_start();
    if (!started) {
      fail_("first start: " + started.error().message);
      co_return;
    }
    instance_ = started->instance;
    if (started->created_administrator) {
      log_.info("the first administrator was created", {{"user", started->administrator}});
    }
    writer_.start();
    audit_.start();
    // The state is known before the first event arrives.
    co_await storage_.check();
    tasks_.spawn("storage", [this] { return storage_.run(); });
    is_open_ = true;
    if (bans_) bans_->start();
    live_.start();
    if (const auto listening = server_.listen(); !listening) {
      fail_(listening.error().message);
      co_return;
    }
    is_serving_ = true;
    log_.info("serving",
              {{"port", server_.port()},
               {"tls", !config_.certificate_file.empty()},
               {"database", database_.engine() == store::Engine::sqlite ? "sqlite" : "postgres"},
               {"installation", instance_}});
    co_await do_housekeeping();
  }

  // A PostgreSQL that is not there yet is waited for. False: the daemon stops.
  Task<bool> open_database() {
    if (auto missing = missing_folder(config_.database); !missing.empty()) {
      fail_("the folder " + missing + " does not exist: create it, or set database.path");
      co_return false;
    }
    Backoff backoff({.initial = std::chrono::milliseconds(200), .max = std::chrono::seconds(5)},
                    random_seed());
    while (true) {
      const auto opened = co_await opener_.run(
          deadline_after(kMigrationLimit),
          [this, progress = progress_](const std::stop_token&) -> Result<void> {
            return database_.open(migrations(), [progress](std::string_view text) {
              progress->set(text);
              Log("control-plane").info("the database is migrated", {{"step", text}});
            });
          });
      if (opened) co_return true;
      if (!is_waited_for(opened.error())) {
        fail_("database: " + opened.error().message);
        co_return false;
      }
      co_await wait_for_database(opened.error(), backoff);
    }
  }

  [[nodiscard]] bool is_waited_for(const Error& error) const {
    return config_.database.engine == store::Engine::postgres &&
           error.code == ErrorCode::unavailable;
  }
  Task<> wait_for_database(const Error& error, Backoff& backoff) {
    progress_->set(error.message);
    if (repeated_.check("open", Clock::now()).pass) {
      log_.warning("the database cannot be opened", {{"error", error.message}});
    }
    co_await sleep_for(backoff.next());
  }

  // Repeats the first start when the connection is lost. A COMMIT that was executed is found then.
  Task<Result<FirstStart>> run_first_start() {
    Backoff backoff({.initial = std::chrono::milliseconds(200), .max = std::chrono::seconds(5)},
                    random_seed());
    while (true) {
      auto started = co_await database_.write(
          deadline_after(kFirstStartLimit),
          [settings = first_start_settings(), publish = publisher(), now = micros_at(wall_now())](
              store::Connection& db) { return first_start(db, settings, publish, now); });
      if (started || !is_waited_for(started.error())) co_return started;
      co_await wait_for_database(started.error(), backoff);
    }
  }

  [[nodiscard]] FirstStartSettings first_start_settings() const {
    return {.account = config_.account,
            .administrator = config_.administrator,
            .email = config_.administrator_email,
            .password = config_.administrator_password};
  }
  [[nodiscard]] PublishPassword publisher() const {
    return config_.administrator_password_output.empty()
               ? publish_to_standard_output()
               : publish_to_file(config_.administrator_password_output);
  }

  // Evicts a credential that some process has revoked.
  void forget_revoked(const std::string& subject) {
    is_told_ = true;
    authenticator_.forget(subject);
    is_told_ = false;
    if (bans_) bans_->wake();
  }

  // Removes expired rows in small transactions, between which events are stored.
  Task<> do_housekeeping() {
    while (true) {
      co_await sleep_for(kHousekeeping);
      const auto now = micros_at(wall_now());
      const auto marked =
          co_await database_.write(deadline_after(kHousekeepingLimit),
                                   [now](store::Connection& db) { return mark_stale(db, now); });
      if (!marked && repeated_.check("stale", Clock::now()).pass) {
        log_.warning("stale objects were not marked", {{"error", marked.error().message}});
      }
      if (marked && *marked > 0) live_.announce();
      const auto cuts = retention_cuts({}, now);
      const auto removed_revocations = co_await database_.write(
          deadline_after(kHousekeepingLimit),
          [now](store::Connection& db) { return remove_old_revocations(db, now); });
      if (!removed_revocations && repeated_.check("retention", Clock::now()).pass) {
        log_.warning("expired rows were not removed",
                     {{"error", removed_revocations.error().message}});
      }
      const auto orphans = co_await database_.write(
          deadline_after(kHousekeepingLimit),
          [cuts](store::Connection& db) { return remove_orphans(db, cuts.orphans, kTrickle); });
      if (!orphans && repeated_.check("orphans", Clock::now()).pass) {
        log_.warning("objects of deleted runtimes were not removed",
                     {{"error", orphans.error().message}});
      }
      for (int part = 0; part < kHousekeepingParts; ++part) {
        const auto removed = co_await database_.write(
            deadline_after(kHousekeepingLimit),
            [cuts](store::Connection& db) { return remove_expired(db, cuts, kTrickle); });
        if (!removed && repeated_.check("retention", Clock::now()).pass) {
          log_.warning("expired rows were not removed", {{"error", removed.error().message}});
        }
        if (!removed || *removed < kTrickle) break;
      }
    }
  }

  const Config& config_;
  std::function<void(const std::string&)> fail_;
  Log log_{"control-plane"};
  RepeatFilter repeated_{std::chrono::minutes(1)};
  net::Resolver names_;
  std::shared_ptr<OpeningProgress> progress_ = std::make_shared<OpeningProgress>();
  store::Database database_;
  WorkerPool opener_;
  Authenticator authenticator_;
  Passwords passwords_;
  Login login_;
  std::string outbox_;  // name of this process in the outbox
  EventWriter writer_;
  StorageWatch storage_;
  AuditLog audit_;
  EventRoutes events_;
  sso::SsoRoutes sso_;
  std::unique_ptr<SecretStore> secrets_;
  std::unique_ptr<TunnelBans> bans_;
  TunnelPlugin plugin_;
  LiveUpdates live_;
  StreamRoutes streams_;
  Dependencies dependencies_;
  std::vector<FieldRow> rows_;
  std::unique_ptr<graphql::Engine> engine_;
  GraphqlGate gate_;
  http::Router router_;
  http::Server server_;
  bool is_open_ = false;
  bool is_serving_ = false;
  bool is_told_ = false;  // a revocation is taken from the database, where the others find it, too
  std::string instance_;
  TaskGroup tasks_;
};

}  // namespace

DaemonSpec control_plane() {
  const auto config = std::make_shared<Config>();
  DaemonSpec spec;
  spec.name = "control-plane";
  spec.summary =
      "The platform that runtimes report to and that clients ask.\n\n"
      "Commands instead of the daemon, each with --help: control-plane user, key, account, copy, "
      "backup,\n"
      "restore, audit.";
  spec.admin_address_env = "METRICS_LISTEN_ADDRESS";
  spec.bind = [config](ConfigReader& reader) { bind(reader, *config); };
  spec.make = [config](const DaemonContext& context) {
    const auto app = std::make_shared<App>(context, *config);
    DaemonApp frame;
    frame.start = [app, config] { return app->start(); };
    frame.stop = [app](Deadline deadline) { return app->stop(deadline); };
    frame.ready_checks = {{"database", [app] { return app->database_not_ready(); }},
                          {"port", [app] { return app->port_not_ready(); }}};
    frame.report = [app] { return app->status(); };
    return frame;
  };
  return spec;
}

}  // namespace gitops::control_plane_server
