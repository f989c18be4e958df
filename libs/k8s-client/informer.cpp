#include "k8s-client/informer.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <malloc.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "common/core/log.hpp"
#include "k8s-client/watch.hpp"

namespace gitops::k8s {

namespace {

using namespace std::chrono_literals;

constexpr auto kOpenTimeout = 30s;  // time limit for a watch's head
constexpr auto kRepeatPeriod = 1min;

struct Name {
  std::string_view ns;
  std::string_view name;
  bool operator==(const Name&) const = default;
};

// An object of the store. Its name never changes; the other members may change within the set.
struct Entry {
  mutable Record record;
  mutable std::uint32_t list = 0;   // the last list, or watch after it, that contained it
  mutable std::uint32_t epoch = 0;  // epoch of the record's version

  [[nodiscard]] Name name() const { return {record.ns(), record.name()}; }
};

// Lookup by name without a second copy of the name.
struct HashName {
  using is_transparent = void;
  std::size_t operator()(const Name& name) const {
    const std::hash<std::string_view> hash;
    return hash(name.ns) * 31 + hash(name.name);
  }
  std::size_t operator()(const Entry& entry) const { return (*this)(entry.name()); }
};
struct SameName {
  using is_transparent = void;
  bool operator()(const Entry& a, const Entry& b) const { return a.name() == b.name(); }
  bool operator()(const Name& a, const Entry& b) const { return a == b.name(); }
  bool operator()(const Entry& a, const Name& b) const { return a.name() == b; }
};
using Store = std::unordered_set<Entry, HashName, SameName>;

// The metrics of one informer.
class Counters {
 public:
  Counters(Metrics& metrics, const std::string& program, const InformerOptions& options)
      : metrics_(metrics),
        prefix_("gitops_" + program + "_watch_"),
        labels_(with_resource(options)),
        quarantined_(metrics.counter(prefix_ + "quarantined_total",
                                     "Objects that could not be used", labels_)),
        objects_(metrics.gauge(prefix_ + "objects", "Objects in the store", labels_)),
        last_event_(metrics.gauge(prefix_ + "last_event_timestamp_seconds",
                                  "When the last event or page arrived", labels_)) {}

  void count_event(WatchEvent::Type type) {
    auto& counter = events_[type];
    if (counter == nullptr) {
      counter = &labelled("events_total", "Events of watches", "type", to_string(type));
    }
    counter->Increment();
  }
  void count_relist(std::string_view reason) {
    labelled("relists_total", "Lists begun", "reason", reason).Increment();
  }
  void count_error(ErrorCode code) {
    labelled("errors_total", "Failed lists and watches", "code", gitops::to_string(code))
        .Increment();
  }
  void count_quarantined() { quarantined_.Increment(); }
  void set_objects(std::size_t count) { objects_.Set(static_cast<double>(count)); }
  // Resets the gauges: the age of the last event no longer indicates a failure.
  void note_end() {
    objects_.Set(0);
    last_event_.Set(std::numeric_limits<double>::quiet_NaN());
  }
  void note_contact() {
    last_event_.Set(std::chrono::duration<double>(wall_now().time_since_epoch()).count());
  }

 private:
  static Metrics::Labels with_resource(const InformerOptions& options) {
    auto labels = options.metric_labels;
    labels["resource"] = options.resource.plural;
    return labels;
  }
  Counter& labelled(std::string_view name, const std::string& help, const std::string& label,
                    std::string_view value) {
    auto labels = labels_;
    labels[label] = value;
    return metrics_.counter(prefix_ + std::string(name), help, labels);
  }

