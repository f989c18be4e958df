// Tunnels side by side: ours, rathole (which forwards TCP over TLS, a connection each, and knows no
// HTTP), frp, and each of our ends with the other end of frp. All of them forward to one upstream,
// have the same certificate, and speak TLS between their ends: ours and frpc with ours as wss, the
// two with frps as TLS inside of a WebSocket, since frps serves no wss. Each server runs on one CPU,
// each client on another one; users and upstream run on both.
//
// All tunnels live at once and work in slices of time by turns, so that the host's other load
// meets all alike; a ratio is the median of the ratios of slices that lie side by side. CPU is that
// of both ends together. Ratios hold within one run only.
//
// tunnel_bench PART measures some rows only: memory, download, upload, one (connection), requests or
// p99. tunnel_bench play PAIR LOAD SLICES [PAUSE] starts one pair, prints the process ids and plays
// one load in slices of a second with pauses of PAUSE ms, for a profiler: PAIR is ours, rathole, frp,
// ours-frps or frpc-ours, LOAD is download, upload or requests.
//
// GITOPS_TUNNEL_BIN names another folder with our programs, GITOPS_TUNNEL_BEFORE one with programs
// to compare ours with, in the same slices.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "bench/median.hpp"
#include "bench/proc.hpp"
#include "bench/tunnel_load.hpp"
#include "peers/peer_programs.hpp"
#include "support/process.hpp"
#include "support/test_certs.hpp"
#include "support/wait.hpp"

namespace gitops::bench {
namespace {

using Json = nlohmann::json;
using test::CertificateAuthority;
using test::Process;
using test::TempDir;

constexpr const char* kHost = "acc-rt.example.test";
constexpr const char* kToken = "0123456789abcdef";
constexpr const char* kServerCpu = "0";
constexpr const char* kClientCpu = "1";
constexpr auto kSlice = std::chrono::milliseconds(500);
constexpr int kIdleConnections = 1'000;
constexpr double kPace = 1'000;  // requests a second
constexpr int kPacedRuns = 7;
constexpr double kMega = 1e6;

struct Load {
  std::string name;
  TunnelRequest request;
  int users = 1;
  int slices = 11;
};

const Load kDownload{
    .name = "download, 8 connections", .request = {.answer = 4'000'000}, .users = 8};
const Load kUpload{.name = "upload, 8 connections", .request = {.upload = 4'000'000}, .users = 8};
const Load kOneDownload{
    .name = "download, 1 connection", .request = {.answer = 16'000'000}, .users = 1};
const Load kRequests{
    .name = "small request, 32 connections", .request = {.answer = 200}, .users = 32};

// Both ends of a tunnel as processes.
struct Tunnel {
  std::string name;
  std::unique_ptr<Process> server;
  std::unique_ptr<Process> client;
  std::uint16_t port = 0;    // for users
  std::uint64_t failed = 0;  // requests

  [[nodiscard]] double cpu() const { return cpu_of(server->pid()) + cpu_of(client->pid()); }
};

// What a tunnel did in its slices of time.
struct Work {
  std::vector<double> rates;     // MB/s of each slice
  std::vector<double> cpu_gb;    // CPU-s per GB of each slice
  std::vector<double> cpu_call;  // us of CPU per request of each slice
  std::vector<double> call_rates;

  void add(const TunnelPlay& play, double cpu) {
    const auto bytes = static_cast<double>(play.bytes);
    const auto requests = static_cast<double>(play.requests);
    rates.push_back(bytes / kMega / play.seconds);
    cpu_gb.push_back(cpu / (bytes / 1e9));
    cpu_call.push_back(cpu * 1e6 / requests);
    call_rates.push_back(requests / play.seconds);
  }
};

std::filesystem::path rathole_program() {
  if (const char* own = std::getenv("GITOPS_RATHOLE")) return own;
  return test::peers_folder().parent_path() / "rathole/bin/rathole";
}

class Bench {
 public:
  static constexpr const char* kOurs = "ours";
  static constexpr const char* kRathole = "rathole";
  static constexpr const char* kFrp = "frp";

