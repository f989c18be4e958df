#include <algorithm>
#include <utility>

#include "doubles/fake_kube_api.hpp"

// The watches of FakeKubeApi.
namespace gitops::test {

namespace {

using Json = nlohmann::json;

std::string event_line(std::string_view type, std::string_view object) {
  std::string line = R"({"type":")";
  line.append(type).append(R"(","object":)").append(object).append("}\n");
  return line;
}

std::string bookmark_line(const KubeType& type, std::uint64_t version, bool initial_events_end) {
  Json object{
      {"kind", type.resource.kind},
      {"apiVersion", type.resource.api_version()},
      {"metadata", {{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}}}};
  if (initial_events_end) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  return event_line("BOOKMARK", object.dump());
}

// The mistakes in a watch's options.
std::optional<KubeFailure> check_options(const Query& query, bool streaming_lists) {
  const auto match = query.get("resourceVersionMatch");
  if (!query.has("sendInitialEvents")) {
    if (match.empty()) return std::nullopt;
    return invalid_list_options(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  }
  if (match != "NotOlderThan") {
    return invalid_list_options(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (streaming_lists) return std::nullopt;
  return invalid_list_options("sendInitialEvents",
                              "sendInitialEvents is forbidden for watch unless the WatchList "
                              "feature gate is enabled");
}

}  // namespace

struct FakeKubeApi::Watch {
  KubeType type;
  std::string ns;
  Selectors selectors;
  bool initial_events = false;
  bool bookmarks = false;
  Deadline end = kNever;
  std::uint64_t position = 0;  // told up to this version; ahead of the store: silent until then
  std::string pending{};       // bytes to write before anything else
  enum class End { none, in_order, cut } ended_by_test = End::none;
};

void FakeKubeApi::compact() {
  // Events that open watches have not written yet are in their buffers.
  for (auto* watch : watches_) watch->pending += collect(*watch);
  store_.compact();
  lists_.expire_pages();
}

void FakeKubeApi::restore(FakeKubeStore::Backup backup) {
  store_.restore(std::move(backup));
  lists_.expire_pages();
  cut_watches();
}

void FakeKubeApi::stall_watches(bool stalled) {
  stalled_ = stalled;
  notify_change();
}

void FakeKubeApi::cut_watches() {
  for (auto* watch : watches_) watch->ended_by_test = Watch::End::cut;
  notify_change();
}

void FakeKubeApi::end_watches() {
  for (auto* watch : watches_) watch->ended_by_test = Watch::End::in_order;
  notify_change();
}

void FakeKubeApi::send_on_watches(const k8s::Resource& resource, const std::string& bytes) {
  for (auto* watch : watches_) {
    if (watch->type.resource.plural == resource.plural &&
        watch->type.resource.group == resource.group) {
      watch->pending += collect(*watch) + bytes;
    }
  }
  notify_change();
}

std::string FakeKubeApi::collect(Watch& watch) {
  std::string text;
  const auto& history = store_.history();
  const auto id = watch.type.id();
  auto change =
      std::ranges::upper_bound(history, watch.position, {}, &FakeKubeStore::Change::version);
  for (; change != history.end(); ++change) {
    if (change->type != id || (!watch.ns.empty() && change->ns != watch.ns)) continue;
    const bool matched = change->before && watch.selectors.matches(change->before->json);
    const bool matches = change->kind != FakeKubeStore::ChangeKind::deleted &&
                         watch.selectors.matches(change->object->json);
    if (matches) {
      text += event_line(matched ? "MODIFIED" : "ADDED", change->object->text);
    } else if (matched && change->kind == FakeKubeStore::ChangeKind::deleted) {
      text += event_line("DELETED", change->object->text);
    } else if (matched) {
      // It left the selection: DELETED with its last state and the version of the change.
      Json last = change->before->json;
      last["metadata"]["resourceVersion"] = std::to_string(change->version);
      text += event_line("DELETED", last.dump());
    }
  }
  watch.position = std::max(watch.position, store_.version());
  return text;
}

std::expected<FakeKubeApi::Watch, KubeFailure> FakeKubeApi::read_watch(const KubeTarget& target,
                                                                       const Query& query) const {
  auto selectors = parse_selectors(query, *target.type);
  if (!selectors) return std::unexpected(selectors.error());
  if (auto wrong = check_options(query, streaming_lists_)) return std::unexpected(*wrong);
  const auto asked = query.get("resourceVersion");
  const auto version = asked.empty() ? 0 : parse_version(asked);
  if (!version) return std::unexpected(bad_request("Invalid value: \"" + asked + "\""));
  const auto timeout = parse_size(query.get("timeoutSeconds"));
  return Watch{.type = *target.type,
               .ns = target.key.ns,
               .selectors = std::move(*selectors),
               .initial_events = query.get("sendInitialEvents") == "true",
               .bookmarks = query.get("allowWatchBookmarks") == "true",
               .end = deadline_after(std::chrono::seconds(timeout == 0 ? 1800 : timeout)),
               .position = *version};
}

void FakeKubeApi::add_initial_events(Watch& watch) {
  for (const auto& object : store_.list(watch.type, watch.ns)) {
    if (watch.selectors.matches(object->json)) {
      watch.pending += event_line("ADDED", object->text);
    }
  }
  watch.position = store_.version();
  if (watch.initial_events && watch.bookmarks) {
    watch.pending += bookmark_line(watch.type, watch.position, true);
  }
}

Task<> FakeKubeApi::watch(http::Exchange& exchange, const KubeTarget& target, const Query& query) {
  auto watch = read_watch(target, query);
  if (!watch) {
    if (auto sent = co_await exchange.reply(refusal(watch.error())); !sent) co_return;
    co_return;
  }
  if (auto started = co_await exchange.start(json_response(200, {})); !started) co_return;
  if (watch->position == 0 || watch->initial_events) {
    add_initial_events(*watch);
  } else if (watch->position < store_.oldest_version()) {
    const auto expired = too_old(watch->position, store_.oldest_version());
    auto sent = co_await exchange.write(event_line("ERROR", status_text(expired)));
    if (sent) sent = co_await exchange.finish();
    co_return;
  }

  struct Registration {
    std::list<Watch*>& watches;
    std::list<Watch*>::iterator place;
    ~Registration() { watches.erase(place); }
  } const registration{watches_, watches_.insert(watches_.end(), &*watch)};
  notify_change();
  co_await follow(exchange, *watch);
}

// Sends the changes to the watch until it ends.
Task<> FakeKubeApi::follow(http::Exchange& exchange, Watch& watch) {
  auto next_bookmark = deadline_after(options_.bookmarks);
  while (true) {
    // A watch that is older than the history is cut, too.
    if (watch.ended_by_test == Watch::End::cut || watch.position < store_.oldest_version()) {
      exchange.abort();
      co_return;
    }
    if (stalled_) {
      co_await wait_for_change(kNever);
      continue;
    }
    watch.pending += collect(watch);
    const auto now = Clock::now();
    const bool served = store_.types().contains(watch.type.id());
    const bool ending = now >= watch.end || watch.ended_by_test == Watch::End::in_order || !served;
    if (watch.bookmarks && served && (now >= next_bookmark || ending)) {
      if (watch.position <= store_.version())
        watch.pending += bookmark_line(watch.type, watch.position, false);
      next_bookmark = now + options_.bookmarks;
    }
    if (!watch.pending.empty()) {
      const auto text = std::exchange(watch.pending, {});
      if (auto sent = co_await exchange.write(text); !sent) co_return;
      if (!ending) continue;
    }
    if (ending) {
      if (auto ended = co_await exchange.finish(); !ended) co_return;
      co_return;
    }
    co_await wait_for_change(watch.bookmarks ? std::min(watch.end, next_bookmark) : watch.end);
  }
}

}  // namespace gitops::test