  Metrics& metrics_;
  std::string prefix_;
  Metrics::Labels labels_;
  Counter& quarantined_;
  Gauge& objects_;
  Gauge& last_event_;
  std::map<WatchEvent::Type, Counter*> events_;
};

// Returns the resourceVersion of a list.
Result<std::string> list_version(std::string_view list) {
  ObjectDecoder decoder{FieldSet({})};
  auto meta = decoder.decode_list(list, [](Record&&, std::string_view) {}, [](Quarantined&&) {});
  if (!meta) return std::unexpected(std::move(meta.error()));
  if (meta->resource_version.empty()) {
    return fail(ErrorCode::invalid_data, "list: no resourceVersion");
  }
  return std::move(meta->resource_version);
}

// Returns the resourceVersion of a list of one object. With a label selector the server may have to
// read many objects to find one. A field selector is that of a name, and the permission to list may
// be one for that name alone.
Task<Result<std::string>> read_version(Client& client, const Resource& resource, std::string ns,
                                       std::string field_selector, Deadline deadline) {
  ListOptions one;
  one.field_selector = std::move(field_selector);
  one.limit = 1;
  const auto page = co_await client.list(resource, std::move(ns), std::move(one), deadline);
  if (!page) co_return std::unexpected(page.error());
  co_return list_version(*page);
}

}  // namespace

struct Informer::State {
  State(const Executor& executor, Client& the_client, InformerOptions the_options, Metrics& metrics,
        const std::string& program)
      : client(the_client),
        options(std::move(the_options)),
        counters(metrics, program, options),
        objects(options.fields, options.keep, options.limits),
        events(objects),
        reflector(options.reflector, random_seed()),
        synced_changed(executor) {}

  Task<> run();
  Task<> run_check();
  Task<> run_list(Reflector::Action action);
  std::optional<Error> take_page(const std::string& page, const Reflector::Action& action,
                                 bool& complete);
  Task<> run_watch(Reflector::Action action);
  Task<std::optional<Error>> read_watch(WatchStream& stream, const Reflector::Action& action);
  std::optional<Error> take_events(std::string_view bytes);
  void take_event(WatchEvent&& event);

  [[nodiscard]] std::uint32_t epoch() const;
  void apply(Record&& record, std::string_view text, bool live);
  void remove(const Record& record, std::string_view text);
  void quarantine(const Quarantined& bad, bool deletion);
  void finish_list();
  void deliver_deletion(Store::iterator found, const Record* last, std::string_view text);
  void deliver(Change::Type type, const Record* before, const Record* now, std::string_view text);

  void report_failure(std::string_view doing, const Error& error);
  void report_health();

  Client& client;
  InformerOptions options;
  std::vector<std::weak_ptr<const OnChange>> subscribers;
  Counters counters;
  Log log{"informer"};
  RepeatFilter repeats{kRepeatPeriod};

