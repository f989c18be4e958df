// The request-router beside nginx (with and without kept upstream connections) and HAProxy: the CPU
// that each proxy uses per request, how long requests take, and what idle connections cost. All of
// them write an access log and the same forwarding fields; each runs on one CPU, wrk and the
// upstream on another. Of webhooks ours alone checks names and limits. Ratios hold within one run
// only.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "bench/proc.hpp"
#include "support/process.hpp"
#include "support/raw_http.hpp"
#include "support/router_bed.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;

constexpr int kManyConnections = 10'000;

struct Programs {
  std::string wrk;
  std::string nginx;
  std::string haproxy;
};

struct Proxy {
  std::string name;
  std::unique_ptr<Process> process;
  int port = 0;
};

struct Sample {
  double cpu_us = 0;  // of the proxy, per request
  double p99_ms = 0;
  double rate = 0;
};

// What is asked.
struct Load {
  std::string name;
  std::string path;
  std::string script;  // of wrk
  int connections = 32;
  int rounds = 5;
  int seconds = 2;
};

std::vector<std::string> on_cpu(const char* cpu, std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"taskset", "-c", cpu});
  return argv;
}

std::string nginx_frame(const TempDir& folder, const std::string& name, const std::string& http) {
  const auto path = (folder / name).string();
  return "daemon off; master_process off; worker_processes 1;\npid " + path + ".pid; error_log " +
         path + ".error error;\nevents { worker_connections 21000; }\n" +
         "http {\nkeepalive_requests 1000000000; keepalive_timeout 3600;\n" +
         "client_body_temp_path " + path + ".a; proxy_temp_path " + path + ".b; " +
         "fastcgi_temp_path " + path + ".c; uwsgi_temp_path " + path + ".d; scgi_temp_path " +
         path + ".e;\n" + http + "\n}\n";
}

class Bench {
 public:
  Bench(Programs programs, int many) : programs_(std::move(programs)), many_(many) {
    start_upstream();
    start_router();
    start_nginx("nginx", true);
    start_nginx("nginx without kept upstream connections", false);
    start_haproxy();
    write_file(
        folder_ / "graphql.lua",
        "wrk.method = 'POST'\n"
        "wrk.body = '{\"query\":\"query Applications { applications { name status } }\","
        "\"variables\":{}}'\nwrk.headers['Content-Type'] = 'application/json'\n"
        "wrk.headers['Authorization'] = '0123456789abcdef.0123456789abcdef0123456789abcdef'\n"
        "wrk.headers['User-Agent'] = 'Mozilla/5.0 (X11; Linux x86_64)'\n"
        "wrk.headers['Accept'] = 'application/json'\n");
    // About the size of what GitHub sends for a push.
    write_file(folder_ / "webhook.lua",
               "wrk.method = 'POST'\nwrk.body = '{\"commits\":[\"' .. string.rep('x', 8000) .. "
               "'\"]}'\nwrk.headers['Content-Type'] = 'application/json'\n"
               "wrk.headers['User-Agent'] = 'GitHub-Hookshot/044aadd'\n"
               "wrk.headers['X-GitHub-Event'] = 'push'\n"
               "wrk.headers['X-GitHub-Delivery'] = '72d3162e-cc78-11e3-81ab-4c9367dc0958'\n");
  }

