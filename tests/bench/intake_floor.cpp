#include "bench/intake_floor.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/proc.hpp"
#include "common/http/gzip.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/storage/body_codec.hpp"
#include "support/process.hpp"

namespace gitops::bench {
namespace {

namespace cp = control_plane_server;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReady = 6'000;  // events; about 20 KB of memory each
constexpr std::size_t kFillBatch = 500;
constexpr std::int64_t kCacheBytes = 64LL * 1024 * 1024;
constexpr std::size_t kMaxBody = 10UL * 1024 * 1024;
constexpr std::size_t kMaxParts = 512;  // of one writev()

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double thread_cpu() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double written_by(const fs::path& process) {
  std::ifstream io(process / "io");
  for (std::string line; std::getline(io, line);) {
    if (line.starts_with("write_bytes: ")) return std::stod(line.substr(13));
  }
  return 0;
}

// The fields of /proc/PID/stat behind the name: state, parent, ….
std::vector<std::string> stat_fields(const fs::path& process) {
  std::ifstream stat(process / "stat");
  std::string line;
  std::getline(stat, line);
  std::vector<std::string> fields;
  const auto end = line.rfind(')');
  if (end == std::string::npos) return fields;
  std::string word;
  for (const char c : line.substr(end + 2) + ' ') {
    if (c != ' ') {
      word += c;
    } else {
      fields.push_back(std::exchange(word, {}));
    }
  }
  return fields;
}

// Processor time of children that have ended, in seconds.
double ended_children(const std::vector<std::string>& fields) {
  constexpr std::size_t kUser = 13;
  constexpr std::size_t kSystem = 14;
  if (fields.size() <= kSystem) return 0;
  const auto ticks = std::stod(fields[kUser]) + std::stod(fields[kSystem]);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

template <class T>
T required(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

std::unique_ptr<store::Connection> open_writer(const store::Location& location) {
  if (location.engine == store::Engine::sqlite) {
    return required(store::open_sqlite(location.path, store::Access::read_write, kCacheBytes));
  }
  return required(store::open_postgres(location, "control-plane-bench"));
}

}  // namespace

Usage usage_of_tree(int pid) {
  if (pid == 0) return {};
  Usage usage;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    const auto fields = stat_fields(entry.path());
    const bool is_root = name == std::to_string(pid);
    if (fields.size() < 2 || (!is_root && fields[1] != std::to_string(pid))) continue;
    try {
      usage.cpu += cpu_of(std::stoi(name));
    } catch (const std::runtime_error&) {
      continue;  // it ended
    }
    if (is_root) usage.cpu += ended_children(fields);
    usage.written += written_by(entry.path());
  }
  return usage;
}

AppendFloor::AppendFloor(EventPool& pool, fs::path file) : pool_(pool), path_(std::move(file)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0) throw std::runtime_error("no file can be made: " + path_.string());
}

AppendFloor::~AppendFloor() {
  ::close(file_);
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void AppendFloor::append(std::size_t count) {
  while (count > 0) {
    std::vector<iovec> parts(std::min(count, kMaxParts));
    for (auto& part : parts) {
      const auto body = pool_.next().body;
      part = {const_cast<char*>(body.data()), body.size()};
    }
    if (::writev(file_, parts.data(), static_cast<int>(parts.size())) < 0) {
      throw std::runtime_error("append failed");
    }
    count -= parts.size();
  }
  if (::fdatasync(file_) != 0) throw std::runtime_error("fdatasync failed");
}

FloorSample AppendFloor::run_closed(std::size_t in_flight, std::chrono::milliseconds duration) {
  FloorSample sample;
  const Usage before{thread_cpu(), written_by("/proc/self")};
  const auto began = Clock::now();
  while (Clock::now() < began + duration) {
    append(in_flight);
    sample.events += static_cast<double>(in_flight);
  }
  sample.seconds = seconds_of(Clock::now() - began);
  sample.usage = Usage{thread_cpu(), written_by("/proc/self")} - before;
  return sample;
}

std::vector<double> AppendFloor::run_open(double rate, std::chrono::milliseconds duration) {
  std::vector<double> latencies;
  const auto began = Clock::now();
  const auto end = began + duration;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1.0 / rate));
  auto due = began;
  while (Clock::now() < end) {
    const auto now = Clock::now();
    if (due > now) {
      std::this_thread::sleep_until(due);
      continue;
    }
    const auto first = due;
    std::size_t count = 0;
    for (; due <= now; due += interval) ++count;
    append(count);
    const auto done = Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      latencies.push_back(seconds_of(done - (first + interval * static_cast<long>(i))));
    }
  }
  return latencies;
}

