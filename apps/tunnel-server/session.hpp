#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/core/async.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "common/net/channel.hpp"
#include "common/tunnel/authentication.hpp"
#include "common/tunnel/hello.hpp"
#include "common/tunnel/link.hpp"
#include "common/tunnel/server_control.hpp"
#include "common/tunnel/work_channel.hpp"

namespace gitops::tunnel_server {

class Session;

// Decisions of the server about its sessions. Called on the loop; the session outlives the calls.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  SessionOwner(const SessionOwner&) = delete;
  SessionOwner& operator=(const SessionOwner&) = delete;

  // Authorizes a login. Returns the Login to use, which may be changed, or the error for the
  // client.
  virtual Task<Result<tunnel::Login>> admit_login(Session& session, tunnel::Login login) = 0;
  // Called when the session has its run id.
  virtual void on_logged_in(Session& session) = 0;
  // Authorizes a proxy. Returns the proxy to offer, which may be changed, or the error for the
  // client.
  virtual Task<Result<tunnel::NewProxy>> admit_proxy(Session& session, tunnel::NewProxy proxy) = 0;
  // Offers an admitted proxy to users. Returns its address as the client is given it. `name` is the
  // client's name for the proxy.
  virtual Result<std::string> offer(Session& session, const std::string& name,
                                    const tunnel::NewProxy& proxy) = 0;
  // Withdraws the proxy that was offered under that name.
  virtual void withdraw(Session& session, const std::string& name) = 0;
  // Authorize a Ping or a work connection.
  virtual Task<Result<void>> admit_ping(Session& session, const tunnel::Ping& ping) = 0;
  virtual Task<Result<void>> admit_work(Session& session, const tunnel::NewWorkConn& work) = 0;

 protected:
  SessionOwner() = default;
};

// Reads the opening of a stream, or of a connection without yamux. Bytes after the opening are an
// error.
Task<Result<tunnel::OpeningReader::Opening>> read_opening(net::Channel& channel);

