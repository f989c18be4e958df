#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/error.hpp"
#include "common/core/time.hpp"

// Formats of logs and events of pods from their servers. Pure.
namespace gitops::app_proxy {

// One line of a log, or one event of a pod.
struct LogLine {
  std::string pod = {};
  std::string container = {};
  std::string timestamp = {};  // RFC 3339; empty: unknown
  std::string content = {};    // without its line end; the message of an event
  std::string reason = {};     // of an event
  std::string type = {};       // of an event: Normal, Warning

  bool operator==(const LogLine&) const = default;
};

// Format of a server's lines.
enum class LogFormat {
  kubernetes,  // text, each line begins with its time (?timestamps=true of the API server)
  argo,        // {"result":{"content","podName","timeStampStr"}} of argocd-server and argo-server
  argo_timed,  // the same; the content begins with its time (logOptions.timestamps of argo-server)
  events,      // a watch of Events: {"type","object"}
};

// Divides bytes into lines. Keeps at most `max_line` bytes. A longer line is split into several
// lines (`cut`), or left out and counted (`drop`).
class LineSplitter {
 public:
  enum class Long { cut, drop };
  LineSplitter(std::size_t max_line, Long longer) : max_line_(max_line), longer_(longer) {}

  // Returns the lines that these bytes complete, without CR and LF.
  std::vector<std::string> feed(std::string_view bytes);
  // Returns the rest at the end of the stream.
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

// Parses a line of a server. Returns nullopt for a line without content: an empty one, the end
// marker of Argo CD, a bookmark. An error is the server's report of a failed stream, which then
// ends.
Result<std::optional<LogLine>> parse_log_line(LogFormat format, std::string_view line);

// Filter of a reader.
struct LogFilter {
  std::string contains = {};  // "!text": lines without it, as argocd-server has it
  std::optional<WallTime> since = {};
  std::optional<WallTime> until = {};

  // Checks a line. A line without a known time passes the time limits.
  [[nodiscard]] bool passes(const LogLine& line) const;
};

// Returns the workload of a pod, from the object that controls it: "cap-app-proxy" for the pod
// cap-app-proxy-6d4cf56db6-x2x7k. A pod without a controller is its own workload. `pod` is its
// JSON.
std::string component_of(std::string_view pod);

}  // namespace gitops::app_proxy
