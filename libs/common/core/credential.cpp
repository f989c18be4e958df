#include "common/core/credential.hpp"

#include <algorithm>
#include <utility>

#include "common/core/small_file.hpp"
#include "common/core/text.hpp"

namespace gitops {
namespace {

constexpr auto kFileLook = std::chrono::seconds(1);

}  // namespace

Credential Credential::fixed(Secret token) {
  Credential credential;
  credential.token_ = std::move(token);
  return credential;
}

Credential Credential::file(std::string path) {
  Credential credential;
  credential.path_ = std::move(path);
  return credential;
}

Credential Credential::fetched(Fetch fetch, FetchOptions options) {
  Credential credential;
  credential.fetch_ = std::move(fetch);
  credential.options_ = std::move(options);
  credential.last_error_ = credential.options_.not_yet;
  return credential;
}

Secret Credential::current() {
  if (!path_.empty()) read_file();
  return token_;
}

void Credential::read_file() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kFileLook;
  auto fingerprint = file_fingerprint(path_);
  if (!fingerprint.empty() && fingerprint == fingerprint_) return;
  auto text = read_small_file(path_);
  if (!text) {
    last_error_ = path_ + ": " + text.error().message;  // the last token stays in use
    return;
  }
  const Secret content(std::move(*text));  // wiped at the end
  const auto token = trimmed(content.reveal());
  // A file that is being written is empty for a moment. A server whose token is empty would accept
  // everybody.
  if (token.empty()) {
    fingerprint_.clear();
    last_error_ = path_ + ": is empty";
    return;
  }
  fingerprint_ = std::move(fingerprint);
  last_error_.clear();
  token_ = Secret(std::string(token));
}

Task<bool> Credential::refused() {
  const Secret before = token_;
  if (!path_.empty()) {
    next_look_ = {};
    read_file();
  } else if (fetch_) {
    // Another request was refused first. The new token is for this one, too.
    while (const auto call = fetching_) (void)co_await call->wait();
    if (token_ == before && Clock::now() >= next_try_) {
      next_try_ = deadline_after(options_.retry);
      co_await fetch();
    }
  }
  co_return !(token_ == before);
}

// Makes one call at a time: a wrong password must not be tried twice because two requests failed.
Task<> Credential::fetch() {
  if (fetching_) co_return;
  const auto executor = co_await asio::this_coro::executor;
  fetching_ = std::make_shared<Event>(executor);
  struct Ended {
    ~Ended() {
      const auto call = std::exchange(credential.fetching_, nullptr);
      // The call was cancelled with its request. One of those that wait for it makes the next one.
      if (!has_answer && call.use_count() > 1) credential.next_try_ = {};
      call->notify_all();
    }
    Credential& credential;
    bool has_answer = false;
  };
  Ended ended{.credential = *this};
  auto token = co_await fetch_();
  ended.has_answer = true;
  if (token) {
    last_error_.clear();
    token_ = std::move(*token);
    co_return;
  }
  last_error_ = token.error().message;
  // Any other failure says nothing about the credential: the peer starts, or something answers in its
  // place.
  const auto code = token.error().code;
  const bool is_refusal = code == ErrorCode::unauthenticated || code == ErrorCode::forbidden;
  next_try_ = deadline_after(is_refusal ? options_.retry_lasting : options_.retry);
}

void Credential::start(TaskGroup& group) {
  if (fetch_) {
    group.spawn(options_.task, [this] { return refresh_periodically(); });
  }
}

Task<> Credential::refresh_periodically() {
  while (options_.period || token_.empty()) {
    co_await fetch();
    if (!last_error_.empty()) {
      const Clock::duration rest = next_try_ - Clock::now();
      co_await sleep_for(std::max<Clock::duration>(rest, options_.retry));
    } else if (options_.period) {
      co_await sleep_for(*options_.period);
    } else {
      co_return;
    }
  }
}

}  // namespace gitops
