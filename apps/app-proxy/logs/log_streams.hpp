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

// What a reader wants of a log; an empty field leaves it open.
struct LogChoice {
  std::string pod = {};
  std::string container = {};
  std::string filter = {};  // of a Workflow a regular expression, else as LogFilter has it
  bool follow = false;
  std::optional<std::int64_t> tail_lines = {};
  std::optional<std::int64_t> since_seconds = {};
  std::string since_time = {};  // RFC 3339
  std::string until_time = {};
};

// Opens the logs of pods for users: of an Application by argocd-server, which reaches every cluster, of a
// Workflow by argo-server, of the runtime's own components and the events of pods by the API server. Each
// call checks the right of the caller's user first, and the feed now and then again; the caller outlives the feed.
// Loop thread only; its dependencies outlive it, and stop() comes when all feeds have gone.
class LogStreams {
 public:
  struct Options {
    std::string own_namespace = {};
    std::size_t max_streams = 2'000;      // feeds at the same time
    std::size_t max_component_pods = 50;  // whose logs one feed joins
  };
  using Feed = std::unique_ptr<LogFeed>;
  // Each of them may be null: not configured.
  LogStreams(const Executor& executor, ApplicationActions* applications, WorkflowActions* workflows,
             k8s::Client* cluster, Options options);
  Task<> stop();

  // `of`: an object whose pods are meant; without a name, all pods of the Application.
  Task<Result<Feed>> application(const Caller& caller, argo::AppRef app, argo::ResourceRef of,
                                 LogChoice choice, Deadline deadline);
  Task<Result<Feed>> workflow(const Caller& caller, std::string ns, std::string name,
                              LogChoice choice, Deadline deadline);
  // For administrators and the runtime itself. Of several containers, one whose log cannot be opened is an `error`.
  Task<Result<Feed>> component(const Caller& caller, std::string component, LogChoice choice,
                               Deadline deadline);
  // The events of a pod of an Application of this cluster, or of a Workflow; one of the two is named.
  struct PodOwner {
    argo::AppRef app = {};
    std::string workflow = {};
  };
  Task<Result<Feed>> pod_events(const Caller& caller, PodOwner owner, std::string ns,
                                std::string pod, Deadline deadline);

  // The containers of the runtime's pods, ordered by component, pod and container.
  struct Part {
    std::string component;
    std::string pod;
    std::string container;
    auto operator<=>(const Part&) const = default;
  };
  Task<Result<std::vector<Part>>> parts(Deadline deadline);
  // The last lines of one of them, at most `max_bytes`. For the archive.
  Task<Result<std::string>> last_lines(Part part, std::size_t max_bytes, Deadline deadline);

  // Feeds, and those that are being opened.
  [[nodiscard]] std::size_t open() const {
    return static_cast<std::size_t>(slots_.use_count()) - 1;
  }

 private:
  // Held by each feed of max_streams. Taken before the first wait, so that feeds that are being opened count, too.
  using Slot = std::shared_ptr<void>;
  [[nodiscard]] Result<Slot> take_slot() const;
  Feed feed(std::vector<LogSource> sources, const LogChoice& choice, LogFeed::Options options);
  // Of argocd-server or argo-server, which have filtered the text.
  Feed argo_feed(OpenedLogs opened, const Caller& caller, const LogChoice& choice, LogFilter filter,
                 Slot slot);

  Executor executor_;
  ApplicationActions* applications_;
  WorkflowActions* workflows_;
  k8s::Client* cluster_;
  Options options_;
  Slot slots_;
  TaskGroup ending_;
};

// Below: pure.

// The bounds of a choice; invalid_argument names what cannot be read.
Result<LogFilter> filter_of(const LogChoice& choice, WallTime now);
// The age of the oldest line that is wanted, at least one second.
std::optional<std::chrono::seconds> age_of(const LogFilter& filter, WallTime now);
// The containers of a list of pods.
std::vector<LogStreams::Part> parts_of(std::string_view pod_list);

// The header of a regular file in a tar archive (POSIX ustar), 512 bytes. Of a name over 100 bytes, the
// beginning is taken.
std::string tar_header(std::string_view name, std::size_t size, WallTime modified);
// What follows `size` bytes of a file, up to the next 512.
std::string tar_padding(std::size_t size);
inline constexpr std::size_t kTarEnd = 1024;  // zeroes at the end of an archive

}  // namespace gitops::app_proxy
