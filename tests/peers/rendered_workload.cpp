#include "peers/rendered_workload.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "common/core/encoding.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kServiceAccountMount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr auto kTimeLimit = std::chrono::seconds(60);

/// The member as an array; an empty one when it is absent.
const Json& list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string decoded(const std::string& base64) {
  const auto bytes = gitops::base64_decode(base64);
  if (!bytes) throw std::runtime_error("not base64: " + base64);
  return *bytes;
}

bool is_ready(const Json& pod) {
  if (pod.at("metadata").contains("deletionTimestamp")) return false;
  for (const auto& condition : list(pod.at("status"), "conditions")) {
    if (condition.at("type") == "Ready") return condition.at("status") == "True";
  }
  return false;
}

bool belongs_to(const Json& owner, const Json& object) {
  return object.value("/metadata/ownerReferences/0/uid"_json_pointer, "") ==
         owner.value("/metadata/uid"_json_pointer, "none");
}

bool is_observed(const Json& object) {
  return object.value("/status/observedGeneration"_json_pointer, 0) ==
         object.at("/metadata/generation"_json_pointer);
}

// Writes the files of a volume so that all of them change at once: each is a link through "..data",
// which names the folder with the files of now.
void write_files(const fs::path& folder, const std::map<std::string, std::string>& files) {
  fs::create_directories(folder);
  int version = 0;
  while (fs::exists(folder / ("..version-" + std::to_string(version)))) ++version;
  const auto current = folder / ("..version-" + std::to_string(version));
  fs::create_directory(current);
  for (const auto& [name, content] : files) write_file(current / name, content);
  fs::create_directory_symlink(current.filename(), folder / "..data_tmp");
  fs::rename(folder / "..data_tmp", folder / "..data");
  for (const auto& entry : fs::directory_iterator(current)) {
    const auto link = folder / entry.path().filename();
    if (!fs::is_symlink(link)) fs::create_symlink("..data" / entry.path().filename(), link);
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink() && !entry.exists()) fs::remove(entry.path());
  }
}

}  // namespace

RenderedWorkload::RenderedWorkload(const PeerCluster& cluster, const std::string& namespace_name,
                                   const std::string& stateful_set, int ordinal)
    : cluster_(cluster), namespace_(namespace_name), folder_("gitops-pod") {
  find_pod_of_set(stateful_set, ordinal);
  resolve(stateful_set);
}

RenderedWorkload::RenderedWorkload(const PeerCluster& cluster, const std::string& namespace_name,
                                   const Deployment& deployment)
    : cluster_(cluster), namespace_(namespace_name), folder_("gitops-pod") {
  find_pod_of_deployment(deployment.name);
  resolve(deployment.name);
}

void RenderedWorkload::resolve(const std::string& workload) {
  const auto& containers = pod_.at("/spec/containers"_json_pointer);
  if (containers.size() != 1 || !list(pod_.at("spec"), "initContainers").empty()) {
    throw std::runtime_error(workload + " has more than one container");
  }
  const auto& container = containers.at(0);
  mount_volumes(container);
  set_environment(container);
  write_kubeconfig();
  for (const auto* key : {"command", "args"}) {
    for (const auto& argument : list(container, key)) {
      argv_.push_back(localized(expand(argument.get<std::string>())));
    }
  }
  if (argv_.empty()) throw std::runtime_error(workload + " leaves the command to its image");
}

Environment RenderedWorkload::process_environment() const {
  Environment result;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('='));
    if (!name.ends_with("SAN_OPTIONS")) result[std::string(name)] = std::nullopt;
  }
  for (const auto& [name, value] : environment_) result[name] = value;
  return result;
}

Json RenderedWorkload::get(const std::string& path) const {
  const auto reply = cluster_.request("GET", path);
  return reply.ok() ? Json::parse(reply.body) : Json();
}