  ObjectDecoder objects;
  WatchDecoder events;
  Reflector reflector;
  Store store;
  std::uint32_t list = 0;  // number of lists begun
  bool synced = false;
  Event synced_changed;
  std::string last_error;
};

Task<> Informer::State::run() {
  for (;;) {
    auto action = reflector.next();
    if (action.begins_list()) {
      ++list;
      counters.count_relist(reflector.list_reason());
    }
    switch (action.kind) {
      case Reflector::Action::Kind::wait:
        co_await sleep_for(action.delay);
        break;
      case Reflector::Action::Kind::check:
        co_await run_check();
        break;
      case Reflector::Action::Kind::list:
        co_await run_list(std::move(action));
        break;
      case Reflector::Action::Kind::watch:
        co_await run_watch(std::move(action));
        break;
    }
  }
}

Task<> Informer::State::run_check() {
  const auto version =
      co_await read_version(client, options.resource, options.ns, options.field_selector,
                            deadline_after(options.list_timeout));
  if (!version) {
    reflector.on_check_error(version.error());
    report_failure("check", version.error());
    co_return;
  }
  counters.note_contact();
  const auto before = reflector.epoch();
  const auto ours = reflector.resource_version();
  reflector.on_server_version(*version);
  if (reflector.epoch() == before) co_return;
  log.warning("the API server was restored from a backup: all objects are listed again",
              {{"resource", options.resource.plural},
               {"server_version", *version},
               {"known_version", ours}});
}

Task<> Informer::State::run_list(Reflector::Action action) {
  ListOptions page_options;
  page_options.label_selector = options.label_selector;
  page_options.field_selector = options.field_selector;
  page_options.limit = action.limit;
  page_options.continue_token = action.continue_token;
  bool complete = false;
  std::optional<Error> failure;
  {
    const auto page = co_await client.list(options.resource, options.ns, std::move(page_options),
                                           deadline_after(options.list_timeout));
    failure = page ? take_page(*page, action, complete) : page.error();
  }
  if (failure) {
    reflector.on_list_error(*failure);
    report_failure("list", *failure);
  } else if (complete) {
    finish_list();
  }
}

std::optional<Error> Informer::State::take_page(const std::string& page,
                                                const Reflector::Action& action, bool& complete) {
  counters.note_contact();
  auto meta = objects.decode_list(
      page,
      [this](Record&& record, std::string_view text) { apply(std::move(record), text, false); },
      [this](Quarantined&& bad) { quarantine(bad, false); });
  if (!meta) return std::move(meta.error());
  if (meta->resource_version.empty()) {
    return Error{.code = ErrorCode::invalid_data, .message = "list: no resourceVersion"};
  }
  if (!meta->continue_token.empty() && meta->continue_token == action.continue_token) {
    return Error{.code = ErrorCode::invalid_data, .message = "list: the same page again"};
  }
  complete = reflector.on_list_page(meta->resource_version, std::move(meta->continue_token));
  return std::nullopt;
}

Task<> Informer::State::run_watch(Reflector::Action action) {
  WatchOptions watch_options;
  watch_options.label_selector = options.label_selector;
  watch_options.field_selector = options.field_selector;
  watch_options.resource_version = action.resource_version;
  watch_options.timeout = action.timeout;
  watch_options.send_initial_events = action.send_initial_events;
  auto stream = co_await client.watch(options.resource, options.ns, std::move(watch_options),
                                      deadline_after(kOpenTimeout));
  std::optional<Error> failure;
  if (stream) {
    reflector.on_watch_open(Clock::now());
    if (!reflector.in_streaming_list()) report_health();
    failure = co_await read_watch(*stream, action);
  } else {
    failure = std::move(stream.error());
  }
  reflector.on_watch_end(failure ? &*failure : nullptr, Clock::now());
  if (failure) report_failure("watch", *failure);
}

// Reads until the watch ends; nullopt when the server ended it in order.
Task<std::optional<Error>> Informer::State::read_watch(WatchStream& stream,
                                                       const Reflector::Action& action) {
  events.reset();
  const auto end_of_list = deadline_after(options.list_timeout);
  for (;;) {
    std::chrono::milliseconds quiet = action.timeout + options.watch_grace;
    if (reflector.has_seen_bookmark()) quiet = std::min(quiet, options.bookmark_silence);
    // Events and bookmarks may continue without the end of the list.
    const bool lists = reflector.in_streaming_list();
    stream.set_deadline(lists ? end_of_list : deadline_after(quiet));
    const auto bytes = co_await stream.read_some();
    if (!bytes && bytes.error().code == ErrorCode::timeout) {
      co_return Error{.code = ErrorCode::timeout,
                      .message = lists ? "the streaming list did not end within " +
                                             format_duration(options.list_timeout)
                                       : "nothing received for " + format_duration(quiet)};
    }
    if (!bytes) co_return bytes.error();
    if (bytes->empty()) {
      if (events.at_line_end()) co_return std::nullopt;
      co_return Error{.code = ErrorCode::unavailable, .message = "ended in the middle of an event"};
    }
    if (auto failure = take_events(*bytes)) co_return failure;
  }
}

std::optional<Error> Informer::State::take_events(std::string_view bytes) {
  std::optional<Error> failure;
  events.feed(bytes, [&](WatchEvent&& event) {
    if (failure) return;  // data after an error is not part of the watch
    counters.count_event(event.type);
    if (event.type == WatchEvent::Type::error) {
      failure = std::move(event.error);
    } else {
      take_event(std::move(event));
    }
  });
  counters.note_contact();
  return failure;
}

void Informer::State::take_event(WatchEvent&& event) {
  const bool live = !reflector.in_streaming_list();
  switch (event.type) {
    case WatchEvent::Type::added:
    case WatchEvent::Type::modified:
      apply(std::move(event.record), event.text, live);
      break;
    case WatchEvent::Type::deleted:
      remove(event.record, event.text);
      break;
    case WatchEvent::Type::quarantined:
      quarantine(event.quarantined, event.quarantined_deletion);
      break;
    case WatchEvent::Type::bookmark:
      reflector.on_bookmark(event.resource_version);
      return;
    case WatchEvent::Type::initial_events_end:
      reflector.on_initial_events_end(event.resource_version);
      if (!live) finish_list();
      return;
    case WatchEvent::Type::dropped:
    case WatchEvent::Type::error:
      break;
  }
  reflector.on_event(event.resource_version);
}

std::uint32_t Informer::State::epoch() const {
  return static_cast<std::uint32_t>(reflector.epoch());
}

void Informer::State::apply(Record&& record, std::string_view text, bool live) {
  const auto found = store.find(Name{record.ns(), record.name()});
  if (found != store.end()) {
    found->list = list;
    auto& known = found->record;
    const auto version = record.resource_version();
    if (!live && found->epoch == epoch() && is_older_version(version, known.resource_version())) {
      reflector.on_older_object();
      log.warning("a list holds an older object: the API server was restored from a backup",
                  {{"resource", options.resource.plural},
                   {"object", record.key().to_string()},
                   {"listed_version", std::string(version)},
                   {"known_version", std::string(known.resource_version())}});
    }
    const bool comparable = std::exchange(found->epoch, epoch()) == epoch();
    if (live && comparable && is_older_version(version, known.resource_version())) return;
    if (record.uid() == known.uid()) {
      if (comparable && !version.empty() && version == known.resource_version()) return;
      const auto before = std::exchange(known, std::move(record));
      deliver(Change::Type::modified, &before, &known, text);
      return;
    }
    deliver_deletion(found, nullptr, {});
  }
  const auto [added, is_new] = store.insert(Entry{std::move(record), list, epoch()});
  deliver(Change::Type::added, nullptr, &added->record, text);
}

void Informer::State::remove(const Record& record, std::string_view text) {
  const auto found = store.find(Name{record.ns(), record.name()});
  if (found == store.end()) return;
  if (found->epoch == epoch() &&
      is_older_version(record.resource_version(), found->record.resource_version())) {
    return;
  }
  deliver_deletion(found, &record, text);
}

void Informer::State::quarantine(const Quarantined& bad, bool deletion) {
  counters.count_quarantined();
  const auto name = bad.key.to_string();
  if (const auto verdict = repeats.check("quarantine " + name, Clock::now()); verdict.pass) {
    log.warning("object cannot be used", {{"resource", options.resource.plural},
                                          {"object", name},
                                          {"reason", bad.reason},
                                          {"bytes", bad.bytes},
                                          {"suppressed", verdict.suppressed}});
  }
  const auto found = store.find(Name{bad.key.ns, bad.key.name});
  if (found == store.end()) return;
  found->list = list;
  if (deletion) deliver_deletion(found, nullptr, {});
}

// Completes a list: objects that it did not contain are deleted.
void Informer::State::finish_list() {
  std::vector<Store::node_type> gone;
  for (auto at = store.begin(); at != store.end();) {
    const auto here = at++;
    if (here->list != list) gone.push_back(store.extract(here));
  }
  for (const auto& node : gone) {
    const auto& record = node.value().record;
    deliver(Change::Type::deleted, &record, &record, {});
  }
  gone.clear();
  counters.set_objects(store.size());
  report_health();
  synced = true;
  synced_changed.notify_all();
  objects.release_scratch();
  malloc_trim(0);  // lists leave free heap of several pages
}

// Delivers a deletion; `last` is the state in the DELETED event; null when there is none.
void Informer::State::deliver_deletion(Store::iterator found, const Record* last,
                                       std::string_view text) {
  const auto node = store.extract(found);
  const auto& before = node.value().record;
  deliver(Change::Type::deleted, &before, last != nullptr ? last : &before, text);
}

void Informer::State::deliver(Change::Type type, const Record* before, const Record* now,
                              std::string_view text) {
  counters.set_objects(store.size());
  const Change change{.type = type, .before = before, .now = now, .text = text};
  // Subscribers that come within a callback have already seen the store with this change.
  const auto count = subscribers.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto subscriber = subscribers[i].lock()) (*subscriber)(change);
  }
  std::erase_if(subscribers, [](const auto& subscriber) { return subscriber.expired(); });
}