  void run() {
    measure_idle(1'000, 16);
    measure_idle(many_, 0);
    Load graphql{
        .name = "small GraphQL POST", .path = "/app-proxy/api/graphql", .script = "graphql.lua"};
    measure(graphql);
    graphql.connections = 1'000;
    measure(graphql);
    graphql.connections = many_;
    graphql.rounds = 3;
    graphql.seconds = 8;  // wrk needs a while to connect
    measure(graphql);
    measure(
        {.name = "webhook of 8 KB", .path = "/webhooks/argo/github/push", .script = "webhook.lua"});
    measure({.name = "answer of 64 KB", .path = "/app-proxy/large", .script = {}});
  }

 private:
  void start_upstream() {
    upstream_port_ = free_port();
    std::string large(65536, 'x');
    write_file(folder_ / "files/app-proxy/large", large);
    write_file(
        folder_ / "up.conf",
        nginx_frame(folder_, "up",
                    "access_log off; server { listen 127.0.0.1:" + std::to_string(upstream_port_) +
                        " backlog=4096; location / { default_type application/json; return "
                        "200 '{\"data\":{\"applications\":[{\"name\":\"a\",\"status\":"
                        "\"Synced\"},{\"name\":\"b\",\"status\":\"OutOfSync\"}]}}'; }\n"
                        "location /webhooks { return 200 success; }\n"
                        "location = /app-proxy/large { root " +
                        (folder_ / "files").string() + "; default_type text/x-raw; } }"));
    upstream_ = start("1", {programs_.nginx, "-c", (folder_ / "up.conf").string()}, "up.log", {});
  }

  std::unique_ptr<Process> start(const char* cpu, std::vector<std::string> argv,
                                 const std::string& log, const Environment& environment) {
    return std::make_unique<Process>(ProcessOptions{.argv = on_cpu(cpu, std::move(argv)),
                                                    .env = environment,
                                                    .working_dir = {},
                                                    .log_file = folder_ / log});
  }

  void add(const std::string& name, int port, std::unique_ptr<Process> process) {
    proxies_.push_back({name, std::move(process), port});
    require_until(
        [port] {
          try {
            return raw_call(static_cast<std::uint16_t>(port),
                            "GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n")
                       .status == 200;
          } catch (const std::runtime_error&) {
            return false;
          }
        },
        std::chrono::seconds(10), name + " to answer");
  }

  void start_router() {
    const int port = free_port();
    write_file(folder_ / "hosts", "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n");
    add("ours", port,
        start("0", {std::string(GITOPS_BIN_DIR) + "/request-router"}, "ours.log",
              {{"APP_PROXY_URL", "http://127.0.0.1:" + std::to_string(upstream_port_)},
               {"LISTEN_ADDRESS", "127.0.0.1"},
               {"LISTEN_PORT", std::to_string(port)},
               {"WEBHOOK_ALLOWED_NAMESPACES", "argo"},
               {"WEBHOOK_PORT", std::to_string(upstream_port_)},
               {"WEBHOOK_RATE", "1000000"},
               {"WEBHOOK_CONCURRENCY", "1000000"},
               {"UPSTREAM_ALLOWED_ADDRESSES", "127.0.0.1"},
               {"LD_PRELOAD", hosts_library()},
               {"NSS_WRAPPER_HOSTS", (folder_ / "hosts").string()},
               {"ADMIN_PORT", "0"}}));
  }

  void start_nginx(const std::string& name, bool keep) {
    const int port = free_port();
    const std::string file = keep ? "keep" : "plain";
    const std::string upstream = std::to_string(upstream_port_);
    std::string http = "access_log " + (folder_ / (file + ".access")).string() + ";\n";
    http += "upstream app { server 127.0.0.1:" + upstream + ";" +
            (keep ? " keepalive 1024; keepalive_requests 1000000000;" : "") + " }\n";
    http += "server { listen 127.0.0.1:" + std::to_string(port) +
            " backlog=4096; location ~ ^/(app-proxy|webhooks/argo/github)(/|$) { proxy_pass "
            "http://app; proxy_http_version 1.1; " +
            "proxy_set_header Connection " + (keep ? "''" : "close") +
            "; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; "
            "proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host; "
            "proxy_set_header X-Request-Id $request_id; } }";
    write_file(folder_ / (file + ".conf"), nginx_frame(folder_, file, http));
    add(name, port,
        start("0", {programs_.nginx, "-c", (folder_ / (file + ".conf")).string()}, file + ".log",
              {}));
  }

  void start_haproxy() {
    const int port = free_port();
    write_file(
        folder_ / "haproxy.cfg",
        "global\n nbthread 1\n maxconn " + std::to_string(many_ + 100) +
            "\ndefaults\n mode http\n option httplog\n log "
            "stdout format raw local0\n timeout connect 5s\n timeout client 60s\n timeout server "
            "60s\n http-reuse always\nfrontend in\n bind 127.0.0.1:" +
            std::to_string(port) +
            "\n unique-id-format %[uuid()]\n unique-id-header X-Request-Id\n option forwardfor\n"
            " http-request set-header X-Forwarded-Proto http\n http-request set-header "
            "X-Forwarded-Host %[req.hdr(host)]\n use_backend app if { path_beg /app-proxy "
            "/webhooks }\n"
            "backend app\n server a 127.0.0.1:" +
            std::to_string(upstream_port_) + "\n");
    add("HAProxy", port,
        start("0", {programs_.haproxy, "-db", "-f", (folder_ / "haproxy.cfg").string()},
              "haproxy.log", {}));
  }

  Sample once(const Proxy& proxy, const Load& load) {
    std::vector<std::string> argv{programs_.wrk, "-t1", "-c" + std::to_string(load.connections),
                                  "-d" + std::to_string(load.seconds) + "s", "--latency"};
    if (!load.script.empty()) {
      argv.insert(argv.end(), {"-s", (folder_ / load.script).string()});
    }
    argv.push_back("http://127.0.0.1:" + std::to_string(proxy.port) + load.path);
    const double before = bench::cpu_of(proxy.process->pid());
    const auto result = run_command(on_cpu("1", argv));
    const double used = bench::cpu_of(proxy.process->pid()) - before;
    const auto at = result.out.find(" requests in ");
    if (!result.ok() || at == std::string::npos || result.out.contains("Non-2xx")) {
      throw std::runtime_error("wrk failed on " + proxy.name + ":\n" + result.out + result.err);
    }
    auto begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(result.out[begin - 1])) != 0) {
      --begin;
    }
    const double requests = std::stod(result.out.substr(begin, at - begin));
    Sample sample{.cpu_us = used * 1e6 / requests, .rate = requests / load.seconds};
    const auto p99 = result.out.find(" 99%");
    std::size_t unit = 0;
    const auto text = result.out.substr(p99 + 4);
    sample.p99_ms = std::stod(text, &unit);
    if (text.substr(unit).starts_with("us")) sample.p99_ms /= 1000;
    if (text.substr(unit).starts_with("s")) sample.p99_ms *= 1000;
    return sample;
  }

  void measure(const Load& load) {
    std::map<std::string, std::vector<Sample>> samples;
    for (int round = 0; round < load.rounds; ++round) {
      std::fprintf(stderr, "router: %s, %d connections, round %d of %d\n", load.name.c_str(),
                   load.connections, round + 1, load.rounds);
      for (const auto& proxy : proxies_) samples[proxy.name].push_back(once(proxy, load));
    }
    const auto median = [&samples](const std::string& name, double Sample::* what) {
      std::vector<double> values;
      for (const auto& sample : samples[name]) values.push_back(sample.*what);
      std::sort(values.begin(), values.end());
      return values[values.size() / 2];
    };
    const std::string what = load.name + ", " + std::to_string(load.connections) + " connections";
    std::string note = "peer: nginx with kept upstream connections; others, of nginx's:";
    const double peer = median("nginx", &Sample::cpu_us);
    for (const auto& proxy : proxies_) {
      if (proxy.name == "ours" || proxy.name == "nginx") continue;
      char text[100];
      std::snprintf(text, sizeof(text), " %s %.2f;", proxy.name.c_str(),
                    median(proxy.name, &Sample::cpu_us) / peer);
      note += text;
    }
    char rates[100];
    std::snprintf(rates, sizeof(rates), " %.0f and %.0f requests/s", median("ours", &Sample::rate),
                  median("nginx", &Sample::rate));
    print_row("router-cpu " + what, "us of CPU per request", median("ours", &Sample::cpu_us), peer,
              0.80, note + rates);
    print_row("router-p99 " + what, "ms", median("ours", &Sample::p99_ms),
              median("nginx", &Sample::p99_ms), 1.0, "peer: nginx with kept upstream connections");
  }

  // Connections that have sent a request and wait. `goal` in MB; 0: none.
  void measure_idle(int connections, double goal) {
    std::map<std::string, double> memory;
    for (const auto& proxy : proxies_) {
      std::vector<RawSocket> idle;
      for (int i = 0; i < connections; ++i) {
        idle.emplace_back(static_cast<std::uint16_t>(proxy.port));
        idle.back().send("GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n");
        if (idle.back().read_response().status != 200) {
          throw std::runtime_error(proxy.name + " refused an idle connection");
        }
      }
      memory[proxy.name] = bench::memory_of(proxy.process->pid(), "VmRSS:");
    }
    const Json row = {
        {"name", "router-rss " + std::to_string(connections) + " idle connections"},
        {"unit", "MB"},
        {"ours", memory["ours"]},
        {"peer", memory["nginx"]},
        {"ratio", memory["ours"] / memory["nginx"]},
        {"goal", goal > 0 ? Json("<= 16 MB") : Json()},
        {"holds", goal > 0 ? Json(memory["ours"] <= goal) : Json()},
        {"note", "each has answered one request; before any other load; peer: nginx"}};
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  static void print_row(const std::string& name, const std::string& unit, double ours, double peer,
                        double goal, const std::string& note) {
    char goal_text[32];
    std::snprintf(goal_text, sizeof(goal_text), "<= %.2f", goal);
    const double ratio = ours / peer;
    const Json row = {{"name", name},
                      {"unit", unit},
                      {"ours", std::round(ours * 100) / 100},
                      {"peer", std::round(peer * 100) / 100},
                      {"ratio", ratio},
                      {"goal", goal_text},
                      {"holds", ratio <= goal},
                      {"note", note}};
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  Programs programs_;
  int many_;  // connections
  TempDir folder_{"router-bench"};
  int upstream_port_ = 0;
  std::unique_ptr<Process> upstream_;
  std::vector<Proxy> proxies_;
};

int bench_router() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // A proxy needs two descriptors for a request, and a few for itself.
  const auto possible = (static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1'000'000)) - 500) / 2;
  const int many = std::min(kManyConnections, possible / 500 * 500);
  if (many < kManyConnections) {
    std::fprintf(stderr, "router: %d connections at most, for the limit of open files is %ju\n",
                 many, static_cast<std::uintmax_t>(files.rlim_cur));
  }
  const auto wrk = find_program("wrk");
  const auto nginx = find_program("nginx");
  const auto haproxy = find_program("haproxy");
  if (!wrk || !nginx || !haproxy) {
    std::fprintf(stderr, "router: needs wrk, nginx and haproxy (apt-get install them)\n");
    return 3;
  }
  Bench({wrk->string(), nginx->string(), haproxy->string()}, many).run();
  return 0;
}

}  // namespace
}  // namespace gitops::test

int main() {
  try {
    return gitops::test::bench_router();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "router: %s\n", e.what());
    return 1;
  }
}
