#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "chart/helm.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"

namespace gitops::test {

// What the kubelet gives the one container of a Deployment: its command line, its environment, and the files of its
// ConfigMaps and Secrets, in a folder that stands for the root of the file system. A Secret's value is of 64 hexadecimal
// digits; a certificate is a valid one.
class PodFiles {
 public:
  PodFiles(const std::vector<nlohmann::json>& objects, const std::string& deployment) {
    using namespace nlohmann::literals;
    const auto& pod =
        object(objects, "Deployment", deployment).at("/spec/template/spec"_json_pointer);
    const auto& container = pod.at("/containers/0"_json_pointer);
    for (const auto& volume : pod.value("volumes", nlohmann::json::array())) {
      const auto mount = mounted_at(container, volume.at("name"));
      if (volume.contains("configMap")) {
        const std::string name = volume.at("/configMap/name"_json_pointer);
        const auto data = object(objects, "ConfigMap", name).at("data");
        for (const auto& [key, text] : data.items()) write(mount + "/" + key, text);
      } else if (volume.contains("secret")) {
        write_secret(mount, volume.at("secret"));
      }
    }
    for (const auto* part : {"command", "args"}) {
      for (const auto& word : container.value(part, nlohmann::json::array())) {
        command.push_back(placed(word.get<std::string>()));
      }
    }
    command.front() = (std::filesystem::path(GITOPS_BIN_DIR) / command.front()).string();
    for (const auto& variable : container.value("env", nlohmann::json::array())) {
      environment[variable.at("name").get<std::string>()] =
          variable.contains("value") ? expanded(placed(variable.at("value").get<std::string>()))
                                     : kSecret;
    }
  }

  std::vector<std::string> command;  // the program of this build with its arguments
  Environment environment;

 private:
  static inline const std::string kSecret = std::string(64, 'a');

  static std::string mounted_at(const nlohmann::json& container, const std::string& volume) {
    for (const auto& mount : container.value("volumeMounts", nlohmann::json::array())) {
      if (mount.at("name") == volume) return mount.at("mountPath");
    }
    return "/unmounted/" + volume;
  }
  void write_secret(const std::string& mount, const nlohmann::json& secret) {
    const auto items = secret.value("items", nlohmann::json::array());
    for (const auto& item : items) {
      const std::string key = item.at("key");
      write(mount + "/" + item.at("path").get<std::string>(),
            key.ends_with(".pem") ? read_file(authority_.ca_file()) : kSecret);
    }
    if (!items.empty()) return;
    const auto certificate = authority_.issue(
        {.common_name = "localhost", .organization = {}, .alt_names = {"localhost"}});
    write(mount + "/tls.crt", read_file(certificate.cert_file));
    write(mount + "/tls.key", read_file(certificate.key_file));
  }
  void write(const std::string& path, const std::string& text) {
    const auto file = root_ / path.substr(1);
    write_file(file, placed(text));
  }
  // Replaces "$(NAME)" by variables that stand before.
  std::string expanded(std::string text) const {
    for (const auto& [name, value] : environment) {
      const auto reference = "$(" + name + ")";
      const auto at = text.find(reference);
      if (at != std::string::npos) text.replace(at, reference.size(), value.value_or(""));
    }
    return text;
  }
  // Returns a text whose paths below /app/config are in the folder.
  std::string placed(std::string text) const {
    constexpr std::string_view kFolder = "/app/config";
    const auto own = (root_ / "app/config").string();
    for (auto at = text.find(kFolder); at != std::string::npos;
         at = text.find(kFolder, at + own.size())) {
      text.replace(at, kFolder.size(), own);
    }
    return text;
  }

  CertificateAuthority authority_;
  TempDir root_;
};

}  // namespace gitops::test
