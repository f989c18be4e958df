#include "peers/peer_frpc.hpp"

namespace gitops::test {
namespace {

using Options = PeerFrpc::Options;
using Tls = PeerFrpc::Tls;

const char* text(bool value) {
  return value ? "true" : "false";
}

std::string ini(const Options& options) {
  std::string out =
      "[common]\nserver_addr = localhost\nserver_port = " + std::to_string(options.server_port) +
      "\nprotocol = " + options.protocol + "\ntoken = " + options.token +
      "\npool_count = " + std::to_string(options.pool) +
      "\nlogin_fail_exit = false\ntls_enable = " + text(options.tls != Tls::none) +
      "\ndisable_custom_tls_first_byte = " + text(options.tls != Tls::marked) + "\n";
  if (options.tls != Tls::none) {
    out += "tls_trusted_ca_file = " + options.ca_file.string() + "\n";
  }
  if (!options.tcp_mux) out += "tcp_mux = false\n";
  if (options.signs_all) {
    out += "authenticate_heartbeats = true\nauthenticate_new_work_conns = true\n";
  }
  if (options.heartbeat > 0) {
    out += "heartbeat_interval = " + std::to_string(options.heartbeat) +
           "\nheartbeat_timeout = " + std::to_string(options.heartbeat_timeout) + "\n";
  }
  out += "[" + options.proxy + "]\ntype = http\nlocal_ip = 127.0.0.1\nlocal_port = " +
         std::to_string(options.local_port) +
         "\nsubdomain = " + (options.subdomain.empty() ? options.proxy : options.subdomain) + "\n";
  if (!options.authorization.empty()) {
    out += "meta_Authorization = " + options.authorization + "\n";
  }
  if (options.use_encryption) out += "use_encryption = true\n";
  if (options.use_compression) out += "use_compression = true\n";
  return out;
}

std::string toml(const Options& options) {
  const bool tls = options.tls != Tls::none;
  std::string out =
      "serverAddr = \"localhost\"\nserverPort = " + std::to_string(options.server_port) +
      "\nloginFailExit = false\nauth.method = \"token\"\nauth.token = \"" + options.token +
      "\"\ntransport.protocol = \"" + options.protocol +
      "\"\ntransport.poolCount = " + std::to_string(options.pool) +
      "\ntransport.tls.enable = " + text(tls) +
      "\ntransport.tls.disableCustomTLSFirstByte = " + text(options.tls != Tls::marked) + "\n";
  if (tls) {
    out += "transport.tls.trustedCaFile = \"" + options.ca_file.string() +
           "\"\ntransport.tls.serverName = \"localhost\"\n";
  }
  if (!options.tcp_mux) out += "transport.tcpMux = false\n";
  if (options.wire_v2) out += "transport.wireProtocol = \"v2\"\n";
  if (options.signs_all) {
    out += "auth.additionalScopes = [\"HeartBeats\", \"NewWorkConns\"]\n";
  }
  if (options.heartbeat > 0) {
    out += "transport.heartbeatInterval = " + std::to_string(options.heartbeat) +
           "\ntransport.heartbeatTimeout = " + std::to_string(options.heartbeat_timeout) + "\n";
  }
  out += "[[proxies]]\nname = \"" + options.proxy +
         "\"\ntype = \"http\"\nlocalIP = \"127.0.0.1\"\nlocalPort = " +
         std::to_string(options.local_port) + "\nsubdomain = \"" +
         (options.subdomain.empty() ? options.proxy : options.subdomain) + "\"\n";
  if (!options.authorization.empty()) {
    out += "metadatas.Authorization = \"" + options.authorization + "\"\n";
  }
  if (options.use_encryption) out += "transport.useEncryption = true\n";
  if (options.use_compression) out += "transport.useCompression = true\n";
  return out;
}

}  // namespace

std::optional<std::string> PeerFrpc::missing() {
  for (const char* name : {"frpc", "frpc-0.44"}) {
    if (!find_program(peer_program(name).string())) {
      return std::string(name) + " is not built: run ./dev peers";
    }
  }
  return std::nullopt;
}

PeerFrpc::PeerFrpc(const Options& options) {
  const bool old = options.version == Version::v0_44;
  const auto config = programs_.folder() / (old ? "frpc.ini" : "frpc.toml");
  write_file(config, old ? ini(options) : toml(options));
  programs_.start("frpc",
                  {peer_program(old ? "frpc-0.44" : "frpc").string(), "-c", config.string()});
}

}  // namespace gitops::test
