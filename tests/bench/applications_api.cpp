#include "bench/applications_api.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>

#include "test_http/responses.hpp"

namespace gitops::bench {
namespace {

constexpr auto kBookmarks = std::chrono::seconds(1);
constexpr std::string_view kCollection = "/applications";

// The value of a parameter; empty when it is absent. The values that occur here are not encoded.
std::string_view value_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

std::uint64_t number_of(std::string_view query, std::string_view name) {
  const auto text = value_of(query, name);
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

void append_event(std::string& out, std::string_view type, std::string_view object) {
  out.append(R"({"type":")").append(type).append(R"(","object":)").append(object).append("}\n");
}

std::string bookmark(std::uint64_t version) {
  return R"({"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"resourceVersion":")" +
         std::to_string(version) + R"("}})";
}

http::Response failure(int status, std::string_view reason) {
  return test::json_response(
      status, R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":")" +
                  std::string(reason) + R"(","code":)" + std::to_string(status) + "}");
}

}  // namespace

ApplicationsApi::ApplicationsApi(const Executor& executor)
    : executor_(executor),
      server_(executor, {}, [this](http::Exchange& exchange) { return handle(exchange); }) {}

Task<> ApplicationsApi::stop() {
  co_await server_.stop(deadline_after(std::chrono::seconds(1)));
}

std::string ApplicationsApi::kubeconfig() const {
  return "{apiVersion: v1, kind: Config, current-context: bench,\n"
         " clusters: [{name: bench, cluster: {server: 'http://127.0.0.1:" +
         std::to_string(server_.port()) +
         "'}}],\n"
         " users: [{name: bench, user: {token: any}}],\n"
         " contexts: [{name: bench, context: {cluster: bench, user: bench}}]}\n";
}

void ApplicationsApi::put(const std::string& name, std::string text) {
  ++version_;
  auto& object = objects_[name];
  const auto* type = object.version == 0 ? "ADDED" : "MODIFIED";
  object = {.version = version_, .text = std::move(text)};
  for (auto* watch : watches_) {
    append_event(watch->pending, type, object.text);
    watch->changed.notify_all();
  }
}

void ApplicationsApi::remove(const std::string& name) {
  const auto found = objects_.find(name);
  if (found == objects_.end()) return;
  ++version_;
  for (auto* watch : watches_) {
    append_event(watch->pending, "DELETED", found->second.text);
    watch->changed.notify_all();
  }
  objects_.erase(found);
}

Task<> ApplicationsApi::handle(http::Exchange& exchange) {
  const auto path = exchange.path();
  const auto query = exchange.query();
  const auto at = path.rfind(kCollection);
  http::Response response = failure(404, "NotFound");
  if (at != std::string_view::npos && path.size() == at + kCollection.size()) {
    if (query.contains("sendInitialEvents")) {
      response = failure(422, "Invalid");  // as a server without streaming lists
    } else if (query.contains("watch=1")) {
      co_return co_await watch(exchange, number_of(query, "resourceVersion"));
    } else {
      response =
          test::json_response(200, list(value_of(query, "continue"), number_of(query, "limit")));
    }
  } else if (at != std::string_view::npos) {
    const auto found = objects_.find(path.substr(at + kCollection.size() + 1));
    if (found != objects_.end()) response = test::json_response(200, found->second.text);
  }
  std::ignore = co_await exchange.reply(std::move(response));
}

// A page after the object named `after`, of at most `limit` objects; 0: all.
std::string ApplicationsApi::list(std::string_view after, std::size_t limit) const {
  std::string items;
  std::size_t count = 0;
  auto next = after.empty() ? objects_.begin() : objects_.upper_bound(after);
  for (; next != objects_.end() && (limit == 0 || count < limit); ++next, ++count) {
    items.append(count == 0 ? "" : ",").append(next->second.text);
  }
  const auto rest = next == objects_.end() ? std::string() : std::prev(next)->first;
  return R"({"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationList","metadata":{"continue":")" +
         rest + R"(","resourceVersion":")" + std::to_string(version_) + R"("},"items":[)" + items +
         "]}";
}

Task<> ApplicationsApi::watch(http::Exchange& exchange, std::uint64_t from) {
  if (auto started = co_await exchange.start(test::json_response(200, {})); !started) co_return;
  Watch watch(executor_);
  for (const auto& [name, object] : objects_) {
    if (object.version > from) append_event(watch.pending, "MODIFIED", object.text);
  }
  struct Registration {
    std::list<Watch*>& watches;
    std::list<Watch*>::iterator place;
    ~Registration() { watches.erase(place); }
  } const registration{watches_, watches_.insert(watches_.end(), &watch)};
  std::ignore = co_await exchange.stream(follow(exchange, watch));
}

Task<> ApplicationsApi::follow(http::Exchange& exchange, Watch& watch) {
  auto next_bookmark = deadline_after(kBookmarks);
  while (true) {
    if (Clock::now() >= next_bookmark) {
      append_event(watch.pending, "BOOKMARK", bookmark(version_));
      next_bookmark = deadline_after(kBookmarks);
    }
    if (watch.pending.empty()) {
      co_await watch.changed.wait(next_bookmark);
      continue;
    }
    if (!co_await exchange.write(std::exchange(watch.pending, {}))) co_return;
  }
}

}  // namespace gitops::bench
