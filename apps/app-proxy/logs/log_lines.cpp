#include "app-proxy/logs/log_lines.hpp"

#include <utility>

#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

constexpr std::size_t kMaxServerMessage = 500;
constexpr std::size_t kShortLine = 16 * 1024;

LogLine kubernetes_line(std::string_view line) {
  const auto space = line.find(' ');
  const std::string_view stamp = line.substr(0, space);
  if (!parse_rfc3339(stamp)) return {.content = std::string(line)};
  return {.timestamp = std::string(stamp),
          .content = std::string(space == std::string_view::npos ? "" : line.substr(space + 1))};
}

std::unexpected<Error> server_says(std::string_view message) {
  return fail(ErrorCode::unavailable, message.empty()
                                          ? std::string("the server ended the stream")
                                          : std::string(message.substr(0, kMaxServerMessage)));
}

Result<std::optional<LogLine>> argo_line(JsonView root) {
  if (root["error"].exists()) return server_says(root["error"]["message"].text());
  const JsonView result = root["result"];
  if (!result.exists() || result["last"].is_true()) return std::nullopt;
  std::string_view stamp = result["timeStampStr"].text();
  if (stamp.empty()) stamp = result["timeStamp"].text();
  return LogLine{.pod = std::string(result["podName"].text()),
                 .timestamp = std::string(stamp),
                 .content = std::string(result["content"].text())};
}

Result<std::optional<LogLine>> timed_argo_line(JsonView root) {
  auto line = argo_line(root);
  if (!line || !*line) return line;
  auto timed = kubernetes_line((*line)->content);
  (*line)->timestamp = std::move(timed.timestamp);
  (*line)->content = std::move(timed.content);
  return line;
}

Result<std::optional<LogLine>> event_line(JsonView root) {
  const std::string_view type = root["type"].text();
  const JsonView object = root["object"];
  if (type == "ERROR") return server_says(object["message"].text());
  if (type != "ADDED" && type != "MODIFIED") return std::nullopt;
  std::string_view stamp = object["lastTimestamp"].text();
  if (stamp.empty()) stamp = object["eventTime"].text();
  if (stamp.empty()) stamp = object["metadata"]["creationTimestamp"].text();
  return LogLine{.pod = std::string(object["involvedObject"]["name"].text()),
                 .timestamp = std::string(stamp),
                 .content = std::string(object["message"].text()),
                 .reason = std::string(object["reason"].text()),
                 .type = std::string(object["type"].text())};
}

}  // namespace

std::vector<std::string> LineSplitter::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    while (!is_dropping_ && pending_.size() + part.size() > max_line_) {
      if (longer_ == Long::drop) {
        is_dropping_ = true;
        break;
      }
      const auto room = max_line_ - pending_.size();
      pending_.append(part.substr(0, room));
      part.remove_prefix(room);
      lines.push_back(std::exchange(pending_, {}));
    }
    if (is_dropping_) {
      pending_ = {};
    } else {
      pending_.append(part);
    }
    if (end == std::string_view::npos) break;
    end_line(lines);
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> LineSplitter::finish() {
  std::vector<std::string> lines;
  if (!pending_.empty() || is_dropping_) end_line(lines);
  return lines;
}

void LineSplitter::end_line(std::vector<std::string>& lines) {
  if (is_dropping_) {
    is_dropping_ = false;
    ++dropped_;
    return;
  }
  if (pending_.ends_with('\r')) pending_.pop_back();
  lines.push_back(std::exchange(pending_, {}));
}

Result<std::optional<LogLine>> parse_log_line(LogFormat format, std::string_view line) {
  if (format == LogFormat::kubernetes) return kubernetes_line(line);
  if (line.empty()) return std::nullopt;
  // One parser serves the short lines of all streams, which then need no memory of their own. It
  // grows with its longest line.
  thread_local JsonParser shared;
  JsonParser own;
  JsonParser& parser = line.size() <= kShortLine ? shared : own;
  const auto root = parser.parse_object(line, "a line of the stream");
  if (!root) return std::unexpected(root.error());
  if (format == LogFormat::argo) return argo_line(*root);
  return format == LogFormat::argo_timed ? timed_argo_line(*root) : event_line(*root);
}

bool LogFilter::passes(const LogLine& line) const {
  if (since || until) {
    if (const auto when = parse_rfc3339(line.timestamp)) {
      if (since && *when < *since) return false;
      if (until && *when > *until) return false;
    }
  }
  if (contains.empty()) return true;
  if (contains.front() == '!') return !line.content.contains(contains.substr(1));
  return line.content.contains(contains);
}

std::string component_of(std::string_view pod) {
  JsonParser parser;
  const auto root = parser.parse_object(pod, "pod");
  if (!root) return {};
  const JsonView metadata = (*root)["metadata"];
  for (const auto owner : metadata["ownerReferences"].items()) {
    if (!owner["controller"].is_true()) continue;
    std::string name(owner["name"].text());
    // The name of a Deployment's ReplicaSet is the Deployment's and a hash, which is a label of its
    // pods.
    const std::string_view hash = metadata["labels"]["pod-template-hash"].text();
    if (owner["kind"].text() == "ReplicaSet" && !hash.empty() &&
        name.ends_with("-" + std::string(hash))) {
      name.resize(name.size() - hash.size() - 1);
    }
    return name;
  }
  return std::string(metadata["name"].text());
}

}  // namespace gitops::app_proxy
