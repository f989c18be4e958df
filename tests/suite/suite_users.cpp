#include "suite/suite_users.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kTimeLimit = std::chrono::seconds(20);  // of a request

const char* name_of(SuiteUsers::Kind kind) {
  return kind == SuiteUsers::Kind::version ? "versionInfo" : "applicationProxyQuery";
}

Json document(SuiteUsers::Kind kind, const std::string& application) {
  if (kind == SuiteUsers::Kind::version) return {{"query", "{ versionInfo { version } }"}};
  return {
      {"query",
       "query($name: String!) { applicationProxyQuery(name: $name) { status { sync { status } } } "
       "}"},
      {"variables", {{"name", application}}}};
}

}  // namespace

SuiteUsers::SuiteUsers(const Executor& executor, SuiteBed& bed, std::string application)
    : bed_(bed),
      resolver_(metrics_),
      client_(executor, resolver_,
              {.tls = {.ca_file = bed.ca_file().string(), .server_name = bed.host()}}),
      tasks_(executor) {
  for (const auto kind : kKinds) {
    document_of_[static_cast<std::size_t>(kind)] = document(kind, application).dump();
  }
}

Task<std::string> SuiteUsers::ask(Kind kind) {
  const http::Url url{.scheme = "https", .host = "127.0.0.1", .port = bed_.user_port()};
  const auto response =
      co_await client_.send(url,
                            {.method = "POST",
                             .target = "/app-proxy/api/graphql",
                             .headers = {{"Host", bed_.host()},
                                         {"Content-Type", "application/json"},
                                         {"Authorization", bed_.plane().key()}},
                             .body = document_of_[static_cast<std::size_t>(kind)]},
                            deadline_after(kTimeLimit));
  if (!response) co_return response.error().message;
  const auto body = Json::parse(response->body, nullptr, false);
  if (response->status != 200) co_return std::to_string(response->status);
  if (!body.is_object() || body.contains("errors") || !body.contains("data")) {
    const Json::json_pointer code("/errors/0/extensions/code");
    co_return "error " + (body.is_object() ? body.value(code, "without a code") : response->body);
  }
  co_return std::string();
}

Task<> SuiteUsers::ask_on(Kind kind) {
  while (true) {
    const auto begin = Clock::now();
    auto reason = co_await ask(kind);
    const auto end = Clock::now();
    ++figures_.requests;
    if (reason.empty()) {
      figures_.slowest = std::max(figures_.slowest, end - begin);
    } else {
      ++figures_.reasons[reason];
      failed_.push_back(
          {.kind = kind, .span = {.begin = begin, .end = end}, .reason = std::move(reason)});
    }
    co_await sleep_for(kPause);
  }
}

void SuiteUsers::start() {
  for (const auto kind : kKinds) {
    tasks_.spawn(name_of(kind), [this, kind] { return ask_on(kind); });
  }
}

Task<> SuiteUsers::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

void SuiteUsers::begin_outage(Kind kind) {
  auto& outages = outages_[kind];
  if (!outages.empty() && outages.back().end == Clock::time_point::max()) return;
  outages.push_back({.begin = Clock::now()});
}

Task<bool> SuiteUsers::end_outage(Kind kind, Clock::duration limit) {
  auto& outages = outages_[kind];
  if (outages.empty() || outages.back().end != Clock::time_point::max()) co_return true;
  const auto deadline = deadline_after(limit);
  bool is_answered = false;
  while (!is_answered && Clock::now() < deadline) {
    is_answered = (co_await ask(kind)).empty();
    if (!is_answered) co_await sleep_for(kPause);
  }
  outages.back().end = Clock::now();
  co_return is_answered;
}

std::vector<std::string> SuiteUsers::failed() {
  std::vector<std::string> lines;
  for (const auto& failed : failed_) {
    const bool is_excused = std::ranges::any_of(outages_[failed.kind], [&](const Span& outage) {
      return failed.span.begin <= outage.end && outage.begin <= failed.span.end;
    });
    if (is_excused) {
      ++figures_.excused;
    } else {
      const auto took = std::chrono::duration<double>(failed.span.end - failed.span.begin);
      lines.push_back(std::string(name_of(failed.kind)) + ": " + failed.reason + ", after " +
                      std::to_string(took.count()) + " s");
    }
  }
  failed_.clear();
  return lines;
}

}  // namespace gitops::test
