#include "common/graphql/socket.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/core/log.hpp"
#include "common/core/task_group.hpp"

namespace gitops::graphql {
namespace {

constexpr std::uint16_t kNoProtocol = 4406;

// Session of one WebSocket and its running operations.
class SocketDriver {
 public:
  SocketDriver(const Executor& executor, http::WebSocket& socket, SocketProtocol protocol,
               Engine& engine, OpenSession open, SocketOptions options)
      : executor_(executor),
        socket_(socket),
        engine_(engine),
        open_(std::move(open)),
        options_(std::move(options)),
        session_(protocol, options_.session, Clock::now()),
        changed_(executor),
        tasks_(executor) {}

  Task<> run() {
    tasks_.spawn("graphql sender", [this] { return send_loop(); });
    tasks_.spawn("graphql clock", [this] { return clock_loop(); });
    bool cancelled = false;
    try {
      co_await receive_loop();
    } catch (const std::exception&) {
      cancelled = true;  // on any exception, the tasks must end before this object
    }
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state();
    for (auto& [id, operation] : operations_) operation->cancel();
    tasks_.cancel();
    for (auto& [id, operation] : operations_) co_await operation->join();
    for (auto& operation : stopped_) co_await operation->join();
    co_await tasks_.join();
    if (cancelled) throw boost::system::system_error(asio::error::operation_aborted);
  }

 private:
  Task<> receive_loop() {
    while (auto message = co_await socket_.receive()) {
      if (!message->is_text) {
        session_.receive_binary();
      } else {
        for (SocketAction& action : session_.receive(message->data, Clock::now())) {
          co_await perform(std::move(action));
        }
      }
      changed_.notify_all();
      co_await remove_stopped();
    }
  }

  Task<> perform(SocketAction action) {
    switch (action.kind) {
      case SocketAction::Kind::open:
        tasks_.spawn("graphql open", [this, payload = std::move(action.payload)]() -> Task<> {
          const auto opened = co_await open_(payload);
          if (opened) {
            make_context_ = *opened;
            for (SocketAction& waiting : session_.accept(Clock::now())) {
              co_await perform(std::move(waiting));
            }
          } else {
            session_.refuse(opened.error().message);
          }
          changed_.notify_all();
        });
        break;
      case SocketAction::Kind::start: {
        co_await end(action.id);  // removes tasks that ended under that id
        auto& group = operations_[action.id];
        group = std::make_unique<TaskGroup>(executor_);
        group->spawn("graphql operation",
                     [this, id = action.id, payload = std::move(action.payload)] {
                       return operate(id, payload);
                     });
        break;
      }
      case SocketAction::Kind::stop:
        co_await end(action.id);
        break;
    }
  }

  // Removes an operation and cancels its tasks.
  Task<> end(const std::string& id) {
    const auto found = operations_.find(id);
    if (found == operations_.end()) co_return;
    found->second->cancel();
    stopped_.push_back(std::move(found->second));
    operations_.erase(found);
  }

  Task<> remove_stopped() {
    for (auto& [id, group] : operations_) {
      if (group->size() == 0) stopped_.push_back(std::move(group));
    }
    std::erase_if(operations_, [](const auto& entry) { return !entry.second; });
    for (auto& group : stopped_) {
      if (group->size() == 0) co_await group->join();
    }
    std::erase_if(stopped_, [](const auto& group) { return group->size() == 0; });
  }

  Task<> operate(std::string id, std::string payload) {
    // Destroyed after the operation, whose stream may refer to it.
    const OperationContext own = make_context_();
    auto prepared = engine_.prepare_body(payload, own.context, deadline_after(options_.timeout));
    if (!prepared) {
      session_.fail(id, prepared.error().errors);
      changed_.notify_all();
      co_return;
    }
    Prepared& operation = **prepared;
    std::shared_ptr<void> permit;
    if (!co_await admit(id, operation, own.context, permit)) co_return;
    auto admitted = Clock::now();
    if (operation.kind() != OperationKind::subscription) {
      session_.next(id, co_await operation.run());
    } else if (const auto started = co_await operation.subscribe(); !started) {
      session_.fail(id, started.error());
      changed_.notify_all();
      co_return;
    } else {
      while (auto answer = co_await operation.next()) {
        if (Clock::now() - admitted >= options_.recheck_interval) {
          if (!co_await admit(id, operation, own.context, permit)) co_return;
          admitted = Clock::now();
        }
        session_.next(id, *answer);
        changed_.notify_all();
        co_await drained();
      }
    }
    session_.complete(id);
    changed_.notify_all();
  }

  // Returns false if the operation must not continue; the client has received the error then.
  Task<bool> admit(const std::string& id, const Prepared& operation, const Context& context,
                   std::shared_ptr<void>& permit) {
    if (!options_.admission) co_return true;
    permit.reset();
    auto admitted = co_await options_.admission(operation, context);
    if (admitted) {
      permit = std::move(*admitted);
      co_return true;
    }
    session_.fail(id, {present(admitted.error())});
    changed_.notify_all();
    co_return false;
  }

  // Waits until all messages are passed to the WebSocket, so that a slow reader slows its events
  // down.
  Task<> drained() {
    while (!session_.output().empty() || is_sending_) co_await changed_.wait();
  }

  Task<> send_loop() {
    for (;;) {
      while (session_.output().empty() && !session_.closing()) co_await changed_.wait();
      is_sending_ = true;
      for (const std::string& text : std::exchange(session_.output(), {})) {
        if (!co_await socket_.send(text)) co_return;
      }
      is_sending_ = false;
      changed_.notify_all();
      if (session_.output().empty() && session_.closing()) {
        socket_.close(session_.closing()->code, session_.closing()->reason);
        co_return;
      }
    }
  }

  Task<> clock_loop() {
    while (!session_.closing()) {
      co_await sleep_until(session_.due());
      session_.tick(Clock::now());
      changed_.notify_all();
    }
  }

  Executor executor_;
  http::WebSocket& socket_;
  Engine& engine_;
  OpenSession open_;
  SocketOptions options_;
  SocketSession session_;
  MakeContext make_context_;
  Event changed_;
  bool is_sending_ = false;
  TaskGroup tasks_;
  std::map<std::string, std::unique_ptr<TaskGroup>> operations_;
  std::vector<std::unique_ptr<TaskGroup>> stopped_;
};

}  // namespace

Task<> run_socket(http::WebSocket& socket, Engine& engine, OpenSession open,
                  SocketOptions options) {
  const auto protocol = socket_protocol(socket.protocol());
  if (!protocol) {
    socket.close(kNoProtocol, "Subprotocol not acceptable");
    while (co_await socket.receive()) {
    }
    co_return;
  }
  SocketDriver driver(co_await asio::this_coro::executor, socket, *protocol, engine,
                      std::move(open), std::move(options));
  co_await driver.run();
}

Task<> serve_socket(http::Exchange& exchange, Engine& engine, OpenSession open,
                    SocketOptions options) {
  const http::WebSocketOptions websocket = options.websocket;
  co_await http::serve_websocket(
      exchange, kSocketProtocols, websocket,
      [&](http::WebSocket& socket) -> Task<> { return run_socket(socket, engine, open, options); });
}

}  // namespace gitops::graphql
