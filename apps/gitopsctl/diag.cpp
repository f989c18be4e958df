#include "gitopsctl/diag.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/argo/argocd_client.hpp"
#include "common/cli/loop_runner.hpp"
#include "common/cli/table.hpp"
#include "common/core/json_value.hpp"
#include "common/core/process.hpp"
#include "common/core/small_file.hpp"
#include "common/core/task_group.hpp"
#include "common/core/text.hpp"
#include "common/http/proxy_settings.hpp"
#include "gitopsctl/bundle.hpp"
#include "gitopsctl/check.hpp"
#include "gitopsctl/cluster_parts.hpp"
#include "gitopsctl/contexts.hpp"
#include "gitopsctl/documents.hpp"
#include "gitopsctl/failure.hpp"
#include "gitopsctl/noun.hpp"
#include "gitopsctl/private_file.hpp"
#include "gitopsctl/redaction.hpp"
#include "gitopsctl/server.hpp"
#include "gitopsctl/surroundings.hpp"

namespace gitops::ctl {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Settings : CheckSettings {
  std::string output;
  milliseconds request_timeout = seconds(10);
  cli::LoopOptions loop{.timeout = seconds(90)};
};

// "2026-03-04T09:15:27Z" → "20260304T091527Z"
std::string compact(WallTime time) {
  std::string text = format_rfc3339(time);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

// One run: reads everything side by side, then writes the file.
class Diagnosis {
 public:
  Diagnosis(const Settings& settings, const cli::Environment& environment,
            const cli::LoopContext& loop, cli::Console& console)
      : settings_(settings),
        environment_(environment),
        // The rest of the time is for writing.
        loop_{.executor = loop.executor,
              .metrics = loop.metrics,
              .deadline =
                  loop.deadline - std::min<milliseconds>(seconds(3), settings.loop.timeout / 4)},
        console_(console),
        resolver_(loop.metrics),
        now_(wall_now()),
        name_("gitopsctl-diag-" + compact(now_)),
        bundle_(name_) {}

  Task<int> run() {
    const std::string path = settings_.output.empty() ? name_ + ".tar.gz" : settings_.output;
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      co_return tell(usage_error(path + " exists; --output names another file").error());
    }
    // Else it would be found out when all has been read.
    const auto parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    if (::access(folder.c_str(), W_OK) != 0) {
      co_return tell(usage_error(folder + ": " + std::strerror(errno) +
                                 "; --output names a file in another folder")
                         .error());
    }
    find_control_plane();
    hide_own_secrets();
    TaskGroup readers(loop_.executor, [this](const std::string& what, const std::string& failure) {
      bundle_.add({.path = {}, .about = what, .text = fail(ErrorCode::internal, failure)});
    });
    readers.spawn("checks", [this]() -> Task<> {
      checks_ = co_await run_checks(settings_, environment_, loop_);
    });
    readers.spawn("cluster", [this] { return read_runtime(); });
    readers.spawn("control plane", [this] { return read_control_plane(); });
    readers.spawn("surroundings", [this]() -> Task<> {
      surroundings_ = co_await look_around(peers(), environment_, resolver_,
                                           settings_.request_timeout, loop_.deadline);
    });
    co_await readers.join();
    add_parts();
    const auto bytes = bundle_.archive(redactor_, now_);
    if (const auto written = create_private_file(path, bytes); !written) {
      co_return tell(written.error());
    }
    console_.out << bundle_.contents() << "\nWritten to " << cli::printable(path) << ", "
                 << byte_count(bytes.size()) << '\n';
    co_return cli::kDone;
  }

 private:
  int tell(const Error& error) {
    console_.err << "gitopsctl: " << cli::printable(error.message) << '\n';
    return error.subcode == kUsage ? cli::kWrongUsage : cli::kFailed;
  }

  // The control plane of the flags and the environment, else that of the current context.
  void find_control_plane() {
    const auto context =
        find_context({.context = {}, .direct = settings_.control_plane}, environment_);
    if (context) {
      context_ = *context;
      return;
    }
    bundle_.leave_out("the control plane", context.error().message);
  }

  void hide_own_secrets() {
    redactor_.hide(settings_.argocd.token.reveal());
    redactor_.hide(settings_.control_plane.token.reveal());
    redactor_.hide(context_.token.reveal());
    if (const auto contexts = read_contexts(contexts_path(environment_))) {
      for (const Context& context : contexts->all) redactor_.hide(context.token.reveal());
    }
    // Variables of the environment that are named like secrets, and the passwords of proxies.
    for (const auto& [name, value] : environment_) {
      if (names_secret(name)) redactor_.hide(value);
      const auto url = http::parse_proxy_url(value);
      if (!url) continue;
      const auto colon = url->userinfo.find(':');
      if (colon != std::string::npos) redactor_.hide(url->userinfo.substr(colon + 1));
    }
    auto cluster = find_cluster(settings_.kubernetes, environment_);
    if (!cluster) {
      no_cluster_ = cluster.error().message;
      return;
    }
    redactor_.hide(cluster->token.reveal());
    redactor_.hide(cluster->password.reveal());
    redactor_.hide(cluster->tls.key_pem.reveal());
    if (!cluster->token_file.empty()) {
      if (const auto token = read_small_file(cluster->token_file)) redactor_.hide(*token);
    }
    if (cluster->exec) {
      for (const auto& [name, value] : cluster->exec->environment) {
        if (!environment_.contains(name)) redactor_.hide(value);
      }
    }
    cluster_ = std::move(*cluster);
  }

  [[nodiscard]] std::vector<Peer> peers() const {
    const auto proxy = http::proxy_settings(environment_);
    std::vector<Peer> peers;
    if (cluster_) {
      Peer peer{.name = "Kubernetes",
                .url = cluster_->server,
                .path = "/version",
                .tls = cluster_->tls,
                .proxy = proxy};
      if (cluster_->proxy) {
        peer.proxy = {.http = cluster_->proxy, .https = cluster_->proxy, .proxies_loopback = true};
      }
      peers.push_back(std::move(peer));
    }
    if (!settings_.argocd.server.empty()) {
      peers.push_back({.name = "Argo CD",
                       .url = argo::parse_server(settings_.argocd.server).value(),
                       .path = settings_.argocd.root_path + "/api/version",
                       .tls = {.ca_file = settings_.argocd.ca_file,
                               .insecure_skip_verify = settings_.argocd.insecure},
                       .proxy = proxy});
    }
    if (!context_.url.empty()) {
      peers.push_back(
          {.name = "control plane",
           .url = http::parse_url(context_.url).value(),
           .path = "/api/ping",
           .tls = {.ca_file = context_.ca_file, .insecure_skip_verify = context_.insecure},
           .proxy = proxy});
    }
    return peers;
  }

  Task<> read_runtime() {
    if (!cluster_) {
      bundle_.leave_out("the cluster", no_cluster_);
      co_return;
    }
    namespace_ = cluster_->default_namespace;
    k8s::Client client(loop_.executor, resolver_, *cluster_, http::proxy_settings(environment_),
                       "gitopsctl/" + std::string(version()));
    co_await read_cluster(client, namespace_,
                          {.time = settings_.request_timeout, .deadline = loop_.deadline}, bundle_,
                          redactor_);
  }

  Task<> read_control_plane() {
    if (context_.url.empty()) co_return;
    Server server(loop_, environment_, context_, settings_.request_timeout);
    auto items = co_await read_slices(server, kRuntimes, "runtimes", Json::object(), 0);
    Part part{.path = "control-plane/runtimes.json",
              .about = "runtimes as the control plane has them",
              .text = {}};
    if (items) {
      part.text = render_document(Json(items->all), Form::json);
    } else {
      part.text = std::unexpected(items.error());
    }
    bundle_.add(std::move(part));
  }

  [[nodiscard]] Json settings_json() const {
    const auto& own = settings_;
    Json json{{"namespace", namespace_},
              {"kubeconfig", own.kubernetes.kubeconfig},
              {"kubernetes", cluster_ ? cluster_->server.to_string() : ""},
              {"kubernetesInsecure", cluster_ && cluster_->tls.insecure_skip_verify},
              {"argocd", own.argocd.server},
              {"argocdToken", own.argocd.token.empty() ? "none" : "given"},
              {"argocdCaFile", own.argocd.ca_file},
              {"argocdInsecure", own.argocd.insecure},
              {"context", context_.name},
              {"controlPlane", context_.url},
              {"controlPlaneKey", context_.token.empty() ? "none" : "given"},
              {"controlPlaneCaFile", context_.ca_file},
              {"controlPlaneInsecure", context_.insecure},
              {"timeout", format_duration(own.loop.timeout)},
              {"requestTimeout", format_duration(own.request_timeout)}};
    return json;
  }

  // Versions that the checks have seen. Those of the daemons are in cluster/deployments.json.
  [[nodiscard]] Json versions_json() const {
    Json json{{"gitopsctl", version()}};
    for (const Group& group : checks_) {
      for (const Row& row : group.rows) {
        if (row.version) json[row.name] = *row.version;
      }
    }
    return json;
  }

  void add_parts() {
    const auto text = [](const Json& json) { return render_document(json, Form::json); };
    bundle_.add({.path = "versions.json",
                 .about = "versions of this program and of the peers that answered",
                 .text = text(versions_json())});
    bundle_.add({.path = "settings.json",
                 .about = "settings of this run, without credentials",
                 .text = text(settings_json())});
    bundle_.add(
        {.path = "check.json", .about = "rows of gitopsctl check", .text = to_json(checks_)});
    bundle_.add({.path = "surroundings.json",
                 .about = "clocks, names, proxies and certificates",
                 .text = to_json(surroundings_)});
  }

  const Settings& settings_;
  const cli::Environment& environment_;
  cli::LoopContext loop_;
  cli::Console& console_;
  net::Resolver resolver_;
  WallTime now_;
  std::string name_;
  Bundle bundle_;
  Redactor redactor_;
  Context context_;
  std::optional<k8s::ClusterConfig> cluster_;
  std::string no_cluster_;
  std::string namespace_;
  Report checks_;
  Report surroundings_;
};

constexpr const char* kDescription =
    R"(The bundle has what somebody needs who looks into a runtime from elsewhere: versions, settings,
the rows of gitopsctl check, the runtime's objects in the cluster, the pages /statusz and /metrics
of its pods, their last log lines and events, and checks of clocks, names, proxies and certificates.
Secrets are taken out. It prints a list of what is inside; what could not be read is in it, too.
It reads with your kubeconfig and changes nothing. It needs neither a control plane nor a cluster.

Examples:
  gitopsctl diag -n gitops
  gitopsctl diag -n gitops --output /tmp/bundle.tar.gz
)";

}  // namespace

cli::Command diag_command() {
  const auto settings = std::make_shared<Settings>();
  return {.name = "diag",
          .summary = "Write a bundle that shows the state of a runtime, without secrets",
          .description = kDescription,
          .bind =
              [settings](ConfigReader& reader) {
                reader.group("Output");
                reader.add({.flag = "output",
                            .help = "File of the bundle; empty means gitopsctl-diag-DATE.tar.gz",
                            .letter = 'o'},
                           "FILE", settings->output, [settings](const std::string& text) {
                             settings->output = text;
                             return std::string();
                           });
                settings->add_to(reader);
                reader.add({.flag = "request-timeout", .help = "Time limit for one request"},
                           settings->request_timeout, milliseconds(100), std::chrono::hours(1));
                settings->loop.add_to(reader);
              },
          .run =
              [settings](const cli::Environment& environment, cli::Console& console) {
                return cli::run_on_loop(
                    settings->loop, console, [&](const cli::LoopContext& loop) -> Task<int> {
                      Diagnosis diagnosis(*settings, environment, loop, console);
                      co_return co_await diagnosis.run();
                    });
              }};
}

}  // namespace gitops::ctl
