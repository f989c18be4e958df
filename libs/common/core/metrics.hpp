#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace gitops {

// Forward declarations; a source that calls them includes <prometheus/counter.h>, gauge.h or
// histogram.h.
using Counter = prometheus::Counter;
using Gauge = prometheus::Gauge;
using Histogram = prometheus::Histogram;

// The metrics of one process. Passed down by reference; parts create their handles in their
// constructors and keep them, so that counting is an atomic add. Names are full:
// gitops_<program>_<what>_<unit>; labels must have a bounded set of values.
class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  // Returns a handle that lives as long as this object; the same name and labels give the same
  // handle.
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& histogram(const std::string& name, const std::string& help,
                       const std::vector<double>& bounds, const Labels& labels = {});

  // Returns the metrics in Prometheus text exposition format 0.0.4, process_* metrics (memory, CPU
  // seconds, file descriptors, start time) included.
  [[nodiscard]] std::string expose();

 private:
  std::unique_ptr<prometheus::Registry> registry_;
  double
      boot_time_;  // of the machine, seconds since the epoch; read once so that it does not jitter
};

}  // namespace gitops