  explicit Bench(const std::optional<std::string>& only = {}) {
    certificate_ =
        authority_.issue({.common_name = "tunnel", .organization = {}, .alt_names = {"localhost"}});
    test::write_file(folder_ / "token", kToken);
    const auto wanted = [&](const char* name) { return !only || *only == name; };
    const char* copy = std::getenv("GITOPS_TUNNEL_BIN");  // a folder with our programs
    const std::string own = copy == nullptr ? GITOPS_BIN_DIR : copy;
    if (wanted(kOurs)) add(kOurs, own_server(own), own_client(own, "wss"));
    if (wanted(kRathole)) start_rathole();
    const bool frp = test::find_program(test::peer_program("frps").string()).has_value() &&
                     test::find_program(test::peer_program("frpc").string()).has_value();
    if (frp) {
      if (wanted(kFrp)) add(kFrp, frps(), frpc("websocket"));
      if (wanted("ours-frps")) add("ours-frps", frps(), own_client(own, "websocket"));
      if (wanted("frpc-ours")) add("frpc-ours", own_server(own), frpc("wss"));
    } else {
      std::fprintf(stderr, "tunnel: frps and frpc are not built; run ./dev peers frp\n");
    }
    // Another build of ours, to compare with in the same slices of time.
    if (const char* before = std::getenv("GITOPS_TUNNEL_BEFORE"); before != nullptr && !only) {
      add("before", own_server(before), own_client(before, "wss"));
    }
  }

  // All rows, or those of a part: memory, download, upload, one, requests, p99.
  void run(const std::string& part) {
    const auto is_wanted = [&](const char* name) { return part.empty() || part == name; };
    if (is_wanted("memory")) measure_memory();
    if (is_wanted("download")) measure_bytes(kDownload);
    if (is_wanted("upload")) measure_bytes(kUpload);
    if (is_wanted("one")) measure_bytes(kOneDownload);
    if (is_wanted("requests")) measure_requests(kRequests);
    if (is_wanted("p99")) measure_p99();
  }

