#include "doubles/double_server.hpp"

#include <algorithm>

#include "common/core/encoding.hpp"

namespace gitops::test {

DoubleServer::DoubleServer(const Executor& executor, http::ServerOptions options)
    : executor_(executor), options_(std::move(options)) {}

DoubleServer::~DoubleServer() = default;

Result<void> DoubleServer::start() {
  if (server_) return {};
  auto server = std::make_unique<http::Server>(
      executor_, options_, [this](http::Exchange& exchange) { return serve(exchange); });
  if (auto listening = server->listen(); !listening) return std::unexpected(listening.error());
  options_.port = server->port();
  server_ = std::move(server);
  return {};
}

Task<> DoubleServer::stop() {
  if (!server_) co_return;
  // The port refuses connections from here on, while the old ones still end.
  const auto server = std::move(server_);
  co_await server->stop(Clock::now());
}

Task<Result<void>> DoubleServer::restart() {
  co_await stop();
  co_return start();
}

http::Url DoubleServer::url() const {
  http::Url url;
  url.scheme = options_.tls ? "https" : "http";
  url.host = options_.address;
  url.port = options_.port;
  return url;
}

void DoubleServer::fail_next(std::size_t requests, int status, std::chrono::seconds retry_after,
                             std::string part) {
  faults_.push_back(
      {.left = requests, .status = status, .retry_after = retry_after, .part = std::move(part)});
}

void DoubleServer::delay_answers(std::chrono::milliseconds delay, std::string part) {
  delay_ = delay;
  delay_part_ = std::move(part);
}

void DoubleServer::abort_next(std::size_t requests, std::string part) {
  faults_.push_back({.left = requests, .status = 0, .retry_after = {}, .part = std::move(part)});
}

void DoubleServer::end_faults() {
  faults_.clear();
  delay_ = {};
}

std::size_t DoubleServer::count(std::string_view method, std::string_view part) const {
  return static_cast<std::size_t>(std::ranges::count_if(requests_, [&](const Seen& seen) {
    return (method.empty() || seen.method == method) && seen.target.contains(part);
  }));
}

Task<bool> DoubleServer::wait_for_change(Deadline deadline) {
  const auto waiter = waiters_.emplace(waiters_.end(), executor_);
  struct Leave {
    std::list<Event>& waiters;
    std::list<Event>::iterator waiter;
    ~Leave() { waiters.erase(waiter); }
  } const leave{waiters_, waiter};
  co_return co_await waiter->wait(deadline);
}

void DoubleServer::notify_change() {
  for (auto& waiter : waiters_) waiter.notify_all();
}

Task<> DoubleServer::serve(http::Exchange& exchange) {
  const std::string target = exchange.request().target;
  requests_.push_back({.method = exchange.request().method,
                       .target = target,
                       .headers = exchange.request().headers,
                       .when = Clock::now()});
  notify_change();
  const auto fault = std::ranges::find_if(
      faults_, [&](const Fault& candidate) { return target.contains(candidate.part); });
  std::optional<Fault> hit;
  if (fault != faults_.end()) {
    hit = *fault;
    if (--fault->left == 0) faults_.erase(fault);
  }
  if (delay_.count() > 0 && target.contains(delay_part_)) co_await sleep_for(delay_);
  if (!hit) {
    co_await handle(exchange);
    co_return;
  }
  if (hit->status == 0) {
    exchange.abort();
    co_return;
  }
  if (auto body = co_await exchange.read_body(64 * 1024 * 1024); !body) co_return;
  auto response = hit->status == 200 ? page_of_a_proxy(200) : failure(hit->status);
  if (hit->retry_after.count() > 0) {
    response.headers.set("Retry-After", std::to_string(hit->retry_after.count()));
  }
  if (auto sent = co_await exchange.reply(std::move(response)); !sent) co_return;
}

namespace {

std::string decode_or_keep(std::string_view text) {
  auto decoded = percent_decode(text);
  return decoded ? std::move(*decoded) : std::string(text);
}

}  // namespace

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    std::string pair(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::ranges::replace(pair, '+', ' ');
    const auto equals = std::min(pair.find('='), pair.size());
    const std::string_view view = pair;
    values_.emplace_back(decode_or_keep(view.substr(0, equals)),
                         decode_or_keep(view.substr(std::min(equals + 1, view.size()))));
  }
}

std::string Query::get(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, &std::pair<std::string, std::string>::first);
  return found == values_.end() ? std::string() : found->second;
}

bool Query::has(std::string_view name) const {
  return std::ranges::find(values_, name, &std::pair<std::string, std::string>::first) !=
         values_.end();
}

std::vector<std::string> path_segments(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    if (end > 0) segments.push_back(decode_or_keep(path.substr(0, end)));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return segments;
}

http::Response page_of_a_proxy(int status) {
  return {.status = status,
          .headers = {{"Content-Type", "text/html; charset=utf-8"}},
          .body = "<!DOCTYPE html>\n<html><body>one moment, please</body></html>\n"};
}

}  // namespace gitops::test
