#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app-proxy/actions/applications.hpp"
#include "app-proxy/actions/workflows.hpp"
#include "app-proxy/logs/log_feed.hpp"
#include "common/core/task_group.hpp"
#include "k8s-client/client.hpp"

namespace gitops::app_proxy {

// A reader's selection of log lines; an empty field selects all.
struct LogChoice {
  std::string pod = {};
  std::string container = {};
  std::string filter = {};  // a regular expression for a Workflow, else as LogFilter has it
  bool follow = false;
  bool previous = false;  // of the container before its last restart; not of a Workflow
  std::optional<std::int64_t> tail_lines = {};
  std::optional<std::int64_t> since_seconds = {};
  std::string since_time = {};  // RFC 3339
  std::string until_time = {};
};

// Opens the logs of pods for users: of an Application by argocd-server, which reaches every
// cluster; of a Workflow by argo-server; of the runtime's own components, and the events of pods,
// by the API server. Each call checks the user's permission first, and the feed repeats the check
// from time to time. The caller outlives the feed. Loop thread only; its dependencies outlive it,
// and stop() is called after all feeds have ended.
class LogStreams {
 public:
  struct Options {
    std::string own_namespace = {};
    std::size_t max_streams = 2'000;      // concurrent feeds
    std::size_t max_component_pods = 50;  // pods in one feed
  };
  using Feed = std::unique_ptr<LogFeed>;
  // Each pointer is null when its server is not configured.
  LogStreams(const Executor& executor, ApplicationActions* applications, WorkflowActions* workflows,
             k8s::Client* cluster, Options options);
  Task<> stop();

  // Opens the logs of an Application. `of` is an object whose pods are selected; without a name,
  // all pods of the Application.
  Task<Result<Feed>> application(const Caller& caller, argo::AppRef app, argo::ResourceRef of,
                                 LogChoice choice, Deadline deadline);
  Task<Result<Feed>> workflow(const Caller& caller, std::string ns, std::string name,
                              LogChoice choice, Deadline deadline);
  // Opens the logs of a component. For administrators and the runtime itself. When one of several
  // containers cannot be opened, the feed has an `error`.
  Task<Result<Feed>> component(const Caller& caller, std::string component, LogChoice choice,
                               Deadline deadline);
  // Owner of an object whose events are wanted: an Application of this cluster, or a Workflow, of
  // which only pods have them. One of the two is set.
  struct EventsOwner {
    argo::AppRef app = {};
    std::string workflow = {};
  };
  Task<Result<Feed>> events(const Caller& caller, EventsOwner owner, argo::ResourceRef of,
                            Deadline deadline);

  // A container of the runtime's pods. Ordered by component, pod and container.
  struct Part {
    std::string component;
    std::string pod;
    std::string container;
    auto operator<=>(const Part&) const = default;
  };
  Task<Result<std::vector<Part>>> parts(Deadline deadline);
  // Returns the last lines of one container, at most `max_bytes`. For the archive.
  Task<Result<std::string>> last_lines(Part part, std::size_t max_bytes, Deadline deadline);

  // Number of feeds, including those that are being opened.
  [[nodiscard]] std::size_t open() const {
    return static_cast<std::size_t>(slots_.use_count()) - 1;
  }

 private:
  // Held by each feed, for the limit max_streams. Taken before the first wait, so that feeds that
  // are being opened count, too.
  using Slot = std::shared_ptr<void>;
  [[nodiscard]] Result<Slot> take_slot() const;
  Feed feed(std::vector<LogSource> sources, const LogChoice& choice, LogFeed::Options options);
  // Makes a feed of argocd-server or argo-server, which has filtered the text.
  Feed argo_feed(OpenedLogs opened, LogFormat format, const Caller& caller, const LogChoice& choice,
                 LogFilter filter, Slot slot);

  Executor executor_;
  ApplicationActions* applications_;
  WorkflowActions* workflows_;
  k8s::Client* cluster_;
  Options options_;
  Slot slots_;
  TaskGroup ending_;
};

// Pure functions.

// Returns the filter of a choice. `invalid_argument` names a field that cannot be parsed.
Result<LogFilter> filter_of(const LogChoice& choice, WallTime now);
// Returns the age of the oldest line to read, at least one second.
std::optional<std::chrono::seconds> age_of(const LogFilter& filter, WallTime now);
// Returns the containers of a list of pods.
std::vector<LogStreams::Part> parts_of(std::string_view pod_list);

// Returns the header of a regular file in a tar archive (POSIX ustar), 512 bytes. A name over 100
// bytes is truncated.
std::string tar_header(std::string_view name, std::size_t size, WallTime modified);
// Returns the padding after `size` bytes of a file, up to the next multiple of 512.
std::string tar_padding(std::size_t size);
inline constexpr std::size_t kTarEnd = 1024;  // zeroes at the end of an archive

}  // namespace gitops::app_proxy
