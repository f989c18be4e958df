// The request-router beside nginx (with and without kept upstream connections) and HAProxy: the CPU
// that each proxy uses per request, how long requests take, and what idle connections cost. All of
// them write an access log and the same forwarding fields; each runs on one CPU, wrk and the
// upstream on another. Of webhooks ours alone checks names and limits. Ratios hold within one run
// only.
//
// CPU is measured flat out, by a wrk for each proxy. All of them are connected at once and work in
// slices of time by turns, so that the host's other load lengthens all alike and no connection is
// made meanwhile; requests are counted by the upstreams.
//
// With GITOPS_ROUTER_BEFORE=<another build of the router> only the CPU of the two builds is compared.
//
// Flat out, a faster proxy is also given more to do: how long requests take is compared at one rate
// for all (h2load) where the upstream can be kept at it, and flat out only with many connections.
// h2load's clock ticks every 10 ms for each connection; those are made one by one, so that not all
// of them send at the same tick and wait for h2load itself.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "bench/median.hpp"
#include "bench/proc.hpp"
#include "bench/websocket_load.hpp"
#include "daemons/router_harness.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"
#include "test_http/raw_http.hpp"

namespace gitops::test {
namespace {

using Json = nlohmann::json;
using bench::median;

constexpr int kManyConnections = 10'000;
// Of runs at one rate, by turns: the host's other load lengthens any of them.
constexpr int kPacedPairs = 31;
constexpr int kPace = 300;                                     // requests a second and connection
constexpr auto kConnectEvery = std::chrono::milliseconds(11);  // not a multiple of h2load's tick
constexpr auto kSlice = std::chrono::milliseconds(1'500);

struct Programs {
  std::string wrk;
  std::string h2load;
  std::string nginx;
  std::string haproxy;
};

struct Upstream {
  std::unique_ptr<Process> process;
  int port = 0;
};

struct Proxy {
  std::string name;
  std::unique_ptr<Process> process;
  int port = 0;
};

// What a proxy did in its slices of time.
struct Work {
  double cpu_us = 0;
  double requests = 0;

  double cpu_per_request() const { return cpu_us / requests; }
};

// What is asked.
struct Load {
  std::string name;
  std::string path;
  // Of wrk's, without .lua; a file without it is what h2load posts. Empty: a plain GET.
  std::string script = {};
  // How requests are timed, if at all.
  enum Timing { none, paced, flat_out } timing = none;
  int connections = 32;
  int slices = 11;  // of each proxy
  int rounds = 5;   // of runs flat out, for p99
  int seconds = 2;  // of a run
};

const Load kGraphql{
    .name = "small GraphQL POST", .path = "/app-proxy/api/graphql", .script = "graphql"};

std::vector<std::string> on_cpu(const char* cpu, std::vector<std::string> argv) {
  argv.insert(argv.begin(), {"taskset", "-c", cpu});
  return argv;
}

// Of an nginx location that lets WebSockets through.
constexpr const char* kUpgrade =
    "; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; "
    "proxy_set_header Connection upgrade; proxy_read_timeout 1h; ";

// A JSON of 20 KB, as compressible as such lists are.
std::string applications() {
  Json list = Json::array();
  for (int i = 0; list.dump().size() < 20'000; ++i) {
    list.push_back({{"name", "application-" + std::to_string(i * 7919 % 1000)},
                    {"revision", std::to_string(i * 104'729)},
                    {"status", i % 3 == 0 ? "OutOfSync" : "Synced"}});
  }
  return list.dump();
}

// nginx allocates what it needs for `connections` when it starts.
std::string nginx_frame(const TempDir& folder, const std::string& name, int connections,
                        const std::string& http) {
  const auto path = (folder / name).string();
  return "daemon off; master_process off; worker_processes 1;\npid " + path + ".pid; error_log " +
         path + ".error error;\nevents { worker_connections " + std::to_string(connections) +
         "; }\n" + "http {\nkeepalive_requests 1000000000; keepalive_timeout 3600;\n" +
         "client_body_temp_path " + path + ".a; proxy_temp_path " + path + ".b; " +
         "fastcgi_temp_path " + path + ".c; uwsgi_temp_path " + path + ".d; scgi_temp_path " +
         path + ".e;\n" + http + "\n}\n";
}

// `tls`: the clients of the proxies speak TLS.
class Bench {
 public:
  Bench(Programs programs, int many, bool tls)
      : programs_(std::move(programs)), many_(many), tls_(tls) {
    const auto router = std::string(GITOPS_BIN_DIR) + "/request-router";
    if (before_ != nullptr) {
      // Where a process has its memory decides several percent, so there are some of each.
      for (int i = 0; i < 3; ++i) {
        start_router("before", before_);
        start_router("ours", router);
      }
    } else {
      start_router("ours", router);
      start_nginx("nginx", true, many_);
      start_nginx("nginx without kept upstream connections", false, many_);
      start_haproxy();
    }
    write_body("graphql",
               R"({"query":"query Applications { applications { name status } }","variables":{}})",
               "wrk.headers['Authorization'] = "
               "'0123456789abcdef.0123456789abcdef0123456789abcdef'\n"
               "wrk.headers['User-Agent'] = 'Mozilla/5.0 (X11; Linux x86_64)'\n"
               "wrk.headers['Accept'] = 'application/json'\n");
    // About the size of what GitHub sends for a push.
    write_body("webhook", R"({"commits":[")" + std::string(8000, 'x') + R"("]})",
               "wrk.headers['User-Agent'] = 'GitHub-Hookshot/044aadd'\n"
               "wrk.headers['X-GitHub-Event'] = 'push'\n"
               "wrk.headers['X-GitHub-Delivery'] = '72d3162e-cc78-11e3-81ab-4c9367dc0958'\n");
    write_body("upload", std::string(1024 * 1024, 'x'), "wrk.method = 'PUT'\n");
    write_file(folder_ / "gzip.lua", "wrk.headers['Accept-Encoding'] = 'gzip, deflate, br'\n");
  }

  void run() {
    measure_idle(1'000, 16);
    measure_idle(many_, 0);
    Load graphql = kGraphql;
    graphql.timing = Load::paced;
    measure(graphql);
    graphql.timing = Load::flat_out;
    graphql.connections = 1'000;
    measure(graphql);
    graphql.connections = many_;
    graphql.slices = 31;
    graphql.seconds = 12;  // wrk needs a while to connect
    measure(graphql);
    measure({.name = "webhook of 8 KB",
             .path = "/webhooks/argo/github/push",
             .script = "webhook",
             .timing = Load::paced});
    measure({.name = "answer of 64 KB", .path = "/app-proxy/large", .timing = Load::paced});
    measure({.name = "upload of 1 MB", .path = "/app-proxy/upload/file", .script = "upload"});
    measure({.name = "JSON of 20 KB with gzip", .path = "/app-proxy/list.json", .script = "gzip"});
    measure_websocket();
  }

  void run_with_tls() {
    Load graphql = kGraphql;
    graphql.name += " over TLS";
    measure(graphql);
  }

 private:
  void write_body(const std::string& name, const std::string& body, const std::string& headers) {
    write_file(folder_ / name, body);
    write_file(folder_ / (name + ".lua"),
               "wrk.method = 'POST'\nwrk.body = io.open('" + (folder_ / name).string() +
                   "'):read('a')\nwrk.headers['Content-Type'] = 'application/json'\n" + headers);
  }

  // One for each proxy, so that none pays for the connections that another keeps. Its port.
  int start_upstream() {
    const int port = free_port();
    const auto name = "up" + std::to_string(upstreams_.size());
    write_file(folder_ / "files/app-proxy/large", std::string(65536, 'x'));
    write_file(folder_ / "files/app-proxy/list.json", applications());
    const auto upgrade =
        " { proxy_pass http://127.0.0.1:" + std::to_string(websockets_.port()) + kUpgrade + "}\n";
    write_file(folder_ / (name + ".conf"),
               nginx_frame(folder_, name, 2 * many_ + 100,
                           "access_log off; server { listen 127.0.0.1:" + std::to_string(port) +
                               " backlog=4096; location / { default_type application/json; return "
                               "200 '{\"data\":{\"applications\":[{\"name\":\"a\",\"status\":"
                               "\"Synced\"},{\"name\":\"b\",\"status\":\"OutOfSync\"}]}}'; }\n"
                               "location /webhooks { return 200 success; }\n"
                               "location = /status { stub_status; }\n"
                               "location = /app-proxy/large { root " +
                               (folder_ / "files").string() +
                               "; default_type text/x-raw; }\n"
                               "location = /app-proxy/list.json { root " +
                               (folder_ / "files").string() +
                               "; default_type application/json; }\n"
                               "location /app-proxy/upload { root " +
                               (folder_ / "files").string() +
                               "; dav_methods PUT; client_max_body_size 0; "
                               "client_body_buffer_size 2m; create_full_put_path on; }\n"
                               "location = /app-proxy/ws" +
                               upgrade + "}"));
    upstreams_.push_back({start("1", {programs_.nginx, "-c", (folder_ / (name + ".conf")).string()},
                                name + ".log", {}),
                          port});
    return port;
  }

  // What upstream `index` has answered since it started, this question included.
  double answered_by(std::size_t index) {
    const auto answer = raw_call(static_cast<std::uint16_t>(upstreams_[index].port),
                                 "GET /status HTTP/1.1\r\nHost: a\r\n\r\n");
    // Active connections: 1\nserver accepts handled requests\n 3 3 5\n…
    std::istringstream counts(answer.body.substr(answer.body.find("requests") + 8));
    double accepted = 0;
    double handled = 0;
    double requests = 0;
    counts >> accepted >> handled >> requests;
    return requests;
  }

  std::unique_ptr<Process> start(const char* cpu, std::vector<std::string> argv,
                                 const std::string& log, const Environment& environment) {
    return std::make_unique<Process>(ProcessOptions{.argv = on_cpu(cpu, std::move(argv)),
                                                    .env = environment,
                                                    .working_dir = {},
                                                    .log_file = folder_ / log});
  }

  [[nodiscard]] std::string url(const Proxy& proxy) const {
    return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(proxy.port);
  }

  void add(const std::string& name, int port, std::unique_ptr<Process> process) {
    proxies_.push_back({name, std::move(process), port});
    require_until(
        [&] {
          const auto asked = run_command({"curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}",
                                          url(proxies_.back()) + "/app-proxy/x"});
          return asked.out == "200";
        },
        std::chrono::seconds(10), name + " to answer");
  }

  void start_router(const std::string& name, const std::string& program) {
    const int port = free_port();
    const auto upstream = std::to_string(start_upstream());
    write_file(folder_ / "hosts", "127.0.0.1 github-eventsource-svc.argo.svc.cluster.local\n");
    Environment environment{{"APP_PROXY_URL", "http://127.0.0.1:" + upstream},
                            {"LISTEN_ADDRESS", "127.0.0.1"},
                            {"LISTEN_PORT", std::to_string(port)},
                            {"WEBHOOK_ALLOWED_NAMESPACES", "argo"},
                            {"WEBHOOK_PORT", upstream},
                            {"WEBHOOK_RATE", "1000000"},
                            {"WEBHOOK_CONCURRENCY", "1000000"},
                            {"UPSTREAM_ALLOWED_ADDRESSES", "127.0.0.1"},
                            {"UPSTREAM_IDLE_TIMEOUT", "60s"},  // nginx's
                            {"LD_PRELOAD", hosts_library()},
                            {"NSS_WRAPPER_HOSTS", (folder_ / "hosts").string()},
                            {"ADMIN_PORT", "0"}};
    if (tls_) {
      environment["TLS_CERTIFICATE_FILE"] = certificate_.cert_file;
      environment["TLS_KEY_FILE"] = certificate_.key_file;
    }
    add(name, port, start("0", {program}, name + ".log", environment));
  }

  // As ours: the access log is written 16 KiB at a time, answers pass through blocks of 32 KiB,
  // bodies are streamed, JSON is compressed at one level, and routes are prefixes.
  void start_nginx(const std::string& name, bool keep, int connections) {
    const int port = free_port();
    const std::string file = "nginx" + std::to_string(port);
    const auto upstream = std::to_string(start_upstream());
    std::string http = "access_log " + (folder_ / (file + ".access")).string() +
                       " combined buffer=16k flush=1s;\n";
    http +=
        "proxy_buffer_size 32k; proxy_buffers 2 32k; proxy_busy_buffers_size 32k;\n"
        "proxy_request_buffering off; client_max_body_size 0;\n"
        "gzip on; gzip_types application/json; gzip_min_length 1000; gzip_comp_level " +
        std::to_string(kGzipLevel) + "; gzip_proxied any;\n";
    if (tls_) {
      http += "ssl_certificate " + certificate_.cert_file.string() + "; ssl_certificate_key " +
              certificate_.key_file.string() + ";\n";
    }
    http += "upstream app { server 127.0.0.1:" + upstream + ";" +
            (keep ? " keepalive " + std::to_string(connections) + "; keepalive_requests 1000000000;"
                  : "") +
            " }\n";
    const std::string forward = std::string(" { proxy_pass http://app; proxy_http_version 1.1; ") +
                                "proxy_set_header Connection " + (keep ? "''" : "close") +
                                "; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; "
                                "proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header "
                                "X-Forwarded-Host $host; proxy_set_header X-Request-Id "
                                "$request_id; }\n";
    http += "server { listen 127.0.0.1:" + std::to_string(port) + (tls_ ? " ssl" : "") +
            " backlog=4096;\nlocation /app-proxy" + forward + "location /webhooks/argo/github" +
            forward + "location /app-proxy/ws { proxy_pass http://app" + kUpgrade + "}\n}";
    write_file(folder_ / (file + ".conf"), nginx_frame(folder_, file, 2 * connections + 100, http));
    add(name, port,
        start("0", {programs_.nginx, "-c", (folder_ / (file + ".conf")).string()}, file + ".log",
              {}));
  }

  void start_haproxy() {
    const int port = free_port();
    const auto upstream = std::to_string(start_upstream());
    write_file(
        folder_ / "haproxy.cfg",
        "global\n nbthread 1\n maxconn " + std::to_string(many_ + 100) +
            "\nring access\n format raw\n maxlen 1200\n size 1048576\ndefaults\n mode http\n "
            "option "
            "httplog\n log ring@access format raw local0\n timeout connect 5s\n timeout tunnel "
            "1h\n timeout client "
            "60s\n timeout server "
            "60s\n http-reuse always\nfrontend in\n bind 127.0.0.1:" +
            std::to_string(port) + (tls_ ? " ssl crt " + certificate_.pem_file.string() : "") +
            "\n compression algo gzip\n compression type application/json"
            "\n unique-id-format %[uuid()]\n unique-id-header X-Request-Id\n option forwardfor\n"
            " http-request set-header X-Forwarded-Proto http\n http-request set-header "
            "X-Forwarded-Host %[req.hdr(host)]\n use_backend app if { path_beg /app-proxy "
            "/webhooks }\n"
            "backend app\n server a 127.0.0.1:" +
            upstream + "\n");
    add("HAProxy", port,
        start("0", {programs_.haproxy, "-db", "-f", (folder_ / "haproxy.cfg").string()},
              "haproxy.log", {}));
  }

  std::vector<std::string> wrk(const Proxy& proxy, const Load& load, int seconds) {
    std::vector<std::string> argv{programs_.wrk, "-t1", "-c" + std::to_string(load.connections),
                                  "-d" + std::to_string(seconds) + "s", "--latency"};
    if (!load.script.empty()) {
      argv.insert(argv.end(), {"-s", (folder_ / (load.script + ".lua")).string()});
    }
    argv.push_back(url(proxy) + load.path);
    return argv;
  }

  // Waits until the proxy has nothing left to do.
  static double cpu_at_rest(const Proxy& proxy) {
    double used = -1;
    require_until(
        [&] {
          const double before = std::exchange(used, bench::cpu_of(proxy.process->pid()));
          return used - before < 0.001;
        },
        std::chrono::seconds(10), proxy.name + " to come to rest", std::chrono::milliseconds(100));
    return used;
  }

  // In the order of proxies_.
  std::vector<Work> work_by_turns(const Load& load) {
    std::vector<Process> clients;
    for (const auto& proxy : proxies_) {
      const auto log = folder_ / ("wrk" + std::to_string(clients.size()) + ".log");
      std::filesystem::remove(log);
      clients.emplace_back(
          ProcessOptions{.argv = on_cpu("1", wrk(proxy, load, 3600)), .log_file = log});
      const std::filesystem::path open_files =
          "/proc/" + std::to_string(proxy.process->pid()) + "/fd";
      require_until(
          [&] {
            return std::distance(std::filesystem::directory_iterator(open_files), {}) >=
                   load.connections;
          },
          std::chrono::seconds(60), "wrk to connect to " + proxy.name);
      clients.back().signal(SIGSTOP);
      cpu_at_rest(proxy);
    }
    std::vector<Work> work(proxies_.size());
    const int slices = before_ != nullptr ? std::min(load.slices, 9) : load.slices;
    for (int slice = 0; slice < slices; ++slice) {
      std::fprintf(stderr, "router: %s, %d connections, slice %d of %d\n", load.name.c_str(),
                   load.connections, slice + 1, slices);
      for (std::size_t turn = 0; turn < proxies_.size(); ++turn) {
        const auto i = slice % 2 == 0 ? turn : proxies_.size() - 1 - turn;
        const double answered = answered_by(i);
        const double used = cpu_at_rest(proxies_[i]);
        clients[i].signal(SIGCONT);
        std::this_thread::sleep_for(kSlice);
        clients[i].signal(SIGSTOP);
        work[i].cpu_us += (cpu_at_rest(proxies_[i]) - used) * 1e6;
        work[i].requests += answered_by(i) - answered - 1;
      }
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      clients[i].signal(SIGCONT);
      require_until(
          [&] {
            clients[i].signal(SIGINT);  // wrk then says how it went, if its first thread got it
            return !clients[i].running();
          },
          std::chrono::seconds(10), "wrk to end");
      const auto said = read_file(clients[i].log_file());
      if (!said.contains(" requests in ") || said.contains("Non-2xx")) {
        throw std::runtime_error("wrk failed on " + proxies_[i].name + ":\n" + said);
      }
    }
    return work;
  }

  // In ms.
  double flat_out_p99(const Proxy& proxy, const Load& load) {
    const auto result = run_command(on_cpu("1", wrk(proxy, load, load.seconds)));
    const auto p99 = result.out.find(" 99%");
    if (!result.ok() || p99 == std::string::npos || result.out.contains("Non-2xx")) {
      throw std::runtime_error("wrk failed on " + proxy.name + ":\n" + result.out + result.err);
    }
    std::size_t unit = 0;
    const auto text = result.out.substr(p99 + 4);
    const double time = std::stod(text, &unit);
    if (text.substr(unit).starts_with("us")) return time / 1000;
    return text.substr(unit).starts_with("s") ? time * 1000 : time;
  }

  // In ms, from each request's own time.
  double paced_p99(const Proxy& proxy, const Load& load) {
    const auto log = folder_ / "h2load.log";
    std::filesystem::remove(log);
    const int due = kPace * load.connections * load.seconds;
    std::vector<std::string> argv{programs_.h2load,
                                  "--h1",
                                  "-c" + std::to_string(load.connections),
                                  "-n" + std::to_string(due),
                                  "--rps=" + std::to_string(kPace),
                                  "-r1",
                                  "--rate-period=" + std::to_string(kConnectEvery.count()) + "ms",
                                  "--log-file=" + log.string()};
    if (!load.script.empty()) {
      argv.insert(argv.end(),
                  {"-d", (folder_ / load.script).string(), "-H", "Content-Type: application/json"});
    }
    argv.push_back(url(proxy) + load.path);
    const auto result = run_command(on_cpu("1", argv));
    std::vector<double> times;
    std::ifstream lines(log);
    double began = 0;  // both in us
    double took = 0;
    std::string status;
    std::vector<double> begins;
    while (lines >> began >> status >> took) {
      if (status != "200") throw std::runtime_error(proxy.name + " answered h2load " + status);
      begins.push_back(began);
      times.push_back(took / 1000);
    }
    if (!result.ok() || times.size() != static_cast<std::size_t>(due)) {
      throw std::runtime_error(proxy.name + " failed h2load:\n" + result.err);
    }
    const auto [first, last] = std::ranges::minmax(begins);
    const std::chrono::duration<double> planned =
        std::chrono::seconds(load.seconds) + load.connections * kConnectEvery;
    if ((last - first) / 1e6 > planned.count() / 0.95) {
      throw std::runtime_error(proxy.name + " did not keep up with h2load:\n" + result.err);
    }
    const auto p99 = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 100 * 99);
    std::nth_element(times.begin(), p99, times.end());
    return *p99;
  }

  // `seconds`: how long each proxy worked. `unit` is what the work is counted in.
  void print_cpu_rows(const std::string& what, const std::string& unit,
                      const std::vector<Work>& work, double seconds) const {
    if (before_ != nullptr) {
      print_row("router-cpu-before " + what, "us of CPU per " + unit, mean_of("ours", work),
                mean_of("before", work), 1.02, "peer: the build named by GITOPS_ROUTER_BEFORE");
      return;
    }
    char note[200];
    std::snprintf(note, sizeof(note),
                  "peer: nginx with kept upstream connections; without them %.2f of it, HAProxy "
                  "%.2f; %.0f and %.0f %ss/s",
                  work[kNginxPlain].cpu_per_request() / work[kNginx].cpu_per_request(),
                  work[kHaproxy].cpu_per_request() / work[kNginx].cpu_per_request(),
                  work[kOurs].requests / seconds, work[kNginx].requests / seconds, unit.c_str());
    print_row("router-cpu " + what, "us of CPU per " + unit, work[kOurs].cpu_per_request(),
              work[kNginx].cpu_per_request(), 0.80, note);
  }

  // The CPU per request of all proxies of this name.
  [[nodiscard]] double mean_of(const std::string& name, const std::vector<Work>& work) const {
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      if (proxies_[i].name != name) continue;
      sum += work[i].cpu_per_request();
      ++count;
    }
    return sum / count;
  }

  // A request is a message that comes back.
  void measure_websocket() {
    constexpr int kConnections = 32;
    constexpr int kSlices = 11;
    std::vector<Work> work(proxies_.size());
    std::vector<bench::WebSocketLoad::Clients> clients;
    for (const auto& proxy : proxies_) {
      clients.push_back(websockets_.connect(static_cast<std::uint16_t>(proxy.port), kConnections));
    }
    for (int slice = 0; slice < kSlices; ++slice) {
      std::fprintf(stderr, "router: WebSocket messages, slice %d of %d\n", slice + 1, kSlices);
      for (std::size_t turn = 0; turn < proxies_.size(); ++turn) {
        const auto i = slice % 2 == 0 ? turn : proxies_.size() - 1 - turn;
        const double used = cpu_at_rest(proxies_[i]);
        work[i].requests += static_cast<double>(websockets_.play(clients[i], kSlice));
        work[i].cpu_us += (cpu_at_rest(proxies_[i]) - used) * 1e6;
      }
    }
    print_cpu_rows("WebSocket message and its echo, 32 connections", "echo", work,
                   std::chrono::duration<double>(kSlice).count() * kSlices);
  }

  void measure(const Load& load) {
    const auto what = load.name + ", " + std::to_string(load.connections) + " connections";
    print_cpu_rows(what, "request", work_by_turns(load),
                   std::chrono::duration<double>(kSlice).count() * load.slices);
    if (load.timing == Load::none || before_ != nullptr) return;

    const auto p99 = [&](int pairs, auto&& measure_one) {
      std::vector<double> ours;
      std::vector<double> nginx;
      for (int pair = 0; pair < pairs; ++pair) {
        std::fprintf(stderr, "router: p99 of %s, pair %d of %d\n", what.c_str(), pair + 1, pairs);
        for (const bool own : {pair % 2 == 0, pair % 2 != 0}) {
          (own ? ours : nginx).push_back(measure_one(proxies_[own ? kOurs : kNginx], load));
        }
      }
      return std::pair(median(std::move(ours)), median(std::move(nginx)));
    };
    const auto flat_out = p99(load.rounds, [this](const Proxy& proxy, const Load& one) {
      return flat_out_p99(proxy, one);
    });
    if (load.timing == Load::flat_out) {
      print_row("router-p99 " + what, "ms", flat_out.first, flat_out.second, 1.0,
                "flat out; peer: as above");
      return;
    }
    const auto paced = p99(
        kPacedPairs, [this](const Proxy& proxy, const Load& one) { return paced_p99(proxy, one); });
    char note[200];
    std::snprintf(note, sizeof(note),
                  "at %d requests/s, %d runs each; flat out, at the rates above: %.2f and %.2f",
                  kPace * load.connections, kPacedPairs, flat_out.first, flat_out.second);
    print_row("router-p99 " + what, "ms", paced.first, paced.second, 1.0, note);
  }

  // Connections that have sent a request and wait. `goal` in MB; 0: none. The peer is an nginx with
  // as many worker connections as the row needs, for it allocates them all when it starts.
  void measure_idle(int connections, double goal) {
    if (before_ != nullptr) return;
    const auto count = proxies_.size();
    start_nginx("nginx of the idle row", true, connections);
    const double ours = memory_with_idle(proxies_[kOurs], connections);
    const double peer = memory_with_idle(proxies_.back(), connections);
    proxies_.resize(count);
    upstreams_.resize(count);
    const Json row = {
        {"name", "router-rss " + std::to_string(connections) + " idle connections"},
        {"unit", "MB"},
        {"ours", ours},
        {"peer", peer},
        {"ratio", ours / peer},
        {"goal", goal > 0 ? Json("<= 16 MB") : Json()},
        {"holds", goal > 0 ? Json(ours <= goal) : Json()},
        {"note", "each has answered one request; before any other load; peer: nginx"}};
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  static double memory_with_idle(const Proxy& proxy, int connections) {
    std::vector<RawSocket> idle;
    for (int i = 0; i < connections; ++i) {
      idle.emplace_back(static_cast<std::uint16_t>(proxy.port));
      idle.back().send("GET /app-proxy/x HTTP/1.1\r\nHost: a\r\n\r\n");
      if (idle.back().read_response().status != 200) {
        throw std::runtime_error(proxy.name + " refused an idle connection");
      }
    }
    return bench::memory_of(proxy.process->pid(), "VmRSS:");
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

  static constexpr int kGzipLevel = 4;  // ours

  Programs programs_;
  int many_;  // connections
  bool tls_;
  TempDir folder_{"router-bench"};
  CertificateAuthority authority_;
  Certificate certificate_ =
      authority_.issue({.common_name = "proxy", .organization = {}, .alt_names = {"127.0.0.1"}});
  bench::WebSocketLoad websockets_;
  // Another build of ours: then only the CPU of the two builds is compared.
  const char* before_ = std::getenv("GITOPS_ROUTER_BEFORE");
  enum : std::size_t { kOurs, kNginx, kNginxPlain, kHaproxy };
  std::vector<Upstream> upstreams_;  // of the proxy with the same index
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
  const auto h2load = find_program("h2load");
  const auto nginx = find_program("nginx");
  const auto haproxy = find_program("haproxy");
  if (!wrk || !h2load || !nginx || !haproxy) {
    std::fprintf(stderr, "router: needs wrk, h2load (package nghttp2-client), nginx and haproxy\n");
    return 3;
  }
  const Programs programs{wrk->string(), h2load->string(), nginx->string(), haproxy->string()};
  // The load of WebSockets comes from this process.
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(1, &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
    std::fprintf(stderr, "router: needs two CPUs\n");
    return 3;
  }
  Bench(programs, many, false).run();
  Bench(programs, 100, true).run_with_tls();
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
