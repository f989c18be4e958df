#pragma once

#include <string>

#include "app-proxy/http/request_gate.hpp"
#include "app-proxy/logs/log_streams.hpp"
#include "common/http/server.hpp"

namespace gitops::app_proxy {

// Serves GET /api/applications/logs. Clients that accept text/event-stream get the lines of one log
// or the events of one pod as server-sent events: "log" with the JSON of a line, "trouble" with a text, at last "end". A
// comment every 20 s keeps proxies from closing a silent connection. Other clients, if
// administrators, get an archive (tar.gz) with a file for each component of the runtime. Loop
// thread only; its dependencies outlive it.
class LogRoutes {
 public:
  struct Options {
    std::string runtime = {};          // in the name of the archive
    bool anonymous_archive = false;    // the command line sends no credential
    std::size_t max_archives = 2;      // concurrent; each holds max_file twice
    std::size_t max_file = 2UL << 20;  // bytes of one component's log
    std::chrono::milliseconds heartbeat{20'000};
  };
  LogRoutes(RequestGate& gate, LogStreams& logs, Options options);

  Task<> serve(http::Exchange& exchange);

 private:
  Task<Result<LogStreams::Feed>> open(http::Exchange& exchange, const Caller& caller);
  Task<> serve_events(http::Exchange& exchange);
  Task<> serve_archive(http::Exchange& exchange);
  Task<> follow(http::Exchange& exchange, Caller& caller, LogFeed& feed);
  Task<Result<void>> write_archive(http::Exchange& exchange,
                                   const std::vector<LogStreams::Part>& parts);

  RequestGate& gate_;
  LogStreams& logs_;
  Options options_;
  std::size_t archives_ = 0;
};

// Returns the text of the event for a line or an end.
std::string server_sent(const LogEvent& event);

}  // namespace gitops::app_proxy
