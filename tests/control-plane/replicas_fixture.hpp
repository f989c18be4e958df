#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "daemons/control_plane_process.hpp"
#include "support/postgres_server.hpp"
#include "support/wait.hpp"

// Several real control planes on one PostgreSQL, and streams of them.
namespace gitops::test {

inline std::string live_application(const std::string& name,
                                    const std::string& health = "Healthy") {
  return nlohmann::json{
      {"apiVersion", "argoproj.io/v1alpha1"},
      {"kind", "Application"},
      {"metadata",
       {{"name", name},
        {"namespace", "argocd"},
        {"uid", "uid-" + name},
        {"labels", {{"app.meta.commit-author", "Ann"}, {"app.meta.commit-message", "Fix it"}}}}},
      {"spec",
       {{"project", "shop"},
        {"destination", {{"server", "https://10.0.0.1"}}},
        {"syncPolicy", {{"automated", nlohmann::json::object()}}},
        {"source", {{"repoURL", "https://git.example/a.git"}, {"path", "apps"}}}}},
      {"status",
       {{"sync", {{"status", "Synced"}, {"revision", std::string(40, 'c')}}},
        {"health", {{"status", health}}}}}}
      .dump();
}

struct StreamEvent {
  std::string id;
  std::string type;
  nlohmann::json data;
};

// A stream that the curl program reads into a file.
class LiveStream {
 public:
  LiveStream(const ControlPlaneProcess& program, const std::string& header,
             const std::string& topics = "index", const std::string& last_id = {})
      : process_({.argv = command(program, header, topics, last_id), .log_file = folder_ / "log"}) {
    require_until([this] { return !read_file(folder_ / "log").empty(); }, std::chrono::seconds(30),
                  "the first bytes of a stream");
  }

  // Returns the complete events so far.
  [[nodiscard]] std::vector<StreamEvent> events() const {
    std::vector<StreamEvent> found;
    const auto text = read_file(folder_ / "log");
    std::size_t at = 0;
    for (auto end = text.find("\n\n"); end != std::string::npos; end = text.find("\n\n", at)) {
      StreamEvent event;
      for (std::size_t line = at; line < end;) {
        const auto next = std::min(text.find('\n', line), end);
        const auto field = text.substr(line, next - line);
        if (field.starts_with("id: ")) event.id = field.substr(4);
        if (field.starts_with("event: ")) event.type = field.substr(7);
        if (field.starts_with("data: ")) event.data = nlohmann::json::parse(field.substr(6));
        line = next + 1;
      }
      if (!event.type.empty()) found.push_back(std::move(event));
      at = end + 2;
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> types() const {
    std::vector<std::string> found;
    for (const auto& event : events()) found.push_back(event.type);
    return found;
  }
  [[nodiscard]] std::size_t count(const std::string& type) const {
    const auto all = types();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), type));
  }
  // Returns the newest row of each name.
  [[nodiscard]] std::map<std::string, nlohmann::json> rows() const {
    std::map<std::string, nlohmann::json> found;
    for (const auto& event : events()) {
      if (event.type != "patch") continue;
      for (const auto& row : event.data["rows"]) found[row["name"]] = row;
    }
    return found;
  }
  void wait_for_row(const std::string& name) const {
    require_until([&] { return rows().contains(name); }, std::chrono::seconds(30),
                  "the row of " + name);
  }
  void wait_for(const std::string& type, std::size_t count_of = 1) const {
    require_until([&] { return count(type) >= count_of; }, std::chrono::seconds(30),
                  "an event " + type);
  }
  // Returns what came after the first `at` bytes.
  [[nodiscard]] std::string text_from(std::size_t at) const {
    std::ifstream file(folder_ / "log", std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> command(const ControlPlaneProcess& program,
                                          const std::string& header, const std::string& topics,
                                          const std::string& last_id) {
    std::vector<std::string> argv{"curl", "-sN", "-H", header,
                                  program.url() + "/console/api/v1/stream?topics=" + topics};
    if (!last_id.empty()) argv.insert(argv.begin() + 2, {"-H", "Last-Event-ID: " + last_id});
    return argv;
  }
  TempDir folder_;
  Process process_;
};

// Control planes on one database, with the account "acme", its administrator ann and the runtime "prod".
class Replicas {
 public:
  explicit Replicas(std::size_t count,
                    const std::string& database = PostgresServer::shared().new_database(),
                    const std::vector<std::string>& flags = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      programs_.push_back(std::make_unique<ControlPlaneProcess>(database, flags));
    }
    auto& first = at(0);
    first.add_account("acme");
    first.add_user("ann", "acme", {"--admin"});
    key = first.create_key("ann", "acme");
    for (auto& program : programs_) program->start();
    token = first.register_runtime(key, "prod");
  }
  ControlPlaneProcess& at(std::size_t i) { return *programs_.at(i); }
  [[nodiscard]] std::string header() const { return "Authorization: " + key; }
  int post(std::size_t i, const std::string& name, const std::string& health = "Healthy") {
    return at(i).post_application(token, live_application(name, health), ++sequence).status;
  }

  std::string key;
  std::string token;
  std::int64_t sequence = 0;

 private:
  std::vector<std::unique_ptr<ControlPlaneProcess>> programs_;
};

}  // namespace gitops::test