// Session of a tunnel client: its control stream and its work connections, some of which wait for
// users. With yamux everything shares one connection; before its login, a client may open one
// stream, send a few kilobytes and take a few seconds. Without yamux (frp's tcpMux = false) each
// stream is a connection of its own, and the session owns the first one. Loop thread only.
class Session {
 public:
  struct Options {
    tunnel::ServerControlOptions control = {};
    tunnel::yamux::SessionOptions link = {};  // the session sets role and max_streams
    std::size_t max_streams = 4096;           // after the login
    Deadline login_deadline = kNever;
    std::chrono::milliseconds write_timeout{10'000};  // of the control stream
    std::chrono::milliseconds work_timeout{10'000};   // for the first message of a work connection
    // Work connections without yamux carry a privilege key in any case.
    tunnel::AuthScopes auth_scopes = {};
  };

  // `connection` carries yamux; the session owns it. `id` is the server's id for the session,
  // `client` the address of the client. `owner` must outlive the session.
  Session(const Executor& executor, std::uint64_t id, std::unique_ptr<net::Channel> connection,
          std::string client, Options options, SessionOwner& owner);
  // Session without yamux: `control` is the control stream, from which `opening`, a Login, has been
  // read.
  Session(const Executor& executor, std::uint64_t id, std::unique_ptr<net::Channel> control,
          tunnel::OpeningReader::Opening opening, std::string client, Options options,
          SessionOwner& owner);

  // Serves until the session is over and returns the reason. Call it once.
  Task<Error> run();

  // Returns a connection to the client's upstream for a user of this proxy: a waiting work
  // connection, or one that the client opens before the deadline. With `alive`, a silent client
  // must respond first. Errors: timeout, unavailable, too_many_requests (see is_full()).
  enum class Check : std::uint8_t { none, alive };
  Task<Result<std::unique_ptr<net::Channel>>> connect(std::string_view proxy, Deadline deadline,
                                                      Check check = Check::none);
  // Probes the client if nothing was received from it for a second, because its connection may be
  // dead. The probe shortens the detection of a dead client to yamux's ping_timeout. Returns
  // whether the client was silent.
  bool probe_if_silent();
  // Rank of doubt about the connection: 2 when a probe has had no response for 1.5 s, 1 when a
  // probe is unanswered, otherwise 0.
  [[nodiscard]] int doubt() const;
  // Returns whether the session carries as many users as its streams and the client allow.
  [[nodiscard]] bool is_full() const;
  // Takes a work connection of a client without yamux. Closes it unless it proves that it belongs
  // to the client and one is wanted.
  void attach(std::unique_ptr<net::Channel> connection, tunnel::OpeningReader::Opening opening);

  // Drains: accepts no new users, sends GoAway to the client, which our client understands, and
  // ends when the last user has left. Without yamux it ends immediately, and users keep their
  // connections.
  void retire(std::string_view why);
  // Ends the session immediately.
  void end(Error error);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const std::string& client() const { return client_; }
  // Login as the client sent it; empty before.
  [[nodiscard]] const tunnel::Login& login() const { return login_; }
  // Run id; empty before the login.
  [[nodiscard]] std::string_view run_id() const;
  // First characters of the run id, for logs. The whole run id is secret: it allows replacing the
  // session.
  [[nodiscard]] std::string_view printable_run_id() const;
  [[nodiscard]] bool is_logged_in() const { return control_.has_value(); }
  // frp's token at the time of the connection.
  [[nodiscard]] const Secret& token() const { return options_.control.token; }
  // Returns whether the client uses yamux: one connection for all its streams.
  [[nodiscard]] bool has_mux() const { return link_.has_value(); }
  // Returns whether the session accepts new users.
  [[nodiscard]] bool takes_users() const { return control_ && !retired_ && !ending_; }
  [[nodiscard]] WallTime since() const { return since_; }
  // Number of work connections that wait for users, and of those that carry one.
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
  // Returns whether the client must not be read before it takes responses, or before its proxies
  // are authorized.
  [[nodiscard]] bool owes_responses();
  Task<> judge_proxy(tunnel::NewProxy proxy, std::uint64_t ticket);
  Task<> judge_ping(tunnel::Ping ping);
  void take_stream(std::unique_ptr<net::Channel> stream);
  [[nodiscard]] bool wants_work() const;
  void count_received_work();
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
  SessionOwner& owner_;
  const WallTime since_ = wall_now();
  std::optional<tunnel::Link> link_;  // null without yamux
  Opening opening_;                   // without yamux, until the login
  tunnel::Wire wire_ = tunnel::Wire::v1;
  tunnel::Login login_;
  std::optional<tunnel::ServerControl> control_;
  std::unique_ptr<net::Channel> control_stream_;
  // Proxies that are being authorized or are offered.
  struct Proxy {
    std::uint64_t ticket = 0;  // number of its request
    tunnel::WorkCoding coding = {};
  };
  std::map<std::string, Proxy, std::less<>> proxies_;
  std::uint64_t tickets_ = 0;
  std::size_t judged_ = 0;  // proxies that are being authorized, closed ones included
  bool judges_ping_ = false;
  std::deque<std::unique_ptr<net::Channel>> pool_;
  // Times of requests for work connections that were not received yet, oldest first.
  std::deque<Clock::time_point> requested_;
  std::int64_t users_ = 0;       // users that wait for a work connection
  std::size_t work_begins_ = 0;  // work streams without their first message yet
  // Number of work connections without yamux that carry a user; shared with the connections.
  std::shared_ptr<std::size_t> carried_ = std::make_shared<std::size_t>(0);
  std::optional<std::string> retired_;
  std::optional<Error> ending_;
  Event output_;
  Event work_;
  TaskGroup tasks_;
};

}  // namespace gitops::tunnel_server
