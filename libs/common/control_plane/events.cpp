#include "common/control_plane/events.hpp"

#include <algorithm>
#include <bitset>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/http/gzip.hpp"
#include "common/http/json_answer.hpp"
#include "common/http/message.hpp"
#include "common/http/traced.hpp"
#include "common/http/url.hpp"

namespace gitops::control_plane {
namespace {

constexpr std::string_view kEventsPath = "/2.0/api/events";
constexpr std::string_view kInventoryPath = "/2.0/api/events/inventory";
// Limit of the bytes read of a response's body. More than is shown, so that the connection can be
// reused.
constexpr std::size_t kMaxAnswer = 64 * 1024;
// Limit of the answer to an inventory: the uids of 100,000 objects have 4 MB.
constexpr std::size_t kMaxUids = 16UL * 1024 * 1024;
constexpr auto kAnswerTimeout = std::chrono::seconds(1);
constexpr std::size_t kExcerpt = 200;
constexpr std::size_t kLooked = 512;  // bytes that the excerpt is made from
constexpr std::size_t kQuote = 12;    // a shorter run that both hold is a coincidence

// Marks the parts of `text` that also occur in `other`, of `run` bytes or more.
void mark_quotes(std::string_view text, std::string_view other, std::size_t run,
                 std::vector<bool>& marked) {
  if (run == 0 || text.size() < run) return;
  std::unordered_multimap<std::string_view, std::size_t> runs;
  std::bitset<256 * 256> begins;  // pairs that may begin a quote; avoids most look-ups
  const auto begin_of = [](std::string_view bytes) {
    return bytes.size() < 2 ? std::size_t{0}
                            : std::size_t{static_cast<unsigned char>(bytes[0])} * 256 +
                                  static_cast<unsigned char>(bytes[1]);
  };
  for (std::size_t at = 0; at + run <= text.size(); ++at) {
    runs.emplace(text.substr(at, run), at);
    begins.set(begin_of(text.substr(at, run)));
  }
  for (std::size_t at = 0; at + run <= other.size(); ++at) {
    const auto bytes = other.substr(at, run);
    if (!begins.test(begin_of(bytes))) continue;
    const auto [first, last] = runs.equal_range(bytes);
    for (auto found = first; found != last; ++found) {
      std::fill_n(marked.begin() + static_cast<std::ptrdiff_t>(found->second), run, true);
    }
  }
}

// Returns the error of an answer that is no success. It quotes nothing.
Error refused(std::string_view what, const Answer& answer, const http::Url& url) {
  if (answer.status >= 200 && answer.status < 300) {
    return {.code = ErrorCode::unavailable,
            .message = "control plane: a page instead of the event endpoint of " +
                       url.host_header() + " answered " + std::to_string(answer.status)};
  }
  return {.code = error_code_of_status(answer.status),
          .message = "control plane: " + std::string(what) + " refused by " + url.host_header() +
                     ": " + std::to_string(answer.status) + " " +
                     std::string(http::reason_phrase(answer.status)),
          .retry_after = answer.retry_after,
          .http_status = answer.status};
}

}  // namespace

std::string excerpt_of(std::string_view answer, std::string_view payload, const Secret& token) {
  const auto text = answer.substr(0, kLooked);
  std::vector<bool> quoted(text.size());
  mark_quotes(text, payload, kQuote, quoted);
  mark_quotes(text, token.reveal(), std::min(kQuote, token.reveal().size()), quoted);
  std::string out;
  bool blank = true;  // white space becomes one blank; leading white space is dropped
  for (std::size_t at = 0; at < text.size() && out.size() < kExcerpt; ++at) {
    const char c = text[at];
    if (quoted[at]) {
      if (at == 0 || !quoted[at - 1]) out += "…";
      blank = false;
    } else if (c > ' ' && c <= '~') {
      out += c;
      blank = false;
    } else if (!blank) {
      out += ' ';
      blank = true;
    }
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

Client::Client(http::Client& http, http::Url url, std::function<Secret()> token)
    : http_(http), url_(std::move(url)), token_(std::move(token)) {}

Task<Result<Answer>> Client::post(std::string_view payload, const Label& label, Deadline deadline) {
  co_return co_await post_compressed(http::gzip_compress(payload), label, deadline);
}

Task<Result<Answer>> Client::post_compressed(std::string compressed, const Label& label,
                                             Deadline deadline) {
  http::Headers headers;
  headers.set("X-Event-Id", label.id);
  headers.set("X-Event-Sequence", std::to_string(label.sequence));
  if (!label.reporter.empty()) headers.set("X-Reporter", label.reporter);
  if (!label.seen.empty()) headers.set("X-Intake-Seen", label.seen);
  auto span = http::client_span(label.trace, headers, "POST event");
  auto reply = co_await send(kEventsPath, std::move(headers), std::move(compressed),
                             {.max_bytes = kMaxAnswer, .time = kAnswerTimeout}, deadline);
  if (!reply) {
    span.fail(reply.error().message);
    co_return fail("control plane: event", std::move(reply.error()));
  }
  span.set("http.response.status_code", reply->answer.status);
  if (!reply->answer.is_success()) span.fail("");
  co_return std::move(reply->answer);
}

// The head decides, unless it announces a page. The loss of a body does not matter for an event.
Task<Result<Client::Reply>> Client::send(std::string_view path, http::Headers headers,
                                         std::string compressed, BodyLimits limits,
                                         Deadline deadline) {
  const Secret token = token_();
  http::Request request;
  request.method = "POST";
  request.target = http::join_target(url_, path);
  request.headers = std::move(headers);
  request.headers.set("Content-Type", "application/json");
  request.headers.set("Content-Encoding", "gzip");
  // The control plane expects the raw token, without "Bearer".
  request.headers.set("Authorization", std::string(token.reveal()));
  // The request has a Content-Length; other senders use the chunked form, receivers accept both.
  request.body = std::move(compressed);
  auto exchange = co_await http_.open(url_, std::move(request), deadline);
  if (!exchange) co_return std::unexpected(std::move(exchange.error()));
  const auto head = co_await exchange->read_head();
  if (!head) co_return std::unexpected(head.error());

  Reply reply;
  auto& answer = reply.answer;
  answer.status = head->status;
  if (const auto value = head->headers.find("Retry-After")) {
    answer.retry_after = parse_retry_after(*value, wall_now());
  }
  answer.position = head->headers.find("X-Intake-Position").value_or("");
  answer.resync = head->headers.find("X-Intake-Resync").value_or("");
  answer.again = head->headers.find("X-Intake-Again").value_or("");
  if (limits.time) exchange->set_deadline(std::min(deadline, deadline_after(*limits.time)));
  auto& body = reply.body;
  reply.is_cut = true;
  bool lost = false;
  while (body.size() < limits.max_bytes) {
    const auto part = co_await exchange->read_some();
    lost = !part;
    reply.is_cut = lost || !part->empty();
    if (!reply.is_cut || lost) break;
    body += *part;
  }
  // Some servers respond "ok" as HTML.
  const auto begin = body.find_first_not_of(" \t\r\n");
  answer.is_page =
      http::is_page(head->headers) && (begin == std::string::npos ? lost : body[begin] == '<');
  if (!answer.is_success()) answer.quoting = body.substr(0, kLooked);
  co_return reply;
}

Task<Result<void>> Client::post_event(std::string payload, Label label, Deadline deadline) {
  const auto answer = co_await post(payload, label, deadline);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->is_success()) co_return Result<void>();
  co_return std::unexpected(refused("event", *answer, url_));
}

Task<Result<std::vector<std::string>>> Client::post_inventory(const Inventory& inventory,
                                                              std::string reporter,
                                                              Deadline deadline) {
  http::Headers headers;
  headers.set("X-Reporter", reporter);
  auto reply =
      co_await send(kInventoryPath, std::move(headers), http::gzip_compress(to_json(inventory)),
                    {.max_bytes = kMaxUids}, deadline);
  if (!reply) co_return fail("control plane: inventory", std::move(reply.error()));
  if (!reply->answer.is_success()) {
    co_return std::unexpected(refused("inventory", reply->answer, url_));
  }
  JsonParser parser;
  const auto json = parser.parse_object(reply->body, "the answer");
  if (reply->is_cut || !json || !(*json)["again"].is_array()) {
    co_return fail(ErrorCode::unavailable, "control plane: inventory: the answer of " +
                                               url_.host_header() + " has another shape");
  }
  std::vector<std::string> again;
  for (const auto uid : (*json)["again"].items()) again.emplace_back(uid.text());
  co_return again;
}

Task<Result<Answer>> Client::post_position(Label label, Deadline deadline) {
  http::Headers headers;
  headers.set("X-Reporter", label.reporter);
  headers.set("X-Intake-Seen", label.seen);
  auto reply = co_await send(kInventoryPath, std::move(headers), http::gzip_compress("{}"),
                             {.max_bytes = kMaxAnswer, .time = kAnswerTimeout}, deadline);
  if (!reply) co_return fail("control plane: position", std::move(reply.error()));
  if (!reply->answer.is_success()) {
    co_return std::unexpected(refused("position", reply->answer, url_));
  }
  co_return std::move(reply->answer);
}

}  // namespace gitops::control_plane
