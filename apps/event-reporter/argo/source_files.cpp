#include "event-reporter/argo/source_files.hpp"

#include <utility>

#include <prometheus/counter.h>

#include "common/http/json_answer.hpp"

namespace gitops::reporter {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{16} << 20;

}  // namespace

SourceFiles::SourceFiles(const Executor& executor, http::Client& http, Credential& token,
                         Options options, Metrics& metrics)
    : http_(http),
      token_(token),
      options_(std::move(options)),
      kept_(options_.max_bytes),
      answered_(executor),
      requests_(metrics.counter("gitops_event_reporter_source_files_requests_total",
                                "Requests to app-proxy for the files of a source in Git.")),
      failures_(
          metrics.counter("gitops_event_reporter_source_files_failures_total",
                          "Requests for the files of a source that app-proxy did not answer.")),
      late_(metrics.counter("gitops_event_reporter_source_files_late_total",
                            "Reports that were made before app-proxy told the files of their "
                            "source.")) {}

void SourceFiles::ask(const std::string& request) {
  const auto* kept = kept_.find(request);
  if (kept && kept->until > Clock::now()) return;
  if (tasks_ == nullptr || asked_.contains(request) || asked_.size() >= options_.at_a_time) return;
  asked_.insert(request);
  tasks_->spawn("files of a source", [this, request] { return fetch(request); });
}

Task<std::shared_ptr<const GitFiles>> SourceFiles::find(std::string request,
                                                        Clock::time_point asked) {
  const auto until = asked + options_.max_wait;
  while (asked_.contains(request)) {
    const auto now = Clock::now();
    if (now < paused_until_) break;
    if (now >= until) {
      paused_until_ = now + options_.pause;
      break;
    }
    (void)co_await answered_.wait(until);
  }
  const auto* kept = kept_.find(request);
  if (kept && kept->files) co_return kept->files;
  if (asked_.contains(request)) late_.Increment();
  co_return nullptr;
}

Task<> SourceFiles::fetch(std::string request) {
  struct Under {
    SourceFiles& files;
    const std::string& request;
    ~Under() {
      files.asked_.erase(request);
      files.answered_.notify_all();
    }
  };
  const Under under{*this, request};
  requests_.Increment();
  auto files = co_await exchange(request);
  if (files) {
    const auto bytes = files->bytes();
    kept_.put(request, {.files = std::make_shared<const GitFiles>(std::move(*files))}, bytes);
    co_return;
  }
  failures_.Increment();
  // A refusal because of an application's request is no failure of app-proxy.
  const int status = files.error().http_status;
  const bool is_about_source = status >= 400 && status < 500 && status != 401 && status != 403;
  if (!is_about_source) paused_until_ = Clock::now() + options_.pause;
  if (repeats_.check(files.error().message, Clock::now()).pass) {
    log_.warning("app-proxy did not tell the files of a source; events go without them",
                 {{"reason", files.error().message}});
  }
  kept_.put(request,
            {.files = nullptr,
             .until = Clock::now() + (is_about_source ? options_.retry : options_.pause)},
            0);
}

Task<Result<GitFiles>> SourceFiles::exchange(const std::string& request) {
  http::Request post{.method = "POST",
                     .target = http::join_target(options_.app_proxy, "/api/source-files"),
                     .headers = {{"Content-Type", "application/json"}},
                     .body = request};
  post.headers.set("Authorization", std::string(token_.current().reveal()));
  auto response =
      co_await http_.send(options_.app_proxy, post, deadline_after(options_.timeout), kMaxAnswer);
  if (!response) co_return std::unexpected(std::move(response.error()));
  if (http::is_page(response->headers)) {
    co_return fail(ErrorCode::unavailable, "app-proxy: " + http::not_json(*response));
  }
  if (response->status != 200) {
    co_return std::unexpected(Error{.code = ErrorCode::unavailable,
                                    .message = "app-proxy answered " +
                                               std::to_string(response->status) +
                                               " to a request "
                                               "for the files of a source",
                                    .http_status = response->status});
  }
  co_return GitFiles::parse(response->body);
}

}  // namespace gitops::reporter
