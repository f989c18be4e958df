#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "common/core/async.hpp"
#include "common/graphql/engine.hpp"
#include "common/graphql/socket_session.hpp"
#include "common/http/server.hpp"
#include "common/http/websocket.hpp"

namespace gitops::graphql {

// Asked before each operation of an open session, and before the next event of a subscription when it was
// last asked `readmit` ago. An error is the operation's answer and its end. What it returns is kept
// until the operation has ended.
using OperationAdmission =
    std::function<Task<Result<std::shared_ptr<void>>>(const Prepared& operation)>;

struct SocketOptions {
  SocketSessionOptions session = {};
  http::WebSocketOptions websocket = {};
  std::chrono::milliseconds timeout{60'000};  // of a query or a mutation
  OperationAdmission admission = {};          // none: every operation
  std::chrono::milliseconds readmit{30'000};
};

// Decides whether a client may open a session, by the payload of its connection_init (JSON text, may be
// empty), and gives the context of its operations, which must live as long as the WebSocket. The
// message of an error is told to the client.
using OpenSession = std::function<Task<Result<Context>>(std::string_view payload)>;

// Runs either protocol on an open WebSocket until it ends. Operations run side by side; those that
// still run at the end are cancelled. A client that does not read holds up its own operations only.
Task<> run_socket(http::WebSocket& socket, Engine& engine, OpenSession open, SocketOptions options);

// Answers a request to open a WebSocket for GraphQL. A client that offers neither protocol is refused
// with close code 4406. Whose site the request comes from (Origin) is the caller's to check.
Task<> serve_socket(http::Exchange& exchange, Engine& engine, OpenSession open,
                    SocketOptions options = {});

}  // namespace gitops::graphql
