#include "app-proxy/git/http_bridge.hpp"

#include <algorithm>
#include <cstring>

#include "common/http/traced.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxHeld = 512 * 1024;
// Bytes of one send.
constexpr std::size_t kPart = 64 * 1024;
// Extra time after the loop's deadline before a blocked thread gives up without a notification.
constexpr auto kGrace = std::chrono::minutes(10);

}  // namespace

struct HttpBridge::Current {
  http::Url url;
  http::Request request;
  std::optional<std::uint64_t> length;  // of a body that follows
  // The fields below are guarded by mutex_.
  std::string out;
  bool out_ended = false;
  bool dropped = false;  // the thread no longer waits for it
  bool taken = false;    // the loop has started it
  std::optional<Result<http::Response>> head;
  std::string in;
  bool in_ended = false;
  std::optional<Error> failure;  // error while reading the body
};

// Waits on the loop until the thread calls wake_loop(). `lock` is held before and after.
Task<> HttpBridge::until_changed(std::unique_lock<std::mutex>& lock) {
  const auto wakeup = std::make_shared<Wakeup>(executor_);
  loop_ = wakeup;
  lock.unlock();
  co_await wakeup->wait(kNever);
  lock.lock();
}

void HttpBridge::wake_loop(std::unique_lock<std::mutex>& lock) {
  const auto wakeup = std::exchange(loop_, nullptr);
  lock.unlock();
  if (wakeup) wakeup->ring();
  lock.lock();
}

void HttpBridge::close(Error error) {
  std::unique_lock lock(mutex_);
  if (!closed_) closed_ = std::move(error);
  changed_.notify_all();
  wake_loop(lock);
}

Task<Result<void>> HttpBridge::serve(http::Client& client, Deadline deadline,
                                     Clock::duration stall) {
  struct Closing {
    explicit Closing(HttpBridge& b) : bridge(b) {}
    ~Closing() { bridge.close({.code = ErrorCode::unavailable, .message = "cancelled"}); }
    Closing(const Closing&) = delete;
    Closing& operator=(const Closing&) = delete;
    HttpBridge& bridge;
  };
  const Closing closing(*this);
  while (true) {
    std::shared_ptr<Current> current;
    {
      std::unique_lock lock(mutex_);
      while (!closed_ && (!current_ || current_->taken)) co_await until_changed(lock);
      if (closed_) co_return Result<void>();
      current = current_;
      current->taken = true;
    }
    auto done = co_await carry_out(client, current, deadline, stall);
    const std::lock_guard lock(mutex_);
    if (!done) {
      if (!current->head) {
        current->head = std::unexpected(done.error());
      } else {
        current->failure = std::move(done.error());
      }
    }
    current->in_ended = true;
    changed_.notify_all();
  }
}

Task<Result<void>> HttpBridge::carry_out(http::Client& client, std::shared_ptr<Current> current,
                                         Deadline deadline, Clock::duration stall) {
  const auto soon = [&] { return std::min(deadline, deadline_after(stall)); };
  const bool streamed = current->length.has_value();
  auto span = http::client_span(trace_, current->request.headers, current->request.method + " git");
  span.set("server.address", current->url.host);
  auto exchange = co_await client.open(
      current->url, std::move(current->request), soon(),
      streamed ? http::Client::Body::streamed : http::Client::Body::inline_body, current->length);
  if (!exchange) {
    span.fail(exchange.error().message);
    co_return std::unexpected(std::move(exchange.error()));
  }
  while (streamed) {
    std::string part;
    {
      std::unique_lock lock(mutex_);
      while (!closed_ && !current->dropped && current->out.empty() && !current->out_ended) {
        co_await until_changed(lock);
      }
      if (closed_ || current->dropped) co_return Result<void>();
      part.swap(current->out);
      changed_.notify_all();
    }
    exchange->set_deadline(soon());
    if (part.empty()) {
      (void)co_await exchange->finish();
      break;
    }
    // A server that responds early and closes the connection has sent a response to be read.
    if (const auto written = co_await exchange->write(part); !written) break;
  }
  exchange->set_deadline(soon());
  auto head = co_await exchange->read_head();
  if (!head) {
    span.fail(head.error().message);
    co_return std::unexpected(std::move(head.error()));
  }
  span.set("http.response.status_code", head->status);
  {
    const std::lock_guard lock(mutex_);
    current->head = std::move(*head);
    changed_.notify_all();
  }
  while (true) {
    exchange->set_deadline(soon());
    auto part = co_await exchange->read_some();
    if (!part) co_return std::unexpected(std::move(part.error()));
    if (part->empty()) co_return Result<void>();
    std::unique_lock lock(mutex_);
    if (current->in.empty()) {
      current->in = std::move(*part);
    } else {
      current->in += *part;
    }
    changed_.notify_all();
    while (!closed_ && !current->dropped && current->in.size() >= kMaxHeld) {
      co_await until_changed(lock);
    }
    if (closed_ || current->dropped) co_return Result<void>();
  }
}

Result<void> HttpBridge::begin(http::Url url, http::Request request,
                               std::optional<std::uint64_t> length) {
  std::unique_lock lock(mutex_);
  if (closed_) return std::unexpected(*closed_);
  if (current_) current_->dropped = true;
  taken_.clear();
  returned_ = 0;
  current_ = std::make_shared<Current>();
  current_->url = std::move(url);
  current_->request = std::move(request);
  current_->length = length;
  wake_loop(lock);
  return {};
}

Result<void> HttpBridge::write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  const auto room = [&] {
    return closed_ || current_->head || current_->in_ended || current_->out.size() < kMaxHeld;
  };
  while (!bytes.empty()) {
    if (!changed_.wait_for(lock, kGrace, room)) {
      return fail(ErrorCode::timeout, "the request's body is not taken");
    }
    if (closed_) return std::unexpected(*closed_);
    // The response came before the end of the body, so the rest is not sent.
    if (current_->head || current_->in_ended) return {};
    const auto part = bytes.substr(0, kPart);
    current_->out += part;
    bytes.remove_prefix(part.size());
    wake_loop(lock);
  }
  return {};
}

Result<void> HttpBridge::finish() {
  std::unique_lock lock(mutex_);
  if (closed_) return std::unexpected(*closed_);
  current_->out_ended = true;
  wake_loop(lock);
  return {};
}

Result<http::Response> HttpBridge::head() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kGrace, [&] { return closed_ || current_->head; })) {
    return fail(ErrorCode::timeout, "no answer came");
  }
  if (!current_->head) return std::unexpected(*closed_);
  return *current_->head;
}

Result<std::size_t> HttpBridge::read(std::span<char> buffer) {
  if (returned_ == taken_.size()) {
    taken_.clear();
    returned_ = 0;
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return closed_ || !current_->in.empty() || current_->in_ended; };
    if (!changed_.wait_for(lock, kGrace, ready)) {
      return fail(ErrorCode::timeout, "the answer does not go on");
    }
    if (current_->in.empty()) {
      if (current_->failure) return std::unexpected(*current_->failure);
      if (!current_->in_ended) return std::unexpected(*closed_);
      return std::size_t{0};
    }
    taken_.swap(current_->in);
    wake_loop(lock);
  }
  const auto size = std::min(taken_.size() - returned_, buffer.size());
  std::memcpy(buffer.data(), taken_.data() + returned_, size);
  returned_ += size;
  return size;
}

bool HttpBridge::was_sent() {
  const std::lock_guard lock(mutex_);
  return current_ && current_->taken;
}

}  // namespace gitops::app_proxy
