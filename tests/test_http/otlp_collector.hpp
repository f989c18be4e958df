#pragma once

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/http/server.hpp"
#include "common/http/url.hpp"

namespace gitops::test {

// A collector of traces that holds senders to OTLP over HTTP with JSON, and keeps the spans. A request of
// another form gets 400 and is kept in mistakes(). Runs on the loop; call stop() before the destructor.
class OtlpCollector {
 public:
  using Json = nlohmann::json;
  struct Span {
    std::string service;
    std::string name;
    std::string trace;
    std::string id;
    std::string parent;  // empty: the first span of the trace
    int kind = 0;
    bool failed = false;
    Json attributes = Json::object();
  };

  explicit OtlpCollector(const Executor& executor)
      : server_(executor, {}, [this](http::Exchange& exchange) { return take(exchange); }) {
    if (auto listening = server_.listen(); !listening) {
      throw std::runtime_error(listening.error().message);
    }
  }

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_.port());
  }
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  [[nodiscard]] const std::vector<std::string>& mistakes() const { return mistakes_; }
  // All bodies, for a look at what must not be in them.
  [[nodiscard]] const std::string& text() const { return text_; }
  // Returns the first span of that service and name in a trace (empty: in any); null without one.
  [[nodiscard]] const Span* find(std::string_view service, std::string_view name,
                                 std::string_view trace = {}) const {
    const auto found = std::ranges::find_if(spans_, [&](const Span& span) {
      return span.service == service && span.name == name && (trace.empty() || span.trace == trace);
    });
    return found == spans_.end() ? nullptr : &*found;
  }
  // The spans so far, a line each, and what was wrong with requests.
  [[nodiscard]] std::string names() const {
    std::string all;
    for (const auto& span : spans_) {
      all += span.trace + " " + span.service + ": " + span.name + "\n";
    }
    for (const auto& mistake : mistakes_) all += "mistake: " + mistake + "\n";
    return all;
  }
  Task<> stop() { return server_.stop(Clock::now()); }

 private:
  static void require(bool condition, const std::string& what) {
    if (!condition) throw std::runtime_error(what);
  }
  static bool is_id(const Json& value, std::size_t size) {
    if (!value.is_string()) return false;
    const auto& text = value.get_ref<const std::string&>();
    return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos &&
           text.find_first_not_of('0') != std::string::npos;
  }
  static std::uint64_t nanoseconds(const Json& value) {
    require(value.is_string(), "a time that is no text");
    const auto& text = value.get_ref<const std::string&>();
    require(text.size() == 19 && text.find_first_not_of("0123456789") == std::string::npos,
            "a time that is not in nanoseconds: " + text);
    return std::stoull(text);
  }
  static Json attributes_of(const Json& list) {
    require(list.is_array(), "attributes that are no list");
    Json all = Json::object();
    for (const Json& entry : list) {
      require(entry.size() == 2 && entry.at("value").size() == 1, "an attribute: " + entry.dump());
      const auto& value = entry.at("value");
      require(value.contains("stringValue") || value.contains("intValue"), value.dump());
      all[entry.at("key").get<std::string>()] = *value.begin();
    }
    return all;
  }
  static Span span_of(const Json& json, const std::string& service) {
    require(is_id(json.at("traceId"), 32), "traceId: " + json.dump());
    require(is_id(json.at("spanId"), 16), "spanId: " + json.dump());
    require(!json.contains("parentSpanId") || is_id(json.at("parentSpanId"), 16),
            "parentSpanId: " + json.dump());
    require(nanoseconds(json.at("startTimeUnixNano")) <= nanoseconds(json.at("endTimeUnixNano")),
            "an end before the start: " + json.dump());
    Span span{.service = service,
              .name = json.at("name"),
              .trace = json.at("traceId"),
              .id = json.at("spanId"),
              .parent = json.value("parentSpanId", ""),
              .kind = json.at("kind"),
              .attributes = attributes_of(json.at("attributes"))};
    require(!span.name.empty() && span.kind >= 1 && span.kind <= 5, "name or kind: " + json.dump());
    if (json.contains("status")) span.failed = json.at("status").at("code") == 2;
    return span;
  }
  void read(const Json& body) {
    for (const Json& resource : body.at("resourceSpans")) {
      const auto about = attributes_of(resource.at("resource").at("attributes"));
      const std::string service = about.at("service.name");
      require(about.contains("service.version") && about.contains("service.instance.id"),
              "resource: " + about.dump());
      for (const Json& scope : resource.at("scopeSpans")) {
        for (const Json& span : scope.at("spans")) spans_.push_back(span_of(span, service));
      }
    }
  }
  Task<> take(http::Exchange& exchange) {
    const auto body = co_await exchange.read_body(16 * 1024 * 1024);
    if (!body) co_return;
    http::Response answer{.headers = {{"Content-Type", "application/json"}}, .body = "{}"};
    try {
      const auto& request = exchange.request();
      require(request.method == "POST" && request.target == "/v1/traces",
              request.method + " " + request.target);
      require(request.headers.find("Content-Type") == "application/json", "the media type");
      text_ += *body;
      read(Json::parse(*body));
    } catch (const std::exception& error) {
      mistakes_.emplace_back(error.what());
      answer.status = 400;
    }
    (void)co_await exchange.reply(std::move(answer));
  }

  std::vector<Span> spans_;
  std::vector<std::string> mistakes_;
  std::string text_;
  http::Server server_;
};

}  // namespace gitops::test
