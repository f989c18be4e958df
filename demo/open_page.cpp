#include "open_page.hpp"

#include <chrono>
#include <functional>
#include <utility>

#include "common/http/sse.hpp"
#include "narrator.hpp"

namespace gitops::demo {
namespace {

using Json = nlohmann::json;

constexpr auto kRetry = std::chrono::milliseconds(100);
constexpr auto kTimeLimit = std::chrono::seconds(30);
constexpr std::size_t kMaxEvent = 1024 * 1024;

}  // namespace

std::string OpenPage::Row::text(const char* member) const {
  const auto value = members.find(member);
  return value != members.end() && value->is_string() ? value->get<std::string>() : std::string();
}

OpenPage::OpenPage(const Executor& executor, http::Client& client, http::Url control_plane,
                   std::string key, std::string topics)
    : client_(client),
      url_(std::move(control_plane)),
      key_(std::move(key)),
      topics_(std::move(topics)),
      changed_(executor),
      tasks_(executor) {
  tasks_.spawn("page", [this] { return follow(); });
}

Task<> OpenPage::follow() {
  while (true) {
    http::Request request{.target = "/console/api/v1/stream?topics=" + topics_,
                          .headers = {{"Authorization", key_}}};
    if (!last_id_.empty()) request.headers.add("Last-Event-ID", last_id_);
    auto stream = co_await client_.open(url_, std::move(request), kNever);
    if (stream) co_await read(std::move(*stream));
    co_await sleep_for(kRetry);
  }
}

Task<> OpenPage::read(http::ClientExchange stream) {
  const auto head = co_await stream.read_head();
  if (!head || head->status != 200) co_return;
  http::ServerSentEventParser parser(kMaxEvent);
  while (true) {
    const auto bytes = co_await stream.read_some();
    if (!bytes || bytes->empty()) co_return;
    const auto events = parser.feed(*bytes);
    if (!events) co_return;
    for (const auto& event : *events) {
      if (!event.id.empty()) last_id_ = event.id;
      take(event.event, event.data);
    }
    changed_.notify_all();
  }
}

void OpenPage::take(const std::string& event, const std::string& data) {
  is_live_ = true;
  const auto body = Json::parse(data);
  if (event == "patch") {
    for (const Json& row : body.at("rows")) {
      rows_.push_back({.arrived = Clock::now(), .is_gone = false, .members = row});
    }
  } else if (event == "gone") {
    for (const Json& uid : body.at("uids")) {
      rows_.push_back({.arrived = Clock::now(),
                       .is_gone = true,
                       .members = {{"topic", body.at("topic")}, {"uid", uid}}});
    }
  } else if (event == "reset") {
    ++resets_;
    rows_at_reset_ = rows_.size();
  }
}

Task<> OpenPage::wait_until_live() {
  const auto deadline = deadline_after(kTimeLimit);
  while (!is_live_) {
    if (!co_await changed_.wait(deadline)) throw Failure("the page is not told of changes");
  }
}

Task<const OpenPage::Row*> OpenPage::wait_for(std::function<bool(const Row&)> matches,
                                              Deadline deadline, std::size_t first) {
  while (true) {
    for (; first < rows_.size(); ++first) {
      if (matches(rows_[first])) co_return &rows_[first];
    }
    if (!co_await changed_.wait(deadline) && first >= rows_.size()) co_return nullptr;
  }
}

Task<> OpenPage::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace gitops::demo
