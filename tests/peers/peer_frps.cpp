#include "peers/peer_frps.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

namespace gitops::test {
namespace {

const char* program_of(PeerFrps::Version version) {
  return version == PeerFrps::Version::v0_44 ? "frps-0.44" : "frps";
}

bool answers(int port) {
  // Any answer, or none from a server that waits for more, shows that something listens.
  const auto reply = http_call(
      {.url = "http://127.0.0.1:" + std::to_string(port), .timeout = std::chrono::seconds(2)});
  return reply.status != 0;
}

}  // namespace

std::optional<std::string> PeerFrps::missing() {
  for (const char* name : {"frps", "frps-0.44"}) {
    if (!find_program(peer_program(name).string())) {
      return std::string(name) + " is not built: run ./dev peers";
    }
  }
  if (!find_program("nginx")) return "nginx is missing (Debian: nginx-light)";
  return std::nullopt;
}

PeerFrps::PeerFrps(Version version, const Options& options)
    : certificate_(authority_.issue(
          {.common_name = "frps", .organization = {}, .alt_names = {"localhost"}})) {
  if (const auto reason = missing()) throw std::runtime_error(*reason);
  const bool old = version == Version::v0_44;
  const auto config = programs_.folder() / (old ? "frps.ini" : "frps.toml");
  write_file(config, old ? ini(options) : toml(options));
  programs_.start("frps", {peer_program(program_of(version)).string(), "-c", config.string()});
  const auto nginx = programs_.folder() / "nginx.conf";
  write_file(nginx, nginx_config());
  programs_.start("nginx", {find_program("nginx")->string(), "-c", nginx.string(), "-p",
                            programs_.folder().string()});
  await_server();
  programs_.await("nginx", [this] { return answers(wss_port_); });
}

std::string PeerFrps::ini(const Options& options) const {
  std::string text =
      "[common]\nbind_addr = 127.0.0.1\nbind_port = " + std::to_string(port_) +
      "\nproxy_bind_addr = 127.0.0.1\nvhost_http_port = " + std::to_string(vhost_port_) +
      "\nsubdomain_host = example.test\ntoken = " + options.token +
      "\ntls_cert_file = " + certificate_.cert_file.string() +
      "\ntls_key_file = " + certificate_.key_file.string() + "\n";
  if (!options.tcp_mux) text += "tcp_mux = false\n";
  if (options.signs_all) {
    text += "authenticate_heartbeats = true\nauthenticate_new_work_conns = true\n";
  }
  if (options.heartbeat_timeout > 0) {
    text += "heartbeat_timeout = " + std::to_string(options.heartbeat_timeout) + "\n";
  }
  return text;
}

std::string PeerFrps::toml(const Options& options) const {
  std::string text =
      "bindAddr = \"127.0.0.1\"\nbindPort = " + std::to_string(port_) +
      "\nproxyBindAddr = \"127.0.0.1\"\nvhostHTTPPort = " + std::to_string(vhost_port_) +
      "\nsubDomainHost = \"example.test\"\nauth.method = \"token\"\nauth.token = \"" +
      options.token + "\"\ntransport.tls.certFile = \"" + certificate_.cert_file.string() +
      "\"\ntransport.tls.keyFile = \"" + certificate_.key_file.string() + "\"\n";
  if (!options.tcp_mux) text += "transport.tcpMux = false\n";
  if (options.signs_all) text += "auth.additionalScopes = [\"HeartBeats\", \"NewWorkConns\"]\n";
  if (options.heartbeat_timeout > 0) {
    text += "transport.heartbeatTimeout = " + std::to_string(options.heartbeat_timeout) + "\n";
  }
  return text;
}

std::string PeerFrps::nginx_config() const {
  const std::string folder = programs_.folder().string();
  return "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + folder +
         "/nginx.pid;\nevents {}\nhttp {\n  access_log off;\n  client_body_temp_path " + folder +
         "/body;\n  proxy_temp_path " + folder + "/proxy;\n  fastcgi_temp_path " + folder +
         "/fastcgi;\n  uwsgi_temp_path " + folder + "/uwsgi;\n  scgi_temp_path " + folder +
         "/scgi;\n  server {\n    listen 127.0.0.1:" + std::to_string(wss_port_) +
         " ssl;\n    ssl_certificate " + certificate_.cert_file.string() +
         ";\n    ssl_certificate_key " + certificate_.key_file.string() +
         ";\n    location / {\n      proxy_pass http://127.0.0.1:" + std::to_string(port_) +
         ";\n      proxy_http_version 1.1;\n      proxy_set_header Host $http_host;\n"
         "      proxy_set_header Upgrade $http_upgrade;\n"
         "      proxy_set_header Connection Upgrade;\n    }\n  }\n}\n";
}

void PeerFrps::await_server() {
  programs_.await("frps", [this] { return answers(vhost_port_); });
}

void PeerFrps::kill() {
  programs_.at("frps").kill();
}

void PeerFrps::freeze() {
  programs_.at("frps").signal(SIGSTOP);
}

void PeerFrps::thaw() {
  programs_.at("frps").signal(SIGCONT);
}

void PeerFrps::restart() {
  programs_.restart("frps");
  await_server();
}

}  // namespace gitops::test