void RenderedWorkload::find_pod_of_set(const std::string& name, int ordinal) {
  const auto pod_name = name + "-" + std::to_string(ordinal);
  const auto is_current = [&] {
    const auto set = get("/apis/apps/v1/namespaces/" + namespace_ + "/statefulsets/" + name);
    pod_ = get("/api/v1/namespaces/" + namespace_ + "/pods/" + pod_name);
    if (set.is_null() || pod_.is_null() || !is_observed(set)) return false;
    return belongs_to(set, pod_) &&
           pod_.value("/metadata/labels/controller-revision-hash"_json_pointer, "") ==
               set.value("/status/updateRevision"_json_pointer, "") &&
           is_ready(pod_);
  };
  require_until(is_current, kTimeLimit, "pod " + pod_name, std::chrono::milliseconds(100));
}

void RenderedWorkload::find_pod_of_deployment(const std::string& name) {
  const auto revision = "/metadata/annotations/deployment.kubernetes.io~1revision"_json_pointer;
  // The item that belongs to the owner and satisfies the condition; null: there is none.
  const auto find = [this](const std::string& path, const Json& of, const auto& condition) {
    const auto found = get(path);
    for (const auto& item : list(found, "items")) {
      if (belongs_to(of, item) && condition(item)) return item;
    }
    return Json();
  };
  const auto is_current = [&] {
    const auto apps = "/apis/apps/v1/namespaces/" + namespace_;
    const auto deployment = get(apps + "/deployments/" + name);
    if (deployment.is_null() || !is_observed(deployment)) return false;
    const auto set = find(apps + "/replicasets", deployment, [&](const Json& item) {
      return item.value(revision, "") == deployment.value(revision, "none");
    });
    if (set.is_null()) return false;
    pod_ = find("/api/v1/namespaces/" + namespace_ + "/pods", set, is_ready);
    return !pod_.is_null();
  };
  require_until(is_current, kTimeLimit, "a pod of " + name, std::chrono::milliseconds(100));
}

// -- files --

void RenderedWorkload::mount_volumes(const Json& container) {
  const auto volumes = folder_ / "volumes";
  for (const auto& mount : list(container, "volumeMounts")) {
    mounts_[mount.at("mountPath")] = volumes / mount.at("name").get<std::string>();
  }
  for (const auto& volume : list(pod_.at("spec"), "volumes")) {
    write_volume(volume, volumes / volume.at("name").get<std::string>());
  }
  for (const auto& mount : list(container, "volumeMounts")) {
    auto& source = mounts_[mount.at("mountPath")];
    source /= mount.value("subPath", std::string());
    if (!fs::exists(source)) throw std::runtime_error("nothing to mount: " + mount.dump());
    if (mount.contains("subPath")) source = fs::canonical(source);
  }
}

void RenderedWorkload::update_volumes() {
  sources_.clear();
  for (const auto& volume : list(pod_.at("spec"), "volumes")) {
    const auto files = files_of(volume);
    if (files) write_files(folder_ / "volumes" / volume.at("name").get<std::string>(), *files);
  }
}

fs::path RenderedWorkload::claimed_folder(const std::string& claim) const {
  const auto get = [this](const std::string& path) {
    const auto reply = cluster_.request("GET", "/api/v1/" + path);
    if (!reply.ok()) throw std::runtime_error("FailedMount: " + path + ": " + reply.body);
    return Json::parse(reply.body);
  };
  const auto bound = get("namespaces/" + namespace_ + "/persistentvolumeclaims/" + claim);
  const auto volume = bound.at("/spec/volumeName"_json_pointer).get<std::string>();
  return get("persistentvolumes/" + volume).at("/spec/hostPath/path"_json_pointer);
}

void RenderedWorkload::write_volume(const Json& volume, const fs::path& folder) const {
  if (volume.contains("persistentVolumeClaim")) {
    fs::create_directories(folder.parent_path());
    fs::create_directory_symlink(
        claimed_folder(volume.at("/persistentVolumeClaim/claimName"_json_pointer)), folder);
  } else if (const auto files = files_of(volume)) {
    write_files(folder, *files);
  } else {
    fs::create_directories(folder);
  }
}

std::optional<RenderedWorkload::Files> RenderedWorkload::files_of(const Json& volume) const {
  if (volume.contains("persistentVolumeClaim") || volume.contains("emptyDir")) return std::nullopt;
  if (volume.contains("projected")) {
    return projected_files(list(volume.at("projected"), "sources"));
  }
  // These are written as a source of `projected` too, but for the Secret's name.
  auto source = volume;
  source.erase("name");
  if (source.contains("secret")) source["secret"]["name"] = source["secret"]["secretName"];
  return projected_files(Json::array({source}));
}

