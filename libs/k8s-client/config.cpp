#include "k8s-client/config.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include "common/core/encoding.hpp"
#include "common/core/json_value.hpp"
#include "common/core/small_file.hpp"
#include "common/core/text.hpp"
#include "common/http/message.hpp"

namespace gitops::k8s {
namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;
// Limits far above any real file, for the work that YAML aliases can multiply.
constexpr std::size_t kMaxEntries = 10'000;
constexpr std::size_t kMaxKeys = 200;
constexpr std::size_t kMaxExecItems = 1'000;
constexpr std::size_t kMaxSettings = 10'000;
constexpr unsigned kMaxDepth = 50;
constexpr std::size_t kMaxMistakes = 20;
constexpr const char* kExecExtension = "client.authentication.k8s.io/exec";

using Environment = std::map<std::string, std::string>;

std::string lookup(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

using Mistakes = std::vector<std::string>;

// Records a mistake; `line` counts from 0; -1: no line.
void note_mistake(Mistakes& mistakes, const std::string& file, int line, std::string_view what) {
  if (mistakes.size() == kMaxMistakes) return;
  mistakes.push_back(file + (line >= 0 ? ":" + std::to_string(line + 1) : std::string()) + ": " +
                     std::string(what));
}

// Returns a name in a form that is safe for a message.
std::string shown(std::string_view name) {
  return "'" + std::string(name.substr(0, 100)) + "'";
}

// Converts a scalar. The type of a plain YAML scalar follows from its form; a quoted scalar is a
// string.
nlohmann::json scalar_to_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (bool flag = false; YAML::convert<bool>::decode(node, flag)) return flag;
  if (std::int64_t number = 0; YAML::convert<std::int64_t>::decode(node, number)) return number;
  double number = 0;
  const bool finite = YAML::convert<double>::decode(node, number) && std::isfinite(number);
  return finite ? nlohmann::json(number) : nlohmann::json(text);
}

// Converts a node. Fails for too many nodes, which aliases can make of a few, and for too deep
// nesting.
std::optional<nlohmann::json> to_json(const YAML::Node& node, std::size_t& nodes, unsigned depth) {
  if (++nodes > kMaxSettings || depth > kMaxDepth) return std::nullopt;
  if (node.IsScalar()) return scalar_to_json(node);
  nlohmann::json out;
  if (node.IsSequence()) {
    out = nlohmann::json::array();
    for (const YAML::Node& item : node) {
      auto value = to_json(item, nodes, depth + 1);
      if (!value) return std::nullopt;
      out.push_back(std::move(*value));
    }
  } else if (node.IsMap()) {
    out = nlohmann::json::object();
    for (const auto& entry : node) {
      auto value = to_json(entry.second, nodes, depth + 1);
      if (!value) return std::nullopt;
      if (entry.first.IsScalar()) out[entry.first.Scalar()] = std::move(*value);
    }
  }
  return out;
}

// A YAML mapping of one file. Reads values by key and records every mistake with its file and line.
// All values of an absent mapping are empty.
class Mapping {
 public:
  // `line` is the position of mistakes when the mapping is absent (counted from 0; -1: none).
  Mapping(const std::string& file, const YAML::Node& node, int line, Mistakes& mistakes)
      : file_(&file), node_(node), line_(line), mistakes_(&mistakes) {
    if (node_.Mark().line >= 0) line_ = node_.Mark().line;
    if (node_.IsMap() && node_.size() <= kMaxKeys) return;
    if (node_.IsMap()) {
      mistake("has too many keys");
    } else if (!node_.IsNull()) {
      mistake("expected a mapping");
    }
    node_ = YAML::Node();
  }

  [[nodiscard]] bool has(const char* key) const {
    const YAML::Node value = get(key);
    return value.IsDefined() && !value.IsNull();
  }

  [[nodiscard]] std::string text(const char* key) const {
    if (!has(key)) return {};
    const YAML::Node value = get(key);
    if (!value.IsScalar()) {
      mistake(key, "must be a text");
      return {};
    }
    if (value.Scalar().contains('\0')) {
      mistake(key, "holds a NUL character");
      return {};
    }
    return value.Scalar();
  }