CodecCost codec_cost(EventPool& pool, std::size_t events) {
  CodecCost cost;
  JsonParser parser(cp::EventLimits().max_depth);
  for (std::size_t i = 0; i < events; ++i) {
    const auto post = pool.next();
    const auto began = thread_cpu();
    const auto body = required(http::gzip_decompress(post.body, kMaxBody));
    const auto inflated = thread_cpu();
    const auto event = required(
        cp::read_event(parser, body, {.event_id = "floor", .sequence = 1, .runtime = "floor"}));
    const auto read = thread_cpu();
    static_cast<void>(cp::pack_body(event.body));
    const auto packed = thread_cpu();
    cost.inflate += inflated - began;
    cost.read += read - inflated;
    cost.pack += packed - read;
  }
  const auto each = 1e6 / static_cast<double>(events);
  return {cost.inflate * each, cost.read * each, cost.pack * each};
}

StoreLoop::StoreLoop(const store::Location& location, std::size_t applications,
                     std::size_t runtimes, int server)
    : applications_(applications),
      runtimes_(runtimes),
      server_(server),
      connection_(open_writer(location)),
      events_(cp::make_event_store(location.engine, test::random_hex(12))),
      sequence_(EventPool::kFirstSequence) {}

void StoreLoop::fill(std::size_t first, std::size_t count) {
  for (auto at = first; at < first + count; at += kFillBatch) {
    std::vector<cp::Incoming> batch;
    for (auto i = at; i < std::min(at + kFillBatch, first + count); ++i) {
      batch.push_back(incoming_event(i, 0, EventPool::kFirstSequence - 1, runtimes_));
    }
    required(events_->store(*connection_, batch));
  }
}

void StoreLoop::store_batch(std::size_t size) {
  if (ready_.empty()) {
    std::mt19937_64 random(20'261'126);
    for (std::size_t i = 0; i < kReady; ++i) {
      // Three of ten in the other state, as the milestones of the pool.
      const auto version = (random() % 100 < 18 ? 2 : 0) + random() % 2;
      ready_.push_back(incoming_event(random() % applications_, version, 0, runtimes_));
    }
  }
  if (next_ + size > ready_.size()) next_ = 0;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  for (auto& incoming : std::span(ready_).subspan(next_, size)) {
    incoming.event.state.sequence = ++sequence_;
    incoming.event.state.changed_at = incoming.event.state.seen_at = now;
  }
  required(events_->store(*connection_, std::span(ready_).subspan(next_, size)));
  next_ += size;
}

Usage StoreLoop::usage() const {
  auto usage = usage_of_tree(server_);
  usage.cpu += thread_cpu();
  usage.written += written_by("/proc/self");
  return usage;
}

FloorSample StoreLoop::run(std::size_t batch, std::chrono::milliseconds duration) {
  store_batch(batch);  // prepares the statements
  FloorSample sample;
  const auto before = usage();
  const auto began = Clock::now();
  while (Clock::now() < began + duration) {
    store_batch(batch);
    sample.events += static_cast<double>(batch);
  }
  sample.seconds = seconds_of(Clock::now() - began);
  sample.usage = usage() - before;
  return sample;
}

FloorSample StoreLoop::run_events(std::size_t batch, std::size_t events) {
  FloorSample sample;
  const auto before = usage();
  const auto began = Clock::now();
  for (; sample.events < static_cast<double>(events); sample.events += static_cast<double>(batch)) {
    store_batch(batch);
  }
  sample.seconds = seconds_of(Clock::now() - began);
  sample.usage = usage() - before;
  return sample;
}

}  // namespace gitops::bench
