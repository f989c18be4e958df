#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/link.hpp"
#include "common/tunnel/server_control.hpp"
#include "common/tunnel/work_channel.hpp"

namespace gitops::tunnel_server {

class Session;

// What a session asks the rest of the server. Called on the loop; the session outlives the calls.
struct SessionOwner {
  // Whether the client may log in; its Login, which may be changed, or the error that it is told.
  std::function<Task<Result<tunnel::Login>>(Session&, tunnel::Login)> admit_login;
  // The session has its run id.
  std::function<void(Session&)> logged_in = [](Session&) {};
  // Whether it may offer this; what it offers, which may be changed, or the error that it is told.
  std::function<Task<Result<tunnel::NewProxy>>(Session&, tunnel::NewProxy)> admit_proxy;
  // Makes an admitted proxy available; where, for people. `name` is the client's name for it.
  std::function<Result<std::string>(Session&, const std::string& name, const tunnel::NewProxy&)>
      offer;
  // Ends what was offered under that name.
  std::function<void(Session&, const std::string& name)> withdraw;
  // Whether a Ping or a work connection is allowed; empty functions: all are.
  std::function<Task<Result<void>>(Session&, const tunnel::Ping&)> admit_ping = {};
  std::function<Task<Result<void>>(Session&, const tunnel::NewWorkConn&)> admit_work = {};
};

// Reads how a stream, or a connection without yamux, begins. Nothing may stand behind it.
Task<Result<tunnel::OpeningReader::Opening>> read_opening(net::Channel& channel);

// A client of the tunnel: its control stream, and the work connections that it brings, of which some
// wait for users. With yamux all of it is one connection, on which it may open one stream, send a few
// kilobytes, and take a few seconds before its login. Without (frp's tcpMux = false) each is a
// connection of its own, and the session owns the first one. Loop thread only.
class Session {
 public:
  struct Options {
    tunnel::ServerControlOptions control = {};
    tunnel::yamux::SessionOptions link = {};  // role and max_streams are set here
    std::size_t max_streams = 4096;           // after the login
    Deadline login_deadline = kNever;
    std::chrono::milliseconds write_timeout{10'000};  // of the control stream
    std::chrono::milliseconds work_timeout{10'000};   // to the first message of a work connection
    // frp's auth.additionalScopes: Pings, and the first message of work connections, carry a privilege
    // key. Work connections without yamux always do.
    bool signed_pings = false;
    bool signed_work = false;
  };

  // `connection` carries yamux; `id` is this server's name for the session, `client` the address
  // that it has. `owner` outlives the session.
  Session(const Executor& executor, std::uint64_t id, std::unique_ptr<net::Channel> connection,
          std::string client, Options options, const SessionOwner& owner);
  // Without yamux: `control` is the control stream, of which `opening`, a Login, was read.
  Session(const Executor& executor, std::uint64_t id, std::unique_ptr<net::Channel> control,
          tunnel::OpeningReader::Opening opening, std::string client, Options options,
          const SessionOwner& owner);

  // Serves until the session is over, and returns why. Once.
  Task<Error> run();

  // A connection to the client's upstream, for a user of this proxy: a waiting work connection, or
  // one that the client brings before the deadline. `alive`: only once a client that was silent has
  // given a sign of life. Errors: timeout, unavailable, too_many_requests (see is_full()).
  enum class Check : std::uint8_t { none, alive };
  Task<Result<std::unique_ptr<net::Channel>>> connect(std::string_view proxy, Deadline deadline,
                                                      Check check = Check::none);
  // Nothing was heard for a second, so its connection may be dead. Asks the client for a sign of life,
  // which shortens the time until a dead one is found to yamux's ping_timeout.
  bool probe_if_silent();
  // How much the client is in doubt: 2 when it owes a sign of life for 1.5 s, 1 when it owes one.
  [[nodiscard]] int doubt() const;
  // It carries as many users as its streams and the client allow.
  [[nodiscard]] bool is_full() const;
  // Takes a work connection of a client without yamux, if it proves that it is the client's and is
  // wanted.
  void attach(std::unique_ptr<net::Channel> connection, tunnel::OpeningReader::Opening opening);

  // Takes no new users and tells the client by GoAway, which ours understands; ends when those who are
  // there have left. Without yamux it ends at once, and users keep their connections.
  void retire(std::string_view why);
  // Ends at once.
  void end(Error error);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& client() const { return client_; }
  // As the client sent it; empty before its login.
  [[nodiscard]] const tunnel::Login& login() const { return login_; }
  // Empty before the login.
  [[nodiscard]] std::string_view run_id() const;
  // The beginning of it, for logs: who knows all of it may replace the session.
  [[nodiscard]] std::string_view printable_run_id() const;
  [[nodiscard]] bool is_logged_in() const { return control_.has_value(); }
  // frp's token, as of its connection.
  [[nodiscard]] const Secret& token() const { return options_.control.token; }
  // All of the client is one connection.
  [[nodiscard]] bool has_mux() const { return link_.has_value(); }
  // New users may come.
  [[nodiscard]] bool takes_users() const { return control_ && !retired_ && !ending_; }
  [[nodiscard]] WallTime since() const { return since_; }
  // Work connections that wait for users, and those that carry one.
  [[nodiscard]] std::size_t waiting() const { return pool_.size(); }
  [[nodiscard]] std::size_t carrying() const;

 private:
  Task<> maintain_link();
  Task<> maintain_control();
  Task<> write_queued();
  Task<> enforce_deadline();
  Task<> maintain_pool();
  Task<Error> converse();
  Task<Result<tunnel::Login>> read_login();
  Task<> refuse(const Error& error);
  void handle(tunnel::ServerControl::Event event);
  Task<> judge_proxy(tunnel::NewProxy proxy, std::uint64_t ticket);
  Task<> judge_ping(tunnel::Ping ping);
  void take_stream(std::unique_ptr<net::Channel> stream);
  [[nodiscard]] bool wants_work() const;
  [[nodiscard]] std::size_t max_users() const;
  using Opening = std::optional<tunnel::OpeningReader::Opening>;
  Task<> take_work(std::shared_ptr<std::unique_ptr<net::Channel>> stream, Opening opening);
  Task<Result<void>> read_work(net::Channel& stream, Opening opening);
  std::unique_ptr<net::Channel> take_waiting();
  std::unique_ptr<net::Channel> started(std::unique_ptr<net::Channel> stream,
                                        tunnel::WorkCoding coding);
  void ask_for_work();
  void send();

  const std::uint64_t id_;
  const std::string client_;
  Options options_;
  const SessionOwner& owner_;
  const WallTime since_ = wall_now();
  std::optional<tunnel::Link> link_;  // none without yamux
  Opening opening_;                   // without yamux, until the login
  tunnel::Wire wire_ = tunnel::Wire::v1;
  tunnel::Login login_;
  std::optional<tunnel::ServerControl> control_;
  std::unique_ptr<net::Channel> control_stream_;
  // Proxies that are being judged or offered.
  struct Proxy {
    std::uint64_t ticket = 0;  // number of its request
    tunnel::WorkCoding coding = {};
  };
  std::map<std::string, Proxy, std::less<>> proxies_;
  std::uint64_t tickets_ = 0;
  bool judges_ping_ = false;
  std::deque<std::unique_ptr<net::Channel>> pool_;
  std::int64_t requested_ = 0;  // work connections that were asked for and have not come
  Clock::time_point asked_at_ = Clock::now();
  std::int64_t users_ = 0;       // that wait for a work connection
  std::size_t work_begins_ = 0;  // work streams without their first message yet
  // Work connections without yamux that carry a user; shared with them.
  std::shared_ptr<std::size_t> carried_ = std::make_shared<std::size_t>(0);
  std::optional<std::string> retired_;
  std::optional<Error> ending_;
  Event output_;
  Event work_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_server