  // Returns the value as JSON text.
  [[nodiscard]] std::string json(const char* key) const {
    std::size_t nodes = 0;
    const auto value = to_json(get(key), nodes, 0);
    if (!value) {
      mistake(key, "is too large or nested too deeply");
      return {};
    }
    return to_text(*value);
  }

  [[nodiscard]] bool flag(const char* key) const {
    if (!has(key)) return false;
    bool value = false;
    if (!YAML::convert<bool>::decode(get(key), value)) mistake(key, "must be true or false");
    return value;
  }

  // Returns a decoded base64 value.
  [[nodiscard]] std::string data(const char* key) const {
    auto decoded = base64_decode(text(key));
    if (!decoded) {
      mistake(key, "is not base64");
      return {};
    }
    return std::move(*decoded);
  }

  // Returns a file name; relative ones are resolved against the folder of this file.
  [[nodiscard]] std::string path(const char* key) const { return resolve(text(key)); }
  [[nodiscard]] std::string resolve(const std::string& name) const {
    if (name.empty() || name.starts_with('/')) return name;
    return (std::filesystem::path(*file_).parent_path() / name).lexically_normal().string();
  }

  [[nodiscard]] Mapping map(const char* key) const {
    return {*file_, has(key) ? get(key) : YAML::Node(), line_, *mistakes_};
  }

  // Returns the elements of a sequence, at most `limit`.
  [[nodiscard]] std::vector<YAML::Node> items(const char* key, std::size_t limit) const {
    if (!has(key)) return {};
    const YAML::Node value = get(key);
    if (!value.IsSequence()) {
      mistake(key, "must be a list");
      return {};
    }
    if (value.size() > limit) {
      mistake(key, "has more than " + std::to_string(limit) + " elements");
      return {};
    }
    return {value.begin(), value.end()};
  }
  [[nodiscard]] std::vector<Mapping> maps(const char* key, std::size_t limit) const {
    std::vector<Mapping> result;
    for (const YAML::Node& item : items(key, limit)) {
      result.emplace_back(*file_, item, line_, *mistakes_);
    }
    return result;
  }

  void mistake(const char* key, std::string_view what) const {
    const YAML::Node value = get(key);
    const int line = value.IsDefined() ? value.Mark().line : -1;
    note(line >= 0 ? line : line_, std::string(key) + " " + std::string(what));
  }
  void mistake(std::string_view what) const { note(line_, what); }

