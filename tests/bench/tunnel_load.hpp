#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gitops::bench {

// The service behind a tunnel, on one thread of its own. Its bytes come from the kernel's page
// cache and go nowhere, so it takes little of the machine. HTTP/1.1 with kept connections:
//   GET /bytes/N   N bytes
//   PUT /…         reads the body (with a Content-Length), answers with a few bytes
//   Upgrade: …     101, and silence
class TunnelUpstream {
 public:
  TunnelUpstream();
  ~TunnelUpstream();
  TunnelUpstream(const TunnelUpstream&) = delete;
  TunnelUpstream& operator=(const TunnelUpstream&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void serve();

  int listener_ = -1;
  int stop_ = -1;  // an eventfd
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// What each user asks for, again and again.
struct TunnelRequest {
  std::uint64_t answer = 0;  // bytes of the answer's body
  std::uint64_t upload = 0;  // bytes of the request's body; 0: GET
};

// What users got.
struct TunnelPlay {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t failed = 0;   // not among them: other answers than 200, and connections that ended
  std::string failure;        // the last of these
  std::uint64_t bytes = 0;    // of bodies
  std::vector<double> times;  // of each request, ms; only with a rate
};

// Users of a host behind a tunnel, each with a connection of its own to 127.0.0.1. All of it runs
// within the calls, on the caller's thread.
class TunnelUsers {
 public:
  TunnelUsers(std::uint16_t port, std::string host, int count);
  ~TunnelUsers();
  TunnelUsers(const TunnelUsers&) = delete;
  TunnelUsers& operator=(const TunnelUsers&) = delete;

  // Users ask for `time`, each as soon as it has its answer, and get the answers to what they have
  // asked for. With a `rate` (requests a second of all users together) they ask at fixed times, and
  // a request's time begins when it is due, even if its user still waits for the one before. A user
  // whose request fails connects again. Throws when there is no answer for two minutes.
  TunnelPlay play(const TunnelRequest& request, std::chrono::milliseconds time, double rate = 0);
  // Makes every connection a WebSocket, a few at a time; throws when one is refused.
  void upgrade();

 private:
  struct User;

  [[nodiscard]] int connect() const;

  std::uint16_t port_;
  std::string host_;
  int poll_ = -1;
  std::vector<std::unique_ptr<User>> users_;
};

}  // namespace gitops::bench
