#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/http/server.hpp"
#include "common/http/url.hpp"

namespace gitops::test {

// An HTTP server that sends prepared answers in order, repeats the last one, and records its
// requests. Call stop() before the destructor.
class CannedServer {
 public:
  CannedServer(const Executor& executor, std::vector<http::Response> answers,
               http::ServerOptions options = {})
      : answers_(std::move(answers)),
        tls_(options.tls.has_value()),
        server_(executor, std::move(options),
                [this](http::Exchange& exchange) { return answer(exchange); }) {
    if (auto listening = server_.listen(); !listening) {
      throw std::runtime_error(listening.error().message);
    }
  }

  [[nodiscard]] http::Url url() const {
    http::Url url;
    url.scheme = tls_ ? "https" : "http";
    url.host = "127.0.0.1";
    url.port = server_.port();
    return url;
  }
  // Requests with their bodies, oldest first.
  [[nodiscard]] const std::vector<http::Request>& seen() const { return seen_; }
  Task<> stop() { return server_.stop(Clock::now()); }

 private:
  Task<> answer(http::Exchange& exchange) {
    http::Request request = exchange.request();
    auto body = co_await exchange.read_body(64 * 1024 * 1024);
    if (body) request.body = std::move(*body);
    seen_.push_back(std::move(request));
    const auto sent = co_await exchange.reply(answers_[std::min(next_, answers_.size() - 1)]);
    if (sent) ++next_;
  }

  std::vector<http::Response> answers_;
  std::size_t next_ = 0;
  std::vector<http::Request> seen_;
  bool tls_;
  http::Server server_;
};

}  // namespace gitops::test