 private:
  [[nodiscard]] YAML::Node get(const char* key) const {
    const YAML::Node& node = node_;
    return node.IsMap() ? node[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  void note(int line, std::string_view what) const { note_mistake(*mistakes_, *file_, line, what); }

  const std::string* file_;
  YAML::Node node_;
  int line_;
  Mistakes* mistakes_;
};

// The merged kubeconfig: its named entries, as mappings of their files.
struct Merged {
  std::string current_context;
  std::map<std::string, Mapping> clusters;
  std::map<std::string, Mapping> users;
  std::map<std::string, Mapping> contexts;
};

void merge_entries(const Mapping& file, const char* list, std::map<std::string, Mapping>& into) {
  std::map<std::string, Mapping> found;
  for (const Mapping& entry : file.maps(list, kMaxEntries)) {
    const std::string name = entry.text("name");
    if (name.empty()) {
      entry.mistake(std::string(list) + " entry without a name");
    } else if (!found.emplace(name, entry).second) {
      entry.mistake(std::string(list) + " has two entries named " + shown(name));
    }
  }
  into.merge(found);  // keeps the entries of earlier files
}

void merge_file(const KubeconfigText& source, Merged& into, Mistakes& mistakes) {
  const auto refuse = [&](int line, std::string_view what) {
    note_mistake(mistakes, source.path, line, what);
  };
  if (source.text.size() > kMaxFileBytes) return refuse(-1, "larger than 1 MiB");
  YAML::Node root;
  try {
    root = YAML::Load(source.text);
  } catch (const YAML::Exception& error) {
    return refuse(error.mark.line, "not readable as YAML: " + error.msg);
  }
  const Mapping file(source.path, root, -1, mistakes);
  if (const std::string kind = file.text("kind"); !kind.empty() && kind != "Config") {
    return file.mistake("kind", "is not Config: not a kubeconfig");
  }
  if (const std::string version = file.text("apiVersion"); !version.empty() && version != "v1") {
    return file.mistake("apiVersion", "is not v1");
  }
  if (into.current_context.empty()) into.current_context = file.text("current-context");
  merge_entries(file, "clusters", into.clusters);
  merge_entries(file, "users", into.users);
  merge_entries(file, "contexts", into.contexts);
}

http::Url read_url(const Mapping& mapping, const char* key) {
  auto url = http::parse_url(mapping.text(key));
  if (!url || (url->scheme != "https" && url->scheme != "http")) {
    // The URL is not shown, because it may contain a password.
    mapping.mistake(key, "is not an https:// or http:// URL");
    return {};
  }
  return std::move(*url);
}

void read_cluster(const Mapping& cluster, ClusterConfig& config) {
  if (!cluster.has("server")) {
    cluster.mistake("server is missing");
  } else {
    config.server = read_url(cluster, "server");
    if (!config.server.userinfo.empty()) {
      cluster.mistake("server", "holds a user name: put credentials into users");
    }
  }
  config.tls.ca_file = cluster.path("certificate-authority");
  config.tls.ca_pem = cluster.data("certificate-authority-data");
  if (!config.tls.ca_file.empty() && !config.tls.ca_pem.empty()) {
    cluster.mistake("certificate-authority", "and certificate-authority-data are both set");
  }
  config.tls.insecure_skip_verify = cluster.flag("insecure-skip-tls-verify");
  if (config.tls.insecure_skip_verify &&
      !(config.tls.ca_file.empty() && config.tls.ca_pem.empty())) {
    cluster.mistake("insecure-skip-tls-verify", "and a certificate authority are both set");
  }
  config.tls.server_name = cluster.text("tls-server-name");
  if (const std::string proxy = cluster.text("proxy-url"); !proxy.empty()) {
    if (auto url = http::parse_proxy_url(proxy)) {
      config.proxy = std::move(*url);
    } else {
      // The URL is not shown, because it may contain a password.
      cluster.mistake("proxy-url", "is not an http://, https://, socks5:// or socks5h:// URL");
    }
  }
}

ExecPlugin read_exec(const Mapping& exec) {
  ExecPlugin plugin;
  plugin.api_version = exec.text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    exec.mistake("apiVersion",
                 "must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
  }
  plugin.command = exec.text("command");
  if (plugin.command.empty()) exec.mistake("command is missing");
  if (plugin.command.contains('/')) plugin.command = exec.resolve(plugin.command);
  for (const YAML::Node& argument : exec.items("args", kMaxExecItems)) {
    if (!argument.IsScalar() || argument.Scalar().contains('\0')) {
      exec.mistake("args", "must be a list of texts");
      break;
    }
    plugin.arguments.push_back(argument.Scalar());
  }
  for (const Mapping& variable : exec.maps("env", kMaxExecItems)) {
    const std::string name = variable.text("name");
    if (name.empty() || name.contains('=')) {
      variable.mistake("env entry without a usable name");
      break;
    }
    plugin.environment[name] = variable.text("value");
  }
  plugin.install_hint = exec.text("installHint");
  plugin.provide_cluster_info = exec.flag("provideClusterInfo");
  const std::string mode = exec.text("interactiveMode");
  if (mode == "Always") {
    exec.mistake("interactiveMode",
                 "is Always: the program wants to ask a person at a terminal, "
                 "which it is not given here");
  } else if (!mode.empty() && mode != "Never" && mode != "IfAvailable") {
    exec.mistake("interactiveMode", "must be Never, IfAvailable or Always");
  }
  return plugin;
}

void read_client_certificate(const Mapping& user, net::TlsOptions& tls) {
  tls.certificate_file = user.path("client-certificate");
  tls.certificate_pem = user.data("client-certificate-data");
  tls.key_file = user.path("client-key");
  tls.key_pem = Secret(user.data("client-key-data"));
  if (!tls.certificate_file.empty() && !tls.certificate_pem.empty()) {
    user.mistake("client-certificate", "and client-certificate-data are both set");
  }
  if (!tls.key_file.empty() && !tls.key_pem.empty()) {
    user.mistake("client-key", "and client-key-data are both set");
  }
  const bool certificate = !tls.certificate_file.empty() || !tls.certificate_pem.empty();
  const bool key = !tls.key_file.empty() || !tls.key_pem.empty();
  if (certificate && !key) user.mistake("client-certificate without client-key");
  if (key && !certificate) user.mistake("client-key without client-certificate");
}

void read_user(const Mapping& user, ExecPolicy exec, ClusterConfig& config) {
  read_client_certificate(user, config.tls);
  config.token_file = user.path("tokenFile");
  // The file wins over the inline text, as in client-go.
  if (config.token_file.empty()) {
    const std::string token = user.text("token");
    if (!http::is_field_value(token)) user.mistake("token", "holds control characters");
    config.token = Secret(token);
  }
  config.username = user.text("username");
  config.password = Secret(user.text("password"));
  if (config.username.contains(':')) user.mistake("username", "holds a colon");
  if (config.username.empty() && !config.password.empty()) {
    user.mistake("password without username");
  }
  if (user.has("exec")) {
    if (exec == ExecPolicy::refuse) {
      user.mistake("exec", "names a program to run, which was not allowed");
    } else {
      config.exec = read_exec(user.map("exec"));
    }
  }
  if (user.has("auth-provider")) {
    user.mistake("auth-provider", "is no longer supported by Kubernetes: use exec or a token");
  }
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.has(key)) user.mistake(key, "(impersonation) is not supported");
  }
  const int credentials = int{!config.token.empty() || !config.token_file.empty()} +
                          int{!config.username.empty()} + int{user.has("exec")};
  if (credentials > 1) {
    user.mistake("more than one of token, username and exec is set");
  }
}

// Returns the entry that `key` of `from` names; null when it names none or an unknown one.
const Mapping* referred(const Mapping& from, const char* key,
                        const std::map<std::string, Mapping>& entries) {
  const std::string name = from.text(key);
  if (name.empty()) return nullptr;
  const auto found = entries.find(name);
  if (found != entries.end()) return &found->second;
  from.mistake(key, shown(name) + " is not defined");
  return nullptr;
}

// Returns the cluster's settings for exec plugins, as JSON.
std::string exec_settings(const Mapping& cluster) {
  for (const Mapping& extension : cluster.maps("extensions", kMaxExecItems)) {
    if (extension.text("name") == kExecExtension) return extension.json("extension");
  }
  return {};
}

ClusterConfig read_context(const Mapping& context, const Merged& merged, ExecPolicy exec) {
  ClusterConfig config;
  if (const std::string ns = context.text("namespace"); !ns.empty()) config.default_namespace = ns;
  if (!context.has("cluster")) context.mistake("context without a cluster");
  if (const Mapping* cluster = referred(context, "cluster", merged.clusters)) {
    read_cluster(cluster->map("cluster"), config);
  }
  if (const Mapping* user = referred(context, "user", merged.users)) {
    read_user(user->map("user"), exec, config);
  }
  if (config.exec && config.exec->provide_cluster_info) {
    if (const Mapping* cluster = referred(context, "cluster", merged.clusters)) {
      config.exec->cluster_settings = exec_settings(cluster->map("cluster"));
    }
  }
  return config;
}

Result<std::string> read_named_file(const std::string& path) {
  auto text = read_small_file(path);
  if (!text) return fail(path, std::move(text.error()));
  return text;
}

Result<std::vector<KubeconfigText>> read_files(const std::vector<std::string>& files) {
  std::vector<KubeconfigText> texts;
  for (const std::string& file : files) {
    auto text = read_named_file(file);
    if (text) {
      texts.push_back({file, std::move(*text)});
    } else if (text.error().code != ErrorCode::not_found || files.size() == 1) {
      return fail("kubeconfig", std::move(text.error()));
    }
  }
  return texts;
}

std::vector<std::string> split_path_list(const std::string& list) {
  std::vector<std::string> files;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    std::string file = list.substr(begin, end - begin);
    if (!file.empty() && std::ranges::find(files, file) == files.end()) {
      files.push_back(std::move(file));
    }
    begin = end + 1;
  }
  return files;
}

