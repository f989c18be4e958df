#include "common/core/metrics.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gitops {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily single_value(std::string name, std::string help, MetricType type, double value) {
  ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return {.name = std::move(name), .help = std::move(help), .type = type, .metric = {metric}};
}

// The fields of /proc/self/stat that become metrics.
struct ProcessStat {
  double cpu_seconds = 0;
  double start_time = 0;  // seconds since boot
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

ProcessStat read_process_stat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // The program's name, in parentheses, may contain any character; field 3 follows the last
  // parenthesis.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  const auto tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  ProcessStat stat;
  std::string field;
  for (int number = 3; number <= 24 && fields >> field; ++number) {
    if (number == 14 || number == 15) stat.cpu_seconds += std::stod(field) / tick;
    if (number == 22) stat.start_time = std::stod(field) / tick;
    if (number == 23) stat.virtual_bytes = std::stod(field);
    if (number == 24) stat.resident_bytes = std::stod(field) * page;
  }
  return stat;
}

double boot_time() {
  std::ifstream file("/proc/uptime");
  double uptime = 0;
  file >> uptime;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count() - uptime;
}

double count_open_files() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  // The count includes the open directory itself.
  return static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

double max_open_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

void append_process_metrics(std::vector<MetricFamily>& families, double boot) {
  const ProcessStat stat = read_process_stat();
  const auto add = [&](std::string name, std::string help, MetricType type, double value) {
    families.push_back(single_value(std::move(name), std::move(help), type, value));
  };
  add("process_cpu_seconds_total", "User and system CPU time spent, in seconds",
      MetricType::Counter, stat.cpu_seconds);
  add("process_max_fds", "Limit of open file descriptors", MetricType::Gauge, max_open_files());
  add("process_open_fds", "Open file descriptors", MetricType::Gauge, count_open_files());
  add("process_resident_memory_bytes", "Resident memory", MetricType::Gauge, stat.resident_bytes);
  add("process_start_time_seconds", "Start of the process, seconds since the epoch",
      MetricType::Gauge, boot + stat.start_time);
  add("process_virtual_memory_bytes", "Virtual memory", MetricType::Gauge, stat.virtual_bytes);
}

}  // namespace

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()), boot_time_(boot_time()) {}

Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add(labels);
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(labels);
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help,
                              const std::vector<double>& bounds, const Labels& labels) {
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Register(*registry_)
      .Add(labels, bounds);
}

std::string Metrics::expose() {
  std::vector<MetricFamily> families = registry_->Collect();
  append_process_metrics(families, boot_time_);
  std::ranges::sort(families, {}, &MetricFamily::name);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace gitops