  // `pause`: between slices of a second.
  void play(const Load& load, int slices, std::chrono::milliseconds pause) {
    if (tunnels_.empty()) throw std::runtime_error("there is no such pair, or it is not built");
    auto& tunnel = tunnels_.front();
    TunnelUsers users(tunnel.port, kHost, load.users);
    std::printf("server %d client %d\n", tunnel.server->pid(), tunnel.client->pid());
    std::fflush(stdout);
    for (int slice = 0; slice < slices; ++slice) {
      const double used = tunnel.cpu();
      const auto played = play(users, tunnel, load, std::chrono::seconds(1));
      Work work;
      work.add(played, tunnel.cpu() - used);
      std::printf("%.1f MB/s, %.2f CPU-s per GB, %.0f requests/s, %.1f us of CPU per request\n",
                  work.rates[0], work.cpu_gb[0], work.call_rates[0], work.cpu_call[0]);
      std::fflush(stdout);
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  struct Started {
    std::unique_ptr<Process> process;
    std::uint16_t users = 0;  // of a server
  };

  static std::string text(int number) { return std::to_string(number); }

  std::unique_ptr<Process> start(const char* cpu, std::vector<std::string> argv,
                                 test::Environment env = {}) {
    argv.insert(argv.begin(), {"taskset", "-c", cpu});
    for (const char* name : {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"}) {
      env[name] = std::nullopt;
    }
    const auto log = folder_ / ("log" + std::to_string(started_++));
    return std::make_unique<Process>(
        test::ProcessOptions{.argv = std::move(argv), .env = std::move(env), .log_file = log});
  }

  // Every server here sets port_ for the client that is started after it.
  Started own_server(const std::string& bin) {
    port_ = test::free_port();
    const int users = test::free_port();
    const auto certificate = certificate_.cert_file.string();
    const auto key = certificate_.key_file.string();
    auto process =
        start(kServerCpu,
              {bin + "/tunnel-server", "--subdomain-host=example.test",
               "--token-file=" + (folder_ / "token").string(), "--tunnel.listen-address=127.0.0.1",
               "--tunnel.port=" + text(port_), "--tunnel.tls-certificate-file=" + certificate,
               "--tunnel.tls-key-file=" + key, "--tunnel.require-tls=true",
               "--listen-address=127.0.0.1", "--port=" + text(users), "--log-level=warn",
               "--admin-address=127.0.0.1", "--admin-port=0"});
    return {std::move(process), static_cast<std::uint16_t>(users)};
  }

  std::unique_ptr<Process> own_client(const std::string& bin, const std::string& protocol) {
    return start(kClientCpu,
                 {bin + "/tunnel-client", "--tunnel-server.host=localhost",
                  "--tunnel-server.port=" + text(port_), "--tunnel-server.protocol=" + protocol,
                  "--tunnel-server.ca-file=" + authority_.ca_file().string(),
                  "--tunnel-server.token-file=" + (folder_ / "token").string(),
                  "--tunnel.subdomain-prefix=acc-rt", "--tunnel.forward-to.host=127.0.0.1",
                  "--tunnel.forward-to.port=" + text(upstream_.port()), "--log-level=warn",
                  "--admin-address=127.0.0.1", "--admin-port=0"});
  }

  Started frps() {
    port_ = test::free_port();
    const int users = test::free_port();
    const auto file = folder_ / ("frps" + text(users) + ".toml");
    test::write_file(
        file, "bindAddr = \"127.0.0.1\"\nbindPort = " + text(port_) +
                  "\nproxyBindAddr = \"127.0.0.1\"\nvhostHTTPPort = " + text(users) +
                  "\nsubDomainHost = \"example.test\"\nauth.method = \"token\"\nauth.token = \"" +
                  kToken + "\"\ntransport.tls.certFile = \"" + certificate_.cert_file.string() +
                  "\"\ntransport.tls.keyFile = \"" + certificate_.key_file.string() +
                  "\"\ntransport.tls.force = true\nlog.level = \"warn\"\n");
    auto process = start(kServerCpu, {test::peer_program("frps").string(), "-c", file.string()});
    return {std::move(process), static_cast<std::uint16_t>(users)};
  }

  std::unique_ptr<Process> frpc(const std::string& protocol) {
    const auto file = folder_ / ("frpc" + text(port_) + ".toml");
    test::write_file(
        file,
        "serverAddr = \"localhost\"\nserverPort = " + text(port_) +
            "\nloginFailExit = false\nauth.method = \"token\"\nauth.token = \"" + kToken +
            "\"\ntransport.protocol = \"" + protocol +
            "\"\ntransport.tls.enable = true\ntransport.tls.trustedCaFile = \"" +
            authority_.ca_file().string() +
            "\"\ntransport.tls.serverName = \"localhost\"\nlog.level = \"warn\"\n"
            "[[proxies]]\nname = \"acc-rt\"\ntype = \"http\"\nlocalIP = \"127.0.0.1\"\nlocalPort "
            "= " +
            text(upstream_.port()) + "\nsubdomain = \"acc-rt\"\n");
    return start(kClientCpu, {test::peer_program("frpc").string(), "-c", file.string()});
  }

  void start_rathole() {
    const auto program = rathole_program();
    if (!test::find_program(program.string())) {
      std::fprintf(stderr, "tunnel: rathole is not built\n");
      return;
    }
    // It reads only PKCS#12 of the older kind.
    const auto identity = folder_ / "identity.pfx";
    test::run_or_throw({"openssl", "pkcs12", "-export", "-certpbe", "PBE-SHA1-3DES", "-keypbe",
                        "PBE-SHA1-3DES", "-macalg", "sha1", "-in", certificate_.cert_file.string(),
                        "-inkey", certificate_.key_file.string(), "-out", identity.string(),
                        "-passout", "pass:bench"});
    port_ = test::free_port();
    const int users = test::free_port();
    const auto server = folder_ / "rathole-server.toml";
    const auto client = folder_ / "rathole-client.toml";
    const std::string tls = "transport]\ntype = \"tls\"\n";
    test::write_file(server, "[server]\nbind_addr = \"127.0.0.1:" + text(port_) +
                                 "\"\ndefault_token = \"" + kToken + "\"\n[server." + tls +
                                 "[server.transport.tls]\npkcs12 = \"" + identity.string() +
                                 "\"\npkcs12_password = \"bench\"\n"
                                 "[server.services.web]\nbind_addr = \"127.0.0.1:" +
                                 text(users) + "\"\n");
    test::write_file(client, "[client]\nremote_addr = \"localhost:" + text(port_) +
                                 "\"\ndefault_token = \"" + kToken + "\"\n[client." + tls +
                                 "[client.transport.tls]\ntrusted_root = \"" +
                                 authority_.ca_file().string() +
                                 "\"\nhostname = \"localhost\"\n"
                                 "[client.services.web]\nlocal_addr = \"127.0.0.1:" +
                                 text(upstream_.port()) + "\"\n");
    const test::Environment quiet{{"RUST_LOG", "warn"}};
    auto process = start(kServerCpu, {program.string(), "--server", server.string()}, quiet);
    add(kRathole, {std::move(process), static_cast<std::uint16_t>(users)},
        start(kClientCpu, {program.string(), "--client", client.string()}, quiet));
  }

  // Waits until users are served; they have asked one request then.
  void add(const std::string& name, Started server, std::unique_ptr<Process> client) {
    tunnels_.push_back({.name = name,
                        .server = std::move(server.process),
                        .client = std::move(client),
                        .port = server.users});
    const auto url = "http://127.0.0.1:" + text(server.users) + "/bytes/200";
    test::require_until(
        [&] {
          const auto asked =
              test::run_command({"curl", "-s", "-m", "2", "-o", "/dev/null", "-w", "%{http_code}",
                                 "-H", std::string("Host: ") + kHost, url});
          return asked.out == "200";
        },
        std::chrono::seconds(30), name + " to serve");
  }

  [[nodiscard]] const Tunnel* find(std::string_view name) const {
    const auto found = std::ranges::find(tunnels_, name, &Tunnel::name);
    return found == tunnels_.end() ? nullptr : &*found;
  }

  // Waits until both ends have nothing left to do.
  static double cpu_at_rest(const Tunnel& tunnel) {
    double used = -1;
    test::require_until(
        [&] {
          const double before = std::exchange(used, tunnel.cpu());
          return used - before < 0.0005;
        },
        std::chrono::seconds(10), tunnel.name + " to come to rest", std::chrono::milliseconds(50));
    return used;
  }

  TunnelPlay play(TunnelUsers& users, Tunnel& tunnel, const Load& load,
                  std::chrono::milliseconds time, double rate = 0) {
    auto played = users.play(load.request, time, rate);
    const auto late = played.seconds - std::chrono::duration<double>(time).count();
    if (late > 2) {
      std::fprintf(stderr, "tunnel: %s, %s: users waited %.1f s for the last answers\n",
                   tunnel.name.c_str(), load.name.c_str(), late);
    }
    if (played.failed > 0) {
      tunnel.failed += played.failed;
      std::fprintf(stderr, "tunnel: %s, %s: %ju requests failed: %s\n%s%s", tunnel.name.c_str(),
                   load.name.c_str(), static_cast<std::uintmax_t>(played.failed),
                   played.failure.c_str(), test::read_file(tunnel.server->log_file()).c_str(),
                   test::read_file(tunnel.client->log_file()).c_str());
    }
    return played;
  }

  // In the order of tunnels_.
  std::vector<Work> work_by_turns(const Load& load) {
    std::vector<std::unique_ptr<TunnelUsers>> users;
    for (auto& tunnel : tunnels_) {
      users.push_back(std::make_unique<TunnelUsers>(tunnel.port, kHost, load.users));
      play(*users.back(), tunnel, load, std::chrono::milliseconds(200));
    }
    std::vector<Work> work(tunnels_.size());
    for (int slice = 0; slice < load.slices; ++slice) {
      std::fprintf(stderr, "tunnel: %s, slice %d of %d\n", load.name.c_str(), slice + 1,
                   load.slices);
      for (std::size_t turn = 0; turn < tunnels_.size(); ++turn) {
        const auto i = slice % 2 == 0 ? turn : tunnels_.size() - 1 - turn;
        const double used = cpu_at_rest(tunnels_[i]);
        const auto played = play(*users[i], tunnels_[i], load, kSlice);
        work[i].add(played, cpu_at_rest(tunnels_[i]) - used);
      }
    }
    return work;
  }

  // The values of all tunnels as text, for a note: "frp 12, frpc-ours 7".
  template <class Value>
  std::string others(Value value, const char* peer) const {
    std::string note;
    for (std::size_t i = 0; i < tunnels_.size(); ++i) {
      if (tunnels_[i].failed > 0) {
        note += (note.empty() ? "" : ", ") + tunnels_[i].name + " failed " +
                std::to_string(tunnels_[i].failed) + " requests so far";
      }
      if (tunnels_[i].name == kOurs || tunnels_[i].name == peer) continue;
      char one[64];
      std::snprintf(one, sizeof one, "%s%s %.3g", note.empty() ? "" : ", ",
                    tunnels_[i].name.c_str(), value(i));
      note += one;
    }
    return note;
  }

  enum class Goal { at_least, at_most, none };

  // `values` of the index of a tunnel: of its slices, in the order in which they were played.
  template <class Values>
  void print_row(const std::string& name, const char* unit, const char* peer, Values values,
                 Goal goal, double limit) const {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (std::size_t i = 0; i < tunnels_.size(); ++i) {
      if (tunnels_[i].name == kOurs) ours = values(i);
      if (tunnels_[i].name == peer) theirs = values(i);
    }
    Json row = {{"name", name},     {"unit", unit},    {"ours", median(ours)}, {"peer", nullptr},
                {"ratio", nullptr}, {"goal", nullptr}, {"holds", nullptr}};
    std::string note = std::string("peer: ") + peer;
    double ratio = 0;
    if (theirs.empty()) {
      note += " (not run)";
    } else {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
      ratio = median(std::move(ratios));
      row["peer"] = median(theirs);
      row["ratio"] = ratio;
    }
    if (goal != Goal::none) {
      char text[32];
      std::snprintf(text, sizeof text, "%s %.2f", goal == Goal::at_least ? ">=" : "<=", limit);
      row["goal"] = text;
      if (!theirs.empty()) row["holds"] = goal == Goal::at_least ? ratio >= limit : ratio <= limit;
    }
    row["note"] = note + "; " + others([&](std::size_t i) { return median(values(i)); }, peer);
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  // A row whose goal is a size and not a ratio.
  template <class Value>
  void print_size(const std::string& name, const char* unit, Value value, double limit) const {
    Json row = {{"name", name}, {"unit", unit}, {"peer", nullptr}, {"ratio", nullptr}};
    for (std::size_t i = 0; i < tunnels_.size(); ++i) {
      if (tunnels_[i].name == kOurs) row["ours"] = value(i);
      if (tunnels_[i].name == kRathole) row["peer"] = value(i);
    }
    if (!row["peer"].is_null())
      row["ratio"] = row["ours"].get<double>() / row["peer"].get<double>();
    char text[32];
    std::snprintf(text, sizeof text, "<= %g %s", limit, unit);
    row["goal"] = text;
    row["holds"] = row["ours"].get<double>() <= limit;
    row["note"] = std::string("peer: rathole") + (find(kRathole) == nullptr ? " (not run)" : "") +
                  "; " + others(value, kRathole);
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

  void measure_bytes(const Load& load) {
    const auto work = work_by_turns(load);
    print_row(
        "tunnel-throughput " + load.name, "MB/s", kRathole,
        [&](std::size_t i) { return work[i].rates; }, Goal::at_least, 1.0);
    print_row(
        "tunnel-cpu-gb " + load.name, "CPU-s per GB", kRathole,
        [&](std::size_t i) { return work[i].cpu_gb; }, Goal::at_most, 1.0);
  }

  void measure_requests(const Load& load) {
    const auto work = work_by_turns(load);
    print_row(
        "tunnel-cpu-request " + load.name, "us of CPU per request", kFrp,
        [&](std::size_t i) { return work[i].cpu_call; }, Goal::at_most, 0.25);
    print_row(
        "tunnel-requests " + load.name, "requests/s", kFrp,
        [&](std::size_t i) { return work[i].call_rates; }, Goal::none, 0);
  }

  void measure_p99() {
    std::vector<std::vector<double>> p99(tunnels_.size());
    std::vector<std::unique_ptr<TunnelUsers>> users;
    for (auto& tunnel : tunnels_) {
      users.push_back(std::make_unique<TunnelUsers>(tunnel.port, kHost, kRequests.users));
      play(*users.back(), tunnel, kRequests, std::chrono::milliseconds(200));
    }
    for (int run = 0; run < kPacedRuns; ++run) {
      std::fprintf(stderr, "tunnel: p99, run %d of %d\n", run + 1, kPacedRuns);
      for (std::size_t turn = 0; turn < tunnels_.size(); ++turn) {
        const auto i = run % 2 == 0 ? turn : tunnels_.size() - 1 - turn;
        auto times = play(*users[i], tunnels_[i], kRequests, std::chrono::seconds(2), kPace).times;
        const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 100 * 99);
        std::ranges::nth_element(times, at);
        p99[i].push_back(*at);
      }
    }
    print_row(
        "tunnel-p99 small request, 1,000 requests/s", "ms", kFrp,
        [&](std::size_t i) { return p99[i]; }, Goal::at_most, 1.0);
  }

  // Before any other load, so that nothing has grown yet.
  void measure_memory() {
    struct Sizes {
      double server = 0;
      double client = 0;
    };
    const auto sizes = [&] {
      for (const auto& tunnel : tunnels_) cpu_at_rest(tunnel);
      // Ours gives memory back after 2 to 4 s without work; all get the time.
      std::this_thread::sleep_for(std::chrono::seconds(6));
      std::vector<Sizes> result;
      for (const auto& tunnel : tunnels_) {
        result.push_back(
            {memory_of(tunnel.server->pid(), "VmRSS:"), memory_of(tunnel.client->pid(), "VmRSS:")});
      }
      return result;
    };
    const auto idle = sizes();
    print_size("tunnel-rss-idle server", "MB", [&](std::size_t i) { return idle[i].server; }, 8);
    print_size("tunnel-rss-idle client", "MB", [&](std::size_t i) { return idle[i].client; }, 8);

    std::vector<std::unique_ptr<TunnelUsers>> users;
    for (const auto& tunnel : tunnels_) {
      std::fprintf(stderr, "tunnel: %d idle connections through %s\n", kIdleConnections,
                   tunnel.name.c_str());
      users.push_back(std::make_unique<TunnelUsers>(tunnel.port, kHost, kIdleConnections));
      users.back()->upgrade();
    }
    const auto full = sizes();
    const auto each = [](double with, double without) {
      return (with - without) * kMega / 1024 / kIdleConnections;
    };
    print_size(
        "tunnel-rss-connection server", "KiB",
        [&](std::size_t i) { return each(full[i].server, idle[i].server); }, 16);
    print_size(
        "tunnel-rss-connection client", "KiB",
        [&](std::size_t i) { return each(full[i].client, idle[i].client); }, 16);
  }

  TempDir folder_{"tunnel-bench"};
  CertificateAuthority authority_;
  test::Certificate certificate_;
  TunnelUpstream upstream_;
  int port_ = 0;  // of the last server for its client
  int started_ = 0;
  std::vector<Tunnel> tunnels_;
};

int bench_tunnel(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // sendfile() has no other way to say that it does not want it
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "tunnel: needs two CPUs\n");
    return 3;
  }
  if (arguments.size() >= 4 && arguments[0] == "play") {
    const auto& load = arguments[2] == "upload"     ? kUpload
                       : arguments[2] == "requests" ? kRequests
                                                    : kDownload;
    const int pause = arguments.size() > 4 ? std::atoi(arguments[4].c_str()) : 0;
    Bench(arguments[1])
        .play(load, std::atoi(arguments[3].c_str()), std::chrono::milliseconds(pause));
    return 0;
  }
  Bench().run(arguments.empty() ? std::string() : arguments.front());
  return 0;
}

}  // namespace
}  // namespace gitops::bench

int main(int argc, char** argv) {
  try {
    return gitops::bench::bench_tunnel({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tunnel: %s\n", e.what());
    return 1;
  }
}
