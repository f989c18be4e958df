#include "chart/needs.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace gitops::test {

namespace {

using nlohmann::json;
using namespace nlohmann::literals;

json at(const json& value, const json::json_pointer& path, const json& otherwise = json::array()) {
  return value.is_object() ? value.value(path, otherwise) : otherwise;
}

struct Pod {
  std::string name;  // of what makes it
  json labels;
  json spec;
};

class Needs {
 public:
  Needs(const std::vector<json>& objects, const Given& given) : objects_(objects), given_(given) {
    for (const auto& one : objects) {
      const std::string kind = one.at("kind");
      names_[kind].insert(one.at("/metadata/name"_json_pointer).get<std::string>());
      if (kind == "Pod") {
        pods_.push_back({name_of(one), at(one, "/metadata/labels"_json_pointer, json::object()),
                         one.at("spec")});
      } else if (one.contains("/spec/template/spec/containers"_json_pointer)) {
        pods_.push_back({name_of(one),
                         at(one, "/spec/template/metadata/labels"_json_pointer, json::object()),
                         one.at("/spec/template/spec"_json_pointer)});
        for (const auto& claim : at(one, "/spec/volumeClaimTemplates"_json_pointer)) {
          pods_.back().spec["volumes"].push_back(
              {{"name", claim.at("/metadata/name"_json_pointer)}});
        }
      }
    }
  }

  std::vector<std::string> find() {
    for (const auto& pod : pods_) check_pod(pod);
    for (const auto& one : objects_) {
      const std::string kind = one.at("kind");
      if (kind == "Service") check_service(one);
      if (kind == "Ingress") check_ingress(one);
      if (kind == "HTTPRoute") check_route(one);
      if (kind == "NetworkPolicy") check_policy(one);
      if (kind == "PodDisruptionBudget") need_pods(one, "/spec/selector/matchLabels"_json_pointer);
      if (kind == "ServiceMonitor") check_monitor(one);
      if (kind == "HorizontalPodAutoscaler") check_scaler(one);
      if (kind == "StatefulSet") {
        need_object(one, "Service", one.at("/spec/serviceName"_json_pointer));
      }
      if (kind.ends_with("RoleBinding")) check_binding(one);
    }
    return std::move(found_);
  }

 private:
  static std::string name_of(const json& one) {
    return one.at("kind").get<std::string>() + " " +
           one.at("/metadata/name"_json_pointer).get<std::string>();
  }
  void lack(const std::string& who, const std::string& what) {
    found_.push_back(who + ": " + what);
  }

  [[nodiscard]] bool has_object(const std::string& kind, const std::string& name) const {
    const auto found = names_.find(kind);
    return found != names_.end() && found->second.contains(name);
  }
  void need_object(const json& who, const std::string& kind, const std::string& name) {
    if (!has_object(kind, name)) lack(name_of(who), "there is no " + kind + " " + name);
  }

