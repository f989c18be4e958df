#include "daemons/control_plane_process.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "daemons/daemon_program.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

// The number behind the last `key`: a second start logs into the same file.
std::uint16_t port_behind(const std::string& text, std::string_view key) {
  const auto at = text.rfind(key);
  if (at == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::atoi(text.c_str() + at + key.size()));
}

// The word behind the last `label`, up to the end of its line.
std::string behind(const std::string& text, std::string_view label) {
  const auto at = text.rfind(label);
  if (at == std::string::npos) throw std::runtime_error("unexpected output: " + text);
  const auto begin = at + label.size();
  return text.substr(begin, text.find_first_of("\" \n", begin) - begin);
}

std::string program() {
  return daemon_program("control-plane");
}

}  // namespace

ControlPlaneProcess::ControlPlaneProcess(std::string database_url, std::vector<std::string> flags)
    : database_url_(std::move(database_url)), flags_(std::move(flags)) {}

void ControlPlaneProcess::use_tls(CertificateAuthority& authority) {
  const auto certificate =
      authority.issue({.common_name = "localhost", .organization = {}, .alt_names = {"localhost"}});
  flags_.push_back("--tls-certificate-file=" + certificate.cert_file.string());
  flags_.push_back("--tls-key-file=" + certificate.key_file.string());
  ca_file_ = authority.ca_file();
}

std::vector<std::string> ControlPlaneProcess::database_flags() const {
  if (is_sqlite()) return {"--database.path=" + database_path()};
  return {"--database.url=" + database_url_};
}

bool ControlPlaneProcess::is_sqlite() const {
  return database_url_.empty() || database_url_.starts_with('/');
}

std::string ControlPlaneProcess::database_path() const {
  return database_url_.starts_with('/') ? database_url_ : (folder_ / "database").string();
}

std::string ControlPlaneProcess::command(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), program());
  const auto database = database_flags();
  arguments.insert(arguments.end(), database.begin(), database.end());
  return run_or_throw(arguments);
}

std::string ControlPlaneProcess::add_account(const std::string& name) const {
  return behind(command({"account", "add", "--name=" + name}), " with the id ");
}

std::string ControlPlaneProcess::add_user(const std::string& name, const std::string& account,
                                          const std::vector<std::string>& flags) const {
  std::vector<std::string> arguments{"user", "add", "--name=" + name, "--account=" + account};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return behind(command(std::move(arguments)), " with the id ");
}

std::string ControlPlaneProcess::create_key(const std::string& user,
                                            const std::string& account) const {
  return command({"key", "create", "--user=" + user, "--name=test", "--account=" + account});
}

void ControlPlaneProcess::launch() {
  std::vector<std::string> argv{program(), "--listen-address=127.0.0.1",
                                "--port=" + std::to_string(wanted_port_),
                                "--admin-address=127.0.0.1", "--admin-port=0"};
  for (const auto& part : {database_flags(), flags_}) {
    argv.insert(argv.end(), part.begin(), part.end());
  }
  earlier_log_ = std::filesystem::exists(log_file()) ? log().size() : 0;
  process_.emplace(ProcessOptions{.argv = std::move(argv), .log_file = log_file()});
}

void ControlPlaneProcess::wait_until_serving() {
  const auto is_serving = [this] {
    return log().substr(earlier_log_).contains(R"("message":"serving")");
  };
  require_until([&] { return is_serving() || !process_->running(); }, std::chrono::seconds(30),
                "the control plane to serve");
  if (!is_serving()) throw std::runtime_error("the control plane ended:\n" + log());
  port_ = port_behind(log(), R"("message":"serving","port":)");
  admin_port_ = port_behind(log(), R"("admin_port":)");
}

HttpReply ControlPlaneProcess::admin(const std::string& path) const {
  return http_call({.url = "http://127.0.0.1:" + std::to_string(admin_port_) + path});
}

HttpReply ControlPlaneProcess::graphql(const std::string& token, const std::string& query,
                                       const std::string& variables) const {
  return http_call(
      {.method = "POST",
       .url = url() + "/2.0/api/graphql",
       .headers = {"Authorization: " + token, "Content-Type: application/json"},
       .body = R"({"query":)" + json_quote(query) + R"(,"variables":)" + variables + "}",
       .ca_file = ca_file_});
}

std::string ControlPlaneProcess::register_runtime(const std::string& token,
                                                  const std::string& name) const {
  const auto reply =
      graphql(token,
              "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!){createRuntime("
              "installationArgs: $installationArgs){newAccessToken}}",
              R"({"installationArgs":{"runtimeName":)" + json_quote(name) +
                  R"(,"runtimeNamespace":"gitops","cluster":"https://kubernetes.default.svc",)"
                  R"("installationType":"HELM","runtimeVersion":"0.1.0","componentNames":[]}})");
  if (!reply.ok() || reply.body.contains("\"errors\"")) {
    throw std::runtime_error("no runtime was registered: " + reply.body);
  }
  return behind(reply.body, "\"newAccessToken\":\"");
}

HttpReply ControlPlaneProcess::post_application(const std::string& token,
                                                const std::string& application,
                                                std::int64_t sequence) const {
  return post_application_to(url(), token, application, sequence, ca_file_);
}

HttpReply post_application_to(const std::string& url, const std::string& token,
                              const std::string& application, std::int64_t sequence,
                              const std::filesystem::path& ca_file) {
  return http_call({.method = "POST",
                    .url = url + "/2.0/api/events",
                    .headers = {"Authorization: " + token, "Content-Type: application/json",
                                "X-Event-Id: test/" + std::to_string(sequence),
                                "X-Event-Sequence: " + std::to_string(sequence)},
                    .body = R"({"data":{"object":")" + base64_encode(application) +
                            R"(","source":{"desiredManifest":"","actualManifest":)" +
                            json_quote(application) +
                            R"(,"gitManifest":"","revision":"","syncStatus":"Synced",)"
                            R"("healthStatus":"Healthy","historyId":0}}})",
                    .ca_file = ca_file});
}

}  // namespace gitops::test
