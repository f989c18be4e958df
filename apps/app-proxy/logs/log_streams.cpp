#include "app-proxy/logs/log_streams.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "app-proxy/actions/entities.hpp"
#include "common/core/json_text.hpp"

namespace gitops::app_proxy {
namespace {

using std::chrono::seconds;

const k8s::Resource kEvents{"", "v1", "events", "Event"};
constexpr std::uint64_t kArchiveLines = 50'000;

constexpr std::string_view kArgoCd =
    "Argo CD; set app-proxy.actions.enabled in the values of its chart, or ARGO_CD_URL";

Error not_configured(std::string_view what) {
  return {.code = ErrorCode::unavailable,
          .message = "the runtime is not configured for " + std::string(what),
          .subcode = action_errors::kNotAvailable};
}

std::optional<std::uint64_t> lines_of(const std::optional<std::int64_t>& given) {
  if (!given) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*given, 0));
}

Result<void> needs_operator(const User& user) {
  if (user.is_admin || user.is_runtime) return {};
  return std::unexpected(
      forbidden_action("only an administrator of the account may read the runtime's own logs"));
}

// Checks that a kind may be a part of a field selector.
bool is_kind(std::string_view text) {
  return !text.empty() && text.size() <= 63 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

LogStreams::LogStreams(const Executor& executor, ApplicationActions* applications,
                       WorkflowActions* workflows, k8s::Client* cluster, Options options)
    : executor_(executor),
      applications_(applications),
      workflows_(workflows),
      cluster_(cluster),
      options_(std::move(options)),
      slots_(std::make_shared<int>()),
      ending_(executor) {}

Task<> LogStreams::stop() {
  co_await ending_.join();
}

Result<LogStreams::Slot> LogStreams::take_slot() const {
  if (open() < options_.max_streams) return slots_;
  return std::unexpected(Error{.code = ErrorCode::too_many_requests,
                               .message = "too many logs are being read at the same time",
                               .retry_after = seconds(5),
                               .http_status = 429});
}

LogStreams::Feed LogStreams::feed(std::vector<LogSource> sources, const LogChoice& choice,
                                  LogFeed::Options options) {
  for (auto& source : sources) {
    if (source.pod.empty()) source.pod = choice.pod;
    if (source.container.empty()) source.container = choice.container;
  }
  return std::make_unique<LogFeed>(ending_, executor_, std::move(sources), std::move(options));
}

LogStreams::Feed LogStreams::argo_feed(OpenedLogs opened, LogFormat format, const Caller& caller,
                                       const LogChoice& choice, LogFilter filter, Slot slot) {
  std::vector<LogSource> sources;
  sources.push_back({.exchange = std::move(opened.exchange), .format = format, .needs_head = true});
  return feed(std::move(sources), choice,
              {.filter = std::move(filter),
               .is_allowed = [&caller,
                              check = std::move(opened.is_allowed)] { return check(*caller.user); },
               .slot = std::move(slot)});
}

Task<Result<LogStreams::Feed>> LogStreams::application(const Caller& caller, argo::AppRef app,
                                                       argo::ResourceRef of, LogChoice choice,
                                                       Deadline deadline) {
  if (!applications_) co_return std::unexpected(not_configured(kArgoCd));
  auto slot = take_slot();
  if (!slot) co_return std::unexpected(std::move(slot.error()));
  auto filter = filter_of(choice, wall_now());
  if (!filter) co_return std::unexpected(filter.error());
  argo::AppLogOptions options{.of = std::move(of),
                              .pod = choice.pod,
                              .container = choice.container,
                              .filter = choice.filter,
                              .follow = choice.follow,
                              .previous = choice.previous,
                              .tail_lines = lines_of(choice.tail_lines),
                              .since = age_of(*filter, wall_now())};
  filter->contains.clear();
  auto opened =
      co_await applications_->logs(*caller.user, std::move(app), std::move(options), deadline);
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  co_return argo_feed(std::move(*opened), LogFormat::argo, caller, choice, std::move(*filter),
                      std::move(*slot));
}

Task<Result<LogStreams::Feed>> LogStreams::workflow(const Caller& caller, std::string ns,
                                                    std::string name, LogChoice choice,
                                                    Deadline deadline) {
  if (!workflows_) co_return std::unexpected(not_configured("Argo Workflows"));
  auto slot = take_slot();
  if (!slot) co_return std::unexpected(std::move(slot.error()));
  auto filter = filter_of(choice, wall_now());
  if (!filter) co_return std::unexpected(filter.error());
  argo::WorkflowLogOptions options{.pod = choice.pod,
                                   .container = choice.container,
                                   .grep = choice.filter,
                                   .follow = choice.follow,
                                   // argo-server leaves out the times otherwise.
                                   .timestamps = filter->until.has_value(),
                                   .tail_lines = lines_of(choice.tail_lines),
                                   .since = age_of(*filter, wall_now())};
  filter->contains.clear();
  const auto format = options.timestamps ? LogFormat::argo_timed : LogFormat::argo;
  auto opened = co_await workflows_->logs(*caller.user, std::move(ns), std::move(name),
                                          std::move(options), deadline);
  if (!opened) co_return std::unexpected(std::move(opened.error()));
  co_return argo_feed(std::move(*opened), format, caller, choice, std::move(*filter),
                      std::move(*slot));
}

Task<Result<LogStreams::Feed>> LogStreams::component(const Caller& caller, std::string component,
                                                     LogChoice choice, Deadline deadline) {
  if (auto allowed = needs_operator(*caller.user); !allowed)
    co_return std::unexpected(allowed.error());
  if (!cluster_) co_return std::unexpected(not_configured("its cluster"));
  auto slot = take_slot();
  if (!slot) co_return std::unexpected(std::move(slot.error()));
  auto filter = filter_of(choice, wall_now());
  if (!filter) co_return std::unexpected(filter.error());
  auto all = co_await parts(deadline);
  if (!all) co_return std::unexpected(std::move(all.error()));
  std::erase_if(*all, [&](const Part& part) {
    return part.component != component || (!choice.pod.empty() && part.pod != choice.pod) ||
           (!choice.container.empty() && part.container != choice.container);
  });
  if (all->empty()) {
    co_return std::unexpected(
        Error{.code = ErrorCode::not_found,
              .message = "the runtime has no such component, pod or container",
              .http_status = 404,
              .subcode = action_errors::kNotFound});
  }
  if (all->size() > options_.max_component_pods) {
    co_return fail(ErrorCode::invalid_argument, "the component has " + std::to_string(all->size()) +
                                                    " containers; name a pod or a container");
  }
  std::vector<LogSource> sources;
  std::vector<std::string> errors;
  for (const Part& part : *all) {
    auto opened = co_await cluster_->log({options_.own_namespace, part.pod},
                                         {.container = part.container,
                                          .follow = choice.follow,
                                          .previous = choice.previous,
                                          .timestamps = true,
                                          .since = age_of(*filter, wall_now()),
                                          .tail_lines = lines_of(choice.tail_lines)},
                                         deadline);
    if (opened) {
      sources.push_back({.exchange = std::move(*opened),
                         .format = LogFormat::kubernetes,
                         .pod = part.pod,
                         .container = part.container});
      continue;
    }
    // The pod may be gone, or its container may not have started. The other containers are read.
    auto error = public_action_error(std::move(opened.error()), "the API server");
    if (all->size() == 1) co_return std::unexpected(std::move(error));
    errors.push_back(part.pod + "/" + part.container + ": " + error.message);
  }
  co_return feed(std::move(sources), choice,
                 {.filter = std::move(*filter),
                  .is_allowed = [&caller] { return needs_operator(*caller.user); },
                  .errors = std::move(errors),
                  .slot = std::move(*slot)});
}

Task<Result<LogStreams::Feed>> LogStreams::events(const Caller& caller, EventsOwner owner,
                                                  argo::ResourceRef of, Deadline deadline) {
  if (!cluster_) co_return std::unexpected(not_configured("its cluster"));
  auto slot = take_slot();
  if (!slot) co_return std::unexpected(std::move(slot.error()));
  if (auto checked = check_object_name("namespace", of.ns); !checked) {
    co_return std::unexpected(checked.error());
  }
  if (auto checked = check_object_name("name of the object", of.name); !checked) {
    co_return std::unexpected(checked.error());
  }
  if (!is_kind(of.kind) || (!owner.workflow.empty() && of.kind != "Pod")) {
    co_return fail(ErrorCode::invalid_argument, "this is no kind of an object with events");
  }
  StillAllowed still_allowed;
  if (!owner.app.name.empty()) {
    if (!applications_) co_return std::unexpected(not_configured(kArgoCd));
    const auto found =
        co_await applications_->permitted_object(*caller.user, std::move(owner.app), of, deadline);
    if (!found) co_return std::unexpected(found.error());
    const auto cluster = application_entity(*found, applications_->runtime()).cluster;
    if (cluster != control_plane::kInCluster && cluster != "in-cluster") {
      co_return fail(ErrorCode::unsupported,
                     "events are only known of the cluster that the runtime is in");
    }
    still_allowed = applications_->still_allowed(Action::view, *found);
  } else {
    if (!workflows_) co_return std::unexpected(not_configured("Argo Workflows"));
    const auto found =
        co_await workflows_->permitted(*caller.user, Action::view, of.ns, owner.workflow, deadline);
    if (!found) co_return std::unexpected(found.error());
    auto object = co_await cluster_->get(k8s::resources::kPods, {of.ns, of.name}, deadline);
    if (!object && object.error().code != ErrorCode::not_found) {
      co_return std::unexpected(public_action_error(std::move(object.error()), "the API server"));
    }
    JsonParser parser;
    const auto root = object ? parser.parse_object(*object, "pod")
                             : Result<JsonView>(std::unexpected(object.error()));
    if (!root ||
        (*root)["metadata"]["labels"]["workflows.argoproj.io/workflow"].text() != owner.workflow) {
      co_return std::unexpected(forbidden_action("the workflow has no such pod"));
    }
    still_allowed = workflows_->still_allowed(Action::view, *found);
  }
  // A watch without a resourceVersion begins with the existing objects.
  auto opened = co_await cluster_->watch(
      kEvents, of.ns,
      {.field_selector = "involvedObject.kind=" + of.kind + ",involvedObject.name=" + of.name,
       .resource_version = "0",
       .timeout = std::chrono::hours(1)},
      deadline);
  if (!opened) {
    co_return std::unexpected(public_action_error(std::move(opened.error()), "the API server"));
  }
  std::vector<LogSource> sources;
  sources.push_back({.exchange = std::move(*opened), .format = LogFormat::events, .pod = of.name});
  co_return feed(
      std::move(sources), {},
      {.is_allowed = [&caller, check = std::move(still_allowed)] { return check(*caller.user); },
       .slot = std::move(*slot)});
}

Task<Result<std::vector<LogStreams::Part>>> LogStreams::parts(Deadline deadline) {
  if (!cluster_) co_return std::unexpected(not_configured("its cluster"));
  std::vector<Part> all;
  auto listed = co_await cluster_->list_pages(
      k8s::resources::kPods, options_.own_namespace, {}, deadline, [&](std::string_view page) {
        std::ranges::move(parts_of(page), std::back_inserter(all));
        return Result<void>();
      });
  if (!listed) {
    co_return std::unexpected(public_action_error(std::move(listed.error()), "the API server"));
  }
  std::ranges::sort(all);
  co_return all;
}

Task<Result<std::string>> LogStreams::last_lines(Part part, std::size_t max_bytes,
                                                 Deadline deadline) {
  if (!cluster_) co_return std::unexpected(not_configured("its cluster"));
  auto log = co_await cluster_->log(
      {options_.own_namespace, part.pod},
      {.container = part.container, .timestamps = true, .tail_lines = kArchiveLines}, deadline);
  if (!log) co_return std::unexpected(std::move(log.error()));
  log->set_deadline(deadline);
  std::string text;
  bool is_cut = false;
  while (true) {
    auto piece = co_await log->read_some();
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    if (piece->empty()) break;
    text += *piece;
    // Up to twice the limit is kept before the older half is dropped, so that bytes are rarely
    // moved.
    if (text.size() > 2 * max_bytes) {
      text.erase(0, text.size() - max_bytes);
      is_cut = true;
    }
  }
  if (text.size() > max_bytes) {
    text.erase(0, text.size() - max_bytes);
    is_cut = true;
  }
  if (is_cut) {
    const auto line = text.find('\n');
    text.erase(0, line == std::string::npos ? 0 : line + 1);
  }
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  if (is_cut || lines >= kArchiveLines) text.insert(0, "(older lines were left out)\n");
  co_return text;
}

Result<LogFilter> filter_of(const LogChoice& choice, WallTime now) {
  LogFilter filter{.contains = choice.filter};
  const auto read = [](std::string_view name, const std::string& text,
                       std::optional<WallTime>& into) -> Result<void> {
    if (text.empty()) return {};
    const auto time = parse_rfc3339(text);
    if (!time) {
      return fail(ErrorCode::invalid_argument,
                  std::string(name) + ": expected a time as 2026-03-04T09:15:27Z");
    }
    into = *time;
    return {};
  };
  if (auto since = read("sinceTime", choice.since_time, filter.since); !since) {
    return std::unexpected(since.error());
  }
  if (auto until = read("untilTime", choice.until_time, filter.until); !until) {
    return std::unexpected(until.error());
  }
  if (choice.since_seconds) {
    const auto begin = now - seconds(std::clamp<std::int64_t>(*choice.since_seconds, 1,
                                                              std::int64_t{3'650} * 86'400));
    if (!filter.since || begin > *filter.since) filter.since = begin;
  }
  return filter;
}

std::optional<seconds> age_of(const LogFilter& filter, WallTime now) {
  if (!filter.since) return std::nullopt;
  return std::max(std::chrono::ceil<seconds>(now - *filter.since), seconds(1));
}

std::vector<LogStreams::Part> parts_of(std::string_view pod_list) {
  std::vector<LogStreams::Part> parts;
  for_each_item(member_text(pod_list, "items"), [&](std::string_view pod) {
    JsonParser parser;
    const auto root = parser.parse_object(pod, "pod");
    if (!root) return;
    const auto component = component_of(pod);
    for (const auto element : (*root)["spec"]["containers"].items()) {
      parts.push_back({.component = component,
                       .pod = std::string((*root)["metadata"]["name"].text()),
                       .container = std::string(element["name"].text())});
    }
  });
  return parts;
}

std::string tar_header(std::string_view name, std::size_t size, WallTime modified) {
  struct Header {
    std::array<char, 100> name;
    std::array<char, 8> mode;
    std::array<char, 8> uid;
    std::array<char, 8> gid;
    std::array<char, 12> size;
    std::array<char, 12> mtime;
    std::array<char, 8> checksum;
    char type;
    std::array<char, 100> link;
    std::array<char, 8> magic;
    std::array<char, 247> rest;
  };
  static_assert(sizeof(Header) == 512);
  Header header{};
  std::memcpy(header.name.data(), name.data(), std::min(name.size(), header.name.size()));
  std::snprintf(header.mode.data(), header.mode.size(), "%07o", 0644U);
  std::snprintf(header.uid.data(), header.uid.size(), "%07o", 0U);
  std::snprintf(header.gid.data(), header.gid.size(), "%07o", 0U);
  std::snprintf(header.size.data(), header.size.size(), "%011zo", size);
  const auto since_1970 = std::chrono::floor<seconds>(modified).time_since_epoch().count();
  std::snprintf(header.mtime.data(), header.mtime.size(), "%011llo",
                static_cast<unsigned long long>(std::max<std::int64_t>(since_1970, 0)));
  header.type = '0';
  std::memcpy(header.magic.data(), "ustar\00000", 8);
  // The checksum counts its own field as spaces.
  header.checksum.fill(' ');
  std::string bytes(512, '\0');
  std::memcpy(bytes.data(), &header, bytes.size());
  unsigned sum = 0;
  for (const char byte : bytes) sum += static_cast<unsigned char>(byte);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%06o", sum);
  std::memcpy(bytes.data() + offsetof(Header, checksum), text.data(), 7);
  return bytes;
}

std::string tar_padding(std::size_t size) {
  return std::string((512 - size % 512) % 512, '\0');
}

}  // namespace gitops::app_proxy