  // The keys of a Secret or ConfigMap of the release; null: it has none of that name.
  [[nodiscard]] json data_of(const std::string& kind, const std::string& name) const {
    for (const auto& one : objects_) {
      if (one.at("kind") != kind || one.at("/metadata/name"_json_pointer) != name) continue;
      json data = json::object();
      for (const auto* member : {"data", "stringData", "binaryData"}) {
        if (one.contains(member)) data.update(one.at(member));
      }
      return data;
    }
    return nullptr;
  }
  void need_key(const Pod& pod, const std::string& kind, const json& name, const json& key) {
    if (!name.is_string() || name == "" || !key.is_string() || key == "") {
      return lack(pod.name, "a reference to a " + kind +
                                " names no object or no key: " + name.dump() + ", " + key.dump());
    }
    const auto data = data_of(kind, name);
    const auto path = name.get<std::string>() + "/" + key.get<std::string>();
    if (data.is_object() && data.contains(key.get<std::string>())) return;
    if (kind == "Secret" && given_.secrets.contains(path)) return;
    lack(pod.name, "there is no key " + path + " of a " + kind);
  }
  // source: of a volume, or of a part of a projected one.
  void check_source(const Pod& pod, const std::string& kind, const json& source, const char* name) {
    if (!source.contains(name) || !source.at(name).is_string() || source.at(name) == "") {
      return lack(pod.name, "a volume names no " + kind + ": " + source.dump());
    }
    if (source.value("optional", false)) return;
    for (const auto& item : at(source, "/items"_json_pointer)) {
      need_key(pod, kind, source.at(name), item.at("key"));
    }
    if (source.contains("items") || data_of(kind, source.at(name)).is_object()) return;
    const auto whole = source.at(name).get<std::string>() + "/";
    if (std::ranges::none_of(given_.secrets,
                             [&](const auto& path) { return path.starts_with(whole); })) {
      lack(pod.name, "there is no " + kind + " " + whole);
    }
  }
  void check_volume(const Pod& pod, const json& volume) {
    if (volume.contains("secret")) check_source(pod, "Secret", volume.at("secret"), "secretName");
    if (volume.contains("configMap")) {
      check_source(pod, "ConfigMap", volume.at("configMap"), "name");
    }
    std::set<std::string> paths;
    for (const auto& part : at(volume, "/projected/sources"_json_pointer)) {
      for (const auto& [key, kind] :
           {std::pair("secret", "Secret"), std::pair("configMap", "ConfigMap")}) {
        if (!part.contains(key)) continue;
        check_source(pod, kind, part.at(key), "name");
        for (const auto& item : at(part.at(key), "/items"_json_pointer)) {
          if (!paths.insert(item.at("path").get<std::string>()).second) {
            lack(pod.name, "two sources of a volume write " + item.at("path").dump());
          }
        }
      }
    }
  }
  void check_pod(const Pod& pod) {
    const std::string account = pod.spec.value("serviceAccountName", "default");
    if (account != "default" && !has_object("ServiceAccount", account) &&
        !given_.accounts.contains(account)) {
      lack(pod.name, "there is no ServiceAccount " + account);
    }
    std::set<std::string> volumes;
    for (const auto& volume : at(pod.spec, "/volumes"_json_pointer)) {
      if (!volumes.insert(volume.at("name").get<std::string>()).second) {
        lack(pod.name, "two volumes are called " + volume.at("name").dump());
      }
      check_volume(pod, volume);
    }
    for (const auto& container : containers(pod)) check_container(pod, container, volumes);
  }
  static json containers(const Pod& pod) {
    auto all = at(pod.spec, "/containers"_json_pointer);
    for (const auto& one : at(pod.spec, "/initContainers"_json_pointer)) all.push_back(one);
    return all;
  }
  void check_container(const Pod& pod, const json& container,
                       const std::set<std::string>& volumes) {
    const std::string image = container.value("image", "");
    if (!given_.images.contains(image)) lack(pod.name, "there is no image " + image);
    for (const auto& mount : at(container, "/volumeMounts"_json_pointer)) {
      if (!volumes.contains(mount.at("name").get<std::string>())) {
        lack(pod.name, "there is no volume " + mount.at("name").dump());
      }
    }
    std::set<std::string> variables;
    for (const auto& variable : at(container, "/env"_json_pointer)) {
      if (!variables.insert(variable.at("name").get<std::string>()).second) {
        lack(pod.name, "the variable " + variable.at("name").dump() + " stands there twice");
      }
      for (const auto& [key, kind] :
           {std::pair("secretKeyRef", "Secret"), std::pair("configMapKeyRef", "ConfigMap")}) {
        const auto ref = at(variable, json::json_pointer("/valueFrom/" + std::string(key)));
        if (!ref.is_object() || ref.value("optional", false)) continue;
        need_key(pod, kind, ref.value("name", json()), ref.value("key", json()));
      }
    }
    for (const auto* probe : {"startupProbe", "readinessProbe", "livenessProbe"}) {
      const auto port =
          at(container, json::json_pointer("/" + std::string(probe) + "/httpGet/port"));
      if (port.is_string() && !has_port(container, port)) {
        lack(pod.name,
             "the " + std::string(probe) + " names no port of its container: " + port.dump());
      }
    }
  }

