#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// Logs and events of pods as their servers send them. Pure.
namespace gitops::app_proxy {

// One line of a log, or one event of a pod.
struct LogLine {
  std::string pod = {};
  std::string container = {};
  std::string timestamp = {};  // RFC 3339; empty: not told
  std::string content = {};    // without its line end; of an event, its message
  std::string reason = {};     // of an event
  std::string type = {};       // of an event: Normal, Warning

  bool operator==(const LogLine&) const = default;
};

// What a server sends, line by line.
enum class LogFormat {
  kubernetes,  // text, the time in front of each line (?timestamps=true of the API server)
  argo,        // {"result":{"content","podName","timeStampStr"}} of argocd-server and argo-server
  events,      // a watch of Events: {"type","object"}
};

// Divides bytes into lines. Keeps at most `max_line` bytes: of a longer line, its parts are lines of
// their own (`cut`), or it is left out and counted (`drop`).
class LineSplitter {
 public:
  enum class Long { cut, drop };
  LineSplitter(std::size_t max_line, Long longer) : max_line_(max_line), longer_(longer) {}

  // The lines that these bytes end, without CR and LF.
  std::vector<std::string> feed(std::string_view bytes);
  // What is left at the end of the stream.
  std::vector<std::string> finish();
  [[nodiscard]] std::size_t dropped() const { return dropped_; }

 private:
  void end_line(std::vector<std::string>& lines);

  std::size_t max_line_;
  Long longer_;
  std::string pending_;
  bool is_dropping_ = false;
  std::size_t dropped_ = 0;
};

// A line of a server. Nothing for one that says nothing: an empty one, the end marker of Argo CD, a
// bookmark. An error is what the server says of the stream itself, which then ends.
Result<std::optional<LogLine>> parse_log_line(LogFormat format, std::string_view line);

// What a reader wants to see.
struct LogFilter {
  std::string contains = {};  // "!text": lines without it, as argocd-server has it
  std::optional<WallTime> since = {};
  std::optional<WallTime> until = {};

  // A line whose time is not known passes the bounds.
  [[nodiscard]] bool passes(const LogLine& line) const;
};

// The workload that a pod belongs to, by the object that controls it: "cap-app-proxy" of the pod
// cap-app-proxy-6d4cf56db6-x2x7k. A pod that nothing controls is its own. `pod` is its JSON.
std::string component_of(std::string_view pod);

}  // namespace gitops::app_proxy