RenderedWorkload::Files RenderedWorkload::projected_files(const Json& sources) const {
  Files files;
  for (const auto& entry : sources) {
    const auto kind = entry.begin().key();
    const auto& source = entry.begin().value();
    if (kind == "configMap" || kind == "secret") {
      const auto data =
          data_of(kind == "secret" ? "secrets" : "configmaps", source.at("name"), source);
      if (!data) continue;
      for (auto& [name, text] : chosen(*data, source)) {
        files.emplace(name, kind == "secret" ? text : localized_paths(text));
      }
    } else if (kind == "downwardAPI") {
      for (const auto& item : list(source, "items")) {
        files[item.at("path")] = field(item.at("/fieldRef/fieldPath"_json_pointer));
      }
    } else if (kind == "serviceAccountToken") {
      files[source.at("path")] = token(source);
    } else {
      throw std::runtime_error("a volume of an unknown kind: " + entry.dump());
    }
  }
  return files;
}

std::string RenderedWorkload::token(const Json& source) const {
  // Bound to the pod, as the kubelet asks for it.
  std::vector<std::string> arguments = {
      "create",
      "token",
      pod_.at("/spec/serviceAccountName"_json_pointer),
      "--namespace=" + namespace_,
      "--duration=" + std::to_string(source.value("expirationSeconds", 3600)) + "s",
      "--bound-object-kind=Pod",
      "--bound-object-name=" + pod_.at("/metadata/name"_json_pointer).get<std::string>(),
      "--bound-object-uid=" + pod_.at("/metadata/uid"_json_pointer).get<std::string>()};
  if (source.contains("audience")) {
    arguments.push_back("--audience=" + source.at("audience").get<std::string>());
  }
  return cluster_.kubectl_ok(arguments);
}

std::optional<RenderedWorkload::Files> RenderedWorkload::data_of(const std::string& resource,
                                                                 const std::string& name,
                                                                 const Json& reference) const {
  const auto path = "/api/v1/namespaces/" + namespace_ + "/" + resource + "/" + name;
  if (!sources_.contains(path)) sources_[path] = cluster_.request("GET", path);
  const auto& reply = sources_.at(path);
  if (!reply.ok()) {
    if (reply.status == 404 && reference.value("optional", false)) return std::nullopt;
    throw std::runtime_error("CreateContainerConfigError: " + resource + " " + name + ": " +
                             reply.body);
  }
  const auto object = Json::parse(reply.body);
  const bool secret = resource == "secrets";
  Files data;
  for (const auto* member : {"data", "binaryData"}) {
    const auto found = object.find(member);
    if (found == object.end()) continue;
    const bool is_base64 = secret || member == std::string_view("binaryData");
    for (const auto& [key, value] : found->items()) {
      data[key] = is_base64 ? decoded(value) : value.get<std::string>();
    }
  }
  return data;
}

RenderedWorkload::Files RenderedWorkload::chosen(const Files& data, const Json& reference) {
  if (!reference.contains("items")) return data;
  Files files;
  for (const auto& item : reference.at("items")) {
    const auto found = data.find(item.at("key"));
    if (found != data.end()) {
      files[item.at("path")] = found->second;
    } else if (!reference.value("optional", false)) {
      throw std::runtime_error("CreateContainerConfigError: no key for " + item.dump());
    }
  }
  return files;
}

fs::path RenderedWorkload::local(const std::string& path_in_pod) const {
  for (const auto& [mount, source] : mounts_) {
    if (!is_below(path_in_pod, mount)) continue;
    return path_in_pod == mount ? source : source / path_in_pod.substr(mount.size() + 1);
  }
  throw std::runtime_error("the pod has no mount that holds " + path_in_pod);
}

std::string RenderedWorkload::localized(const std::string& text) const {
  const auto equals = text.find('=');
  if (text.starts_with("--") && equals != std::string::npos) {
    return text.substr(0, equals + 1) + localized(text.substr(equals + 1));
  }
  for (const auto& [mount, source] : mounts_) {
    if (is_below(text, mount)) return local(text);
  }
  return text;
}