  static bool has_port(const json& container, const json& port) {
    return std::ranges::any_of(at(container, "/ports"_json_pointer), [&](const json& one) {
      return one.value("name", json()) == port || one.at("containerPort") == port;
    });
  }
  static bool has_port(const Pod& pod, const json& port) {
    return std::ranges::any_of(containers(pod),
                               [&](const json& one) { return has_port(one, port); });
  }
  static bool includes(const json& labels, const json& selector) {
    for (const auto& [name, value] : selector.items()) {
      if (labels.value(name, json()) != value) return false;
    }
    return true;
  }
  // The pods that controllers make with these labels; StatefulSets add the pod's name.
  [[nodiscard]] std::vector<const Pod*> pods_with(json selector) const {
    if (selector.is_object()) selector.erase("statefulset.kubernetes.io/pod-name");
    std::vector<const Pod*> all;
    for (const auto& pod : pods_) {
      if (!pod.name.starts_with("Pod ") && includes(pod.labels, selector)) all.push_back(&pod);
    }
    return all;
  }
  std::vector<const Pod*> need_pods(const json& who, const json::json_pointer& selector) {
    auto pods = pods_with(at(who, selector, json::object()));
    if (pods.empty()) lack(name_of(who), "no pod has the labels that it selects");
    return pods;
  }
  void check_service(const json& service) {
    const auto pods = need_pods(service, "/spec/selector"_json_pointer);
    for (const auto& port : at(service, "/spec/ports"_json_pointer)) {
      const auto target = port.value("targetPort", port.at("port"));
      if (std::ranges::none_of(pods, [&](const Pod* pod) { return has_port(*pod, target); })) {
        lack(name_of(service), "no pod behind it has the port " + target.dump());
      }
    }
  }
  void need_service_port(const json& who, const std::string& service, const json& port) {
    for (const auto& one : objects_) {
      if (one.at("kind") != "Service" || one.at("/metadata/name"_json_pointer) != service) continue;
      for (const auto& have : at(one, "/spec/ports"_json_pointer)) {
        if (have.at("port") == port) return;
      }
    }
    lack(name_of(who), "there is no Service " + service + " with port " + port.dump());
  }
  void check_ingress(const json& ingress) {
    for (const auto& rule : at(ingress, "/spec/rules"_json_pointer)) {
      for (const auto& path : at(rule, "/http/paths"_json_pointer)) {
        need_service_port(ingress, path.at("/backend/service/name"_json_pointer),
                          path.at("/backend/service/port/number"_json_pointer));
      }
    }
  }
  void check_route(const json& route) {
    for (const auto& rule : at(route, "/spec/rules"_json_pointer)) {
      for (const auto& backend : at(rule, "/backendRefs"_json_pointer)) {
        need_service_port(route, backend.at("name"), backend.at("port"));
      }
    }
  }
  void check_policy(const json& policy) {
    // Those of Argo Events are for pods that its controllers make.
    const auto selector = at(policy, "/spec/podSelector/matchLabels"_json_pointer, json::object());
    if (selector.contains("controller")) return;
    const auto pods = need_pods(policy, "/spec/podSelector/matchLabels"_json_pointer);
    for (const auto& rule : at(policy, "/spec/ingress"_json_pointer)) {
      for (const auto& port : at(rule, "/ports"_json_pointer)) {
        const auto& name = port.at("port");
        if (std::ranges::none_of(pods, [&](const Pod* pod) { return has_port(*pod, name); })) {
          lack(name_of(policy), "no pod of it has the port " + name.dump());
        }
      }
    }
  }
  void check_monitor(const json& monitor) {
    const auto selector = at(monitor, "/spec/selector/matchLabels"_json_pointer, json::object());
    for (const auto& endpoint : at(monitor, "/spec/endpoints"_json_pointer)) {
      int found = 0;
      for (const auto& one : objects_) {
        if (one.at("kind") != "Service") continue;
        if (!includes(at(one, "/metadata/labels"_json_pointer, json::object()), selector)) continue;
        for (const auto& port : at(one, "/spec/ports"_json_pointer)) {
          found += port.value("name", json()) == endpoint.at("port") ? 1 : 0;
        }
      }
      if (found != 1) {
        lack(name_of(monitor), std::to_string(found) + " Services have the port " +
                                   endpoint.at("port").dump() + ", not one");
      }
    }
  }
  void check_scaler(const json& scaler) {
    const auto& target = scaler.at("/spec/scaleTargetRef"_json_pointer);
    need_object(scaler, target.at("kind"), target.at("name"));
  }
  void check_binding(const json& binding) {
    const auto& role = binding.at("roleRef");
    need_object(binding, role.at("kind"), role.at("name"));
    for (const auto& subject : binding.at("subjects")) {
      const std::string name = subject.at("name");
      if (!given_.accounts.contains(name)) need_object(binding, "ServiceAccount", name);
    }
  }

  const std::vector<json>& objects_;
  const Given& given_;
  std::map<std::string, std::set<std::string>> names_;  // by kind
  std::vector<Pod> pods_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> unmet_needs(const std::vector<json>& objects, const Given& given) {
  return Needs(objects, given).find();
}

}  // namespace gitops::test
