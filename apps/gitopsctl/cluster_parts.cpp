#include "gitopsctl/cluster_parts.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/task_group.hpp"
#include "gitopsctl/manifest.hpp"

namespace gitops::ctl {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kConcurrent = 8;  // requests
constexpr std::size_t kMaxPods = 50;
constexpr std::size_t kMaxSecrets = 100;
constexpr std::size_t kMaxObjects = 2'000;  // of one kind
constexpr std::uint64_t kLogLines = 1'000;
constexpr std::size_t kMaxLogRead = std::size_t{16} * 1024 * 1024;
constexpr std::size_t kMaxLog = std::size_t{2} * 1024 * 1024;
constexpr std::int64_t kAdminPort = 8087;
constexpr const char* kOfTheChart =
    "app.kubernetes.io/part-of in (gitops-runtime,gitops-control-plane)";

const k8s::Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
const k8s::Resource kEvents{"", "v1", "events", "Event", true};

std::string name_of(const Json& object) {
  return string_at(object, {"metadata", "name"});
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// Whether the labels of a pod match those that a workload selects.
bool is_selected(const Json& pod, const Json& workload) {
  const Json& wanted = value_at(workload, {"spec", "selector", "matchLabels"});
  const Json& labels = value_at(pod, {"metadata", "labels"});
  if (!wanted.is_object() || wanted.empty() || !labels.is_object()) return false;
  return std::ranges::all_of(wanted.items(), [&](const auto& item) {
    return labels.value(item.key(), Json()) == item.value();
  });
}

std::int64_t admin_port(const Json& container) {
  for (const Json& port : value_at(container, {"ports"})) {
    if (string_at(port, {"name"}) == "metrics") {
      return integer_at(port, {"containerPort"}).value_or(kAdminPort);
    }
  }
  return 0;
}

bool has_restarted(const Json& pod, const std::string& container) {
  for (const Json& status : value_at(pod, {"status", "containerStatuses"})) {
    if (string_at(status, {"name"}) != container) continue;
    return integer_at(status, {"restartCount"}).value_or(0) > 0;
  }
  return false;
}

class ClusterReader {
 public:
  ClusterReader(const Executor& executor, k8s::Client& client, std::string ns, ClusterLimits limits,
                Bundle& bundle, Redactor& redactor)
      : executor_(executor),
        client_(client),
        ns_(std::move(ns)),
        limits_(limits),
        bundle_(bundle),
        redactor_(redactor) {}

  Task<> read() {
    co_await read_objects();
    choose_pods();
    co_await read_secrets();
    add_objects();
    for (const Json& pod : pods_) add_questions(pod);
    co_await ask_all();
    for (Part& part : parts_) bundle_.add(std::move(part));
  }

 private:
  using Objects = Result<std::vector<Json>>;
  struct Kind {
    const k8s::Resource& resource;
    std::string labels;
    Objects objects = std::vector<Json>();
  };

  [[nodiscard]] Deadline until() const {
    return std::min(limits_.deadline, deadline_after(limits_.time));
  }

  Task<Objects> list(const k8s::Resource& resource, const std::string& labels) {
    std::vector<Json> objects;
    const auto read = co_await client_.list_pages(
        resource, ns_, {.label_selector = labels}, until(),
        [&](std::string_view page) -> Result<void> {
          const Json json = parse_json_object(page);
          const Json& items = value_at(json, {"items"});
          if (!items.is_array()) return fail(ErrorCode::protocol, "the answer is no list");
          objects.insert(objects.end(), items.begin(), items.end());
          if (objects.size() <= kMaxObjects) return {};
          return fail(ErrorCode::too_large, "there are more than 2,000");
        });
    if (!read) co_return std::unexpected(read.error());
    co_return objects;
  }

  Task<> read_objects() {
    TaskGroup lists(executor_);
    for (auto& one : kinds_) {
      lists.spawn("list " + one.first, [this, &kind = one.second]() -> Task<> {
        kind.objects = co_await list(kind.resource, kind.labels);
      });
    }
    co_await lists.join();
  }

  // Pods do not carry the labels of the chart, but those that its workloads select.
  void choose_pods() {
    auto& pods = kinds_.at("pods").objects;
    const auto& deployments = kinds_.at("deployments").objects;
    const auto& sets = kinds_.at("statefulsets").objects;
    if (!pods) return;
    if (!deployments && !sets) {
      pods = fail(ErrorCode::unavailable,
                  "which pods belong to the runtime is not known, since its workloads are not");
      return;
    }
    std::erase_if(*pods, [&](const Json& pod) {
      const auto selects = [&](const Json& workload) { return is_selected(pod, workload); };
      return !(deployments && std::ranges::any_of(*deployments, selects)) &&
             !(sets && std::ranges::any_of(*sets, selects));
    });
    pods_.assign(pods->begin(),
                 pods->begin() + static_cast<std::ptrdiff_t>(std::min(pods->size(), kMaxPods)));
    if (pods->size() > kMaxPods) {
      bundle_.leave_out("pages and logs of " + std::to_string(pods->size() - kMaxPods) + " pods",
                        "there are more than 50");
    }
    choose_events(*pods);
  }

  // Events about pods, and about objects whose name their names begin with.
  void choose_events(const std::vector<Json>& pods) {
    auto& events = kinds_.at("events").objects;
    if (!events) return;
    std::erase_if(*events, [&](const Json& event) {
      const auto name = string_at(event, {"involvedObject", "name"});
      return name.empty() || std::ranges::none_of(pods, [&](const Json& pod) {
               const auto own = name_of(pod);
               return own == name || own.starts_with(name + "-");
             });
    });
  }

  Task<> read_secrets() {
    std::set<std::string> names;
    for (const Json& pod : pods_) {
      for (auto& name : secrets_of_pod(pod)) names.insert(std::move(name));
    }
    auto& secrets = kinds_.at("secrets").objects;
    std::vector<Json> found;
    if (secrets) {
      for (const Json& secret : *secrets) {
        names.erase(name_of(secret));
        found.push_back(secret);
      }
    }
    std::size_t asked = 0;
    for (const auto& name : names) {
      if (name.empty() || ++asked > kMaxSecrets) continue;
      questions_.emplace_back([this, name, &found]() -> Task<> {
        const auto text =
            co_await client_.get(k8s::resources::kSecrets, {.ns = ns_, .name = name}, until());
        if (text) {
          found.push_back(parse_json_object(*text));
        } else {
          bundle_.add({.path = {},
                       .about = "keys of Secret " + name,
                       .text = std::unexpected(text.error())});
        }
      });
    }
    co_await ask_all();
    for (const Json& secret : found) hide_values(secret, redactor_);
    if (!secrets) {
      bundle_.add({.path = {},
                   .about = "keys of the Secrets of the chart",
                   .text = std::unexpected(secrets.error())});
    }
    secrets = std::move(found);
  }

  void add_objects() {
    for (auto& [name, kind] : kinds_) {
      Part part{.path = "cluster/" + name + ".json",
                .about = name == "secrets" ? "names and keys of Secrets" : name + " of the runtime",
                .text = {}};
      if (kind.objects) {
        Json list = Json::array();
        for (Json& object : *kind.objects) {
          list.push_back(name == "secrets" ? printed_secret(object)
                                           : printed_object(std::move(object)));
        }
        part.text = text_of(list);
      } else {
        part.text = std::unexpected(kind.objects.error());
      }
      bundle_.add(std::move(part));
    }
  }

  // Queues a question whose answer becomes a part.
  void ask(std::string path, std::string about, std::function<Task<Result<std::string>>()> read) {
    parts_.push_back({.path = std::move(path), .about = std::move(about), .text = {}});
    questions_.emplace_back([&part = parts_.back(), read = std::move(read)]() -> Task<> {
      part.text = co_await read();
    });
  }

  void add_questions(const Json& pod) {
    const auto name = name_of(pod);
    const auto folder = "pods/" + path_component(name) + "/";
    std::int64_t port = 0;
    for (const Json& container : value_at(pod, {"spec", "containers"})) {
      if (port == 0) port = admin_port(container);
      const auto own = string_at(container, {"name"});
      const auto file = folder + "log-" + path_component(own);
      ask(file + ".txt", "last log lines of " + own,
          [this, name, own] { return read_log(name, own, false); });
      if (!has_restarted(pod, own)) continue;
      ask(file + "-previous.txt", "log of " + own + " before its restart",
          [this, name, own] { return read_log(name, own, true); });
    }
    if (port == 0) return;
    const auto page = [&](const char* file, const char* target, const char* about) {
      ask(folder + file, about + name, [this, name, port, target] {
        return client_.raw(
            {.target = "/api/v1/namespaces/" + percent_encode(ns_) + "/pods/" +
                       percent_encode(name) + ":" + std::to_string(port) + "/proxy" + target,
             .accept = "*/*"},
            until());
      });
    };
    page("statusz.json", "/statusz?format=json", "state of ");
    page("metrics.txt", "/metrics", "metrics of ");
  }

  Task<Result<std::string>> read_log(std::string pod, std::string container, bool is_previous) {
    const auto deadline = until();
    auto log = co_await client_.log(
        {.ns = ns_, .name = std::move(pod)},
        {.container = std::move(container), .previous = is_previous, .tail_lines = kLogLines},
        deadline);
    if (!log) co_return std::unexpected(log.error());
    log->set_deadline(deadline);
    std::string text;
    for (std::size_t read = 0; read < kMaxLogRead;) {
      auto some = co_await log->read_some();
      if (!some && text.empty()) co_return std::unexpected(some.error());
      if (!some) {
        // The part that was read may be all that there will ever be.
        text += (text.ends_with('\n') ? "" : "\n") + std::string("[the end could not be read: ") +
                some.error().message + "]\n";
        break;
      }
      if (some->empty()) break;
      read += some->size();
      text += *some;
      if (text.size() > 2 * kMaxLog) text = last_lines(text, kMaxLog);
    }
    co_return text;
  }

  Task<> ask_all() {
    TaskGroup workers(executor_);
    for (std::size_t i = 0; i < kConcurrent; ++i) {
      workers.spawn("reader", [this]() -> Task<> {
        while (!questions_.empty()) {
          const auto question = std::move(questions_.front());
          questions_.pop_front();
          co_await question();
        }
      });
    }
    co_await workers.join();
  }

  Executor executor_;
  k8s::Client& client_;
  std::string ns_;
  ClusterLimits limits_;
  Bundle& bundle_;
  Redactor& redactor_;
  std::map<std::string, Kind> kinds_ = {
      {"configmaps", {k8s::resources::kConfigMaps, kOfTheChart}},
      {"deployments", {k8s::resources::kDeployments, kOfTheChart}},
      {"events", {kEvents, {}}},
      {"leases", {k8s::resources::kLeases, {}}},
      {"pods", {k8s::resources::kPods, {}}},
      {"secrets", {k8s::resources::kSecrets, kOfTheChart}},
      {"statefulsets", {kStatefulSets, kOfTheChart}}};
  std::vector<Json> pods_;
  std::deque<Part> parts_;
  std::deque<std::function<Task<>()>> questions_;
};

}  // namespace

Task<> read_cluster(k8s::Client& client, const std::string& ns, ClusterLimits limits,
                    Bundle& bundle, Redactor& redactor) {
  ClusterReader reader(co_await asio::this_coro::executor, client, ns, limits, bundle, redactor);
  co_await reader.read();
}

}  // namespace gitops::ctl