std::string RenderedWorkload::localized_paths(std::string text) const {
  for (const auto& [mount, source] : mounts_) {
    const auto here = source.string() + "/";
    for (auto at = text.find(mount + "/"); at != std::string::npos;
         at = text.find(mount + "/", at + here.size())) {
      text.replace(at, mount.size() + 1, here);
    }
  }
  return text;
}

void RenderedWorkload::write_kubeconfig() {
  if (!mounts_.contains(kServiceAccountMount)) return;
  const auto folder = local(kServiceAccountMount);
  const auto named = [](const char* key, Json value) {
    return Json::array({{{"name", "pod"}, {key, std::move(value)}}});
  };
  const Json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"current-context", "pod"},
      {"clusters", named("cluster", {{"server", cluster_.server_url()},
                                     {"certificate-authority", (folder / "ca.crt").string()}})},
      {"users", named("user", {{"tokenFile", (folder / "token").string()}})},
      {"contexts", named("context", {{"cluster", "pod"},
                                     {"user", "pod"},
                                     {"namespace", read_file(folder / "namespace")}})}};
  kubeconfig_ = folder_ / "kubeconfig";
  write_file(kubeconfig_, config.dump(2));
  environment_["KUBECONFIG"] = kubeconfig_;
}

// -- environment --

void RenderedWorkload::set_environment(const Json& container) {
  for (const auto& source : list(container, "envFrom")) {
    const bool secret = source.contains("secretRef");
    const auto& reference = source.at(secret ? "secretRef" : "configMapRef");
    const auto data = data_of(secret ? "secrets" : "configmaps", reference.at("name"), reference);
    if (!data) continue;
    for (const auto& [key, value] : *data) {
      environment_[source.value("prefix", std::string()) + key] = value;
    }
  }
  for (const auto& entry : list(container, "env")) {
    const auto value = entry.contains("valueFrom")
                           ? value_from(entry.at("valueFrom"))
                           : std::optional(expand(entry.value("value", std::string())));
    if (value) environment_[entry.at("name")] = *value;
  }
  for (auto& [name, value] : environment_) value = localized(value);
}

std::optional<std::string> RenderedWorkload::value_from(const Json& source) const {
  if (source.contains("fieldRef")) return field(source.at("/fieldRef/fieldPath"_json_pointer));
  for (const auto& [key, resource] :
       {std::pair("configMapKeyRef", "configmaps"), std::pair("secretKeyRef", "secrets")}) {
    if (!source.contains(key)) continue;
    const auto& reference = source.at(key);
    const auto data = data_of(resource, reference.at("name"), reference);
    if (!data) return std::nullopt;
    if (const auto found = data->find(reference.at("key")); found != data->end()) {
      return found->second;
    }
    if (reference.value("optional", false)) return std::nullopt;
    throw std::runtime_error("CreateContainerConfigError: couldn't find the key of " +
                             reference.dump());
  }
  throw std::runtime_error("a value from an unknown source: " + source.dump());
}

std::string RenderedWorkload::field(const std::string& path) const {
  // metadata.labels['app'], or dots between plain names.
  const Json* found = &pod_;
  std::string_view rest = path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find_first_of(".["), rest.size());
    std::string name(rest.substr(0, end));
    if (name.empty() && rest.starts_with("['")) {
      name = rest.substr(2, rest.find("']") - 2);
      rest.remove_prefix(name.size() + 4);
    } else {
      rest.remove_prefix(end);
    }
    if (rest.starts_with('.')) rest.remove_prefix(1);
    if (!found->contains(name)) return {};
    found = &found->at(name);
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string RenderedWorkload::expand(const std::string& text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "$$") == 0) {
      out += text[at++];
      continue;
    }
    const auto end = text.compare(at, 2, "$(") == 0 ? text.find(')', at) : std::string::npos;
    const auto found = end == std::string::npos
                           ? environment_.end()
                           : environment_.find(text.substr(at + 2, end - at - 2));
    if (found == environment_.end()) {
      out += text[at];
      continue;
    }
    out += found->second;
    at = end;
  }
  return out;
}

}  // namespace gitops::test