void Informer::State::report_failure(std::string_view doing, const Error& error) {
  counters.count_error(error.code);
  last_error =
      error.message.starts_with(doing) ? error.message : std::string(doing) + ": " + error.message;
  const auto key = std::string(doing) + " " + std::string(gitops::to_string(error.code));
  if (const auto verdict = repeats.check(key, Clock::now()); verdict.pass) {
    log.warning("list or watch failed, trying again", {{"resource", options.resource.plural},
                                                       {"reason", last_error},
                                                       {"code", gitops::to_string(error.code)},
                                                       {"suppressed", verdict.suppressed}});
  }
}

void Informer::State::report_health() {
  if (last_error.empty()) return;
  last_error.clear();
  if (repeats.check("works", Clock::now()).pass) {
    log.info("list and watch work again", {{"resource", options.resource.plural}});
  }
}

Informer::Informer(const Executor& executor, Client& client, InformerOptions options,
                   Metrics& metrics, const std::string& program)
    : state_(std::make_unique<State>(executor, client, std::move(options), metrics, program)) {}
Informer::~Informer() {
  state_->counters.note_end();
}

Informer::Subscription Informer::subscribe(OnChange on_change) {
  const auto subscriber = std::make_shared<const OnChange>(std::move(on_change));
  state_->subscribers.emplace_back(subscriber);
  for (const auto& entry : state_->store) {
    (*subscriber)(
        {.type = Change::Type::added, .before = nullptr, .now = &entry.record, .text = {}});
  }
  return subscriber;
}

void Informer::start(TaskGroup& group) {
  group.spawn("informer " + state_->options.resource.plural,
              [state = state_.get()] { return state->run(); });
}

bool Informer::has_synced() const {
  return state_->synced;
}

Task<bool> Informer::wait_synced(Deadline deadline) {
  while (!state_->synced) {
    if (!co_await state_->synced_changed.wait(deadline)) break;
  }
  co_return state_->synced;
}

const std::string& Informer::last_error() const {
  return state_->last_error;
}

std::uint64_t Informer::epoch() const {
  return state_->reflector.epoch();
}

const Record* Informer::find(const ObjectKey& key) const {
  const auto found = state_->store.find(Name{key.ns, key.name});
  return found == state_->store.end() ? nullptr : &found->record;
}

std::size_t Informer::size() const {
  return state_->store.size();
}

void Informer::for_each(const std::function<void(const Record&)>& visit) const {
  for (const auto& entry : state_->store) visit(entry.record);
}

Task<Result<std::string>> newest_version(Client& client, const Resource& resource, std::string ns,
                                         Deadline deadline) {
  co_return co_await read_version(client, resource, std::move(ns), {}, deadline);
}

}  // namespace gitops::k8s
