#pragma once

#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "support/process.hpp"
#include "support/wait.hpp"

namespace gitops::test {

/// A SOCKS 5 server on 127.0.0.1 (microsocks, a Debian package) that wants a user name and a
/// password. Main thread, as for Process.
class SocksProxy {
 public:
  /// What a machine lacks for it, to skip tests with; nullopt: nothing.
  static std::optional<std::string> missing() {
    if (find_program("microsocks")) return std::nullopt;
    return "microsocks is not installed";
  }

  SocksProxy()
      : port_(free_port()),
        process_({.argv = {"microsocks", "-i", "127.0.0.1", "-p", std::to_string(port_), "-u",
                           "jane", "-P", password_},
                  .log_file = folder_ / "log"}) {
    require_until(
        [&] {
          boost::asio::io_context context;
          boost::asio::ip::tcp::socket socket(context);
          boost::system::error_code error;
          socket.connect({boost::asio::ip::address_v4::loopback(),
                          static_cast<boost::asio::ip::port_type>(port_)},
                         error);
          return !error;
        },
        std::chrono::seconds(20), "the SOCKS proxy");
  }

  /// Its URL with these credentials.
  [[nodiscard]] std::string url(const std::string& user, const std::string& password) const {
    return "socks5h://" + user + ":" + password + "@127.0.0.1:" + std::to_string(port_);
  }
  [[nodiscard]] std::string url() const { return url("jane", password_); }
  [[nodiscard]] const std::string& password() const { return password_; }
  /// A line for each connection that it made: "… connected to HOST:PORT".
  [[nodiscard]] std::string log() const { return read_file(folder_ / "log"); }
  void stop() { process_.stop(); }

 private:
  std::string password_ = random_hex(16);
  TempDir folder_{"socks"};
  int port_;
  Process process_;
};

}  // namespace gitops::test
