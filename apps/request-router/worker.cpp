#include "request-router/worker.hpp"

#include <utility>

namespace gitops::router {
namespace {

constexpr auto kHousekeeping = std::chrono::seconds(1);

proxy::ServerOptions proxy_options(std::uint16_t port, const WorkerContext& context) {
  const auto& config = context.config;
  proxy::ServerOptions options;
  options.listen = {
      .address = config.listen_address, .port = port, .shares_port = config.loops > 1};
  options.head_timeout = config.head_timeout;
  options.idle_timeout = config.idle_timeout;
  options.totals = context.totals;
  options.tracer = context.tracer;
  if (!config.tls_certificate_file.empty()) {
    options.tls = net::TlsOptions{.certificate_file = config.tls_certificate_file,
                                  .key_file = config.tls_key_file};
  }
  return options;
}

}  // namespace

Worker::Worker(const Executor& executor, std::uint16_t port, const WorkerContext& context)
    : context_(context),
      executor_(executor),
      access_log_(context.access_log),
      server_(
          executor, proxy_options(port, context),
          {.decide = [this](const auto& head,
                            const auto& peer) { return routing_->decide(head, peer); },
           .failed =
               [this](const auto* head, const auto* route, auto failure, int status, auto detail) {
                 return routing_->failed(head, route, failure, status, detail);
               },
           .done = [this](const auto& record) { done(record); }}),
      tasks_(executor, [this](const std::string& task, const std::string& what) {
        context_.fail(task + ": " + what);
      }) {}

Result<void> Worker::start(const RouteSettings& settings, std::shared_ptr<Gates> gates) {
  use(settings, std::move(gates));
  if (auto listening = server_.listen(); !listening) return listening;
  tasks_.spawn("housekeeping", [this] { return do_housekeeping(); });
  return {};
}

void Worker::use(const RouteSettings& settings, std::shared_ptr<Gates> gates) {
  routing_ = std::make_shared<Routing>(context_.names, context_.event_source_names, settings,
                                       std::move(gates), context_.webhooks, context_.totals,
                                       context_.app_proxy_down, routing_.get());
}

Task<> Worker::stop(Deadline deadline) {
  co_await server_.stop(deadline);
  tasks_.cancel();
  co_await tasks_.join();
  access_log_.flush();
}

void Worker::done(const proxy::TransactionRecord& record) {
  context_.traffic.count(record);
  if (!context_.config.access_log) return;
  const auto client =
      record.head == nullptr ? record.peer->text : routing_->client_of(*record.head, *record.peer);
  access_log_.add(record, client, wall_now());
}

// Flushes the access log and closes idle connections once a second.
Task<> Worker::do_housekeeping() {
  while (true) {
    co_await sleep_for(kHousekeeping);
    access_log_.flush();
    routing_->sweep();
  }
}

}  // namespace gitops::router
