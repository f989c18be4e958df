#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "common/core/metrics.hpp"
#include "common/proxy/policy.hpp"

namespace gitops::tunnel_server {

// Counts users' requests by host. The first kMaxHosts hosts have a label of their own; further
// hosts share "other" for the life of the process. Loop thread only.
class Traffic {
 public:
  static constexpr std::size_t kMaxHosts = 200;
  explicit Traffic(Metrics& metrics) : metrics_(metrics) {}

  // Returns the metric label of a host that a client offers.
  std::string label_of(const std::string& domain);
  void count(const proxy::TransactionRecord& record);

 private:
  struct Host {
    std::map<int, Counter*> requests;  // by the first digit of the status
    Histogram* seconds = nullptr;
    Counter* bytes_in = nullptr;
    Counter* bytes_out = nullptr;
  };
  Host& host(const std::string& label);

  Metrics& metrics_;
  std::map<std::string, Host, std::less<>> hosts_;
};

}  // namespace gitops::tunnel_server
