#include "app-proxy/http/cluster_routes.hpp"

#include <string>
#include <utility>
#include <vector>

#include "app-proxy/http/routes.hpp"
#include "app-proxy/resolvers/arguments.hpp"

namespace gitops::app_proxy {
namespace {

// Time limit of a request. It is below the router's response timeout.
constexpr auto kTime = std::chrono::seconds(53);

// Status of the response. A refusal by a peer is not a refusal of this request.
int status_of(const Error& error) {
  if (error.http_status != 0) return 502;
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::timeout:
      return 504;
    default:
      return 503;
  }
}

Task<Result<void>> add(ManagedClusters* clusters, Result<AddedCluster> added, const User& user,
                       const std::string& runtime, Deadline deadline) {
  if (!user.is_admin) {
    co_return fail(ErrorCode::forbidden, "only an administrator of the account may do this");
  }
  if (!added) co_return std::unexpected(std::move(added.error()));
  co_return co_await clusters->add(std::move(*added), requested_by(user, runtime), deadline);
}

}  // namespace

Task<> serve_cluster(http::Exchange& exchange, RequestGate& gate, Audit& audit,
                     ManagedClusters* clusters, const std::string& runtime) {
  const auto admission = co_await gate.authenticate(exchange);
  if (!admission) co_return;
  auto read = co_await exchange.read_body();
  if (!read) {
    (void)co_await exchange.reply(
        rest_error(status_of_unread_body(read.error()), read.error().message));
    co_return;
  }
  // The body holds the cluster's credentials.
  const Secret body(std::move(*read));
  const auto begin = Clock::now();
  Result<AddedCluster> added;
  if (clusters == nullptr) {
    added = fail(ErrorCode::unavailable, "the runtime has no access to its cluster");
  } else {
    added = clusters->parse(body.reveal());
  }
  std::vector<std::pair<std::string_view, std::string>> subject;
  if (added) subject = {{"name", added->name}, {"server", added->server}};
  const auto done =
      co_await add(clusters, std::move(added), *admission->caller.user, runtime, begin + kTime);
  audit.write({.caller = admission->caller,
               .action = "clusters",
               .subject = std::move(subject),
               .result = done ? "ok" : to_string(done.error().code),
               .took = Clock::now() - begin});
  if (!done) {
    (void)co_await exchange.reply(rest_error(status_of(done.error()), done.error().message));
    co_return;
  }
  (void)co_await exchange.reply({.status = 201,
                                 .headers = {{"Content-Type", "application/json; charset=utf-8"},
                                             {"Cache-Control", "no-store"}},
                                 .body = "{}"});
}

}  // namespace gitops::app_proxy
