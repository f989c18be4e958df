#include "doubles/fake_platform.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "common/core/encoding.hpp"
#include "common/http/gzip.hpp"

namespace gitops::test {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBody = 10 * 1024 * 1024;  // the limit of the real gateway
constexpr std::size_t kMaxDecoded = 256 * 1024 * 1024;

std::string text_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  if (found == object.end() || !found->is_object()) return {};
  const auto value = found->find(inner);
  return value != found->end() && value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace

std::string FakePlatform::Report::kind() const {
  const auto found = object.find("kind");
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string FakePlatform::Report::name() const {
  return text_at(object, "metadata", "name");
}

std::string FakePlatform::Report::source(std::string_view field) const {
  return text_at(data, "source", std::string(field).c_str());
}

FakePlatform::FakePlatform(const Executor& executor, Options options)
    : DoubleServer(executor, options.server),
      options_(std::move(options)),
      routes_(routes(), [this](int status, std::string_view why) { return refuse(status, why); }) {
  accounts_.add({.id = "double", .name = "double"});
  set_token(options_.token);
}

void FakePlatform::set_token(std::string token) {
  accounts_.revoke(options_.token);
  options_.token = std::move(token);
  accounts_.add(options_.token, FakeAccounts::Runtime{.name = "double", .account_id = "double"});
}

std::vector<const FakePlatform::Report*> FakePlatform::find(std::string_view kind,
                                                            std::string_view name,
                                                            std::size_t first) const {
  std::vector<const Report*> found;
  for (std::size_t i = first; i < reports_.size(); ++i) {
    const auto& report = reports_[i];
    if (!kind.empty() && report.kind() != kind) continue;
    if (!name.empty() && report.name() != name) continue;
    found.push_back(&report);
  }
  return found;
}

Task<const FakePlatform::Report*> FakePlatform::wait_for(std::function<bool(const Report&)> matches,
                                                         Deadline deadline, std::size_t first) {
  while (true) {
    for (; first < reports_.size(); ++first) {
      if (matches(reports_[first])) co_return &reports_[first];
    }
    if (!co_await wait_for_change(deadline) && first >= reports_.size()) co_return nullptr;
  }
}

Task<bool> FakePlatform::wait_for_count(std::size_t count, Deadline deadline) {
  while (reports_.size() < count) {
    if (!co_await wait_for_change(deadline)) co_return reports_.size() >= count;
  }
  co_return true;
}

Task<bool> FakePlatform::wait_until_quiet(Clock::duration quiet, Deadline deadline) {
  while (Clock::now() < deadline) {
    const auto last = reports_.empty() ? Clock::time_point::min() : reports_.back().arrived;
    const auto since = std::max(last, Clock::now() - quiet);
    const auto count = reports_.size();
    const auto until = std::min(deadline, since + quiet);
    while (Clock::now() < until && reports_.size() == count) {
      co_await wait_for_change(until);
    }
    if (reports_.size() == count && Clock::now() >= since + quiet) co_return true;
  }
  co_return false;
}

http::Response FakePlatform::failure(int status) const {
  return json_response(status, Json{{"status", status},
                                    {"name", http::reason_phrase(status)},
                                    {"message", "refused by the recording control plane"}}
                                   .dump());
}

std::vector<http::Route> FakePlatform::routes() {
  return {
      {"POST", "/2.0/api/events", http::open_to_all(),
       [this](http::Exchange& exchange, const http::RouteParameters&) {
         return take_report(exchange);
       },
       kMaxBody},
      {"POST", "/2.0/api/events/inventory", http::open_to_all(),
       [this](http::Exchange& exchange, const http::RouteParameters&) {
         return take_inventory(exchange);
       },
       kMaxBody},
      {"POST", "/2.0/api/graphql", http::open_to_all(),
       [this](http::Exchange& exchange, const http::RouteParameters&) {
         return accounts_.serve_graphql(exchange);
       },
       kMaxBody},
      {"GET", "/api/team", http::open_to_all(),
       http::answer_with([this](const http::Exchange& exchange, const auto&) {
         return accounts_.teams(exchange.request());
       })},
      {"GET", "/api/ping", http::open_to_all(),
       http::answer_with([](const auto&, const auto&) { return http::text_response(200, "OK"); })},
      {"GET", "/events", http::open_to_all(), http::answer_with([this](const auto&, const auto&) {
         return json_response(200, record());
       })},
  };
}

http::Response FakePlatform::refuse(int status, std::string_view why) {
  refused_.push_back(std::to_string(status) + ": " + std::string(why));
  return failure(status);
}

Task<> FakePlatform::handle(http::Exchange& exchange) {
  return routes_.serve(exchange);
}

Task<> FakePlatform::take_report(http::Exchange& exchange) {
  auto body = co_await exchange.read_body();
  if (!body && body.error().code != ErrorCode::too_large) co_return;
  auto response =
      body ? take(exchange.request(), std::move(*body)) : refuse(413, body.error().message);
  if (response.status == 200 && loses_answer_ && loses_answer_(reports_.back())) {
    exchange.abort();
    co_return;
  }
  if (auto sent = co_await exchange.reply(std::move(response)); !sent) co_return;
}

http::Response FakePlatform::take(const http::Request& request, std::string body) {
  if (!options_.token.empty() && request.headers.find("Authorization") != options_.token) {
    return refuse(401, "wrong or missing Authorization");
  }
  if (!request.headers.find("Content-Type").value_or("").starts_with("application/json")) {
    return refuse(415, "Content-Type is not application/json");
  }
  Json payload = payload_of(request, std::move(body));
  if (!payload.is_object() || !payload.contains("data") || !payload["data"].is_object()) {
    return refuse(400, "the body is not {\"data\": {…}}");
  }
  Report report;
  report.arrived = Clock::now();
  report.headers = request.headers;
  report.event_id = request.headers.find("X-Event-Id").value_or("");
  const auto sequence = request.headers.find("X-Event-Sequence").value_or("");
  std::from_chars(sequence.data(), sequence.data() + sequence.size(), report.sequence);
  report.data = std::move(payload["data"]);
  const auto object = report.data.find("object");
  if (object == report.data.end() || !object->is_string()) {
    return refuse(400, "data.object is not a string");
  }
  // The application reporter sends base64, the resource reporters JSON text.
  auto text = object->get<std::string>();
  if (!text.starts_with('{')) {
    auto decoded = base64_decode(text);
    if (!decoded) return refuse(400, "data.object is neither base64 nor JSON");
    text = std::move(*decoded);
  }
  report.object = Json::parse(text, nullptr, false);
  if (!report.object.is_object()) return refuse(400, "data.object does not hold a JSON object");
  if (const int status = refuses_ ? refuses_(report) : 0; status != 0) {
    return json_response(status, R"({"message":"refused"})");
  }
  if (forget_every_ > 0 && ++taken_ % forget_every_ == 0) {
    forgotten_.push_back(report.event_id);
    return json_response(200, "{}");
  }
  reports_.push_back(std::move(report));
  notify_change();
  auto response = json_response(200, "{}");
  add_position(response);
  if (!again_.empty()) response.headers.add("X-Intake-Again", again_);
  return response;
}

void FakePlatform::add_position(http::Response& response) const {
  if (!position_.empty()) response.headers.add("X-Intake-Position", position_);
  if (!resync_.empty()) response.headers.add("X-Intake-Resync", resync_);
}

Json FakePlatform::payload_of(const http::Request& request, std::string body) {
  if (request.headers.find("Content-Encoding") == "gzip") {
    auto inflated = http::gzip_decompress(body, kMaxDecoded);
    if (!inflated) return Json(Json::value_t::discarded);
    body = std::move(*inflated);
  }
  return Json::parse(body, nullptr, false);
}

Task<> FakePlatform::take_inventory(http::Exchange& exchange) {
  auto body = co_await exchange.read_body();
  if (!body) co_return;
  auto inventory = payload_of(exchange.request(), std::move(*body));
  http::Response response = json_response(200, R"({"again":[]})");
  if (inventory == Json::object() && exchange.request().headers.find("X-Intake-Seen")) {
    add_position(response);
  } else if (!inventory.is_object() || !inventory.contains("token")) {
    response = refuse(400, "this is no inventory");
  } else if (inventory["token"] != resync_) {
    response = failure(409);
  } else {
    inventories_.push_back(std::move(inventory));
    if (answers_inventory_) response = answers_inventory_(inventories_.back());
    notify_change();
  }
  std::ignore = co_await exchange.reply(std::move(response));
}

std::string FakePlatform::record() const {
  Json list = Json::array();
  const auto now = Clock::now();
  for (const auto& report : reports_) {
    const auto age =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - report.arrived).count();
    auto data = report.data;
    data.erase("object");  // shown decoded
    list.push_back({{"kind", report.kind()},
                    {"name", report.name()},
                    {"ageMilliseconds", age},
                    {"eventId", report.event_id},
                    {"object", report.object},
                    {"data", std::move(data)}});
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gitops::test