// Adds variables of our environment to that of the plugin, according to the policy. Variables of
// the kubeconfig win.
void add_surroundings(ExecPlugin& plugin, const Environment& environment, ExecPolicy policy) {
  if (policy == ExecPolicy::allow_inheriting) {
    plugin.environment.insert(environment.begin(), environment.end());
    return;
  }
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY",
                           "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}) {
    if (const auto found = environment.find(name); found != environment.end()) {
      plugin.environment.insert(*found);
    }
  }
}

}  // namespace

Result<ClusterConfig> in_cluster_config(const Environment& environment, const std::string& mount) {
  const std::string host = lookup(environment, "KUBERNETES_SERVICE_HOST");
  const std::string port = lookup(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return fail(ErrorCode::not_found,
                "not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                "not set");
  }
  ClusterConfig config;
  const bool ipv6 = host.contains(':') && !host.starts_with('[');
  auto url = http::parse_url("https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port);
  if (!url) {
    return fail("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT", std::move(url.error()));
  }
  config.server = std::move(*url);
  config.token_file = mount + "/token";
  config.tls.ca_file = mount + "/ca.crt";
  // Both are read again when they change; reading them here makes a failure early and clear.
  for (const std::string& file : {config.token_file, config.tls.ca_file}) {
    if (auto text = read_named_file(file); !text)
      return fail("service account", std::move(text.error()));
  }
  if (auto text = read_small_file(mount + "/namespace"); text && !trimmed(*text).empty()) {
    config.default_namespace = trimmed(*text);
  }
  return config;
}

Result<ClusterConfig> kubeconfig_from_text(const std::vector<KubeconfigText>& texts,
                                           const std::string& context, ExecPolicy exec) {
  std::string files;
  for (const KubeconfigText& text : texts) files += (files.empty() ? "" : ", ") + text.path;
  Mistakes mistakes;
  Merged merged;
  ClusterConfig config;
  try {
    for (const KubeconfigText& text : texts) merge_file(text, merged, mistakes);
    if (mistakes.empty()) {
      const std::string& name = context.empty() ? merged.current_context : context;
      if (name.empty()) {
        return fail(ErrorCode::invalid_data, "kubeconfig: no current-context in " + files +
                                                 "; set one or ask for a context by name");
      }
      const auto chosen = merged.contexts.find(name);
      if (chosen == merged.contexts.end()) {
        return fail(ErrorCode::not_found,
                    "kubeconfig: no context named " + shown(name) + " in " + files);
      }
      const auto chosen_context = chosen->second.map("context");
      config = read_context(chosen_context, merged, exec);
      // An empty name refers to nothing.
      if (mistakes.empty() && config.server.host.empty()) {
        chosen_context.mistake("context without a cluster");
      }
    }
  } catch (const YAML::Exception& error) {
    note_mistake(mistakes, files, -1, "not usable: " + error.msg);
  }
  if (mistakes.empty()) return config;
  std::string message = "kubeconfig: ";
  for (const std::string& mistake : mistakes) {
    if (&mistake != mistakes.data()) message += "; ";
    message += mistake;
  }
  return fail(ErrorCode::invalid_data, std::move(message));
}

Result<ClusterConfig> kubeconfig(const std::vector<std::string>& files, const std::string& context,
                                 ExecPolicy exec) {
  auto texts = read_files(files);
  if (!texts) return std::unexpected(std::move(texts.error()));
  if (texts->empty()) {
    return fail(ErrorCode::not_found, "kubeconfig: none of the files exists");
  }
  return kubeconfig_from_text(*texts, context, exec);
}

Result<ClusterConfig> load_cluster_config(const std::string& path, const std::string& context,
                                          const Environment& environment, ExecPolicy exec) {
  std::vector<std::string> files;
  if (!path.empty()) {
    files = {path};
  } else {
    files = split_path_list(lookup(environment, "KUBECONFIG"));
  }
  if (files.empty()) {
    if (context.empty() && environment.contains("KUBERNETES_SERVICE_HOST")) {
      return in_cluster_config(environment);
    }
    const std::string home = lookup(environment, "HOME");
    const std::string file = home + "/.kube/config";
    struct stat info{};
    if (home.empty() || ::stat(file.c_str(), &info) != 0) {
      return fail(ErrorCode::not_found,
                  "no cluster is configured: not running in a pod, --kubeconfig and KUBECONFIG are "
                  "not set, and ~/.kube/config does not exist");
    }
    files = {file};
  }
  auto config = kubeconfig(files, context, exec);
  if (config && config->exec) add_surroundings(*config->exec, environment, exec);
  return config;
}

}  // namespace gitops::k8s
